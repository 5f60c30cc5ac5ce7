"""Measures, simulates and predicts networked applications with stackline.

    import stackline

    run = stackline.run("10 request_response 32*1000 over tcp, unix")
    for row in run.results:
        print(row.stack, row.response_s.median, row.response_s.p99)

Times are in seconds, sizes in bytes and rates in bit/s, unless a name ends otherwise (`_ns`, `_us`); `stackline.unit` gives the
unit of a name. What could not be measured is None, never zero. docs/howto/PYTHON.md has examples, docs/JSON.md every field.

The package needs Python 3.8 and the program `stackline`; pandas, polars, pyarrow and matplotlib are used where they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._api import check, compare, open_run, predict, run, runs, session, simulate
from ._errors import (
    EnvironmentFault,
    InputError,
    Interrupted,
    MeasurementError,
    MissingLibrary,
    ProgramMissing,
    SessionEnded,
    StacklineError,
)
from ._rows import Row, Rows, unit
from ._run import Check, Comparison, Run
from ._session import Session
from ._version import __version__

if TYPE_CHECKING:
    from ._specification import (
        Application,
        Network,
        Specification,
        Stack,
        Variable,
        application,
        bulk_get,
        bulk_put,
        connect_disconnect,
        request_response,
        stack,
        stream,
    )

__all__ = [
    "Application",
    "Check",
    "Comparison",
    "EnvironmentFault",
    "InputError",
    "Interrupted",
    "MeasurementError",
    "MissingLibrary",
    "Network",
    "ProgramMissing",
    "Row",
    "Rows",
    "Run",
    "Session",
    "SessionEnded",
    "Specification",
    "Stack",
    "StacklineError",
    "Variable",
    "__version__",
    "application",
    "bulk_get",
    "bulk_put",
    "check",
    "compare",
    "connect_disconnect",
    "open_run",
    "predict",
    "request_response",
    "run",
    "runs",
    "session",
    "simulate",
    "stack",
    "stream",
    "unit",
]

# What builds specifications is loaded when it is first used.
_BUILDER = frozenset(
    {
        "Application",
        "Network",
        "Specification",
        "Stack",
        "Variable",
        "application",
        "bulk_get",
        "bulk_put",
        "connect_disconnect",
        "request_response",
        "stack",
        "stream",
    }
)


def __getattr__(name: str) -> object:
    if name in _BUILDER:
        from . import _specification

        return getattr(_specification, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
