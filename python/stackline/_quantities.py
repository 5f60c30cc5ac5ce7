"""Numbers with their units, as people read them."""

from __future__ import annotations

from typing import Optional

_STEPS = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")),
    "bit/s": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")),
}


def quantity(value: float, unit: Optional[str]) -> str:
    """Three digits and the unit that fits: `1.23 ms`."""
    steps = _STEPS.get(unit or "")
    if steps is None:
        return f"{value:.3g}" + (f" {unit}" if unit else "")
    for size, name in steps:
        if abs(value) >= size:
            return f"{_three(value / size)} {name}"
    size, name = steps[-1]
    return f"{_three(value / size)} {name}"


def _three(value: float) -> str:
    """Three significant digits without an exponent."""
    text = f"{value:.3g}"
    return f"{value:.0f}" if "e" in text else text
