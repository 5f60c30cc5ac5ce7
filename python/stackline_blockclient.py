"""A client of stackline's block server (docs/BLOCKS.md), over the C library of the crate ``stackline-blockclient``.

    import stackline_blockclient as blocks

    with blocks.connect("10.0.0.5:7480") as client:
        land = client.open("kansas")
        land.request([17, 18, 42])          # supersedes what is left of the list before
        for event in client.events(within=1.0):
            if event.kind == blocks.BLOCK:
                print(event.number, len(event.data), event.stamps["server_in"])

The library is ``libstackline_blockclient.so``: where ``STACKLINE_BLOCKCLIENT`` says, or where the system looks for libraries.
Times are ns since the Epoch, those that are given are seconds. It needs Python 3.8 and nothing else.
"""

import ctypes
import os
from typing import Callable, Iterator, List, NamedTuple, Optional, Sequence

__all__ = [
    "BLOCK", "FAILED", "FLUSHED", "SERVER_GONE", "SERVER_CAME", "MASTER_GONE",
    "TRANSPORTS", "STAMPS", "Client", "Error", "Event", "Interrupted", "Played", "Set", "connect",
]

BLOCK, FAILED, FLUSHED, SERVER_GONE, SERVER_CAME, MASTER_GONE = range(1, 7)
TRANSPORTS = {"tcp": 0, "udp": 1, "rtp": 2, "blast": 3}
# When a block passed which point.
STAMPS = ("app_send", "master_in", "master_out", "server_in", "start_read", "end_read", "start_write", "app_receive")


class Error(Exception):
    """What went wrong; ``hint`` says what to try, ``number`` is the library's: -1 the input, -2 the environment, -3 on its way."""

    def __init__(self, number: int, message: str, hint: str):
        super().__init__(f"{message}\nhint: {hint}" if hint else message)
        self.number, self.message, self.hint = number, message, hint


class Interrupted(Error):
    """A function of yours ended it."""


class Event(NamedTuple):
    """What happened; ``kind`` says which of the fields mean anything."""

    kind: int
    set: int
    number: int
    unit: int
    serial: int
    server: int
    disk: int
    wanted: bool
    cached: bool
    stamps: dict
    before: int
    before_end_write: int
    data: bytes
    units: List[int]
    words: str


class Played(NamedTuple):
    """What became of blocks that were not there in time."""

    late: int
    skipped: int
    stalls: int


class _Options(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_uint32) for name in ("transport", "no_check", "report", "reserved")),
        *((name, ctypes.c_uint64) for name in ("age_ns", "receive_buffer", "pace")),
    ]


class _Set(ctypes.Structure):
    _fields_ = [
        ("id", ctypes.c_uint32), ("block_size", ctypes.c_uint32), ("blocks", ctypes.c_uint64), ("bytes", ctypes.c_uint64),
    ]


class _Event(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_int32), ("set", ctypes.c_uint32),
        *((name, ctypes.c_uint64) for name in ("number", "unit", "serial")),
        ("server", ctypes.c_uint16), ("disk", ctypes.c_uint16),
        ("wanted", ctypes.c_uint8), ("cached", ctypes.c_uint8), ("reserved", ctypes.c_uint16),
        *((name, ctypes.c_uint64) for name in (*STAMPS, "before", "before_end_write")),
        ("data", ctypes.c_void_p), ("length", ctypes.c_uint64),
        ("units", ctypes.POINTER(ctypes.c_uint64)), ("count", ctypes.c_uint64),
        ("words", ctypes.c_char_p), ("owner", ctypes.c_void_p),
    ]


class _Pace(ctypes.Structure):
    _fields_ = [("interval_ns", ctypes.c_uint64), ("depth", ctypes.c_uint32), ("wait", ctypes.c_uint32)]


class _Played(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in Played._fields]


_U64 = ctypes.c_uint64
_PREDICTION = ctypes.CFUNCTYPE(_U64, ctypes.c_void_p, ctypes.POINTER(_U64), _U64, ctypes.POINTER(_U64), _U64)
_PROGRESS = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, _U64, _U64)
_GIVE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, _U64, ctypes.c_void_p, _U64)
_ARGUMENTS = {
    "connect": [ctypes.c_char_p, ctypes.POINTER(_Options), ctypes.POINTER(_U64)],
    "close": [_U64],
    "open": [_U64, ctypes.c_char_p, ctypes.POINTER(_Set)],
    "request": [_U64, ctypes.c_uint32, ctypes.POINTER(_U64), _U64, ctypes.c_int],
    "predict": [_U64, ctypes.c_uint32, _PREDICTION, ctypes.c_void_p, ctypes.c_uint32],
    "next": [_U64, ctypes.c_int64, ctypes.POINTER(_Event)],
    "free": [ctypes.POINTER(_Event)],
    "waiting": [_U64, ctypes.c_uint32],
    "read": [_U64, ctypes.c_uint32, _U64, _U64, ctypes.c_void_p, _U64, _PROGRESS, ctypes.c_void_p],
    "play": [
        _U64, ctypes.c_uint32, _U64, _U64, ctypes.POINTER(_Pace), _GIVE, ctypes.c_void_p, ctypes.POINTER(_Played),
    ],
    "error": [],
    "hint": [],
}
_RETURNS = {"free": None, "waiting": ctypes.c_int64, "error": ctypes.c_char_p, "hint": ctypes.c_char_p}
_library = None


def _function(name: str):
    """A function of the library, which is looked for when it is needed first."""
    global _library
    if _library is None:
        path = os.environ.get("STACKLINE_BLOCKCLIENT", "libstackline_blockclient.so")
        try:
            library = ctypes.CDLL(path)
        except OSError as error:
            hint = "build it with `cargo build --release -p stackline-blockclient`, and name it in STACKLINE_BLOCKCLIENT"
            raise Error(-2, f"the library cannot be loaded: {error}", hint) from None
        for known, arguments in _ARGUMENTS.items():
            function = getattr(library, f"blockclient_{known}")
            function.argtypes, function.restype = arguments, _RETURNS.get(known, ctypes.c_int)
        _library = library
    return getattr(_library, f"blockclient_{name}")


def _call(name: str, *arguments) -> int:
    """Calls a function of the library; what it says is wrong is raised."""
    result = _function(name)(*arguments)
    if result < 0:
        text = lambda part: (_function(part)() or b"").decode("utf-8", "replace")
        raise (Interrupted if result == -4 else Error)(result, text("error"), text("hint"))
    return result


class _Guarded:
    """Runs a function of the caller's inside the library; what it raises comes out at the call, as if nothing lay between."""

    def __init__(self, function: Callable, otherwise: int):
        self.function, self.otherwise, self.raised = function, otherwise, None

    def __call__(self, *arguments) -> int:
        try:
            return self.function(*arguments)
        except BaseException as raised:  # Ctrl-C too: it must not get lost in the library.
            self.raised = raised
            return self.otherwise

    def run(self, name: str, *arguments) -> None:
        try:
            _call(name, *arguments)
        except Interrupted:
            if self.raised is None:
                raise
        if self.raised is not None:
            raised, self.raised = self.raised, None
            raise raised


def _ns(seconds: Optional[float]) -> int:
    return -1 if seconds is None else max(0, round(seconds * 1e9))


def connect(master: str, *, transport: str = "tcp", age: float = 0, receive_buffer: int = 0, check: bool = True,
            report: bool = False, pace: int = 0) -> "Client":
    """Connects to a master, to read. Blocks asked for longer ago than ``age`` are dropped at the server; with ``report`` servers
    tell what a newer list discards. Datagrams (UDP, RTP) of each server leave at ``pace`` bytes a second, as fast as they can with 0."""
    if transport not in TRANSPORTS:
        raise Error(-1, f"{transport} is no transport", f"those are {', '.join(TRANSPORTS)}")
    options = _Options(TRANSPORTS[transport], not check, report, 0, _ns(age), receive_buffer, pace)
    number = _U64()
    _call("connect", master.encode(), ctypes.byref(options), ctypes.byref(number))
    return Client(number.value)


class Client:
    """A client of a master and its servers. Several threads may use it."""

    def __init__(self, number: int):
        self._number = number

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def close(self) -> None:
        """Closes it; a second time does nothing."""
        number, self._number = self._number, 0
        if number:
            _call("close", number)

    def open(self, name: str) -> "Set":
        """Opens a set, and connects to its servers."""
        about = _Set()
        _call("open", self._number, name.encode(), ctypes.byref(about))
        return Set(self, name, about)

    def next(self, within: Optional[float] = None) -> Optional[Event]:
        """What happens next; None when so many seconds are over. Without a time Ctrl-C is heard only when something happens."""
        event = _Event()
        if not _call("next", self._number, _ns(within), ctypes.byref(event)):
            return None
        try:
            return _event(event)
        finally:
            _function("free")(ctypes.byref(event))

    def events(self, within: Optional[float] = None) -> Iterator[Event]:
        """What happens, until nothing does for so many seconds."""
        return iter(lambda: self.next(within), None)


def _event(event: _Event) -> Event:
    names = ("kind", "set", "number", "unit", "serial", "server", "disk")
    return Event(
        *(getattr(event, name) for name in names),
        bool(event.wanted),
        bool(event.cached),
        {name: getattr(event, name) for name in STAMPS},
        event.before,
        event.before_end_write,
        ctypes.string_at(event.data, event.length) if event.length else b"",
        event.units[: event.count] if event.count else [],
        (event.words or b"").decode("utf-8", "replace"),
    )


class Set:
    """A set that is open: ``blocks`` of ``block_size`` bytes each, the last one of what is left of ``bytes``."""

    def __init__(self, client: Client, name: str, about: _Set):
        self.client, self.name = client, name
        self.id, self.block_size, self.blocks, self.bytes = about.id, about.block_size, about.blocks, about.bytes
        self._prediction = None

    def _begin(self):
        return self.client._number, self.id

    def request(self, blocks: Sequence[int], supersedes: bool = True) -> None:
        """Asks for blocks by their numbers; what comes are events of the client."""
        numbers = (_U64 * len(blocks))(*blocks)
        arguments = (*self._begin(), numbers, len(blocks), supersedes)
        if self._prediction is None:
            _call("request", *arguments)
        else:
            self._prediction[0].run("request", *arguments)

    def predict(self, function: Optional[Callable[[List[int]], Sequence[int]]], most: int = 0) -> None:
        """From now on what ``function`` names of each list is asked for behind it; None: no more."""
        def named(_, blocks, count, into, room):
            following = list(function(blocks[:count]))[:room]
            for at, number in enumerate(following):
                into[at] = number
            return len(following)

        guarded = None if function is None else _Guarded(named, 0)
        passed = _PREDICTION() if guarded is None else _PREDICTION(guarded)
        _call("predict", *self._begin(), passed, None, most)
        # The library calls it until another one is given.
        self._prediction = None if guarded is None else (guarded, passed)

    def waiting(self) -> int:
        """How many blocks are wanted and have not come."""
        return _call("waiting", *self._begin())

    def read(self, first: int = 0, count: Optional[int] = None,
             progress: Optional[Callable[[int, int], object]] = None) -> bytearray:
        """Reads blocks at full speed. ``progress`` hears how many bytes of all are there, and ends it with False."""
        count = max(0, self.blocks - first) if count is None else count
        size = max(0, min((first + count) * self.block_size, self.bytes) - first * self.block_size)
        memory = bytearray(size)
        stop = lambda _, done, of: progress is not None and progress(done, of) is False
        guarded = _Guarded(stop, 1)
        place = ctypes.addressof((ctypes.c_char * size).from_buffer(memory)) if size else None
        guarded.run("read", *self._begin(), first, count, place, size, _PROGRESS(guarded), None)
        return memory

    def play(self, give: Callable[[int, Optional[bytes]], object], *, interval: float, depth: int = 8, wait: bool = False,
             first: int = 0, count: Optional[int] = None) -> Played:
        """Gives blocks in their order, each when it is due; None in place of one that is left out. False ends it."""
        def given(_, number, data, length):
            return give(number, ctypes.string_at(data, length) if length else None) is False

        count = max(0, self.blocks - first) if count is None else count
        pace, played, guarded = _Pace(_ns(interval), depth, wait), _Played(), _Guarded(given, 1)
        arguments = (first, count, ctypes.byref(pace), _GIVE(guarded), None, ctypes.byref(played))
        guarded.run("play", *self._begin(), *arguments)
        return Played(*(getattr(played, name) for name in Played._fields))
