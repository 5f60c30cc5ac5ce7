//! `watch`: its forms, its end, and what it reports of an emulated network that loses packets.

use crate::support::{Place, has_program, program, said, skip};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::io::BufRead as _;
use std::process::Stdio;

#[test]
fn lines_of_text_and_of_json() {
    let place = Place::new();
    let output = place.stackline(&[
        "watch",
        "--for",
        "300ms",
        "--interval",
        "20ms",
        "--host",
        "khons",
    ]);
    let lines: Vec<&str> = output.succeeds().out.lines().collect();
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("NETSTAT_TCP; khons; ")),
        "{}",
        output.out
    );
    assert!(
        lines
            .iter()
            .all(|line| line.parse::<stackline_events::TextEvent>().is_ok())
    );
    assert!(
        output.err.contains(" of CPU time, ") && output.err.contains("every 20.0 ms"),
        "{}",
        output.err
    );
    let output = place.stackline(&[
        "watch",
        "--for",
        "300ms",
        "--json",
        "--host",
        "khons",
        "--interface",
        "lo",
    ]);
    let rows: Vec<Value> = output
        .succeeds()
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let interfaces = rows.iter().filter(|row| row["keyword"] == "NETIF");
    assert!(
        interfaces.clone().count() > 0
            && interfaces
                .clone()
                .all(|row| row["data"]["interface"] == "lo")
    );
}

#[test]
fn ctrl_c_keeps_what_was_recorded() {
    let place = Place::new();
    let watching =
        place.start(&mut place.command(&["watch", "--keep", "night", "--host", "khons"]));
    // Its run directory is there before anything is watched, so the signal may come that early too.
    crate::support::until("it began", || place.runs().first().map(drop));
    std::thread::sleep(std::time::Duration::from_millis(400));
    watching.process().signal(Signal::SIGINT);
    let output = watching.finish();
    assert!(
        output.succeeds().err.contains("kept in ") && output.out.is_empty(),
        "{} {}",
        output.out,
        output.err
    );
    let run = &place.runs()[0];
    let table = stackline_runs::events::read_table(&run.join("events/khons.parquet")).unwrap();
    assert!((0..table.len()).any(|row| table.keyword(row) == "NETSTAT_TCP"));
    let index = stackline_runs::events::read_index(run).unwrap().unwrap();
    let host = &index.hosts["khons"];
    assert!(
        host.recorded == table.len() as u64 && host.cost_s["monitors"] > 0.0,
        "{host:?}"
    );
    place.stackline(&["lifelines", run.file_name().unwrap().to_str().unwrap()]);
    place.empties();
}

#[test]
fn what_cannot_be_is_refused_with_a_hint() {
    let place = Place::new();
    place
        .stackline(&["watch", "--interval", "1ms"])
        .fails(2, &["not between 10ms and 60s"]);
    let mut nothing = place.command(&["watch", "--snmp", "127.0.0.1:1", "--for", "1s"]);
    place
        .finish(nothing.env_remove("STACKLINE_SNMP_COMMUNITY"))
        .fails(2, &["needs the community"])
        .hints("--snmp-secrets");
    let output = place.stackline(&["watch", "--for", "200ms", "--interface", "none0"]);
    assert!(
        output
            .succeeds()
            .err
            .contains("absent: interfaces: unknown interface none0"),
        "{}",
        output.err
    );
}

/// Waits for a connection on port 5001 and takes everything.
const TAKE: &str = "
import socket
s = socket.create_server(('0.0.0.0', 5001)); print('ready', flush=True)
c, _ = s.accept()
while c.recv(1 << 16): pass
print('taken', flush=True)
";
/// Sends 4 MB and says how often the kernel sent something again.
const SEND: &str = "
import socket, struct, sys
s = socket.create_connection((sys.argv[1], 5001)); s.sendall(bytes(4_000_000)); s.shutdown(1); s.recv(1)
print(struct.unpack_from('I', s.getsockopt(6, 11, 104), 100)[0])
";

#[test]
fn retransmissions_on_a_lossy_network_are_the_senders_alone() {
    if !has_program("python3", "python3") {
        return;
    }
    let place = Place::new();
    let name = format!("lossy_{}", std::process::id());
    let text = format!(
        "network {name} {{ host a, b; link a -> b 50 Mbit/s 1 ms loss 1%; link b -> a 50 Mbit/s 1 ms; }}"
    );
    place.write("net.stackline", text);
    let on = |host: &str, script: &str| {
        let mut command = place.command(&["net", "exec", "net.stackline", host, "--", "sh", "-c"]);
        command
            .arg(script)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    };
    let watch = |host: &str, rest: &str| {
        let stackline = program();
        let watch = format!(
            "{stackline} watch --tcp 5001 --host {host} --text > {host}.log 2> {host}.err & w=$!"
        );
        format!("{watch}; sleep 1; {rest}; kill -INT $w; wait $w")
    };
    let address = on("a", "getent ahostsv4 b | head -n 1 | cut -d' ' -f1")
        .output()
        .unwrap();
    if address.status.code() == Some(3) {
        return skip(said(&address));
    }
    let address = String::from_utf8_lossy(&address.stdout).trim().to_owned();
    let mut taking = on("b", &watch("b", &format!("python3 -c \"{TAKE}\"")))
        .spawn()
        .unwrap();
    let mut ready = String::new();
    std::io::BufReader::new(taking.stdout.as_mut().unwrap())
        .read_line(&mut ready)
        .unwrap();
    assert_eq!(ready, "ready\n");
    let sent = on(
        "a",
        &watch("a", &format!("python3 -c \"{SEND}\" {address}")),
    )
    .output()
    .unwrap();
    assert!(taking.wait().unwrap().success());
    let count = String::from_utf8_lossy(&sent.stdout);
    let retransmits: u64 = count
        .trim()
        .parse()
        .unwrap_or_else(|_| panic!("{}", said(&sent)));
    let log = |host: &str| std::fs::read_to_string(place.path(&format!("{host}.log"))).unwrap();
    let words = std::fs::read_to_string(place.path("a.err")).unwrap();
    if words.contains("absent: kernel:") {
        return skip(&words);
    }
    let again = log("a")
        .lines()
        .filter(|line| line.starts_with("TCP_RETRANSMIT; a; "))
        .count() as u64;
    assert!(
        retransmits > 5 && again > 0 && again <= retransmits,
        "{again} of {retransmits}: {words}"
    );
    assert!(
        !log("b").contains("TCP_RETRANSMIT"),
        "the other host's kernel sent nothing again"
    );
    assert!(log("b").contains("TCP_INFO; b; "));
    place.empties();
}
