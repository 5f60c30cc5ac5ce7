"""The Python client by itself; that its files read back equal is tested beside the reader (crates/record/events/tests/clients)."""

import fcntl
import logging
import os
import struct
import time

import pytest

import stackline_events as events


@pytest.fixture(autouse=True)
def stopped():
    yield
    events.stop()


def lines(path):
    """Keyword and data of each line of the text form."""
    fields = [line.split("; ") for line in path.read_text().splitlines()]
    return ["; ".join(line[:1] + line[4:]) for line in fields]


def test_nothing_is_recorded_before_and_after(tmp_path):
    path = tmp_path / "a.log"
    events.event("TOO_EARLY")
    assert events.start(f"text:{path}", "khons")
    events.event("APP_SEND", 17, None, 0, 1500)
    assert events.stop() == (1, 0, None)
    events.event("TOO_LATE")
    assert lines(path) == ["APP_SEND; 17; ; 0; 1500"]


def test_settings(monkeypatch, tmp_path):
    assert not events.start("off") and not events.start("")
    for wrong in ("tcp:1", "file:", "on"):
        with pytest.raises(ValueError, match="hint: "):
            events.start(wrong)
    with pytest.raises(OSError):
        events.start("file:/dev/null/x")
    monkeypatch.setenv("STACKLINE_EVENTS", f"file:{tmp_path}/%p.tape")
    assert events.from_env()
    with pytest.raises(RuntimeError):
        events.from_env()
    events.stop()
    assert [file.name for file in tmp_path.iterdir()] == [f"{os.getpid()}.tape"]


def test_a_file_is_one_process_s(tmp_path):
    events.start(f"file:{tmp_path}/a.tape")
    with pytest.raises(OSError, match="%p"):
        events._Recorder(f"{tmp_path}/a.tape", False, "khons")


def test_a_torn_end_is_taken_away_and_a_diary_left_alone(tmp_path):
    path = tmp_path / "a.tape"
    for _ in range(2):
        events.start(f"file:{path}", "khons")
        events.event("APP_SEND", 1, "text")
        events.stop()
        if path.stat().st_size < 200:
            once = path.read_bytes()
            path.write_bytes(once + once[:-3])
    # The copy lost its last record: 16 bytes, a number, a text's length and its bytes.
    assert path.read_bytes()[: 2 * len(once) - 40] == once + once[:-40]
    assert path.stat().st_size == 3 * len(once) - 40
    with path.open("rb") as file:
        assert events.whole(file) == path.stat().st_size
    diary = tmp_path / "diary"
    diary.write_text("dear diary, this is no tape")
    with pytest.raises(OSError, match="does not contain events"):
        events.start(f"file:{diary}")
    assert diary.read_text() == "dear diary, this is no tape"


def test_the_binary_form_to_the_byte(tmp_path):
    path = tmp_path / "a.tape"
    events.start(f"file:{path}", "h")
    events.event("A", -1, None, "x")
    events.stop()
    data = path.read_bytes()
    host = struct.pack("<QQQ8s", 2 | 1 << 24 | 2 << 32, 0, 1, b"h")
    name = struct.pack("<QQQQ8s", 1 | 2 << 24 | (1 | 2 << 2) << 32, 0, 16, 1, b"A")
    head = struct.pack("<Q", 16 | 3 << 24 | (1 | 0 << 2 | 2 << 4) << 32)
    assert data[: len(host) + len(name) + 8] == host + name + head
    assert data[len(host) + len(name) + 16 :] == struct.pack("<qQ8s", -1, 1, b"x")


def test_a_full_disk_costs_events_but_nothing_else():
    events.start("text:/dev/full", "khons")
    for n in range(100):
        events.event("APP_SEND", n)
    totals = events.stop()
    assert totals[:2] == (0, 100)
    assert "No space left" in totals.fault


def test_a_device_is_locked_by_nobody():
    with open("/dev/full", "wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        events.start("text:/dev/full", "khons")
        events.stop()


def test_what_there_is_no_room_for_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(events, "_PAUSE", 3600)
    path = tmp_path / "a.log"
    events.start(f"text:{path}", "khons")
    events.event("APP_SEND", 1)
    events._room = False
    for _ in range(10):
        events.event("APP_SEND", 2)
    assert events.stop() == (1, 10, None)
    assert lines(path) == ["APP_SEND; 1", "EVENTS_LOST; 10"]


def test_a_fork_records_nothing_until_it_starts_itself(tmp_path):
    events.start(f"text:{tmp_path}/parent.log", "khons")
    events.event("BEFORE")
    child = os.fork()
    if child == 0:
        events.event("IN_CHILD")
        code = 1
        if events.start(f"text:{tmp_path}/child.log", "khons"):
            events.event("CHILD")
            code = 0 if events.stop() == (1, 0, None) else 2
        os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    events.event("AFTER")
    assert events.stop() == (2, 0, None)
    assert lines(tmp_path / "parent.log") == ["BEFORE", "AFTER"]
    assert lines(tmp_path / "child.log") == ["CHILD"]


def test_a_child_that_lives_on_keeps_the_file_from_nobody(tmp_path):
    path = tmp_path / "a.log"
    events.start(f"text:{path}", "khons")
    events.event("FIRST")
    end, held = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(held)
        copies = [name for name in os.listdir("/proc/self/fd") if os.path.realpath(f"/proc/self/fd/{name}") == str(path)]
        os.read(end, 1)
        os._exit(len(copies))
    try:
        assert events.stop() == (1, 0, None)
        assert events.start(f"text:{path}", "khons")
        events.event("SECOND")
        assert events.stop() == (1, 0, None)
    finally:
        os.close(held)
        status = os.waitpid(child, 0)[1]
        os.close(end)
    assert status == 0
    assert lines(path) == ["FIRST", "SECOND"]


def test_during(tmp_path):
    path = tmp_path / "a.log"
    events.start(f"text:{path}", "khons")
    with events.during("APP_CALL", "APP_RESPONSE", 1):
        pass
    for failed in ("APP_LOST", None):
        with pytest.raises(KeyError), events.during("APP_CALL", "APP_RESPONSE", 2, failed=failed):
            raise KeyError
    events.stop()
    assert lines(path) == ["APP_CALL; 1", "APP_RESPONSE; 1", "APP_CALL; 2", "APP_LOST; 2", "APP_CALL; 2"]


def test_what_is_logged_becomes_events(tmp_path):
    path = tmp_path / "a.log"
    logger = logging.getLogger("app.disk")
    handler = events.Handler()
    logger.addHandler(handler)
    logger.propagate = False
    events.start(f"text:{path}", "khons")
    try:
        logger.warning("%d left; really", 2)
        with events.of_unit(17):
            logger.error("gone")
        logger.error("%d", "no number")
    finally:
        logger.removeHandler(handler)
        logger.propagate = True
    events.stop()
    expected = ["LOG; ; ; ; ; warning; app.disk; 2 left%3B really", "LOG; 17; ; ; ; error; app.disk; gone"]
    assert lines(path) == expected


def test_data_that_cannot_be_written_end_nothing(tmp_path):
    class Broken:
        def __str__(self):
            raise OverflowError

    path = tmp_path / "a.log"
    for form in ("text", "file"):
        events.start(f"{form}:{path}", "khons")
        events.event("APP_SEND", Broken(), 1.5, [1, 2], "\ud800")
        events.event(("not", "a name"), *range(40))
        assert events.stop() == (2, 0, None)
        if form == "text":
            numbers = "; ".join(str(number) for number in range(16))
            assert lines(path) == ["APP_SEND; OverflowError; 1.5; [1, 2]; ?", f"('not', 'a name'); {numbers}"]
            path = tmp_path / "a.tape"


def drained(recorder, count):
    """Waits until so many events were taken from memory, or nobody takes them any more."""
    while recorder._recorded + recorder._lost < count and recorder._thread.is_alive():
        time.sleep(0.001)


def test_an_index_that_raises_ends_nothing(tmp_path):
    class Array:
        """As of numpy: it has an __index__, which only an array of one number answers."""

        def __index__(self):
            raise TypeError("only integer scalar arrays can be converted to a scalar index")

        def __str__(self):
            return "[1 2]"

    for form in ("text", "file"):
        events.start(f"{form}:{tmp_path}/a.{form}", "khons")
        events.event("APP_SEND", Array())
        drained(events._recorder, 1)
        events.event("APP_SEND", 2)
        assert events.stop() == (2, 0, None)
    assert lines(tmp_path / "a.text") == ["APP_SEND; [1 2]", "APP_SEND; 2"]


def test_a_batch_that_cannot_be_made_is_lost_and_the_next_one_is_not(tmp_path):
    path = tmp_path / "a.log"
    events.start(f"text:{path}", "khons")
    recorder = events._recorder
    encode = recorder._form.encode

    def fail_once(batch, offset):
        recorder._form.encode = encode
        raise MemoryError

    recorder._form.encode = fail_once
    events.event("APP_SEND", 1)
    drained(recorder, 1)
    events.event("APP_SEND", 2)
    assert events.stop() == (1, 1, "MemoryError")
    assert sorted(lines(path)) == ["APP_SEND; 2", "EVENTS_LOST; 1"]


PRINTED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_traceparent():
    read = events.Traceparent.parse(PRINTED)
    assert str(read) == PRINTED
    assert read.unit == 0x33E5805075A002AD
    child = read.child()
    assert child.trace == read.trace and child.parent != read.parent
    assert events.Traceparent.parse("cc" + PRINTED[2:] + "-what-will-be") == read
    new = events.Traceparent.new()
    assert events.Traceparent.parse(str(new)) == new
    for wrong in (
        "ff" + PRINTED[2:],
        PRINTED + "-more",
        "cc" + PRINTED[2:] + ".more",
        PRINTED.upper(),
        PRINTED.replace("b7ad6b7169203331", "0" * 16),
        PRINTED[1:],
        "",
        "cc" + PRINTED[2:] + "-" + "x" * 1000,
    ):
        assert events.Traceparent.parse(wrong) is None, wrong
