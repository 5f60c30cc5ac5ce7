"""What can go wrong: one sentence with the cause, and a hint where there is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence

if TYPE_CHECKING:
    from ._run import Run


class StacklineError(Exception):
    """A request that has no result.

    message: one sentence with the cause.
    hint: what to try, or None.
    kind: who has to act: "input", "environment", "measurement" or "interrupted".
    exit_code: what the command would end with.
    diagnostics: the mistakes of a specification, each with `message`, `line`, `column` and `hint`.
    run: what was measured before it failed, or None.
    """

    kind = "measurement"
    exit_code = 1

    def __init__(
        self,
        message: str,
        hint: Optional[str] = None,
        *,
        diagnostics: Sequence[Mapping[str, Any]] = (),
        right: Optional[str] = None,
    ) -> None:
        super().__init__(message if hint is None else f"{message}\nhint: {hint}")
        self.message = message
        self.hint = hint
        self.diagnostics = list(diagnostics)
        self.right = right
        self.run: Optional[Run] = None

    def __reduce__(self) -> Any:
        # Exceptions cross processes by pickle, as in multiprocessing.
        return _rebuilt, (type(self), self.message, self.hint, self.diagnostics, self.right)


def _rebuilt(
    kind: type[StacklineError],
    message: str,
    hint: Optional[str],
    diagnostics: Sequence[Mapping[str, Any]],
    right: Optional[str],
) -> StacklineError:
    return kind(message, hint, diagnostics=diagnostics, right=right)


class InputError(StacklineError, ValueError):
    """The specification or an argument is wrong."""

    kind = "input"
    exit_code = 2


class EnvironmentFault(StacklineError, OSError):
    """This machine or network cannot do what was asked."""

    kind = "environment"
    exit_code = 3


class MeasurementError(StacklineError, RuntimeError):
    """The measurement began and failed."""


class Interrupted(StacklineError):
    """The request was cancelled."""

    kind = "interrupted"
    exit_code = 130


class ProgramMissing(EnvironmentFault):
    """The program `stackline` was not found, or does not fit this package."""


class SessionEnded(MeasurementError):
    """The program ended in the middle of a request."""


class MissingLibrary(StacklineError, ImportError):
    """An optional library is not installed."""

    kind = "environment"
    exit_code = 3

    def __init__(self, library: str, extra: str) -> None:
        StacklineError.__init__(
            self,
            f"this needs {library}, which is not installed",
            f"pip install {library}, or install stackline with the extra [{extra}]",
        )
        self._parts = (library, extra)

    def __reduce__(self) -> Any:
        return type(self), self._parts


_KINDS = {kind.kind: kind for kind in (InputError, EnvironmentFault, MeasurementError, Interrupted)}


def from_answer(error: Mapping[str, Any]) -> StacklineError:
    """The exception for the `error` of an answer."""
    kind = _KINDS.get(error.get("kind", ""), MeasurementError)
    return kind(
        error["message"],
        error.get("hint"),
        diagnostics=error.get("diagnostics") or (),
        right=error.get("right"),
    )
