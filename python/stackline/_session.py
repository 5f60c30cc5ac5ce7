"""A resident `stackline session`, and requests to it.

One process serves all threads: a lock lets one request through at a time. A thread of its own reads the answers, so that a
KeyboardInterrupt in the middle of one loses no line. A forked process starts a session of its own.
"""

from __future__ import annotations

import atexit
import collections
import json
import os
import queue
import subprocess
import threading
import warnings
from typing import IO, Any, Callable, Deque, Dict, Iterator, List, Mapping, Optional

from . import _program
from ._errors import ProgramMissing, SessionEnded, from_answer
from ._version import __version__

_PROTOCOL = 1
_STDERR_KEPT = 50  # Lines of the program's messages that an error may show.
_GREETING = 60.0  # Seconds until a program that says nothing is not ours.
_PATIENCE = 10.0  # Seconds until a session that does not end by itself is killed.

Answer = Dict[str, Any]


class Session:
    """A resident program. `with stackline.Session() as session:` ends it at the end of the block."""

    def __init__(self, program: Optional[str] = None) -> None:
        self.program = program or _program.find()
        self.directory = os.getcwd()
        self._environment = dict(os.environ)
        self._lock = threading.Lock()
        self._owner: Optional[int] = None  # The thread whose request is under way.
        self._is_retired = False
        self._answers: queue.SimpleQueue[Optional[bytes]] = queue.SimpleQueue()
        self._said: Deque[str] = collections.deque(maxlen=_STDERR_KEPT)
        self._last_id = 0
        self._pid = os.getpid()
        self._is_closed = False
        try:
            # In a session of its own: Ctrl-C in a terminal reaches Python alone, which then cancels.
            self._process = subprocess.Popen(
                [self.program, "session"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,  # Without buffers, which have locks that a forked process could find locked.
                start_new_session=True,
            )
        except OSError as cause:
            raise ProgramMissing(
                f"{self.program} cannot be started: {cause}",
                "set STACKLINE to the path of a `stackline` for this machine",
            ) from cause
        self._threads = [
            threading.Thread(target=self._read_answers, name="stackline-answers", daemon=True),
            threading.Thread(target=self._read_messages, name="stackline-messages", daemon=True),
        ]
        for thread in self._threads:
            thread.start()
        _live.add(self)
        try:
            self.version = self._greeted()
        except BaseException:
            # What it is may not end with its input.
            self._process.kill()
            self.close()
            raise

    def _read_answers(self) -> None:
        for line in _lines(self._process.stdout, takes_torn=False):
            self._answers.put(line)
        self._answers.put(None)

    def _read_messages(self) -> None:
        for line in _lines(self._process.stderr, takes_torn=True):
            self._said.append(line.decode(errors="replace").rstrip())

    def _greeted(self) -> str:
        """The version in the first line, which says that the program is one and fits."""
        try:
            line = self._answers.get(timeout=_GREETING)
        except queue.Empty:
            raise ProgramMissing(
                f"{self.program} did not answer within {_GREETING:.0f} s",
                "set STACKLINE to the path of the program `stackline`",
            ) from None
        if line is None:
            said = self._last_words()
            raise ProgramMissing(
                f"{self.program} has no `session`, which this package ({__version__}) needs{said}",
                f"install stackline {__version__}, or set STACKLINE to its program; `stackline --version` says which one it is",
            )
        try:
            greeting = json.loads(line)
            version, protocol = str(greeting["stackline"]), greeting["session"]
        except (ValueError, KeyError, TypeError) as cause:
            raise ProgramMissing(
                f"{self.program} is not the program `stackline`: it answers {line[:80]!r}",
                "set STACKLINE to the path of the program `stackline`",
            ) from cause
        if protocol != _PROTOCOL:
            raise ProgramMissing(
                f"{self.program} is stackline {version}, whose session has version {protocol}; "
                f"this package is {__version__} and needs version {_PROTOCOL}",
                "install the package and the program of one version",
            )
        if version != __version__:
            warnings.warn(
                f"{self.program} is stackline {version}, this package is {__version__}",
                stacklevel=4,
            )
        return version

    def request(
        self,
        word: str,
        fields: Mapping[str, Any],
        *,
        on_progress: Optional[Callable[[Mapping[str, Any]], None]] = None,
        on_item: Optional[Callable[[Mapping[str, Any]], None]] = None,
    ) -> Answer:
        """Sends a request and waits for its answer, as docs/JSON.md, section `session`, describes them.

        Raises the exception for an answer with an `error`; its attribute `answer` is then the answer.
        """
        line = json.dumps(fields, allow_nan=False)
        if self._owner == threading.get_ident():
            raise RuntimeError("a callback of a request cannot send another one to the same session")
        with self._lock:
            self._owner = threading.get_ident()
            self._last_id += 1
            number = self._last_id
            try:
                answer = self._exchange(number, f'{{"id": {number}, "{word}": {line}}}\n', on_progress, on_item)
            finally:
                self._owner = None
                if self._is_retired:
                    self.close()
        error = answer.get("error")
        if error is not None:
            exception = from_answer(error)
            exception.answer = answer  # type: ignore[attr-defined]
            raise exception
        return answer

    def _exchange(
        self,
        number: int,
        line: str,
        on_progress: Optional[Callable[[Mapping[str, Any]], None]],
        on_item: Optional[Callable[[Mapping[str, Any]], None]],
    ) -> Answer:
        is_sent = False
        try:
            self._send(line.encode())
            is_sent = True
            return self._answer_of(number, on_progress, on_item)
        except SessionEnded:
            raise
        except BaseException:
            # A KeyboardInterrupt, or an exception of a callback: the request is not wanted any more. Of a half-sent line nothing
            # can follow.
            if is_sent:
                self._cancel(number)
            else:
                self.close()
            raise

    def _send(self, line: bytes) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        if self._is_closed:
            raise self._ended()
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[os.write(stdin.fileno(), rest) :]
        except (OSError, ValueError) as cause:
            raise self._ended() from cause

    def _answer_of(
        self,
        number: int,
        on_progress: Optional[Callable[[Mapping[str, Any]], None]],
        on_item: Optional[Callable[[Mapping[str, Any]], None]],
    ) -> Answer:
        while True:
            answer = self._next_line()
            if answer.get("id") != number:
                continue
            if "progress" in answer:
                if on_progress is not None:
                    on_progress(answer["progress"])
            elif "item" in answer:
                if on_item is not None:
                    on_item(answer["item"])
            elif "warning" in answer:
                warnings.warn(answer["warning"], stacklevel=6)
            else:
                return answer

    def _next_line(self) -> Answer:
        line = self._answers.get()
        if line is None:
            self._answers.put(None)
            raise self._ended()
        answer = json.loads(line)
        assert isinstance(answer, dict)
        return answer

    def _cancel(self, number: int) -> None:
        """Cancels a request and waits until nothing of it is left. A second interruption ends the program."""
        try:
            self._send(json.dumps({"cancel": number}).encode() + b"\n")
            acknowledged = False
            while True:
                answer = self._next_line()
                if answer.get("cancel") == number:
                    acknowledged = True
                    if not answer["found"]:
                        return
                is_item = "progress" in answer or "item" in answer or "warning" in answer
                if acknowledged and answer.get("id") == number and not is_item:
                    return
        except SessionEnded:
            return
        except BaseException:
            self.close()
            raise

    def _ended(self) -> SessionEnded:
        """The error of a program that is gone: how it ended, and its last words."""
        if self._is_closed:
            return SessionEnded("the session was closed", "start another one, or use stackline.run")
        try:
            code = self._process.wait(timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        said = self._last_words()
        self._is_closed = True
        _live.discard(self)
        return SessionEnded(
            f"{self.program} ended {how} in the middle of a request{said}",
            "the next request starts it again; runs that were finished are kept: stackline.runs()",
        )

    def _last_words(self) -> str:
        self._threads[1].join(timeout=_PATIENCE)
        said = [line for line in self._said if line][-5:]
        return "".join(f"\n  {line}" for line in said)

    @property
    def is_usable(self) -> bool:
        """Whether requests can be sent: it is open, of this process, and has the current directory and environment."""
        return (
            not self._is_closed
            and self._pid == os.getpid()
            and self._process.poll() is None
            and self.directory == os.getcwd()
            and self._environment == dict(os.environ)
        )

    def _retire(self) -> None:
        """Ends the program, after the request of another thread that may be under way."""
        self._is_retired = True
        if self._lock.acquire(blocking=False):
            try:
                self.close()
            finally:
                self._lock.release()

    def close(self) -> None:
        """Ends the program. What it is doing is cancelled."""
        _live.discard(self)
        if self._is_closed or self._pid != os.getpid():
            return
        self._is_closed = True
        stdin = self._process.stdin
        assert stdin is not None
        try:
            stdin.close()
        except OSError:
            pass
        try:
            self._process.wait(timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for thread in self._threads:
            thread.join(timeout=_PATIENCE)
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    def _forget(self) -> None:
        """In a forked process: its copies of the pipes are closed, so that the program still ends with its own client."""
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()
        self._is_closed = True
        # Popen waits for its child when it is collected; this process has no such child.
        self._process.returncode = 0

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else f"process {self._process.pid}"
        return f"<stackline.Session of {self.program}, {state}>"


_live: set[Session] = set()
_shared: Optional[Session] = None
_starting = threading.Lock()


def shared() -> Session:
    """The session of this process, started when it is first used, and again where directory or environment have changed."""
    global _shared
    with _starting:
        session = _shared
        if session is not None and session.is_usable:
            return session
        if session is not None:
            session._retire()
        _shared = None
        _shared = session = Session()
        return session


def _lines(pipe: Optional[IO[bytes]], *, takes_torn: bool) -> Iterator[bytes]:
    """The lines of a pipe until it ends or is closed; what stands behind the last line break only where that is wanted."""
    assert pipe is not None
    begun: List[bytes] = []
    while True:
        try:
            chunk = os.read(pipe.fileno(), 1 << 16)
        except (OSError, ValueError):
            return
        if not chunk:
            if takes_torn:
                yield b"".join(begun)
            return
        first, *others = chunk.split(b"\n")
        begun.append(first)
        for part in others:
            yield b"".join(begun)
            begun = [part]


def _close_all() -> None:
    for session in list(_live):
        session.close()


def _after_fork() -> None:
    global _shared, _starting
    for session in list(_live):
        session._forget()
    _live.clear()
    _shared = None
    _starting = threading.Lock()


atexit.register(_close_all)
os.register_at_fork(after_in_child=_after_fork)
