"""Timestamped events from any Python program, for stackline.

    import stackline_events as events

    events.from_env()                       # STACKLINE_EVENTS=file:app.tape, text:app.log or off
    events.event("APP_SEND", unit, stream, offset, size)

An event is a name, the present time and data: whole numbers, texts, or None for what is not known. Anything else is written
as ``str`` makes it. Emitting puts it into memory; a thread writes batches of them, in the binary form or the text form of
docs/EVENTS.md. What there is no room for, or a full disk does not take, is counted and reported as an event, ``EVENTS_LOST``. A
forked process records nothing until it starts itself. It never raises into the program that emits.

The whole client is this file; it needs Python 3.8 and nothing else.
"""

import atexit
import collections
import contextlib
import contextvars
import fcntl
import io
import itertools
import logging
import operator
import os
import re
import secrets
import socket
import stat
import struct
import threading
import time
from typing import NamedTuple, Optional

__all__ = ["Handler", "Totals", "Traceparent", "during", "event", "from_env", "of_unit", "recording", "start", "stop", "totals"]

MOST_VALUES = 16
LONGEST_TEXT = 4096
_FIRST = 16  # Numbers of keywords below this mean something of the form itself.
_DEFINE = 1  # Gives a number its name.
_HOST = 2  # Whose the following records are.
_MOST_WAITING = 1 << 17  # Events in memory; further ones are lost. They were at most 20 ms more when this is noticed.
_PAUSE = 0.02
_AT_ONCE = 1 << 13  # Events that are written together.


class Totals(NamedTuple):
    """What was done between start and stop. Recorded and lost together are what was emitted."""

    recorded: int
    lost: int
    fault: Optional[str]  # Why the file took nothing, the first time it did not.


_waiting = collections.deque()
_append = _waiting.append
_now = time.monotonic_ns
_room = False  # Somebody records, and there is room.
_on = False
_lost = itertools.count()  # Counts in one step, whichever thread does it.
_recorder = None
_totals = Totals(0, 0, None)
_lock = threading.Lock()


def event(keyword, *values):
    """Emits an event now: its keyword, and its data in the order that docs/EVENTS.md gives for it; at most 16."""
    if _room:
        _append((keyword, _now(), values))
    elif _on:
        next(_lost)


def from_env(host=None):
    """Starts what the variable STACKLINE_EVENTS says; False when it is not set or ``off``."""
    return start(os.environ.get("STACKLINE_EVENTS", "off"), host)


def start(setting, host=None):
    """Records into ``file:PATH`` (binary form) or ``text:PATH`` until stop() or the program's end; False for ``off``.

    ``%p`` in PATH is the process's number. ``host`` is whose the events are: what this machine calls itself, if not given.
    Raises ValueError for another setting, OSError when the file cannot be written or another process writes it.
    """
    global _recorder, _room, _on, _lost
    form, colon, path = setting.partition(":")
    if setting in ("", "off"):
        return False
    if form not in ("file", "text") or not path:
        raise ValueError(f"STACKLINE_EVENTS: {setting!r} is not an event destination; hint: use file:PATH, text:PATH or off")
    with _lock:
        if _recorder is not None:
            raise RuntimeError("this process records events already")
        recorder = _Recorder(path.replace("%p", str(os.getpid())), form == "text", host or socket.gethostname() or "localhost")
        _waiting.clear()
        _lost = itertools.count()
        _recorder = recorder
        _room = _on = True
        recorder.start()
    return True


def stop():
    """Ends it, when everything emitted before is in the file; what was recorded and lost."""
    global _recorder, _room, _on, _totals
    with _lock:
        recorder, _recorder = _recorder, None
        _room = _on = False
        if recorder is not None:
            _totals = recorder.finish()
    return _totals


def totals():
    """What the last stop() returned."""
    return _totals


@contextlib.contextmanager
def recording(host=None):
    """Records as STACKLINE_EVENTS says while in it."""
    started = from_env(host)
    try:
        yield started
    finally:
        if started:
            stop()


class during:
    """Emits ``begin`` when it is entered and ``end`` when it is left, with the same data; ``failed`` instead of ``end`` where
    an exception leaves it, or nothing, so that the lifeline shows where it ended."""

    __slots__ = ("_begin", "_end", "_values", "_failed")

    def __init__(self, begin, end, *values, failed=None):
        self._begin, self._end, self._values, self._failed = begin, end, values, failed

    def __enter__(self):
        event(self._begin, *self._values)
        return self

    def __exit__(self, kind, error, trace):
        keyword = self._end if kind is None else self._failed
        if keyword is not None:
            event(keyword, *self._values)
        return False


_unit = contextvars.ContextVar("stackline_unit", default=None)


@contextlib.contextmanager
def of_unit(unit):
    """What is logged in it, in this thread or task, belongs to that data unit."""
    token = _unit.set(unit)
    try:
        yield unit
    finally:
        _unit.reset(token)


class Handler(logging.Handler):
    """Makes events of what a program logs: ``LOG; unit; stream; offset; bytes; level; logger; message``."""

    def __init__(self, keyword="LOG", level=logging.NOTSET):
        super().__init__(level)
        self.keyword = keyword

    def emit(self, record):
        try:
            event(self.keyword, _unit.get(), None, None, None, record.levelname.lower(), record.name, self.format(record))
        except Exception:  # As every handler: what cannot be logged does not end the program.
            self.handleError(record)


class Traceparent(NamedTuple):
    """W3C Trace Context's header: an id that travels with a request in a field of the application's own."""

    trace: int
    parent: int
    flags: int = 0

    @classmethod
    def new(cls):
        """Of a new trace."""
        return cls(secrets.randbits(128) or 1, secrets.randbits(64) or 1)

    @classmethod
    def parse(cls, text):
        """Reads a header's value, of this version or a later one; None when it is none."""
        found = _TRACEPARENT.match(text.strip(" \t")) if len(text) <= 512 else None
        if found is None or found[1] == "ff" or (found[1] == "00" and found[5]):
            return None
        trace, parent = int(found[2], 16), int(found[3], 16)
        return cls(trace, parent, int(found[4], 16)) if trace and parent else None

    def child(self):
        """The same trace, another request, when this end calls in its turn."""
        return self._replace(parent=secrets.randbits(64) or 1)

    @property
    def unit(self):
        """The ``unit`` of this request's events; every client in every language makes the same of it."""
        return (self.trace ^ self.parent) & (1 << 63) - 1

    def __str__(self):
        return f"00-{self.trace:032x}-{self.parent:016x}-{self.flags & 1:02x}"


_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?\Z", re.ASCII | re.DOTALL)


class _Recorder:
    """Writes what was emitted. Only its own thread uses it, and finish() when that has ended."""

    def __init__(self, path, as_text, host):
        self._offset = time.time_ns() - _now()
        self._form = _Text(host) if as_text else _Tape(host)
        self._file = _File(path, as_text)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, name="stackline-events", daemon=True)
        self._recorded = self._lost = self._unreported = self._counted = 0
        self._fault = None

    def start(self):
        self._thread.start()

    def finish(self):
        self._ended.set()
        self._thread.join()
        self._drain()
        self._file.close()
        return Totals(self._recorded, self._lost, self._fault)

    def leave(self):
        """In a process that was forked off."""
        self._file.close_copy()

    def _work(self):
        global _room
        while not self._ended.wait(_PAUSE):
            self._drain()
            _room = _on and len(_waiting) < _MOST_WAITING

    def _drain(self):
        left = len(_waiting)
        while True:
            batch = [_waiting.popleft() for _ in range(min(left, _AT_ONCE))]
            left -= len(batch)
            self._lose(self._stray())
            reported = self._unreported
            if reported:
                batch.append(("EVENTS_LOST", _now(), (reported,)))
            if not batch:
                return
            self._write(batch, len(batch) - bool(reported), reported)
            if left <= 0:
                return

    def _stray(self):
        """Events there was no room for since the last read; a read counts itself."""
        now = next(_lost)
        new, self._counted = now - self._counted, now + 1
        return new

    def _lose(self, count):
        self._lost += count
        self._unreported += count

    def _write(self, batch, count, reported):
        try:
            self._file.write(self._form.encode(batch, self._offset))
            self._recorded += count
            self._unreported -= reported
        except Exception as error:  # Whatever it is, the thread goes on with the next batch.
            self._fault = self._fault or str(error) or type(error).__name__
            self._form.begin_again()
            self._lose(count)


class _File:
    """A file to the end of which batches are added, whole ones only, by this process alone."""

    def __init__(self, path, as_text):
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        try:
            self._open(path, as_text)
        except BaseException:
            os.close(self._file)
            raise

    def _open(self, path, as_text):
        self._length = 0
        if not stat.S_ISREG(os.fstat(self._file).st_mode):
            return  # A device or a pipe has no length, and others may write to it as they like.
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            hint = "another process is writing its events there; hint: put %p in the name to give each process its own file"
            raise OSError(hint) from None
        except OSError:
            pass  # A file system without locks is no reason to record nothing.
        self._length = os.fstat(self._file).st_size
        if not self._length:
            return
        if not as_text:
            with open(path, "rb") as file:
                self._length = whole(file)
            if not self._length:
                raise OSError(f"{path}: the file already exists and does not contain events")
            os.ftruncate(self._file, self._length)
        elif os.pread(self._file, 1, self._length - 1) != b"\n":
            self.write(b"\n")

    def write(self, data):
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError:
            # What cannot be cut (a pipe, a device) has a reader who sees the end of the batch missing.
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._length)
            raise
        self._length += len(data)

    def close(self):
        # The lock belongs to every copy of the descriptor, also one in a process that was forked off.
        with contextlib.suppress(OSError):
            fcntl.flock(self._file, fcntl.LOCK_UN)
        os.close(self._file)

    def close_copy(self):
        """In a process that was forked off: the lock stays with the one that writes."""
        with contextlib.suppress(OSError):
            os.close(self._file)


def whole(file):
    """How many bytes of a file of the binary form are whole records; 0 where it does not begin as one."""
    length = 0
    file = io.BufferedReader(file, 1 << 16) if isinstance(file, io.RawIOBase) else file
    while True:
        record = _pass_over(file, length == 0)
        if not record:
            return length
        length += record


def _pass_over(file, first):
    """Bytes of the next record; 0 where there is none."""
    head = file.read(16)
    if len(head) < 16 or head[3] > MOST_VALUES or (first and head[0] | head[1] << 8 | head[2] << 16 != _HOST):
        return 0
    length = 16
    kinds = int.from_bytes(head[4:8], "little")
    for index in range(head[3]):
        kind = kinds >> 2 * index & 3
        if kind == 0:
            continue
        word = file.read(8)
        if kind == 3 or len(word) < 8:
            return 0
        length += 8
        if kind == 2:
            size = int.from_bytes(word, "little")
            padded = (size + 7) // 8 * 8
            if size > LONGEST_TEXT or len(file.read(padded)) < padded:
                return 0
            length += padded
    return length


def _number(value):
    """The whole number that it is, within 64 bits; None where it is none."""
    try:
        return max(-(1 << 63), min((1 << 63) - 1, operator.index(value)))
    except Exception:  # Of the value's own __index__: an array has one, and refuses.
        return None


def _characters(value):
    """A text as it is kept: UTF-8, cut before the character that does not fit."""
    try:
        data = str(value).encode("utf-8", "replace")
    except Exception as error:  # Of the value's own __str__.
        data = type(error).__name__.encode()
    if len(data) > LONGEST_TEXT:
        data = data[:LONGEST_TEXT].decode("utf-8", "ignore").encode()
    return data


class _Tape:
    """The binary form."""

    def __init__(self, host):
        self._host = host
        self.begin_again()

    def begin_again(self):
        """For a new reader: the host and every name are defined again."""
        self._ids = {}
        self._plain = {}
        self._begin = self._record(_HOST, 0, (self._host,))

    def encode(self, batch, offset):
        records, self._begin = [self._begin], b""
        add, plain = records.append, self._plain
        for keyword, at, values in batch:
            try:
                # Most events are a name and numbers.
                pack, head = plain[keyword, len(values)]
                add(pack(head, at + offset, *values))
            except (KeyError, TypeError, struct.error):
                add(self._other(keyword, at + offset, values))
        return b"".join(records)

    def _other(self, keyword, at, values):
        """What has a new name, or not numbers alone."""
        values = values[:MOST_VALUES]
        name = keyword if isinstance(keyword, str) else _characters(keyword).decode()
        definition = b""
        if name not in self._ids:
            self._ids[name] = _FIRST + len(self._ids)
            definition = self._record(_DEFINE, 0, (self._ids[name], name))
        number, count = self._ids[name], len(values)
        head = number | count << 24 | sum(1 << 32 + 2 * index for index in range(count))
        self._plain[name, count] = struct.Struct(f"<QQ{count}q").pack, head
        return definition + self._record(number, at, values)

    @staticmethod
    def _record(number, at, values):
        head, words = number | len(values) << 24, []
        for index, value in enumerate(values):
            if value is None:
                continue
            whole_number = _number(value)
            head |= (2 if whole_number is None else 1) << 32 + 2 * index
            if whole_number is None:
                data = _characters(value)
                words.append(struct.pack("<Q", len(data)) + data + bytes(-len(data) % 8))
            else:
                words.append(struct.pack("<q", whole_number))
        return struct.pack("<QQ", head, at) + b"".join(words)


class _Text:
    """The text form of 1996."""

    def __init__(self, host):
        self._host = _field(host)
        self._names = {}
        self._plain = {}

    def begin_again(self):
        """Each line says everything itself."""

    def encode(self, batch, offset):
        lines = []
        add, plain = lines.append, self._plain
        for keyword, at, values in batch:
            seconds, nanos = divmod(at + offset, 1_000_000_000)
            try:
                # Most events are a name and numbers of 64 bits.
                form, check = plain[keyword, len(values)]
                check(*values)
                add(form % (seconds, nanos, *values))
            except (KeyError, TypeError, struct.error):
                add(self._other(keyword, seconds, nanos, values[:MOST_VALUES]))
        return "".join(lines).encode()

    def _other(self, keyword, seconds, nanos, values):
        """What has a new name, or not numbers alone."""
        begin, count = f"{self._name(keyword)}; {self._host}; ", len(values)
        if isinstance(keyword, str):
            form = begin.replace("%", "%%") + "; ".join(["%d"] * (2 + count)) + "\n"
            self._plain[keyword, count] = form, struct.Struct(f"{count}q").pack
        fields = [_data(value) for value in values]
        # An empty last field would be taken for the end of the one before.
        end = ";\n" if fields and not fields[-1] else "\n"
        return begin + "; ".join([str(seconds), str(nanos), *fields]) + end

    def _name(self, keyword):
        try:
            return self._names[keyword]
        except (KeyError, TypeError):
            name = _field(_characters(keyword).decode())
            name = "%23" + name[1:] if name.startswith("#") else name
            if isinstance(keyword, str):
                self._names[keyword] = name
            return name


def _data(value):
    if value is None:
        return ""
    number = _number(value)
    return _field(_characters(value).decode()) if number is None else str(number)


_SPECIAL = re.compile(r"\A[ \t]+|[ \t]+\Z|[;\x00-\x1f\x7f]|%(?=[01][0-9A-F]|7F|3B|25|23|20)")


def _field(text):
    """What would not be read back equal, as its code."""
    return _SPECIAL.sub(lambda found: "".join(f"%{ord(c):02X}" for c in found[0]), text)


def _in_child():
    """A process that was forked off has none of the other threads: it records nothing until it starts itself."""
    global _recorder, _room, _on, _lock
    _lock = threading.Lock()
    _room = _on = False
    _waiting.clear()
    if _recorder is not None:
        _recorder.leave()
    _recorder = None


os.register_at_fork(after_in_child=_in_child)
atexit.register(stop)
