//! `stackline trace` where programs have namespaces of their own: within one, of one that runs, by container, unit and control group, and
//! with less than root's rights. Namespaces are made by `unshare`; what runtimes keep is a directory of the test. Passed over, with a word,
//! where this is not root's, or there is no Python.

use crate::support::{Place, has_program, skip, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// A server that sleeps 20 ms for each request, and says when it listens.
const SERVER: &str = r#"
import http.server, sys, time
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(0.02)
        self.send_response(200); self.send_header("Content-Length", "500"); self.end_headers()
        self.wfile.write(b"x" * 500)
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
open(sys.argv[2], "w").close()
server.serve_forever()
"#;

/// A client that asks so many times, or for ever, a tenth of a second apart.
const CLIENT: &str = r#"
import http.client, sys, time
number = 0
while number < int(sys.argv[2]) or sys.argv[2] == "0":
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
    connection.request("GET", f"/item/{number}"); connection.getresponse().read()
    number += 1
    time.sleep(0.1)
"#;

fn place() -> Option<Place> {
    let has_all = [("python3", "python3"), ("unshare", "util-linux")]
        .iter()
        .all(|(name, package)| has_program(name, package));
    if !nix::unistd::geteuid().is_root() || !has_all {
        skip("this needs root, python3 and unshare");
        return None;
    }
    let place = Place::new();
    place.write("server.py", SERVER);
    place.write("client.py", CLIENT);
    Some(place)
}

/// Another program that starts stackline, with the variables of the place.
fn around(place: &Place, words: &[&str]) -> Command {
    let own = place.command(&[]);
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(place.path(""));
    for (name, value) in own.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.env("SL", own.get_program());
    command
}

/// What was said at the end of a trace that a shell starts; none where the kernel's trace events are not to be had.
fn shell(place: &Place, before: &[&str], script: &str) -> Option<String> {
    let output = around(place, &[before, &["sh", "-c", script]].concat())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    said(output)
}

fn said(output: Output) -> Option<String> {
    let err = String::from_utf8(output.stderr).unwrap();
    if err.contains("not looked at: threads") || err.contains("not permitted") {
        skip(&err);
        return None;
    }
    Some(err)
}

/// Something in namespaces of its own: a server and its client that asks for ever.
struct Contained {
    child: Child,
    /// Its first process, as it is numbered outside.
    pid: u32,
}

impl Contained {
    fn start(place: &Place, port: u16) -> Option<Self> {
        let script = format!(
            "ip link set lo up
            (until [ -e contained ]; do sleep 0.02; done; exec python3 client.py {port} 0) &
            exec python3 server.py {port} contained"
        );
        let words = [
            "unshare",
            "--net",
            "--pid",
            "--mount",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "sh",
            "-c",
            &script,
        ];
        let mut child = around(place, &words).stdin(Stdio::null()).spawn().unwrap();
        wait_until("a contained server listens", || {
            place.path("contained").exists() || child.try_wait().unwrap().is_some()
        });
        let list = format!("/proc/{0}/task/{0}/children", child.id());
        let children = fs::read_to_string(list).unwrap_or_default();
        let pid = children.split_ascii_whitespace().next();
        match pid
            .and_then(|pid| pid.parse().ok())
            .filter(|_| place.path("contained").exists())
        {
            Some(pid) => Some(Self { child, pid }),
            None => {
                skip("no namespaces can be made here");
                let _ = child.kill();
                let _ = child.wait();
                None
            }
        }
    }
}

impl Drop for Contained {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn has_items(said: &str, server: &str) {
    assert!(said.contains("GET /item/:id"), "{said}");
    assert!(said.contains(server), "{said}");
}

#[test]
fn within_a_namespace_of_processes_a_trace_knows_its_own_programs() {
    let Some(place) = place() else { return };
    let script =
        "exec $SL trace here -- python3 server.py 18711 ready here -- python3 client.py 18711 3";
    let within = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
    let Some(said) = shell(&place, &within, script) else {
        return;
    };
    has_items(&said, "python3 on here");
    assert!(said.contains("3 requests"), "{said}");
    // What a thread did is known by the kernel's numbers too.
    let done = place.stackline(&["diagnose", "last"]);
    assert!(done.out.contains("server_sleeps"), "{}", done.out);
}

#[test]
fn within_a_namespace_of_processes_one_that_runs_is_joined() {
    let Some(place) = place() else { return };
    let script = "python3 server.py 18712 ready & server=$!
        until [ -e ready ]; do sleep 0.02; done
        python3 client.py 18712 0 & client=$!
        $SL trace --pid $server --for 4s; code=$?
        kill $server $client; exit $code";
    let within = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];
    if let Some(said) = shell(&place, &within, script) {
        has_items(&said, "python3 on here");
    }
}

#[test]
fn on_a_host_of_a_network_a_trace_is_as_anywhere() {
    let Some(place) = place() else { return };
    let name = format!("within_{}", std::process::id());
    let network =
        format!("network {name} {{ host client, web; link client - web 100 Mbit/s 1 ms; }}");
    place.write("net.stackline", network);
    let script = "exec $SL net exec net.stackline client -- $SL trace here -- python3 server.py 18713 ready \
        here -- python3 client.py 18713 2";
    if let Some(said) = shell(&place, &[], script) {
        has_items(&said, "python3 on here");
        assert!(!said.contains("other programs"), "{said}");
    }
}

#[test]
fn a_process_in_other_namespaces_is_seen_where_it_is() {
    let Some(place) = place() else { return };
    let Some(contained) = Contained::start(&place, 8000) else {
        return;
    };
    let pid = contained.pid.to_string();
    let output = place
        .command(&["trace", "--pid", &pid, "--for", "4s"])
        .output()
        .unwrap();
    if let Some(said) = said(output) {
        has_items(&said, &format!("python3 on python3-{pid}"));
    }
}

#[test]
fn a_container_is_found_by_what_its_runtime_keeps() {
    let Some(place) = place() else { return };
    let Some(contained) = Contained::start(&place, 8001) else {
        return;
    };
    let id = "c0ffee".repeat(11)[..64].to_owned();
    let other = "c0f0".repeat(16);
    let config = r#"{"annotations":{"io.kubernetes.cri.container-type":"container","io.kubernetes.cri.container-name":"app",
        "io.kubernetes.cri.sandbox-name":"shop","io.kubernetes.cri.sandbox-namespace":"default"}}"#;
    place.write("config.json", config);
    let pid = contained.pid;
    // In a namespace of mounts, so that nobody else sees it.
    let keep = format!(
        "set -e; mount -t tmpfs none /run
        tasks=/run/containerd/io.containerd.runtime.v2.task
        mkdir -p $tasks/k8s.io/{id} $tasks/default/{other}
        echo {pid} > $tasks/k8s.io/{id}/init.pid; cp config.json $tasks/k8s.io/{id}/
        echo 4194303 > $tasks/default/{other}/init.pid"
    );
    let traced = |word: &str| {
        let script = format!("{keep}; exec $SL trace --container {word} --for 3s");
        shell(&place, &["unshare", "--mount"], &script)
    };
    for word in ["app", "shop/app", "c0ffee"] {
        let Some(said) = traced(word) else { return };
        has_items(&said, "python3 on app");
    }
    for (word, says) in [
        (
            "nothing",
            "unknown container nothing\nhint: known containers: app (containerd c0ffeec0ffee)",
        ),
        ("c0f0", "is not running"),
    ] {
        let said = traced(word).unwrap();
        assert!(said.contains(says), "{said}");
    }
}

/// A control group of a test, which is removed with all that is in it.
struct Group(PathBuf);

impl Group {
    fn create(name: &str) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "));
        let point = mount.and_then(|line| line.split(' ').nth(4));
        let path = Path::new(point.unwrap_or("/nowhere")).join(name);
        if fs::create_dir(&path).is_err() {
            skip("no control group can be made here");
            return None;
        }
        Some(Self(path))
    }

    fn enter(&self, pid: u32) -> bool {
        fs::write(self.0.join("cgroup.procs"), pid.to_string()).is_ok()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Whoever was in it has been killed and is gone in a moment.
        for _ in 0..500 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A program that ends with the test.
struct Beside(Child);

impl Beside {
    fn start(place: &Place, words: &[&str]) -> Self {
        let mut command = around(place, words);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_unit_and_a_control_group_are_joined_with_whoever_comes() {
    let Some(place) = place() else { return };
    let name = format!("stackline-{}.service", std::process::id());
    let Some(group) = Group::create(&name) else {
        return;
    };
    let empty = place.stackline(&["trace", "--unit", &name]);
    empty.fails(2, &["has no process"]);
    assert!(empty.err.contains("systemctl start"), "{}", empty.err);
    let waits = Beside::start(&place, &["sleep", "600"]);
    if !group.enter(waits.0.id()) {
        return skip("no process may enter a control group here");
    }
    let stem = name.strip_suffix(".service").unwrap();
    let path = group.0.to_str().unwrap().to_owned();
    for (number, join) in [["--unit", stem], ["--cgroup", &path]]
        .into_iter()
        .enumerate()
    {
        let mut trace = place.command(&["trace", join[0], join[1]]);
        let trace = trace.stderr(Stdio::piped()).spawn().unwrap();
        wait_until("the trace is kept", || place.runs().len() > number);
        // The server comes while it is traced.
        std::thread::sleep(Duration::from_millis(800));
        let (port, ready) = ((18720 + number).to_string(), format!("ready{number}"));
        let server = Beside::start(&place, &["python3", "server.py", &port, &ready]);
        assert!(group.enter(server.0.id()));
        wait_until("the server listens", || place.path(&ready).exists());
        std::thread::sleep(Duration::from_millis(400));
        let mut client = Beside::start(&place, &["python3", "client.py", &port, "5"]);
        assert!(client.0.wait().unwrap().success());
        let process = Pid::from_raw(trace.id().try_into().unwrap());
        kill(process, Signal::SIGINT).unwrap();
        if let Some(said) = said(trace.wait_with_output().unwrap()) {
            has_items(&said, "python3 on here");
        }
    }
}

#[test]
fn what_is_not_there_is_an_error_with_a_hint() {
    let place = Place::new();
    for (words, says) in [
        (&["trace", "--pid", "4194303"][..], "no process 4194303"),
        (
            &["trace", "--cgroup", "/nothing/of/it"],
            "unknown control group",
        ),
        (
            &["trace", "--unit", "no-such-unit"],
            "no unit no-such-unit.service is running",
        ),
        (
            &["trace", "--container", "no-such-container"],
            "unknown container no-such-container",
        ),
    ] {
        let done = place.stackline(words);
        if done.status.code() == Some(3) {
            skip(&done.err);
            continue;
        }
        done.fails(2, &[says]);
        assert!(done.err.contains("\nhint: "), "{}", done.err);
    }
    assert!(!place.path("runs").exists());
}

#[test]
fn a_program_that_is_not_there_stops_a_trace_before_it_begins() {
    let place = Place::new();
    let name = format!("absent_{}", std::process::id());
    place.write(
        "net.stackline",
        format!("network {name} {{ host client, web; link client - web 100 Mbit/s 1 ms; }}"),
    );
    place.script("script", "#!/nowhere/sh\n");
    let began = place.path("began");
    let began = began.to_str().unwrap();
    for see in ["calls", "ptrace", "packets"] {
        for (words, code) in [
            (&["--", "no-such-program"][..], 127),
            (
                &["here", "--", "touch", began, "here", "--", "/nowhere/x"],
                127,
            ),
            (
                &[
                    "--on",
                    "net.stackline",
                    "web",
                    "--",
                    "touch",
                    began,
                    "client",
                    "--",
                    "no-such-program",
                ],
                127,
            ),
            (&["--", "./script"], 127),
            (&["--", "/etc/passwd"], 126),
        ] {
            let done = place.stackline(&[&["trace", "--see", see], words].concat());
            assert_eq!(done.status.code(), Some(code), "{words:?} {}", done.err);
            assert_eq!(done.err.matches("error: ").count(), 1, "{}", done.err);
            assert!(done.err.contains("cannot be started"), "{}", done.err);
        }
    }
    assert!(!place.path("began").exists() && !place.path("runs").exists());
}

#[test]
fn without_any_right_requests_are_seen_by_their_calls() {
    let Some(place) = place() else { return };
    let none = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"];
    let script =
        "exec $SL trace here -- python3 server.py 18730 ready here -- python3 client.py 18730 3";
    let output = around(&place, &[&none[..], &["sh", "-c", script]].concat())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    if said.contains("may not be stopped") {
        return skip(&said);
    }
    has_items(&said, "python3 on here");
    assert!(said.contains("3 requests"), "{said}");
    let notes: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("not recorded"))
        .collect();
    assert_eq!(notes.len(), 1, "{said}");
    assert!(
        notes[0].contains("packets") && notes[0].contains("--privileged"),
        "{said}"
    );
    let packets = around(
        &place,
        &[&none[..], &["sh", "-c", "exec $SL trace --pid $$"]].concat(),
    )
    .output()
    .unwrap();
    let said = String::from_utf8(packets.stderr).unwrap();
    assert_eq!(packets.status.code(), Some(3), "{said}");
    assert!(
        said.contains("hint: ") && said.contains("CAP_NET_RAW"),
        "{said}"
    );
}
