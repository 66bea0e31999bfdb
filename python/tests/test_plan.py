"""Plans in Python: every field is the JSON report's."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import shardc

PROGRAM = """hardware tpu_v5e[4, 4]
mesh [X=4, Y=4]
dim B = 1024, D = 4096, F = 4 * D
input  In:   bf16[B, D]
weight Win:  bf16[D, F]
weight Wout: bf16[F, D]
H[B, F]   = relu(In[B, D] * Win[D, F])
Out[B, D] = H[B, F] * Wout[F, D]
output Out
"""


def raises(status, act):
    try:
        act()
    except shardc.ShardcError as error:
        assert error.status == status, error
        return str(error)
    raise AssertionError("no error")


def test_fields_are_the_reports():
    plan = shardc.plan(PROGRAM)
    report = json.loads(
        subprocess.run(
            [os.environ.get("SHARDC", "shardc"), "-", "--emit-json", "--timeline"],
            input=PROGRAM,
            capture_output=True,
            check=True,
            text=True,
        ).stdout
    )
    got = plan.to_dict()
    for each in (got, report):
        del each["file"]
    for each in got["tensors"] + got["ops"] + report["tensors"] + report["ops"]:
        del each["loc"]
    got["memory"].pop("at"), report["memory"].pop("at")
    assert got == report
    assert plan.time.scheduled_s == report["time"]["scheduled_s"]
    assert plan.mesh.axes[0].name == "X"
    assert set(plan.partition_specs()) >= {"In", "Win", "Wout", "Out"}


def test_page_and_questions():
    plan = shardc.plan(PROGRAM, dims={"B": 2048}, mesh="[X=16]")
    assert plan.mesh.axes[0].size == 16
    assert plan.verify()["schema"].startswith("shardc.")
    sweep = plan.sweep("D in 1024, 2048")
    assert [point["set"]["D"] for point in sweep.points] == [1024, 2048]
    for report in (plan, sweep):
        assert report.to_html().startswith("<!doctype html>")
        assert report._repr_html_().startswith("<iframe srcdoc=")


def test_errors():
    assert "expected" in raises(1, lambda: shardc.plan("hardware\n"))
    raises(2, lambda: shardc.plan("no-such-file.shd"))
    raises(1, lambda: shardc.plan(PROGRAM).config("megatron"))


def test_config_of_a_checkpoint():
    config = {
        "model_type": "llama",
        "hidden_size": 512,
        "intermediate_size": 1024,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "vocab_size": 1024,
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "config.json")
        path.write_text(json.dumps(config), encoding="utf-8")
        chips = {"hardware": "h100[4]", "mesh": "[X=4]"}
        plan = shardc.plan(path, task="forward", batch=8, sequence=256, **chips)
        assert plan.training is None
        assert plan.tokens == 8 * 256
        assert shardc.plan(path, batch=8, sequence=256, **chips).training is not None
        assert "task" in raises(2, lambda: shardc.plan(PROGRAM, task="forward"))


def test_memory_that_does_not_suffice():
    plan = shardc.plan(PROGRAM, memory_limit="1MB")
    assert plan.memory.fits is False


def test_tables():
    try:
        import pandas  # noqa: F401
    except ImportError:
        return
    plan = shardc.plan(PROGRAM)
    assert list(plan.ops_table()["name"]) == [op["name"] for op in plan.ops]
    points = plan.sweep("B in 1024, 1023")
    table = points.points_table()
    assert list(table["B"]) == [1024, 1023]
    report = points.points[0]["report"]
    assert table["scheduled_s"][0] == report["time"]["scheduled_s"]
    assert table["memory.peak"][0] == report["memory"]["peak"]


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print(name, "passed")
