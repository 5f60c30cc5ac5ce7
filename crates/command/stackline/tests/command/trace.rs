//! `stackline trace`: unmodified programs on hosts of an emulated network and here, their requests and what limits them. Passed over,
//! with a word, where there is no Python, or where networks, packets or the kernel's trace events are not to be had.

use crate::support::daemons::free_port;
use crate::support::{Finished, Place, skip};
use serde_json::Value;
use std::process::Output;
use std::sync::atomic::{AtomicU32, Ordering};

/// A server whose request takes a known time: argument 1 seconds of sleep, argument 2 of computing.
const SERVER: &str = r#"
import http.server, sys, time
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    def do_GET(self):
        time.sleep(float(sys.argv[1]))
        until = time.thread_time() + float(sys.argv[2])
        while time.thread_time() < until: pass
        self.send_response(200); self.send_header("Content-Length", "500"); self.end_headers()
        self.wfile.write(b"x" * 500); self.wfile.flush()
    def log_message(self, *_): pass
http.server.HTTPServer(("0.0.0.0", int(sys.argv[3])), Handler).serve_forever()
"#;

/// A client: so many requests on one connection, and ends with a code of its own.
const CLIENT: &str = r#"
import http.client, sys, time
connection = http.client.HTTPConnection(sys.argv[1], int(sys.argv[2]))
for number in range(int(sys.argv[3])):
    begin = time.perf_counter()
    connection.request("GET", f"/item/{number}?key=secret"); connection.getresponse().read()
    print(f"{time.perf_counter() - begin:.6f}", flush=True)
sys.exit(int(sys.argv[4]))
"#;

/// A server of TLS that answers at once.
const SECURED: &str = r#"
import http.server, ssl, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.send_response(200); self.send_header("Content-Length", "500"); self.end_headers(); self.wfile.write(b"x" * 500)
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER); context.load_cert_chain("cert.pem", "key.pem")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"#;

/// A client of it that makes three requests.
const SECURE: &str = r#"
import http.client, ssl, sys
context = ssl.create_default_context(cafile="cert.pem")
connection = http.client.HTTPSConnection("localhost", int(sys.argv[1]), context=context)
for number in range(3):
    connection.request("GET", f"/item/{number}?key=secret"); connection.getresponse().read()
"#;

/// A client that waits a fifth of a second for each answer, and a tenth before it asks again.
const IMPATIENT: &str = r#"
import http.client, sys, time
for number in range(4):
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=0.2)
    try:
        connection.request("GET", "/slow"); connection.getresponse().read()
    except TimeoutError:
        connection.close(); time.sleep(0.1)
"#;

fn place() -> Option<Place> {
    let python = std::process::Command::new("python3")
        .arg("--version")
        .output();
    if !python.is_ok_and(|output| output.status.success()) {
        eprintln!("passed over: there is no python3 here");
        return None;
    }
    let place = Place::new();
    place.write("server.py", SERVER);
    place.write("client.py", CLIENT);
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!(
        "traced_{}_{}",
        std::process::id(),
        NUMBER.fetch_add(1, Ordering::Relaxed)
    );
    place.write(
        "net.stackline",
        format!("network {name} {{ host client, web; link client - web 100 Mbit/s 10 ms; }}"),
    );
    Some(place)
}

fn traced(place: &Place, words: &[&str]) -> Option<Finished> {
    let Output {
        status,
        stdout,
        stderr,
    } = place
        .command(&[&["trace"], words].concat())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let done = Finished {
        status,
        out: text(stdout),
        err: text(stderr),
    };
    if done.status.code() == Some(3)
        || done.err.contains("not looked at: sockets")
        || done.err.contains("not looked at: threads")
    {
        skip(&done.err);
        return None;
    }
    Some(done)
}

/// Times of single requests as the client printed them, and the findings: what programs print leaves standard output to these.
fn read(done: &Finished) -> (Vec<f64>, Value) {
    let times = done
        .err
        .lines()
        .filter_map(|line| line.trim().parse().ok())
        .collect();
    (times, serde_json::from_str(&done.out).unwrap())
}

fn kinds(json: &Value) -> Vec<String> {
    json["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["kind"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_server_s_work_is_distinguished_from_the_network() {
    let Some(place) = place() else { return };
    let server = ["web", "--", "python3", "server.py", "0.06", "0.03", "8000"];
    let client = [
        "client",
        "--",
        "python3",
        "client.py",
        "web",
        "8000",
        "5",
        "7",
    ];
    let words = [&["--on", "net.stackline", "--json"][..], &server, &client].concat();
    let Some(done) = traced(&place, &words) else {
        return;
    };
    assert_eq!(
        done.status.code(),
        Some(7),
        "it ends as the last program does: {}",
        done.err
    );
    let (times, json) = read(&done);
    assert_eq!(times.len(), 5, "{}", done.out);
    let kinds = kinds(&json);
    // A machine that others use has cores for nobody, which is said as well.
    assert!(
        kinds.contains(&"server_sleeps".into()) && kinds.contains(&"server_computes".into()),
        "{json}"
    );
    assert!(
        json.to_string().contains("sleeps") && json.to_string().contains("60."),
        "{json}"
    );
    assert!(done.err.contains("5 requests (5 HTTP/1.1)"), "{}", done.err);
    // What may be secret is not kept.
    let text = place
        .stackline(&["export", "last", "--text", "/dev/stdout"])
        .succeeds()
        .out
        .clone();
    assert!(
        text.contains("GET /item/3?key=") && !text.contains("secret"),
        "{text}"
    );
    // The client's own times hold those that were seen, and what it does itself.
    let total = |line: &str| {
        line.strip_prefix("REQUEST_TIME; ")?
            .split("; ")
            .nth(4)?
            .parse::<f64>()
            .ok()
    };
    let mut traced: Vec<f64> = text.lines().filter_map(total).map(|ns| ns / 1e9).collect();
    let mut own = times;
    traced.sort_by(f64::total_cmp);
    own.sort_by(f64::total_cmp);
    assert_eq!(traced.len(), 5, "{text}");
    assert!(
        own.iter()
            .zip(&traced)
            .all(|(own, traced)| *traced < own + 1e-3 && *traced > 0.11),
        "{own:?} {traced:?}"
    );
}

#[test]
fn programs_here_are_traced_and_others_left_out() {
    let Some(place) = place() else { return };
    let port = free_port().to_string();
    let server = ["here", "--", "python3", "server.py", "0.05", "0", &port];
    let client = [
        "here",
        "--",
        "python3",
        "client.py",
        "127.0.0.1",
        &port,
        "3",
        "0",
    ];
    let words = [&["--json"][..], &server, &client].concat();
    let Some(done) = traced(&place, &words) else {
        return;
    };
    assert_eq!(done.status.code(), Some(0), "{}", done.err);
    let (_, json) = read(&done);
    assert!(kinds(&json).contains(&"server_sleeps".into()), "{json}");
    assert!(done.err.contains("3 requests (3 HTTP/1.1)"), "{}", done.err);
}

#[test]
fn packets_alone_say_that_they_do_not_show_it() {
    let Some(place) = place() else { return };
    let server = ["web", "--", "python3", "server.py", "0.05", "0", "8000"];
    let client = [
        "client",
        "--",
        "python3",
        "client.py",
        "web",
        "8000",
        "3",
        "0",
    ];
    let words = [
        &["--on", "net.stackline", "--see", "packets", "--json"][..],
        &server,
        &client,
    ]
    .concat();
    let Some(done) = traced(&place, &words) else {
        return;
    };
    let (_, json) = read(&done);
    assert_eq!(kinds(&json)[0], "server_takes", "{json}");
    let sentence = json["findings"][0]["sentence"].as_str().unwrap();
    assert!(
        sentence.contains("packets and calls do not show what it does"),
        "{sentence}"
    );
}

#[test]
fn what_cannot_be_traced_is_refused_with_a_hint() {
    let place = Place::new();
    place.write(
        "net.stackline",
        "network refused { host a, b; link a - b 10 Mbit/s 1 ms; }",
    );
    for (words, says) in [
        (&["trace"][..], "no program to trace was given"),
        (&["trace", "web", "--", "true"], "unknown host web"),
        (
            &["trace", "--pid", "1", "--", "true"],
            "cannot be combined with --pid",
        ),
        (&["trace", "--pid", "4000000000"], "no process"),
        (&["trace", "a", "--"], "no program was given"),
    ] {
        place.stackline(words).fails(2, &[says]).hints("");
    }
}

#[test]
fn requests_within_tls_are_reported_where_it_is_asked_for() {
    let Some(place) = place() else { return };
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    place.write("cert.pem", made.cert.pem());
    place.write("key.pem", made.signing_key.serialize_pem());
    place.write("secured.py", SECURED);
    place.write("secure.py", SECURE);
    let port = free_port().to_string();
    let server = ["here", "--", "python3", "secured.py", &port];
    let client = ["here", "--", "python3", "secure.py", &port];
    let Some(done) = traced(&place, &[&["--decipher"][..], &server, &client].concat()) else {
        return;
    };
    assert!(
        done.err.contains("3 HTTP/1.1") && done.err.contains("1 TLS"),
        "{}",
        done.err
    );
    let text = place
        .stackline(&["export", "last", "--text", "/dev/stdout"])
        .succeeds()
        .out
        .clone();
    assert!(
        text.contains("GET /item/2?key=") && !text.contains("secret"),
        "{text}"
    );
    let Some(done) = traced(&place, &[server, client].concat()) else {
        return;
    };
    assert!(
        done.err.contains("TLS, alternating") && !done.err.contains("HTTP"),
        "{}",
        done.err
    );
}

#[test]
fn what_a_client_gives_up_and_asks_again_is_said() {
    let Some(place) = place() else { return };
    place.write("impatient.py", IMPATIENT);
    let port = free_port().to_string();
    let server = ["here", "--", "python3", "server.py", "1", "0", &port];
    let client = ["here", "--", "python3", "impatient.py", &port];
    let Some(done) = traced(&place, &[&["--json"][..], &server, &client].concat()) else {
        return;
    };
    let (_, json) = read(&done);
    assert_eq!(
        kinds(&json)[..2],
        ["unanswered_requests", "client_backs_off"],
        "{json}"
    );
    let takes = |at: usize, field: &str| json["findings"][at]["takes"][field].as_f64().unwrap();
    assert!(
        takes(0, "requests") == 4.0 && takes(0, "each_s") >= 0.2,
        "{json}"
    );
    assert!(
        takes(1, "requests") == 3.0 && takes(1, "each_s") >= 0.1,
        "{json}"
    );
}

/// A server that exits with a code of its own when it is asked.
const DYING: &str = r#"
import os, socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
connection, _ = server.accept(); connection.recv(1000); os._exit(7)
"#;

/// A server that reads all that comes.
const SINK: &str = r#"
import socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
connection, _ = server.accept()
while connection.recv(65536): pass
"#;

/// A client that sends ten times 100 kB and sleeps after each.
const PAUSING: &str = r#"
import socket, sys, time
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
for _ in range(10):
    connection.sendall(b"\xff\x01" * 50_000); time.sleep(0.05)
"#;

/// What was said, with one space between words.
fn in_one_line(said: &str) -> String {
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_server_that_ends_comes_before_what_its_clients_met() {
    let Some(place) = place() else { return };
    place.write("dying.py", DYING);
    let port = free_port().to_string();
    let server = ["here", "--", "python3", "dying.py", &port];
    let client = format!("here -- python3 client.py 127.0.0.1 {port} 1 0");
    let words: Vec<&str> = server.into_iter().chain(client.split(' ')).collect();
    let Some(done) = traced(&place, &words) else {
        return;
    };
    let said = in_one_line(&done.err);
    let first = said.split(" 1. ").nth(1).unwrap_or_default();
    assert!(first.starts_with("python3 "), "{}", done.err);
    let wanted = "on here ended with exit code 7 before the trace did (program_ended;";
    assert!(first.contains(wanted), "{}", done.err);
}

#[test]
fn a_transfer_names_its_programs_and_the_one_that_pauses() {
    let Some(place) = place() else { return };
    place.write("sink.py", SINK);
    place.write("pausing.py", PAUSING);
    let port = free_port();
    let words = format!("here -- python3 sink.py {port} here -- python3 pausing.py {port}");
    let words: Vec<&str> = words.split(' ').collect();
    let Some(done) = traced(&place, &words) else {
        return;
    };
    let said = in_one_line(&done.err);
    assert!(
        said.contains("goodput paused no room send buffer"),
        "{}",
        done.err
    );
    let receiver = format!("> python3 (127.0.0.1:{port})");
    assert!(said.contains(&receiver), "{}", done.err);
    assert!(said.contains("(observed_application;"), "{}", done.err);
    assert!(said.contains("per bar, highest "), "{}", done.err);
}

/// A server whose threads share a lock, which it holds for 30 ms for a report.
const LOCKING: &str = r#"
import http.server, sys, threading, time
lock = threading.Lock()
class Handler(http.server.BaseHTTPRequestHandler):
    wbufsize, protocol_version = -1, "HTTP/1.1"
    def log_message(self, *words): pass
    def do_GET(self):
        with lock:
            if self.path == "/report": time.sleep(0.03)
        self.send_response(200); self.send_header("Content-Length", "2"); self.end_headers(); self.wfile.write(b"ok")
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"#;

/// A client of it with two connections at once: while one asks for reports, the other comes to a lock that is held.
const ASKING: &str = r#"
import http.client, sys, threading, time
def ask(path, pause):
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
    for _ in range(20): time.sleep(pause); connection.request("GET", path); connection.getresponse().read()
threads = [threading.Thread(target=ask, args=args) for args in (("/report", 0), ("/page", 0.005))]
for thread in threads: thread.start()
for thread in threads: thread.join()
"#;

#[test]
fn the_thread_that_holds_a_lock_is_named_by_what_it_does() {
    let Some(place) = place() else { return };
    place.write("locking.py", LOCKING);
    place.write("asking.py", ASKING);
    let port = free_port();
    let words = format!("here -- python3 locking.py {port} here -- python3 asking.py {port}");
    let words: Vec<&str> = words.split(' ').collect();
    if traced(&place, &words).is_none() {
        return;
    }
    let found = place
        .stackline(&["diagnose", "last"])
        .succeeds()
        .out
        .clone();
    let wanted = "the threads that end these waits serve GET /report and sleep for";
    assert!(in_one_line(&found).contains(wanted), "{found}");
}
