"""Results as lines, drawn by matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple

from ._errors import InputError, MissingLibrary
from ._rows import Row, Rows, unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# From the smallest to the largest value of an axis of a geometric series.
_WIDE = 20.0


def plot(rows: Rows, x: str, y: str, *, by: Optional[str], ax: Optional[Axes], **line: Any) -> Axes:
    """A line for each value of `by`, with the 95 % interval as a band where `y` is a quantity."""
    try:
        import matplotlib.pyplot as pyplot
    except ImportError:
        raise MissingLibrary("matplotlib", "plot") from None
    lines = _lines(rows, x, y, by)
    if ax is None:
        ax = pyplot.subplots()[1]
    for name, points in lines.items():
        at = [point[0] for point in points]
        drawn = ax.plot(at, [point[1] for point in points], **{"marker": "o", "label": name, **line})
        bands = [point[2] for point in points]
        if any(band is not None for band in bands):
            low = [band[0] if band is not None else point[1] for band, point in zip(bands, points)]
            high = [band[1] if band is not None else point[1] for band, point in zip(bands, points)]
            ax.fill_between(at, low, high, color=drawn[0].get_color(), alpha=0.2, linewidth=0)
    all_x = [point[0] for points in lines.values() for point in points]
    all_y = [point[1] for points in lines.values() for point in points]
    if is_geometric(all_x):
        ax.set_xscale("log", base=2 if _are_powers_of_two(all_x) else 10)
    if is_geometric(all_y):
        ax.set_yscale("log")
    ax.set_xlabel(_label(x))
    ax.set_ylabel(_label(y))
    if len(lines) > 1:
        ax.legend(title=by)
    return ax


Point = Tuple[float, float, Optional[Sequence[float]]]


def _lines(rows: Rows, x: str, y: str, by: Optional[str]) -> Dict[str, List[Point]]:
    """The points of each line, in the order of x. Rows without one of the values have no point."""
    lines: Dict[str, List[Point]] = {}
    for row in rows:
        at, value = _number(row, x), _number(row, y)
        if at is None or value is None:
            continue
        name = str(row.value(by)) if by is not None else ""
        quantity = row.value(y)
        band = quantity["ci95"] if isinstance(quantity, Row) else None
        lines.setdefault(name, []).append((at, value, band))
    if not lines:
        raise InputError(f"no result has both `{x}` and `{y}`, so there is nothing to draw", "dir(run.results[0]) lists the fields")
    for points in lines.values():
        points.sort(key=lambda point: point[0])
    return lines


def _number(row: Row, path: str) -> Optional[float]:
    value = row.value(path)
    if isinstance(value, Row):
        value = value["mean"]
    if value is None:
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    raise InputError(f"`{path}` is not a number, but {value!r}", "name a number, such as response_s.p99 or a swept variable")


def is_geometric(values: Sequence[float]) -> bool:
    """Whether an axis is better logarithmic: positive, wide, and steps that grow."""
    distinct = sorted(set(values))
    if len(distinct) < 3 or distinct[0] <= 0 or distinct[-1] / distinct[0] < _WIDE:
        return False
    middle = distinct[(len(distinct) - 1) // 2]
    return middle * middle <= 4 * distinct[0] * distinct[-1]


def _are_powers_of_two(values: Sequence[float]) -> bool:
    return all(value >= 1 and value == int(value) and int(value) & (int(value) - 1) == 0 for value in values)


def _label(path: str) -> str:
    what = unit(path)
    return f"{path} [{what}]" if what else path

