"""Asks the shardc binary, and wraps the JSON that it answers with."""

from __future__ import annotations

import html
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

Program = Union[str, "os.PathLike[str]"]


class ShardcError(RuntimeError):
    """shardc refused: its diagnostics, and its exit status."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Fields(Mapping[str, Any]):
    """A JSON object, its keys as attributes too."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = dict(values)

    def __getitem__(self, key: str) -> Any:
        return _wrap(self._values[key])

    def __getattr__(self, key: str) -> Any:
        if key.startswith("_"):
            raise AttributeError(key)
        try:
            return self[key]
        except KeyError:
            raise AttributeError(key) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __dir__(self) -> List[str]:
        return sorted({*super().__dir__(), *self._values})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._values!r})"

    def to_dict(self) -> Dict[str, Any]:
        """The object as plain JSON values."""
        return json.loads(json.dumps(self._values))


def _wrap(value: Any) -> Any:
    if isinstance(value, dict):
        return Fields(value)
    if isinstance(value, list):
        return [_wrap(each) for each in value]
    return value


def _binary() -> str:
    name = os.environ.get("SHARDC") or shutil.which("shardc")
    if not name:
        raise FileNotFoundError("shardc is not on the PATH; set SHARDC to the binary")
    return name


def _run(arguments: Sequence[str], statuses: Tuple[int, ...] = (0,)) -> str:
    done = subprocess.run(
        [_binary(), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    # A plan that does not fit (3) has a report too.
    if done.returncode not in statuses:
        raise ShardcError(done.stderr.strip(), done.returncode)
    return done.stdout


def _drawn(text: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "report.json")
        path.write_text(text, encoding="utf-8")
        return _run([str(path), "--emit-html"])


def _table(rows: Any) -> Any:
    import pandas  # type: ignore[import-untyped]

    return pandas.json_normalize(rows)


class Report(Fields):
    """A report of any schema, which a notebook shows as its page."""

    def __init__(self, text: str) -> None:
        super().__init__(json.loads(text))
        self._text = text

    def to_html(self) -> str:
        """The page of `--emit-html`."""
        return _drawn(self._text)

    def save_html(self, path: Program) -> None:
        Path(path).write_text(self.to_html(), encoding="utf-8")

    def _repr_html_(self) -> str:
        page = html.escape(self.to_html(), quote=True)
        return (
            f'<iframe srcdoc="{page}" sandbox="allow-scripts" '
            'style="width: 100%; height: 800px; border: 0"></iframe>'
        )


class Sweep(Report):
    """The report of `--sweep`."""

    def points_table(self) -> Any:
        """A pandas table: each point's values and figures, or its error."""
        rows = []
        for point in self._values["points"]:
            if "serving" in point:
                # Without figures where bounds rule the point out, or an error.
                figures = (point["serving"] or {}).items()
                rows.append({
                    **point["set"],
                    **{key: value for key, value in figures if not isinstance(value, dict)},
                    "error": point.get("error"),
                })
                continue
            report = point.get("report") or {}
            memory, flops = report.get("memory") or {}, report.get("flops") or {}
            rows.append({
                **point["set"],
                **(report.get("time") or {}),
                "memory.peak": memory.get("peak"),
                "memory.fits": memory.get("fits"),
                "flops.mfu": flops.get("mfu"),
                "tokens_per_s": report.get("tokens_per_s"),
                "words": report.get("words"),
                "error": point.get("error"),
            })
        return _table(rows)


class Plan(Report):
    """The report of one plan: docs/CommandLine.md#the-json-report. That of a program
    that serves has its figures in `serving`, and a plan for each of two phases, which
    specs and tables take as `phase="prefill"` or `"decode"`."""

    def __init__(self, text: str, source: Optional[Sequence[str]] = None,
                 program: Optional[str] = None) -> None:
        super().__init__(text)
        self._source, self._program = source, program

    def _ask(self, *options: str, statuses: Tuple[int, ...] = (0,)) -> str:
        if self._source is None:
            raise ShardcError("a recorded report has no program to ask about", 2)
        if self._program is None:
            return _run([*self._source, *options], statuses)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "program.shd")
            path.write_text(self._program, encoding="utf-8")
            return _run([str(path), *self._source, *options], statuses)

    def verify(self) -> Fields:
        """The answer of `--verify`; an error if the plan computes other values."""
        return Fields(json.loads(self._ask("--verify", "--emit-json")))

    def sweep(self, *ranges: str) -> Sweep:
        """`plan.sweep("B in 64, 128")`; several ranges make a grid."""
        options = [each for text in ranges for each in ("--sweep", text)]
        return Sweep(self._ask(*options, "--emit-json", statuses=(0, 3)))

    def config(self, framework: str) -> str:
        """The text of `--emit-config` for `megatron`, `torchtitan` or `maxtext`."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "report.json")
            path.write_text(self._text, encoding="utf-8")
            return _run([str(path), f"--emit-config={framework}"])

    def _plan_of(self, phase: Optional[str]) -> Mapping[str, Any]:
        """The report of the phase, or of the only plan."""
        serving = self._values.get("serving")
        if serving is None:
            if phase is not None:
                raise ValueError(f"only a plan that serves has phases, found {phase!r}")
            return self._values
        if phase not in ("prefill", "decode"):
            raise ValueError(
                "a plan that serves has two phases: phase expects 'prefill' or "
                f"'decode', found {phase!r}"
            )
        return serving[phase]

    def partition_specs(self, phase: Optional[str] = None) -> Dict[str, Tuple[Any, ...]]:
        """For each tensor the arguments of a `jax.sharding.PartitionSpec`: None, the
        name of a mesh axis, or a tuple of names for each dimension. Of a name that
        stands several times, the first."""
        specs: Dict[str, Tuple[Any, ...]] = {}
        for tensor in self._plan_of(phase)["tensors"]:
            spec = tuple(
                None if not dim["axes"]
                else dim["axes"][0] if len(dim["axes"]) == 1
                else tuple(dim["axes"])
                for dim in tensor["dims"]
            )
            specs.setdefault(tensor["name"], spec)
        return specs

    def tensors_table(self, phase: Optional[str] = None) -> Any:
        """The tensors as a pandas table."""
        return _table(self._plan_of(phase)["tensors"])

    def ops_table(self, phase: Optional[str] = None) -> Any:
        """Operations and collectives as a pandas table."""
        return _table(self._plan_of(phase)["ops"])

    def __repr__(self) -> str:
        serving = self._values.get("serving")
        if serving is not None:
            usd, chip_seconds = (
                serving["usd_per_million_output_tokens"],
                serving["chip_seconds_per_request"],
            )
            # Not every machine has a price.
            price = (
                f"{chip_seconds:.4g} chip-seconds per request"
                if usd is None
                else f"{usd:.4g} USD per million output tokens"
            )
            return (
                f"Plan({self._values['words']!r}, "
                f"time to first token {serving['first_token_s']:.4g} s, "
                f"time per token {serving['token_s']:.4g} s, {price}, "
                f"{serving['memory_bytes']} bytes)"
            )
        time, memory = self._values["time"], self._values["memory"]
        return (
            f"Plan({self._values['words']!r}, step {time['scheduled_s']:.4g} s, "
            f"{memory['peak']} bytes, {self._values['plan']['status']})"
        )


def plan(
    program: Program,
    *,
    hardware: Optional[str] = None,
    mesh: Optional[str] = None,
    dims: Optional[Mapping[str, int]] = None,
    task: Optional[str] = None,
    batch: Optional[int] = None,
    sequence: Optional[int] = None,
    generate: Optional[int] = None,
    memory_limit: Optional[str] = None,
    time_limit: Optional[float] = None,
    options: Sequence[str] = (),
) -> Plan:
    """Plans a program: the path of one, or its text if that has several lines.

    `hardware`, `mesh`, `dims`, `memory_limit` and `time_limit` (seconds) are the
    options of the same names; `options` are any others. `task` (`train`,
    `forward`, `decode`, `serve`), `batch`, `sequence` and, with `serve`, `generate`
    belong to a `config.json`. A plan that does not fit in memory is returned, with
    `memory.fits` (of one that serves `serving.fits`) false; other failures raise
    ShardcError."""
    arguments: List[str] = []
    text = None
    if isinstance(program, str) and "\n" in program:
        text = program
    else:
        arguments.append(os.fspath(program))
    if hardware is not None:
        arguments += ["--hardware", hardware]
    if mesh is not None:
        arguments += ["--mesh", mesh]
    for name, size in (dims or {}).items():
        arguments += ["--dim", f"{name}={size}"]
    for option, value in (
        ("task", task),
        ("batch", batch),
        ("sequence", sequence),
        ("generate", generate),
    ):
        if value is not None:
            arguments.append(f"--{option}={value}")
    if memory_limit is not None:
        arguments += ["--memory-limit", memory_limit]
    if time_limit is not None:
        arguments += ["--time-limit", str(time_limit)]
    arguments += options
    asked = Plan("{}", arguments, text)
    report = asked._ask("--emit-json", "--timeline", statuses=(0, 3))
    return Plan(report, arguments, text)


def load(path: Program) -> Report:
    """A recorded report (`--emit-json -o PATH`): a Plan, a Sweep, or a Report of another
    schema."""
    text = Path(path).read_text(encoding="utf-8")
    try:
        schema = json.loads(text)["schema"]
    except (ValueError, KeyError, TypeError):
        raise ShardcError(f"{path} is no report of shardc", 1) from None
    if schema == "shardc.cost/1":
        return Plan(text)
    return Sweep(text) if schema == "shardc.sweep/1" else Report(text)
