"""A run and what can be asked of it; a check; a comparison."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence

from ._errors import InputError
from ._rows import Row, Rows

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow
    from matplotlib.axes import Axes

    from ._events import Events
    from ._parquet import ParquetTable


class Run:
    """The results of a specification.

    results: a row for each measurement and part (`Rows`), in the form of `run --json` of docs/JSON.md.
    path: the run's directory, or None of a run that was not kept.
    json: the whole object as it was answered.
    notes: sentences to read beside the results.
    """

    def __init__(self, json: Mapping[str, Any], directory: str, program: str, notes: Sequence[str] = ()) -> None:
        self.json = dict(json)
        self.notes: List[str] = list(notes)
        self.results = Rows(self.json["measurements"])
        kept = self.json.get("run")
        self.path: Optional[Path] = Path(os.path.abspath(os.path.join(directory, kept))) if kept else None
        self._program = program

    @property
    def name(self) -> Optional[str]:
        """The name of its directory."""
        return self.path.name if self.path is not None else None

    @property
    def seed(self) -> int:
        """The root of all randomness."""
        return int(self.json["seed"])

    @property
    def world(self) -> str:
        """`live`, `emulated` or `simulated`."""
        return str(self.json["world"])

    @property
    def is_complete(self) -> bool:
        """Whether everything planned was done; otherwise `reason` says why not."""
        return bool(self.json["complete"])

    @property
    def reason(self) -> Optional[str]:
        """Why it is not complete, if known."""
        return self.json.get("reason")

    def frame(self) -> pandas.DataFrame:
        """The results as a pandas.DataFrame."""
        return self.results.frame()

    def polars(self) -> polars.DataFrame:
        """The results as a polars.DataFrame."""
        return self.results.polars()

    def arrow(self) -> pyarrow.Table:
        """The results as a pyarrow.Table."""
        return self.results.arrow()

    def plot(self, x: str, y: str, *, by: Optional[str] = "stack", ax: Optional[Axes] = None, **line: Any) -> Axes:
        """Draws a field of the results over another one with matplotlib, a line for each value of `by`.

        `y` is a path such as `response_s.p99`; the name of a quantity (`throughput_bit_s`) draws its mean with the 95 % interval as a
        band. `x` may be a swept variable. Axes whose values grow by factors are logarithmic. Other arguments go to `Axes.plot`.
        """
        from ._plot import plot

        return plot(self.results, x, y, by=by, ax=ax, **line)

    def records(self) -> ParquetTable:
        """`results.parquet`: a row for each run of each part, with every response time."""
        from ._parquet import ParquetTable

        path = self._kept("records")
        absent = InputError(f"{path.name} has no results.parquet: the run was killed", "its journal is runs.jsonl")
        return ParquetTable([path / "results.parquet"], absent)

    def events(self) -> Events:
        """The events of a traced run: an iterable of events, and a table for pandas, polars and pyarrow."""
        from ._events import Events

        return Events(self._kept("events"), self._program)

    def lifelines(self, *, lines: bool = False, by: Optional[str] = None) -> Row:
        """Where the time of each data unit went: `segments`, `outcomes`, `slowest` and, with `lines=True`, every line.

        docs/JSON.md, section `lifelines --json`, has the fields. Times are in ns.
        """
        arguments = ["lifelines", str(self._kept("lifelines")), "--json"]
        if lines:
            arguments.append("--lines")
        if by is not None:
            arguments += ["--by", by]
        return Row(command_json(self._program, arguments))

    def findings(self) -> Rows:
        """What limits the run, the most important first: `sentence`, `confidence`, `share`, `tries` and more."""
        path = self._kept("findings")
        kept = path / "findings.json"
        try:
            found = json.loads(kept.read_text(encoding="utf-8"))
        except FileNotFoundError:
            found = command_json(self._program, ["diagnose", str(path), "--json"])
        except (OSError, ValueError) as cause:
            raise InputError(f"{kept} cannot be read: {cause}", f"`stackline diagnose {path.name}` writes it again") from cause
        return Rows(found["findings"])

    def specification(self) -> str:
        """The specification as it was run."""
        return (self._kept("specification") / "specification.stackline").read_text(encoding="utf-8")

    def _kept(self, what: str) -> Path:
        if self.path is None:
            raise InputError(f"`{what}` reads the run's directory, and this run was not kept", "use stackline.run with keep=True")
        return self.path

    def __repr__(self) -> str:
        where = f" in {self.path}" if self.path is not None else ", not kept"
        state = "" if self.is_complete else f", incomplete ({self.reason or 'no reason is known'})"
        return f"<stackline.Run of {len(self.results)} results, {self.world}{state}{where}>"

    def _repr_html_(self) -> str:
        from ._html import run_table

        return run_table(self)


class Check:
    """What a check found. It is true when the specification is right.

    measurements, runs: how many it makes, 0 of a wrong one.
    most_s: the sum of all time limits in seconds, or None.
    diagnostics: mistakes and warnings: `severity`, `message`, `hint`, `line`, `column`, `text`.
    right: the whole text with its mistakes corrected, where a small change does that.
    """

    def __init__(self, json: Mapping[str, Any]) -> None:
        self.json = dict(json)
        self.is_right = bool(json["ok"])
        self.measurements = int(json.get("measurements", 0))
        self.runs = int(json.get("runs", 0))
        self.most_s: Optional[float] = json.get("most_s")
        self.diagnostics = Rows(json.get("diagnostics") or ())
        self.right: Optional[str] = json.get("right")

    def __bool__(self) -> bool:
        return self.is_right

    def __repr__(self) -> str:
        if self.is_right:
            return f"<stackline.Check: ok, {self.measurements} measurements, {self.runs} runs>"
        errors = [one for one in self.diagnostics if one.severity == "error"]
        return f"<stackline.Check: line {errors[0].line}: {errors[0].message}>" if errors else "<stackline.Check: wrong>"


class Comparison:
    """Two runs, or the stacks of one, compared.

    comparisons: a row for each measurement and part, with `a`, `b`, `pairing`, `metrics`, `caveats`.
    metrics: a row for each metric: `measurement`, `stack`, `metric`, `ratio`, `ci95`, `verdict`, `reason`.
    segments: traces compared segment by segment.
    """

    def __init__(self, json: Mapping[str, Any], notes: Sequence[str] = ()) -> None:
        self.json = dict(json)
        self.notes: List[str] = list(notes)
        self.comparisons = Rows(json["comparisons"])
        self.segments = Rows(json["segments"])
        self.metrics = Rows([row for one in json["comparisons"] for row in _metrics_of(one)])

    def __repr__(self) -> str:
        lines = [f"  {row.text}: {row.metric} {_ratio(row)}" for row in self.metrics]
        return "\n".join(["Comparison:", *lines]) if lines else "<stackline.Comparison of traces>"

    def _repr_html_(self) -> str:
        from ._html import table

        heads = ["measurement", "stack", "metric", "ratio", "95 % interval", "verdict"]
        rows = []
        for row in self.metrics:
            ratio = "" if row.ratio is None else f"{row.ratio:.3f}"
            interval = "" if row.ci95 is None else f"{row.ci95[0]:.3f} to {row.ci95[1]:.3f}"
            rows.append([row.text, row.stack, row.metric, ratio, interval, row.verdict.replace("_", " ")])
        return table(heads, rows)


def _metrics_of(comparison: Mapping[str, Any]) -> List[Dict[str, Any]]:
    side = comparison.get("b") or comparison.get("a") or {}
    return [{"text": side.get("text", ""), "stack": side.get("stack", ""), **metric} for metric in comparison["metrics"]]


def _ratio(row: Row) -> str:
    interval = "" if row.ci95 is None else f" ({row.ci95[0]:.3f} to {row.ci95[1]:.3f})"
    ratio = "-" if row.ratio is None else f"x {row.ratio:.3f}"
    return f"{ratio}{interval}, {row.verdict.replace('_', ' ')}"


def command_json(program: str, arguments: Sequence[str]) -> Dict[str, Any]:
    """What a command prints with `--json`."""
    import subprocess

    from ._errors import from_answer

    done = subprocess.run([program, *arguments], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    try:
        found = json.loads(done.stdout)
    except ValueError:
        found = {}
    if done.returncode == 0 and isinstance(found, dict):
        return found
    said = done.stderr.decode(errors="replace").strip()
    kinds = {2: "input", 3: "environment", 130: "interrupted"}
    raise from_answer(
        {
            "message": found.get("error") or said or f"`stackline {arguments[0]}` ended with {done.returncode}",
            "hint": found.get("hint"),
            "kind": kinds.get(done.returncode, "measurement"),
        }
    )
