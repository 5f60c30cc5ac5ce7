//! Machines that lack something: without `/proc`, a network, root, room or a home it works, or says in one sentence what is missing.

use crate::support::{Finished, Place, has_program, program, skip};
use std::fs;
use std::process::Command;

/// A specification whose figure needs nothing of the machine.
const FIGURE: &str = "network n { host a, b; link a - b 10 Mbit/s 5 ms; } 2 from a to b rr 32*10 over tcp across n in simulated";

/// A root directory with the program, the libraries that it and a shell need, and nothing else; `None` without `unshare`.
fn bare_root(place: &Place) -> Option<()> {
    if !has_program("unshare", "util-linux") {
        skip("no unshare");
        return None;
    }
    let root = place.path("root");
    for folder in ["bin", "tmp", "home", "proc", "dev"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    place.install(program(), "root/bin/stackline");
    place.install("/bin/sh", "root/bin/sh");
    for program in [program(), "/bin/sh"] {
        let listed = Command::new("ldd").arg(program).output().unwrap();
        for word in String::from_utf8(listed.stdout).unwrap().split_whitespace() {
            if word.starts_with('/') {
                let to = root.join(word.trim_start_matches('/'));
                fs::create_dir_all(to.parent().unwrap()).unwrap();
                fs::copy(word, to).unwrap();
            }
        }
    }
    fs::write(root.join("dev/null"), "").unwrap();
    Some(())
}

/// The program in that root, without a network, in namespaces of its own; with `/proc` where it is asked for.
fn within(place: &Place, has_proc: bool, arguments: &[&str]) -> Finished {
    let proc = if has_proc {
        "mount -t proc proc root/proc;"
    } else {
        ""
    };
    let script = format!(
        "{proc} mount --bind /dev/null root/dev/null; exec chroot root /bin/stackline \"$@\""
    );
    let mut command = Command::new("unshare");
    command
        .args([
            "--map-root-user",
            "--net",
            "--mount",
            "--pid",
            "--fork",
            "sh",
            "-c",
            &script,
            "stackline",
        ])
        .args(arguments)
        .current_dir(place.path(""));
    place.finish(&mut command)
}

#[test]
fn without_proc_it_reads_texts_and_says_what_the_rest_needs() {
    let place = Place::new();
    let Some(()) = bare_root(&place) else { return };
    for arguments in [
        &["--version"] as &[&str],
        &["check", "-e", FIGURE],
        &["plan", "-e", FIGURE],
        &["predict", "-e", FIGURE],
        &["stacks"],
        &["keywords"],
        &["help", "all"],
    ] {
        within(&place, false, arguments).succeeds();
    }
    for arguments in [
        &["run", "-e", FIGURE] as &[&str],
        &["watch", "--for", "1s"],
        &["net", "list"],
    ] {
        within(&place, false, arguments)
            .fails(3, &["/proc is not mounted"])
            .hints("mount -t proc");
    }
}

#[test]
fn an_empty_root_without_a_network_gives_first_figures() {
    let place = Place::new();
    let Some(()) = bare_root(&place) else { return };
    let simulated = within(&place, true, &["run", "-e", FIGURE]);
    assert!(
        simulated.succeeds().out.contains("10.1 ms"),
        "{}",
        simulated.out
    );
    let emulated = FIGURE.replace("simulated", "emulated");
    within(&place, true, &["run", "-e", &emulated]).succeeds();
    within(&place, true, &["run", "-e", "2 rr 32*10 over unix"]).succeeds();
    // The loopback interface of a new namespace is down.
    within(&place, true, &["run", "-e", "2 rr 32*10 over tcp"])
        .fails(3, &["127.0.0.1"])
        .hints("ip link set lo up");
    within(&place, true, &["diagnose", "last"]);
}

/// A directory on a file system of 64 KiB that is full.
fn with_full_directory(place: &Place, script: &str) -> Finished {
    let script = format!("dd if=/dev/zero of=full/rest bs=1k 2>/dev/null; {script}");
    with_small_directory(place, "64k", &script)
}

/// A directory `full` on a file system of its own of that size.
pub(crate) fn with_small_directory(place: &Place, size: &str, script: &str) -> Finished {
    let full = place.path("full");
    fs::create_dir_all(&full).unwrap();
    let script = format!("mount -t tmpfs -o size={size} full full && {{ {script}; }}");
    let mut command = Command::new("unshare");
    let plain = place.command(&[]);
    command
        .args([
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            &script,
            "sh",
            program(),
        ])
        .current_dir(place.path(""))
        .envs(
            plain
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
    place.finish(&mut command)
}

#[test]
fn full_disks_and_closed_directories_are_named() {
    if !has_program("unshare", "util-linux") {
        return skip("no unshare");
    }
    let place = Place::new();
    place.write("spec", FIGURE);
    with_full_directory(&place, "STACKLINE_RUNS=full/runs exec \"$1\" run spec")
        .fails(3, &["No space left"])
        .hints("STACKLINE_RUNS");
    with_full_directory(&place, "TMPDIR=full exec \"$1\" run --trace spec").succeeds();
    let mut closed = place.command(&["run", "spec"]);
    closed.env("STACKLINE_RUNS", "/proc/nowhere");
    place
        .finish(&mut closed)
        .fails(3, &["/proc/nowhere"])
        .hints("STACKLINE_RUNS");
    // Nothing of a measurement needs a home.
    for home in ["", "/proc/nowhere"] {
        place
            .finish(
                place
                    .command(&["run", "spec"])
                    .env("HOME", home)
                    .env_remove("XDG_CONFIG_HOME"),
            )
            .succeeds();
    }
}

#[test]
fn a_full_disk_ends_no_probe_and_what_is_not_written_is_counted() {
    if !has_program("unshare", "util-linux") {
        return skip("no unshare");
    }
    let place = Place::new();
    let probe = "\"$1\" probe -e '1 rr 32*200 in simulated' --name p --every 10ms --count";
    // What the segment has of its last page is filled first.
    let script = format!(
        "export STACKLINE_RUNS=full/runs; {probe} 1; \
         dd if=/dev/zero of=full/rest bs=1k 2>/dev/null; {probe} 60 >during; \
         rm full/rest; {probe} 2; exec \"$1\" probe show p --json"
    );
    let finished = with_small_directory(&place, "256k", &script);
    finished.succeeds();
    let said = &finished.err;
    assert!(said.contains("No space left"), "{said}");
    assert!(said.contains(" not written; kept in"), "{said}");
    assert_eq!(
        fs::read_to_string(place.path("during"))
            .unwrap()
            .lines()
            .count(),
        60
    );
    let last = finished.out.lines().last().unwrap();
    let shown: serde_json::Value = serde_json::from_str(last).unwrap();
    let kept = shown["probes"].as_u64().unwrap();
    assert!((3..63).contains(&kept) && shown["damaged"] == 0, "{shown}");
}

/// A server and its client in one program, which fills the disk between its first requests and the others.
const FILLS_THE_DISK: &str = r#"
import http.client, http.server, threading, time
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self): self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc")
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
connection = http.client.HTTPConnection(*server.server_address)
def ask(path, count):
    for number in range(count):
        connection.request("GET", f"/{path}/{number}"); connection.getresponse().read()
ask("before", 200)
time.sleep(1)
try:
    with open("full/rest", "wb", buffering=0) as rest:
        while True: rest.write(b"x" * 1024)
except OSError: pass
ask("after", 2000)
"#;

#[test]
fn a_trace_whose_disk_is_filled_by_others_keeps_what_it_had() {
    if !has_program("unshare", "util-linux") {
        return skip("no unshare");
    }
    let place = Place::new();
    place.write("program.py", FILLS_THE_DISK);
    let script = "STACKLINE_RUNS=full/runs \"$1\" trace --notes all -- python3 program.py || exit; \
        rm full/rest; STACKLINE_RUNS=full/runs exec \"$1\" diagnose last";
    let traced = with_small_directory(&place, "6m", script);
    traced.succeeds();
    assert!(traced.err.contains("the disk was full: "), "{}", traced.err);
    for shown in ["GET /before/:id", "events are missing"] {
        assert!(traced.out.contains(shown), "{}", traced.out);
    }
}

#[test]
fn a_reader_that_stops_early_is_no_error() {
    let place = Place::new();
    for command in ["stacks", "keywords", "help all", "client c"] {
        let script = format!("\"$1\" {command} | head -c 1 >/dev/null; echo ${{PIPESTATUS[0]}}");
        let mut shell = Command::new("bash");
        shell
            .args(["-c", &script, "bash", program()])
            .current_dir(place.path(""));
        let finished = place.finish(&mut shell);
        assert_eq!(
            (finished.out.trim(), finished.err.as_str()),
            ("0", ""),
            "{command}"
        );
    }
}
