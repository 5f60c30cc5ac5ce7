"""Progress of a request as a line on a terminal; nothing where there is none."""

from __future__ import annotations

import sys
import time
from typing import Any, Callable, Mapping, Optional, TextIO, Union

from ._terminal import columns_of, harmless

Progress = Callable[[Mapping[str, Any]], None]
# What the argument `progress` of a request may be: None for a line on a terminal, False for nothing, or a function that gets
# a mapping with `done`, `total`, `now` and `elapsed_s`.
ProgressArgument = Union[None, bool, Progress]

_FIRST = 0.5  # Seconds until the first line: what is done before that needs none.


class ReportedProgress:
    """Passes progress on to a function, and at the end that all is done."""

    def __init__(self, function: Progress) -> None:
        self._function = function
        self._last: Optional[Mapping[str, Any]] = None

    def __call__(self, progress: Mapping[str, Any]) -> None:
        self._last = progress
        self._function(progress)

    def complete(self) -> None:
        if self._last is not None and self._last["done"] != self._last["total"]:
            self({**self._last, "done": self._last["total"], "now": None})


class ProgressLine:
    """One line that is drawn again and again, and is gone at the end."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._begun = time.monotonic()
        self._is_drawn = False
        encoding = (getattr(stream, "encoding", "") or "").lower().replace("-", "")
        self._blocks = "█" if encoding == "utf8" else "#"

    def __call__(self, progress: Mapping[str, Any]) -> None:
        if time.monotonic() - self._begun < _FIRST:
            return
        columns = columns_of(self._stream)
        self._write("\r" + line(progress, columns - 1, self._blocks).ljust(columns - 1))
        self._is_drawn = True

    def complete(self) -> None:
        self.close()

    def close(self) -> None:
        if self._is_drawn:
            self._write("\r" + " " * (columns_of(self._stream) - 1) + "\r")
            self._is_drawn = False

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            pass


def line(progress: Mapping[str, Any], width: int, block: str = "#") -> str:
    """The line: share, bar, counts, time so far and left, and what is being done."""
    done, total = int(progress["done"]), max(1, int(progress["total"]))
    elapsed = float(progress.get("elapsed_s", 0.0))
    share = min(1.0, done / total)
    left = f"<{clock(elapsed * (total - done) / done)}" if done else ""
    bar = (block * int(share * 20)).ljust(20)
    now = harmless(str(progress.get("now") or ""))
    text = f"{share:4.0%}|{bar}| {done}/{total} [{clock(elapsed)}{left}] {now}"
    return text[: max(0, width)]


def clock(seconds: float) -> str:
    """Seconds as mm:ss or h:mm:ss."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes:02}:{rest:02}"


def shown(argument: ProgressArgument) -> tuple[Union[None, ReportedProgress, ProgressLine], Callable[[], None]]:
    """What gets the progress, and what is called at the end."""
    if callable(argument):
        return ReportedProgress(argument), lambda: None
    stream = sys.stderr
    wanted = argument is not False and stream is not None
    if argument is None and wanted:
        try:
            wanted = stream.isatty()
        except ValueError:
            wanted = False
    if not wanted:
        return None, lambda: None
    drawn = ProgressLine(stream)
    return drawn, drawn.close
