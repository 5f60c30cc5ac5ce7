"""Results as one HTML table for notebooks. Every text of a run is escaped; colours are the notebook's own."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, List, Mapping, Optional, Sequence

from ._quantities import quantity

if TYPE_CHECKING:
    from ._rows import Row
    from ._run import Run

# Rows that a table shows; the rest is counted.
_MOST_ROWS = 100
# The main metrics, with the field of each.
_METRICS = {"throughput": "throughput_bit_s", "response": "response_s", "connect": "connect_s"}


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()) -> str:
    """A table of these texts, which are escaped here, with notes below it."""
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in rows[:_MOST_ROWS]
    )
    below = list(notes)
    if len(rows) > _MOST_ROWS:
        below.insert(0, f"and {len(rows) - _MOST_ROWS} more rows")
    foot = "".join(f"<br>{escape(text)}" for text in below)
    caption = f'<caption style="caption-side:bottom;text-align:left">{foot[4:]}</caption>' if foot else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def run_table(run: Run) -> str:
    """The main figure of each measurement of a run."""
    varied = list(dict.fromkeys(name for row in run.results for name in row["variables"]))
    heads = ["measurement", "stack", *varied, "runs", "metric", "mean", "95 % interval", "median", "p99", "doubts"]
    rows = [_cells(row, varied) for row in run.results]
    notes = [] if run.is_complete else [f"INCOMPLETE: {run.reason or 'no reason is known'}"]
    notes += run.notes[:3]
    notes.append(f"kept in {run.path}" if run.path is not None else "not kept")
    return table(heads, rows, notes)


def _cells(row: Row, varied: Sequence[str]) -> List[str]:
    main = row.main
    field = _METRICS.get(main or "")
    figure: Optional[Any] = row[field] if field is not None else None
    what = "bit/s" if main == "throughput" else "s"

    def cell(name: str) -> str:
        return "" if figure is None or figure[name] is None else quantity(figure[name], what)

    interval = figure["ci95"] if figure is not None else None
    values: Mapping[str, Any] = row["variables"]
    text = row.text if row.part in (row.text, "all") else f"{row.text}: {row.part}"
    return [
        text,
        row.stack,
        *(f"{values[name]:g}" if name in values else "" for name in varied),
        str(row.runs),
        main or "",
        cell("mean"),
        " to ".join(quantity(end, what) for end in interval) if interval else "",
        cell("median"),
        cell("p99"),
        "; ".join(row.flags),
    ]


def table_of_columns(columns: Mapping[str, Sequence[Any]]) -> str:
    """A table of all columns that have a value."""
    named = {name: column for name, column in columns.items() if any(value is not None for value in column)}
    count = max((len(column) for column in named.values()), default=0)
    rows = [[_plain(column[index]) for column in named.values()] for index in range(count)]
    return table(list(named), rows)


def _plain(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
