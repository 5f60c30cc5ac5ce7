#!/usr/bin/env python3
"""Both programs of a stack for stackline: over program("examples/stacks/pair.py", "examples/stacks/pair.py").

It carries data units over TCP and checks their first byte. docs/STACKS.md has the commands; try them by hand:

    $ ./pair.py
    stackline 1 server 0 00112233445566778899aabbccddeeff
    ok pair.py 1.0
"""

import socket
import sys


class Connection:
    def __init__(self, connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = connection
        self.room = bytearray(1 << 16)

    def send(self, count, first=b"D"):
        """Sends a data unit of `count` bytes."""
        unit = first + bytes(count - 1)
        self.socket.sendall(unit)

    def receive(self, count, first=b"D"):
        """Receives a data unit; False if the peer has finished instead."""
        have = 0
        while have < count:
            room = memoryview(self.room)[: min(count - have, len(self.room))]
            got = self.socket.recv_into(room)
            if got == 0 and have == 0:
                return False
            if got == 0:
                raise OSError("the peer closed the connection in the middle of a data unit")
            if have == 0 and self.room[:1] != first:
                raise OSError(f"expected {first!r}, but {bytes(self.room[:1])!r} came")
            have += got
        return True


class Pair:
    def __init__(self):
        self.token = b""
        self.listener = None
        self.connection = None

    def stackline(self, version, side, replica, token):
        if version != "1":
            raise OSError(f"version {version} of the commands is not known here")
        self.token = bytes.fromhex(token)
        return "pair.py 1.0"

    def options(self, *words):
        pass

    # The server's end.

    def listen(self, address):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.listener = socket.create_server((address, 0), family=family, dualstack_ipv6=address == "::")
        return str(self.listener.getsockname()[1])

    def accept(self):
        while True:
            connection, _ = self.listener.accept()
            # Whoever does not know the run's token is a stranger; one who says nothing has 5 s.
            connection.settimeout(5)
            try:
                shown = connection.recv(len(self.token), socket.MSG_WAITALL)
            except OSError:
                shown = b""
            if shown == self.token:
                connection.settimeout(None)
                self.connection = Connection(connection)
                return
            connection.close()

    # The client's end.

    def connect(self, address):
        host, port = address.rsplit(":", 1)
        self.connection = Connection(socket.create_connection((host.strip("[]"), int(port))))
        self.connection.socket.sendall(self.token)

    # Both.

    def send(self, count, times):
        for _ in range(int(times)):
            self.connection.send(int(count))

    def receive(self, count, times):
        for done in range(int(times)):
            if not self.connection.receive(int(count)):
                return str(done)

    def call(self, request, response):
        self.connection.send(int(request), b"Q")
        if not self.connection.receive(int(response), b"R"):
            return False

    def await_call(self, count):
        return self.connection.receive(int(count), b"Q")

    def reply(self, count):
        self.connection.send(int(count), b"R")

    def start_bulk(self, direction):
        self.connection.send(1, direction[0].encode())

    def await_start_bulk(self, direction):
        return self.connection.receive(1, direction[0].encode())

    def stop_bulk(self, direction):
        if direction == "put" and not self.connection.receive(1, b"C"):
            raise OSError("the peer closed the connection before it confirmed that everything had arrived")

    def await_stop_bulk(self, direction):
        if direction == "put":
            self.connection.send(1, b"C")

    def finish(self):
        self.connection.socket.shutdown(socket.SHUT_WR)

    def disconnect(self):
        self.connection.socket.close()

    def await_disconnect(self):
        if self.connection.socket.recv(1):
            raise OSError("the peer sent data after the last data unit")
        self.connection.socket.close()


def main():
    pair = Pair()
    for line in sys.stdin:
        command, *words = line.split()
        try:
            answer = getattr(pair, command)(*words)
        except OSError as error:
            print("error", error, flush=True)
        else:
            print("end" if answer is False else f"ok {answer}" if isinstance(answer, str) else "ok", flush=True)


main()
