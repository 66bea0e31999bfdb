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


def write_config(folder):
    config = {
        "model_type": "llama",
        "hidden_size": 512,
        "intermediate_size": 1024,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "vocab_size": 1024,
    }
    path = Path(folder, "config.json")
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


def refused(act):
    try:
        act()
    except ValueError as error:
        return str(error)
    raise AssertionError("no error")


def test_config_of_a_checkpoint():
    with tempfile.TemporaryDirectory() as folder:
        path = write_config(folder)
        chips = {"hardware": "h100[4]", "mesh": "[X=4]"}
        plan = shardc.plan(path, task="forward", batch=8, sequence=256, **chips)
        assert plan.training is None
        assert plan.tokens == 8 * 256
        assert shardc.plan(path, batch=8, sequence=256, **chips).training is not None
        assert "task" in raises(2, lambda: shardc.plan(PROGRAM, task="forward"))


def test_serving():
    with tempfile.TemporaryDirectory() as folder:
        plan = shardc.plan(
            write_config(folder),
            task="serve",
            batch=8,
            sequence=256,
            generate=56,
            hardware="h100[4]",
            mesh="[X=4]",
            options=["--objective=upper"],
        )
        sweep = plan.sweep("B in 8, 16")
    serving = plan.serving
    assert f"time to first token {serving.first_token_s:.4g} s" in repr(plan)
    assert f"time per token {serving.token_s:.4g} s" in repr(plan)
    assert f"{serving.usd_per_million_output_tokens:.4g} USD per million output" in repr(plan)
    # A prompt has the other 256 - 56 tokens; decode makes one of each sequence.
    assert serving.prefill.tokens == 200 and serving.decode.tokens == 8
    for phase in ("prefill", "decode"):
        specs = plan.partition_specs(phase)
        assert set(specs) == {tensor["name"] for tensor in serving[phase].tensors}
    # Both phases have one layout of the weights.
    assert plan.partition_specs("prefill")["Wq"] == plan.partition_specs("decode")["Wq"]
    for act in (plan.partition_specs, plan.tensors_table, plan.ops_table):
        assert "phase expects 'prefill' or 'decode', found None" in refused(act)
    only = shardc.plan(PROGRAM)
    assert "found 'decode'" in refused(lambda: only.partition_specs("decode"))
    assert [point["set"]["B"] for point in sweep.points] == [8, 16]
    try:
        import pandas  # noqa: F401
    except ImportError:
        return
    assert list(plan.ops_table("decode")["name"]) == [op.name for op in serving.decode.ops]
    table = sweep.points_table()
    assert list(table["token_s"]) == [point.serving.token_s for point in sweep.points]
    # Bounds rule points out, which then have no figures.
    ruled_out = {"points": [{"set": {"B": 4}, "serving": None, "at_least": {"token_s": 1}}]}
    assert list(shardc.Sweep(json.dumps(ruled_out)).points_table()["B"]) == [4]


def test_recorded_reports():
    plan = shardc.plan(PROGRAM)
    reports = {
        "plan": (plan, shardc.Plan),
        "sweep": (plan.sweep("B in 1024, 2048"), shardc.Sweep),
        "curve": (shardc.Report(plan._ask("--memory-curve", "--emit-json")), shardc.Report),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, (report, kind) in reports.items():
            path = Path(folder, name + ".json")
            path.write_text(json.dumps(report.to_dict()), encoding="utf-8")
            loaded = shardc.load(path)
            assert type(loaded) is kind, type(loaded)
            assert loaded.to_dict() == report.to_dict() and repr(loaded) == repr(report)
        other = Path(folder, "other.json")
        other.write_text("[]", encoding="utf-8")
        try:
            shardc.load(other)
            raise AssertionError("a list is no report")
        except shardc.ShardcError as error:
            assert "is no report of shardc" in str(error)


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
