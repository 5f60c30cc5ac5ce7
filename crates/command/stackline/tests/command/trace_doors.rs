//! Exchanges of programs that run on an emulated network, traced live: what is found first is what captures of the same exchanges show
//! (`exchange/tests/doors.rs`). Passed over, with a word, where there is no Python, or where networks or packets are not to be had.

use crate::support::{Place, has_program, skip};
use serde_json::Value;
use stackline_testing::exchange_verdicts::expected_kinds;

/// Both ends of each exchange: `door.py serve EXCHANGE`, `door.py ask EXCHANGE`.
const PROGRAM: &str = r#"
import socket, struct, sys, time

role, name = sys.argv[1:]
SMALL = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

def answer(count):
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % count + b"x" * count

def head(connection):
    read = b""
    while b"\r\n\r\n" not in read:
        part = connection.recv(65536)
        if not part: return None
        read += part
    return read

def body(connection, read, count):
    read = len(read.split(b"\r\n\r\n", 1)[1])
    while read < count:
        part = connection.recv(65536)
        if not part: return
        read += len(part)

def reset(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()

def serve(connection):
    asked = 0
    while read := head(connection):
        asked += 1
        match name:
            case "slow server": time.sleep(0.15); connection.sendall(SMALL)
            case "slow client reader": connection.sendall(answer(2_000_000))
            case "reset" if asked == 2: time.sleep(0.03); return reset(connection)
            case "cut off": connection.sendall(answer(50_000)[:9_000]); return connection.close()
            case "5xx" if asked == 2: connection.sendall(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
            case "idle close": connection.sendall(SMALL); time.sleep(0.3); return connection.close()
            case "pause within an answer":
                whole = answer(20_000)
                connection.sendall(whole[:5_000]); time.sleep(0.4); connection.sendall(whole[5_000:])
            case "large upload": body(connection, read, 1_000_000); connection.sendall(SMALL)
            case "pause within an upload" | "no 100 Continue": body(connection, read, 8_000); connection.sendall(SMALL)
            case "late 100 Continue":
                time.sleep(0.4); connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                body(connection, read, 8_000); connection.sendall(SMALL)
            case "one of many": time.sleep(0.4 if asked == 10 else 0.002); connection.sendall(SMALL)
            case "half-closed": time.sleep(0.15); connection.sendall(answer(3_000))
            case _: connection.sendall(SMALL)

def connect():
    connection = socket.create_connection(("web", 8000))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection

def take(connection):
    read = head(connection)
    if read: body(connection, read, int(read.split(b"Content-Length: ")[1].split(b"\r\n")[0]))

def get(connection, path):
    connection.sendall(b"GET /%s HTTP/1.1\r\nHost: web\r\n\r\n" % path.encode())

def put(connection, count, more=b""):
    connection.sendall(b"PUT /up HTTP/1.1\r\nHost: web\r\n%sContent-Length: %d\r\n\r\n" % (more, count))

def ask():
    if name == "connection for each":
        for at in range(5):
            connection = connect(); get(connection, at.__str__()); take(connection); connection.close()
        return
    connection = connect()
    match name:
        case "slow server":
            for at in range(3): get(connection, f"slow/{at}"); take(connection)
        case "distance":
            for at in range(6): get(connection, str(at)); take(connection)
        case "slow client reader": get(connection, "w"); time.sleep(1.5); take(connection)
        case "reset" | "5xx":
            for at in range(3 if name == "5xx" else 2): get(connection, str(at)); take(connection)
        case "idle close": get(connection, "a"); take(connection); time.sleep(0.6); get(connection, "b"); take(connection)
        case "large upload": put(connection, 1_000_000); connection.sendall(b"z" * 1_000_000); take(connection)
        case "pause within an upload":
            put(connection, 8_000); connection.sendall(b"z" * 4_000); time.sleep(1); connection.sendall(b"z" * 4_000); take(connection)
        case "no 100 Continue":
            put(connection, 8_000, b"Expect: 100-continue\r\n"); time.sleep(1); connection.sendall(b"z" * 8_000); take(connection)
        case "late 100 Continue":
            put(connection, 8_000, b"Expect: 100-continue\r\n"); head(connection); connection.sendall(b"z" * 8_000); take(connection)
        case "one of many":
            for at in range(20): get(connection, f"g/{at}"); take(connection); time.sleep(0.005)
        case "half-closed": get(connection, "h"); connection.shutdown(socket.SHUT_WR); take(connection)
        case _: get(connection, "a"); take(connection)

try:
    if role == "serve":
        listener = socket.create_server(("", 8000))
        while True: serve(listener.accept()[0])
    else: ask()
except OSError: pass
"#;

/// Exchanges, and the network of each: half a round trip in ms, and the rate of the client's link.
const EXCHANGES: &[(&str, u32, &str)] = &[
    ("slow server", 20, "100 Mbit/s"),
    ("slow client reader", 5, "100 Mbit/s"),
    ("distance", 60, "100 Mbit/s"),
    ("reset", 10, "100 Mbit/s"),
    ("cut off", 10, "100 Mbit/s"),
    ("5xx", 10, "100 Mbit/s"),
    ("idle close", 10, "100 Mbit/s"),
    ("large upload", 5, "10 Mbit/s"),
    ("pause within an answer", 20, "100 Mbit/s"),
    ("connection for each", 20, "100 Mbit/s"),
    ("pause within an upload", 10, "100 Mbit/s"),
    ("late 100 Continue", 10, "100 Mbit/s"),
    ("no 100 Continue", 10, "100 Mbit/s"),
    ("one of many", 2, "100 Mbit/s"),
    ("half-closed", 10, "100 Mbit/s"),
];

/// What is found of an exchange that is traced; `None` where that cannot be here.
fn traced(place: &Place, number: usize, name: &str, delay_ms: u32, rate: &str) -> Option<Value> {
    let own = std::process::id();
    place.write(
        "net.stackline",
        format!(
            "network doors_{own}_{number} {{ host client, web; link client - web {rate} {delay_ms} ms; }}"
        ),
    );
    let words = [
        "trace",
        "--on",
        "net.stackline",
        "--see",
        "packets",
        "--json",
    ];
    let web = ["web", "--", "python3", "door.py", "serve", name];
    let client = ["client", "--", "python3", "door.py", "ask", name];
    let done = place
        .command(&[&words[..], &web, &client].concat())
        .output()
        .unwrap();
    if done.status.code() == Some(3) {
        skip(String::from_utf8_lossy(&done.stderr));
        return None;
    }
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(0), "{name}: {said}");
    Some(serde_json::from_slice(&done.stdout).unwrap())
}

#[test]
fn what_is_traced_live_has_the_cause_that_captures_show() {
    if !has_program("python3", "python3") {
        return;
    }
    let place = Place::new();
    place.write("door.py", PROGRAM);
    let mut wrong = Vec::new();
    for (number, (name, delay_ms, rate)) in EXCHANGES.iter().enumerate() {
        let Some(found) = traced(&place, number, name, *delay_ms, rate) else {
            return;
        };
        let first = &found["findings"][0];
        let kind = first["kind"].as_str().unwrap_or("nothing");
        if !expected_kinds(name).contains(&kind) {
            wrong.push(format!("{name}: {kind}: {}", first["sentence"]));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
