"""Everything that the module has, against a master with a set `map` of 40 blocks of 8192 bytes: client.py MASTER."""

import sys
import stackline_blockclient as blocks

master = sys.argv[1]


def refused(number, function, *arguments, **named):
    try:
        function(*arguments, **named)
    except blocks.Error as error:
        assert error.number == number, (error, error.number)
        return str(error)
    raise AssertionError(f"{function} {arguments} was not refused")


assert "hint: " in refused(-2, blocks.connect, "127.0.0.1:1")
refused(-1, blocks.connect, master, transport="carrier pigeons")
for transport in blocks.TRANSPORTS:
    with blocks.connect(master, transport=transport) as client:
        refused(-1, client.open, "none")
        land = client.open("map")
        assert (land.blocks, land.block_size) == (40, 8192)
        land.request([3, 5])
        came = {event.number: event for event in (client.next(10), client.next(10))}
        assert sorted(came) == [3, 5], transport
        for number, event in came.items():
            assert event.kind == blocks.BLOCK and event.wanted and event.data[:8] == number.to_bytes(8, "big")
            stamps = list(event.stamps.values())
            assert stamps == sorted(stamps) and stamps[0] > 0, stamps
        assert land.waiting() == 0 and client.next(0.01) is None
    refused(-1, client.open, "map")

with blocks.connect(master) as client:
    land = client.open("map")
    lists = []
    land.predict(lambda numbers: lists.append(numbers) or [numbers[-1] + 1])
    land.request([10])
    assert client.next(10).number == 10 and client.next(0.3) is None
    land.request([11])
    assert client.next(10).number == 11 and lists == [[10], [11]]

    def broken(_):
        raise KeyError("mine")

    land.predict(broken)
    try:
        land.request([12])
        raise AssertionError("what the function raises comes out")
    except KeyError:
        pass
    assert client.next(10).number == 12
    land.predict(None)

    heard = []
    data = land.read(progress=lambda done, of: heard.append((done, of)))
    assert len(data) == land.bytes and heard[-1] == (land.bytes, land.bytes)
    assert all(data[number * 8192 : number * 8192 + 8] == number.to_bytes(8, "big") for number in range(40))
    refused(-4, land.read, progress=lambda *_: False)

    turns = []
    played = land.play(lambda number, data: turns.append((number, len(data))), interval=0.001, depth=4, wait=True)
    assert [number for number, _ in turns] == list(range(40)) and played.skipped == 0
print("all of it")
