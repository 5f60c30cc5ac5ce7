"""The events of a run: one after the other without any library, or as a table."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Iterator, NamedTuple, Tuple, Union

from ._errors import InputError, MeasurementError
from ._parquet import ParquetTable

_WHOLE = re.compile(r"-?[0-9]{1,19}\Z")
_BLANK = " \t\r\n"
# Control characters, blanks, `#`, `%` and `;`; other codes stand for themselves.
_CODE = re.compile("%([01][0-9A-F]|20|23|25|3B|7F)")


class Event(NamedTuple):
    """What happened, where and when. docs/EVENTS.md lists the keywords with the fields of their data."""

    keyword: str
    host: str
    at_ns: int  # On the host's own clock.
    data: Tuple[Union[int, str, None], ...]


class Events(ParquetTable):
    """The events of all hosts of a run.

    Iterating yields each event in the order of time, in constant memory and without any library. `arrow()`, `frame()` and
    `polars()` give a table with the columns `at_ns`, `keyword`, `host`, and of each data field `n1`, `n2`, ... (whole numbers) and
    `t1`, `t2`, ... (texts).
    """

    def __init__(self, run: Path, program: str) -> None:
        absent = InputError(f"{run.name} has no events", "keep them with stackline.run(..., trace=True)")
        super().__init__(sorted((run / "events").glob("*.parquet")), absent)
        self._run = run
        self._program = program

    def __iter__(self) -> Iterator[Event]:
        assert self.files
        process = subprocess.Popen(
            [self._program, "export", str(self._run), "--text", "-"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdout is not None and process.stderr is not None
        is_whole = False
        try:
            for line in process.stdout:
                yield parsed(line.decode(errors="replace"))
            is_whole = True
        finally:
            # Where the caller stops early the pipe closes, and the program ends.
            process.stdout.close()
            said = process.stderr.read().decode(errors="replace").strip()
            process.stderr.close()
            code = process.wait()
        if is_whole and code != 0:
            raise MeasurementError(said or f"`stackline export` ended with {code}")


def parsed(line: str) -> Event:
    """An event from a line of the text form: `KEYWORD; host; seconds; nanoseconds; data; ...`."""
    line = line.strip(_BLANK)
    fields = [field.strip(_BLANK) for field in (line[:-1] if line.endswith(";") else line).split(";")]
    keyword, host, seconds, nanoseconds, *data = fields
    at_ns = int(seconds) * 1_000_000_000 + int(nanoseconds)
    return Event(_plain(keyword), _plain(host), at_ns, tuple(map(_field, data)))


def _field(text: str) -> Union[int, str, None]:
    if not text:
        return None
    return int(text) if _WHOLE.match(text) else _plain(text)


def _plain(text: str) -> str:
    """The text of a field, in which characters of the form itself stand as codes such as `%3B`."""
    return _CODE.sub(lambda found: chr(int(found.group(1), 16)), text) if "%" in text else text
