//! `stackline trace --see ptrace`: programs that are stopped at their calls end as they would, and what lay unread is told without root
//! and without the kernel's trace events. Passed over, with a word, where there is no Python, or no network or packets are to be had.

use crate::support::{Place, has_program, skip};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Works on one request at a time, 30 ms each, in a thread that the first one begins.
const SERVER: &str = r#"
import http.server, threading, time
class Handler(http.server.BaseHTTPRequestHandler):
    wbufsize = -1
    def do_GET(self):
        time.sleep(0.03)
        self.send_response(200); self.send_header("Content-Length", "200"); self.end_headers(); self.wfile.write(b"x" * 200)
    def log_message(self, *_): pass
server = http.server.HTTPServer(("", 8000), Handler)
thread = threading.Thread(target=server.serve_forever); thread.start(); thread.join()
"#;

/// Four processes that ask five times each.
const CLIENT: &str = r#"
import http.client, os
for _ in range(3):
    if os.fork() == 0: break
for _ in range(5):
    connection = http.client.HTTPConnection("web", 8000)
    connection.request("GET", "/"); connection.getresponse().read()
try:
    while True: os.wait()
except ChildProcessError: pass
"#;

fn stopped(place: &Place, words: &[&str]) -> Command {
    place.command(&[&["ptrace", "--"], words].concat())
}

#[test]
fn a_stopped_program_ends_as_it_would() {
    let place = Place::new();
    let code = |words: &[&str]| {
        stopped(&place, words)
            .stderr(Stdio::null())
            .status()
            .unwrap()
            .code()
    };
    let threads =
        "import threading; [threading.Thread(target=print, args=(n,)).start() for n in range(20)]";
    assert_eq!(code(&["sh", "-c", "exit 7"]), Some(7));
    assert_eq!(code(&["sh", "-c", "kill -9 $$"]), Some(137));
    // A signal of real time.
    assert_eq!(code(&["sh", "-c", "kill -40 $$"]), Some(168));
    assert_eq!(code(&["no-such-program"]), Some(127));
    assert_eq!(code(&["/"]), Some(126));
    if Command::new("python3").arg("--version").output().is_ok() {
        let output = stopped(&place, &["python3", "-c", threads])
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8(output.stdout).unwrap().lines().count(),
            20
        );
    }
}

#[test]
fn signals_reach_a_stopped_program() {
    let place = Place::new();
    let script = "trap 'echo asked; exit 5' TERM; echo ready; while :; do sleep 0.01; done";
    let mut program = stopped(&place, &["sh", "-c", script])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = std::io::BufReader::new(program.stdout.take().unwrap());
    let mut line = || {
        let mut line = String::new();
        std::io::BufRead::read_line(&mut out, &mut line).unwrap();
        line
    };
    assert_eq!(line(), "ready\n");
    std::thread::sleep(Duration::from_millis(20));
    let pid = nix::unistd::Pid::from_raw(program.id().cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    assert_eq!(line(), "asked\n");
    assert_eq!(program.wait().unwrap().code(), Some(5));
}

#[test]
fn what_lies_unread_is_reported_without_trace_events() {
    if !has_program("python3", "python3") {
        return;
    }
    let place = Place::new();
    place.write("server.py", SERVER);
    place.write("client.py", CLIENT);
    let name = format!("stopped_{}", std::process::id());
    place.write(
        "net.stackline",
        format!("network {name} {{ host client, web; link client - web 100 Mbit/s 5 ms; }}"),
    );
    let words = [
        "trace",
        "--on",
        "net.stackline",
        "--see",
        "ptrace",
        "--json",
    ];
    let programs = [
        "web",
        "--",
        "python3",
        "server.py",
        "client",
        "--",
        "python3",
        "client.py",
    ];
    let output = place
        .command(&[&words[..], &programs].concat())
        .output()
        .unwrap();
    let (out, err) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    if output.status.code() == Some(3) || err.contains("not looked at") {
        return skip(&err);
    }
    assert_eq!(output.status.code(), Some(0), "{err}");
    assert!(
        err.contains("20 requests (20 HTTP/1.1)")
            && err.contains("packets lost: 0, records lost: 0"),
        "{err}"
    );
    assert!(err.contains(" per message and answer"), "{err}");
    // Three wait while it works on a fourth.
    let json: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        json["findings"][0]["kind"], "server_one_at_a_time",
        "{json}"
    );
    let text = place
        .stackline(&["export", "last", "--text", "/dev/stdout"])
        .succeeds()
        .out
        .clone();
    let names = |line: &str| line.starts_with("REQUEST; ") && line.contains("; python3;");
    assert_eq!(
        text.lines().filter(|line| names(line)).count(),
        20,
        "{text}"
    );
    assert!(std::fs::read_dir(place.kept().0).unwrap().all(|file| {
        !file
            .unwrap()
            .file_name()
            .to_str()
            .unwrap()
            .starts_with("calls")
    }));
}
