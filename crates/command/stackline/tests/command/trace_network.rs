//! `stackline trace --on`: what happens within the emulated network is on the lines of requests, and named where it limits them. Passed
//! over, with a word, where there is no Python, or where networks or packets are not to be had.

use crate::support::{Finished, Place, has_program, skip};
use std::process::{Output, Stdio};
use std::sync::{Mutex, PoisonError};

/// Answers at once.
const SERVER: &str = r#"
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    def do_GET(self):
        self.send_response(200); self.send_header("Content-Length", "200"); self.end_headers()
        self.wfile.write(b"x" * 200)
    def log_message(self, *_): pass
http.server.HTTPServer(("", 8000), Handler).serve_forever()
"#;

/// Asks for a while, and takes what another sends to it after the first requests.
const CLIENT: &str = r#"
import http.client, socket, sys, threading, time
listener = socket.create_server(("", 5001))
def take():
    taken, _ = listener.accept()
    while taken.recv(65536): pass
connection = http.client.HTTPConnection("web", 8000)
for number in range(int(sys.argv[1])):
    if number == 3: threading.Thread(target=take, daemon=True).start()
    connection.request("GET", "/"); connection.getresponse().read(); time.sleep(0.02)
"#;

/// Sends as fast as it can.
const SENDER: &str = r#"
import socket, time
while True:
    # One attempt each: a name has an address of IPv6 too, on which nobody listens.
    try: sender = socket.socket(); sender.connect(("client", 5001)); break
    except OSError: sender.close(); time.sleep(0.02)
try:
    while True: sender.sendall(b"z" * 65536)
except OSError: pass
"#;

/// Three hosts, of which the client has a slow link.
fn place(name: &str) -> Option<Place> {
    if !has_program("python3", "python3") {
        return None;
    }
    let place = Place::new();
    for (file, text) in [
        ("server.py", SERVER),
        ("client.py", CLIENT),
        ("sender.py", SENDER),
    ] {
        place.write(file, text);
    }
    let links = "link client - edge 10 Mbit/s 2 ms queue 60 kB; link web - edge 100 Mbit/s 1 ms; link other - edge 100 Mbit/s 1 ms;";
    let network = format!(
        "network {name}_{} {{ host client, web, other; switch edge; {links} }}",
        std::process::id()
    );
    place.write("net.stackline", network);
    Some(place)
}

fn traced(place: &Place, programs: &[&[&str]]) -> Option<Finished> {
    let words = [
        &[
            "trace",
            "--on",
            "net.stackline",
            "--see",
            "packets",
            "--json",
        ][..],
        &programs.concat(),
    ]
    .concat();
    // Packets come late where several networks are emulated on few cores.
    static TURN: Mutex<()> = Mutex::new(());
    let _one_at_a_time = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    // Others of this place may use the network meanwhile.
    let Output {
        status,
        stdout,
        stderr,
    } = place.command(&words).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let done = Finished {
        status,
        out: text(stdout),
        err: text(stderr),
    };
    if done.status.code() == Some(3) {
        skip(&done.err);
        return None;
    }
    assert_eq!(done.status.code(), Some(0), "{}", done.err);
    Some(done)
}

const WEB: &[&str] = &["web", "--", "python3", "server.py"];

#[test]
fn the_queue_that_holds_requests_is_named_with_who_fills_it() {
    let Some(place) = place("filled") else { return };
    let sender: &[&str] = &["other", "--", "python3", "sender.py"];
    let client: &[&str] = &["client", "--", "python3", "client.py", "25"];
    let Some(done) = traced(&place, &[WEB, sender, client]) else {
        return;
    };
    let findings = done.json()["findings"].clone();
    let queue = findings
        .as_array()
        .unwrap()
        .iter()
        .find(|finding| finding["kind"] == "request_queue");
    let sentence = queue.unwrap_or_else(|| panic!("{findings}"))["sentence"]
        .as_str()
        .unwrap();
    assert!(sentence.contains("of the time: of the "), "{sentence}");
    assert!(
        sentence.contains(" belonged to another connection: 10.") && sentence.ends_with(":5001"),
        "{sentence}"
    );
    let lines = place
        .stackline(&["lifelines", "last"])
        .succeeds()
        .out
        .clone();
    for segment in [
        "queue client>edge",
        "link client>edge",
        "queue edge>web",
        "queue web>edge",
        "link edge>client",
    ] {
        assert!(lines.contains(segment), "no {segment}: {lines}");
    }
    assert!(
        lines.contains("complete") && !lines.contains("NET_SEEN"),
        "{lines}"
    );
    // Every byte of a request is told of at every queue, and in the numbers of the trace.
    let text = place
        .stackline(&["export", "last", "--text", "/dev/stdout"])
        .succeeds()
        .out
        .clone();
    let count = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
    assert!(
        count("NET_FLOW; ") >= 2 && count("PORT_SETUP; ") == 6 && count("NET_SEEN; ") == 0,
        "{text}"
    );
    assert!(
        count("NET_DELIVER; web; ") >= 25 && count("NET_ENQUEUE; edge; ") > 50,
        "{text}"
    );
    let kept = place.kept().0;
    assert!(!kept.join("network").exists() && !kept.join("doors").exists());
}

#[test]
fn what_a_network_would_bring_programs_is_found_by_an_experiment() {
    let Some(place) = place("factors") else {
        return;
    };
    let words = [
        "factors",
        "--json",
        "--on",
        "net.stackline",
        "--replicates",
        "2",
        "-f",
        "delay of client - edge x 25",
    ];
    let programs = [WEB, &["client", "--", "python3", "client.py", "8"]].concat();
    let Output {
        status,
        stdout,
        stderr,
    } = place
        .command(&[&words[..], &programs].concat())
        .output()
        .unwrap();
    if status.code() == Some(3) {
        return skip(String::from_utf8_lossy(&stderr));
    }
    assert_eq!(
        status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&stderr)
    );
    let answer: serde_json::Value = serde_json::from_slice(&stdout).unwrap();
    // 6 ms there and back, then 102: far more than what a busy machine adds.
    let response = &answer["responses"][0];
    assert_eq!(
        (response["name"].as_str(), answer["runs"].as_u64()),
        (Some("response"), Some(4))
    );
    let gain = response["answer"]["effects"][0]["alone"].as_f64().unwrap();
    assert!((0.03..0.35).contains(&gain), "{response}");
}

/// Says when it was asked, and never answers.
const SILENT_SERVER: &str = r#"
import socket, time
listener = socket.create_server(("", 8001))
taken, _ = listener.accept()
taken.recv(65536)
open("asked", "w").close()
time.sleep(3600)
"#;

/// Leaves who asks it running.
const LEAVES: &str = r#"
python3 -c 'import urllib.request as r; r.urlopen("http://other:8001/slow")' &
until [ -e asked ]; do sleep 0.05; done
"#;

#[test]
fn one_of_several_networks_is_chosen_by_name() {
    let Some(place) = place("near") else { return };
    let one = std::fs::read_to_string(place.path("net.stackline")).unwrap();
    let other = one.replace("near_", "far_");
    place.write("both.stackline", format!("{one}\n{other}"));
    let trace = |more: &[&str]| {
        let words = [
            &["trace", "--on", "both.stackline"],
            more,
            &["client", "--", "true"],
        ];
        place.stackline(&words.concat())
    };
    let far = format!("far_{}", std::process::id());
    let undecided = trace(&[]);
    undecided
        .fails(2, &["2 networks have a host named client"])
        .hints(&format!("--network {far}"));
    trace(&["--network", &far]).succeeds();
}

#[test]
fn what_the_last_program_leaves_running_did_not_fail() {
    let Some(place) = place("left") else { return };
    place.write("silent.py", SILENT_SERVER);
    place.write("leaves.sh", LEAVES);
    let other: &[&str] = &["other", "--", "python3", "silent.py"];
    let client: &[&str] = &["client", "--", "sh", "leaves.sh"];
    if traced(&place, &[other, client]).is_none() {
        return;
    }
    let text = place
        .stackline(&["export", "last", "--text", "/dev/stdout"])
        .succeeds()
        .out
        .clone();
    let slow = text
        .lines()
        .find(|line| line.starts_with("REQUEST; ") && line.contains("/slow"));
    let slow = slow.unwrap_or_else(|| panic!("{text}"));
    assert!(
        slow.ends_with("; it was under way when the trace ended"),
        "{slow}"
    );
}

#[test]
fn a_network_that_others_use_is_not_begun_anew() {
    let Some(place) = place("shared") else { return };
    let mut other = place.command(&[
        "net",
        "exec",
        "net.stackline",
        "other",
        "--",
        "sh",
        "-c",
        "echo; sleep 60",
    ]);
    let mut other = other
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(other.stdout.take().unwrap()),
        &mut line,
    )
    .unwrap();
    let client: &[&str] = &["client", "--", "python3", "client.py", "2"];
    let done = traced(&place, &[WEB, client]);
    let _ = nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(other.id() as i32),
        nix::sys::signal::Signal::SIGTERM,
    );
    let _ = other.wait();
    place.empties();
    let Some(done) = done else { return };
    assert!(
        done.err
            .contains("note: the queues of the network are not recorded: another program uses it"),
        "{}",
        done.err
    );
    let lines = place
        .stackline(&["lifelines", "last"])
        .succeeds()
        .out
        .clone();
    assert!(
        !lines.contains("queue ") && lines.contains("complete"),
        "{lines}"
    );
}

/// Sends for two seconds with a send buffer that is far smaller than what the path could hold.
const CRAMPED: &str = r#"
import socket, sys, time
connection = socket.socket()
connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 << 10)
while connection.connect_ex((sys.argv[1], 7001)): time.sleep(0.05)
until = time.monotonic() + 2
while time.monotonic() < until: connection.send(bytes(1 << 16))
"#;
const SINK: &str = r#"
import socket
connection, _ = socket.create_server(("", 7001)).accept()
while connection.recv(1 << 16): pass
"#;

#[test]
fn a_send_buffer_that_is_too_small_is_named_by_what_the_kernel_counts() {
    let Some(place) = place("cramped") else {
        return;
    };
    place.write("sink.py", SINK);
    place.write("cramped.py", CRAMPED);
    let network = format!(
        "network cramped_{} {{ host web, client; link web - client 100 Mbit/s 25 ms; }}",
        std::process::id()
    );
    place.write("net.stackline", network);
    let sink: &[&str] = &["web", "--", "python3", "sink.py"];
    let sender: &[&str] = &["client", "--", "python3", "cramped.py", "web"];
    let Some(done) = traced(&place, &[sink, sender]) else {
        return;
    };
    let json = done.json();
    let share = json["transfers"][0]["send_buffer"].as_f64().unwrap();
    assert!(share > 0.1, "{json:#}");
    let first = &json["findings"][0];
    assert_eq!(first["kind"], "observed_send_buffer", "{json:#}");
    let sentence = first["sentence"].as_str().unwrap();
    assert!(sentence.starts_with("the send buffer of 10."), "{sentence}");
}
