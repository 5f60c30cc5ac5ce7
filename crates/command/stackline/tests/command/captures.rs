//! Captures of programs that are not ours become requests with lifelines and findings; tshark is asked for the same times.

use crate::support::events::{events, field};
use crate::support::{Place, skip};
use stackline_events::text::TextEvent;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Who serves slowly on loopback of a network of its own, its capture and its log: what `unshare` runs.
const LAB: &str = r#"
set -e
ip link set lo up
cat > server.py <<'END'
import http.server, json, time
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        began = time.time()
        time.sleep(0.003 * (1 + len(self.path) % 5))
        body = b'x' * 100 * len(self.path)
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        now = time.time()
        with open('access.log', 'a') as log:
            log.write(json.dumps({'time': f'{now:.6f}', 'method': 'GET', 'path': self.path, 'status': 200, 'duration': now - began}) + '\n')
    def log_message(self, *a):
        pass
http.server.ThreadingHTTPServer(('127.0.0.1', 8080), Handler).serve_forever()
END
timeout 30 python3 server.py >/dev/null 2>&1 & server=$!
timeout 30 dumpcap -q -P -i lo -w all.pcap >/dev/null 2>&1 & dump=$!
trap 'kill $server $dump 2>/dev/null || true' EXIT
# The capture has begun when it has something.
tries=0
until curl -s -o /dev/null http://127.0.0.1:8080/ready && [ "$(stat -c %s all.pcap)" -gt 24 ]; do
    tries=$((tries + 1)); [ $tries -lt 200 ]; sleep 0.05
done
for i in 1 2 3 4 5 6 7 8; do
    curl -s -o /dev/null "http://127.0.0.1:8080/item/$i?token=secret" -o /dev/null http://127.0.0.1:8080/other/number/$i
done
sleep 0.5
kill $dump; wait $dump || true
"#;

/// A capture of real programs, where this machine can make one.
fn lab(place: &Place) -> bool {
    for tool in ["unshare", "python3", "dumpcap", "curl", "ip", "tshark"] {
        if !Command::new("which")
            .arg(tool)
            .output()
            .is_ok_and(|found| found.status.success())
        {
            skip(format_args!("there is no {tool}"));
            return false;
        }
    }
    let done = Command::new("unshare")
        .args(["-Urn", "sh", "-c", LAB])
        .current_dir(place.path(""))
        .output()
        .unwrap();
    if !done.status.success()
        || std::fs::metadata(place.path("all.pcap")).is_ok_and(|about| about.len() < 1000)
    {
        skip(format_args!(
            "no capture could be made: {}",
            String::from_utf8_lossy(&done.stderr)
        ));
        return false;
    }
    true
}

/// Times from requests to responses as tshark has them, ns, in the order of the responses.
fn oracle(capture: &Path) -> Vec<i64> {
    let fields = ["-Y", "http.response", "-T", "fields", "-e", "http.time"];
    let output = Command::new("tshark")
        .arg("-r")
        .arg(capture)
        .args(fields)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines()
        .map(|line| (line.trim().parse::<f64>().unwrap() * 1e9).round() as i64)
        .collect()
}

/// The same of a run: the time from the last byte of the request to the last of the response.
fn times(run: &Path) -> Vec<i64> {
    let mut found = BTreeMap::new();
    let events = events(run);
    // Before the server listened its connection was refused: no request was made then.
    let is_attempt = |event: &&TextEvent| {
        event.keyword == "REQUEST" && event.to_string().contains("; connection; TCP; ")
    };
    let attempts: Vec<i64> = events
        .iter()
        .filter(is_attempt)
        .filter_map(|event| field(event, "unit"))
        .collect();
    let is_time = |event: &&TextEvent| event.keyword == "REQUEST_TIME";
    for event in events
        .iter()
        .filter(is_time)
        .filter(|event| !field(event, "unit").is_some_and(|of| attempts.contains(&of)))
    {
        let of = |name: &str| field(event, name).unwrap_or(0);
        let before: i64 = [
            "lookup_ns",
            "connect_ns",
            "handshake_ns",
            "client_ns",
            "hold_ns",
        ]
        .map(of)
        .iter()
        .sum();
        found.insert((event.at_ns, of("unit")), of("total_ns") - before);
    }
    found.into_values().collect()
}

#[test]
fn requests_of_a_capture_take_the_time_that_tshark_says() {
    let place = Place::new();
    if !lab(&place) {
        return;
    }
    place
        .stackline(&[
            "import",
            "all.pcap",
            "--log",
            "access.log",
            "--host",
            "web=all.pcap",
        ])
        .succeeds();
    let run = place.kept().0;
    let (ours, theirs) = (times(&run), oracle(&place.path("all.pcap")));
    assert_eq!(ours.len(), theirs.len());
    assert!(ours.len() >= 16);
    for (own, their) in ours.iter().zip(&theirs) {
        assert!(
            (own - their).abs() <= 2000.max(their / 50),
            "{own} and {their} of {ours:?} and {theirs:?}"
        );
    }
    let events = events(&run);
    let requests: Vec<String> = events
        .iter()
        .filter(|event| event.keyword == "REQUEST")
        .map(ToString::to_string)
        .collect();
    assert!(
        requests
            .iter()
            .any(|line| line.contains("GET /item/3?token=…; 200; web; web")),
        "{requests:?}"
    );
    assert!(!requests.iter().any(|line| line.contains("secret")));
    // Every line of the log is of one request.
    let logs: Vec<String> = events
        .iter()
        .filter(|event| event.keyword == "LOG")
        .map(ToString::to_string)
        .collect();
    assert_eq!(logs.len(), ours.len(), "{logs:?}");
    assert!(
        logs.iter()
            .any(|line| line.contains("access.log; GET /item/3?token=… 200 in ")),
        "{logs:?}"
    );
    // Lifelines and findings are there.
    let lines = place.stackline(&["lifelines", run.to_str().unwrap()]);
    assert!(lines.succeeds().out.contains("complete"), "{}", lines.out);
    place
        .stackline(&["diagnose", run.to_str().unwrap()])
        .succeeds();
    // With contents, names are whole.
    place
        .stackline(&["import", "all.pcap", "--keep-contents", "--name", "whole"])
        .succeeds();
}

#[test]
fn a_capture_of_heads_alone_says_what_it_can() {
    let place = Place::new();
    if !lab(&place) {
        return;
    }
    let whole = std::fs::read(place.path("all.pcap")).unwrap();
    // As tcpdump -s 96 would have written it.
    let mut cut = whole[..24].to_vec();
    let mut at = 24;
    while at + 16 <= whole.len() {
        let kept = u32::from_le_bytes(whole[at + 8..at + 12].try_into().unwrap()) as usize;
        let Some(packet) = whole.get(at + 16..at + 16 + kept) else {
            break;
        };
        let some = kept.min(96);
        cut.extend(&whole[at..at + 8]);
        cut.extend((some as u32).to_le_bytes());
        cut.extend(&whole[at + 12..at + 16]);
        cut.extend(&packet[..some]);
        at += 16 + kept;
    }
    place.write("cut.pcap", &cut);
    place.stackline(&["import", "cut.pcap"]).succeeds();
    place.write("torn.pcap", &cut[..cut.len() - 50]);
    place.stackline(&["import", "torn.pcap"]).succeeds();
}

const GET: &[u8] = b"GET /a HTTP/1.1\r\n\r\n";
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// A request that takes 30 ms, over a way of 10 ms, as a capture at the client or at the server sees it, by a clock that is
/// three seconds ahead there; each with its IP header on.
pub(crate) fn end(at_server: bool) -> Vec<u8> {
    let mut file = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
    file.extend([2, 0, 4, 0]);
    [0_u32, 0, 65535, 101]
        .iter()
        .for_each(|word| file.extend(word.to_le_bytes()));
    let sent: [(u32, bool, u8, u32, &[u8]); 5] = [
        (0, true, 2, 99, b""),
        (10_000, false, 18, 99, b""),
        (20_000, true, 16, 100, b""),
        (20_000, true, 24, 100, GET),
        (60_000, false, 24, 100, ANSWER),
    ];
    for (sent_us, there, flags, sequence, data) in sent {
        let us = sent_us + if there == at_server { 10_000 } else { 0 };
        let total = 40 + data.len();
        let (from, to, port, peer) = if there {
            (1_u8, 2_u8, 5000_u16, 80_u16)
        } else {
            (2, 1, 80, 5000)
        };
        let mut packet = vec![
            0x45,
            0,
            0,
            total as u8,
            0,
            0,
            0,
            0,
            64,
            6,
            0,
            0,
            10,
            0,
            0,
            from,
            10,
            0,
            0,
            to,
        ];
        packet.extend([port.to_be_bytes(), peer.to_be_bytes()].concat());
        packet.extend(sequence.to_be_bytes());
        packet.extend(100_u32.to_be_bytes());
        packet.extend([0x50, flags, 1, 0, 0, 0, 0, 0]);
        packet.extend(data);
        let second = 1_000_000 + if at_server { 3 } else { 0 };
        [second, us, total as u32, total as u32]
            .iter()
            .for_each(|word| file.extend(word.to_le_bytes()));
        file.extend(packet);
    }
    file
}

#[test]
fn captures_of_both_ends_are_one_run_with_both_clocks() {
    let place = Place::new();
    place.write("client.pcap", end(false));
    place.write("server.pcap", end(true));
    // nginx, whole seconds and how long it took, by the server's clock.
    place.write(
        "access.log",
        r#"10.0.0.1 - - [12/Jan/1970:13:46:43 +0000] "GET /a HTTP/1.1" 200 5 "-" "x" 0.030 0.029"#,
    );
    let json = place
        .stackline(&[
            "import",
            "client.pcap",
            "server.pcap",
            "--log",
            "access.log",
            "--json",
        ])
        .json();
    assert_eq!(json["reference"], "client");
    assert_eq!(json["clocks"]["server"]["offset_ns"], 3_000_000_000_i64);
    assert_eq!(json["clocks"]["server"]["error_ns"], 10_000_000);
    assert_eq!(json["imports"][2]["events"], 1, "{json}");
    let run = place.kept().0;
    let events = events(&run);
    // One flow, in segments as in units.
    let of = |keyword: &'static str| events.iter().filter(move |event| event.keyword == keyword);
    let streams: BTreeSet<i64> = of("NET_SEEN")
        .filter_map(|event| field(event, "stream"))
        .collect();
    assert_eq!(streams, [0, 1].into());
    let time = of("REQUEST_TIME").next().unwrap();
    let parts = ["connect_ns", "there_ns", "work_ns", "back_ns"].map(|name| field(time, name));
    assert_eq!(parts, [20, 10, 30, 10].map(|ms| Some(ms * 1_000_000)));
    let log = of("LOG").next().unwrap();
    assert_eq!(
        (log.host.as_str(), log.at_ns),
        ("server", 1_000_003_060_000_000)
    );
    let run = run.to_str().unwrap();
    let lines = place.stackline(&["lifelines", run]);
    assert!(
        lines
            .succeeds()
            .out
            .contains("the clock of server is 3.00 s ahead"),
        "{}",
        lines.out
    );
    let found = place.stackline(&["diagnose", run]);
    assert!(found.succeeds().out.contains("server"), "{}", found.out);
    // A clock that is given is taken as it is.
    let json = place
        .stackline(&[
            "import",
            "client.pcap",
            "server.pcap",
            "--clock",
            "server=+2995ms",
            "--json",
        ])
        .json();
    assert_eq!(json["clocks"]["server"]["offset_ns"], 2_995_000_000_i64);
    // A log without captures, and one that is none.
    place.write("events.log", "A; h; 1; 2\n");
    place
        .stackline(&["import", "events.log", "--log", "access.log"])
        .fails(2, &["no capture is specified"]);
    place
        .stackline(&["import", "client.pcap", "--log", "events.log"])
        .fails(2, &["is not an access log"]);
}

/// A capture of one connection on which a client asks so often before it hears an answer.
pub(crate) fn pipelined(requests: usize) -> Vec<u8> {
    let mut capture = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
    capture.extend([2, 0, 4, 0]);
    [0, 0, 65535, 101]
        .into_iter()
        .for_each(|word| capture.extend(u32::to_le_bytes(word)));
    let asked = b"PING\r\n".repeat(requests);
    let (mut at_us, mut sent) = (0_u32, 1000_u32);
    let mut packet = |back: bool, sequence: u32, flags: u8, data: &[u8]| {
        at_us += 100;
        let (from, to) = if back { (2, 1) } else { (1, 2) };
        let ports = if back {
            [0x18, 0xeb, 0xc3, 0x50]
        } else {
            [0xc3, 0x50, 0x18, 0xeb]
        };
        let length = 40 + data.len() as u16;
        let mut bytes = [
            &[0x45, 0][..],
            &length.to_be_bytes(),
            &[0, 0, 0, 0, 64, 6, 0, 0],
        ]
        .concat();
        bytes.extend([10, 0, 0, from, 10, 0, 0, to]);
        bytes.extend(ports);
        bytes.extend(sequence.to_be_bytes());
        bytes.extend([0, 0, 0, 1, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        bytes.extend(data);
        for word in [1_700_000_000, at_us, bytes.len() as u32, bytes.len() as u32] {
            capture.extend(word.to_le_bytes());
        }
        capture.extend(bytes);
    };
    packet(false, 999, 2, b"");
    packet(true, 0, 18, b"");
    for data in asked.chunks(60_000) {
        packet(false, sent, 16, data);
        sent += data.len() as u32;
    }
    packet(true, 1, 16, b"+PONG\r\n");
    capture
}

#[test]
fn what_is_left_out_at_a_bound_is_said_in_every_place() {
    let place = Place::new();
    place.write("full.pcap", pipelined(4096));
    let full = place.stackline(&["import", "full.pcap", "--json"]);
    assert_eq!(full.json()["left_out"], serde_json::json!({}));
    assert!(!full.err.contains("left out"), "{}", full.err);
    place.write("more.pcap", pipelined(4097));
    let more = place.stackline(&["import", "more.pcap", "--json", "--name", "more"]);
    let line = "left out: requests without their answers (1): more than 4,096 were waiting on one connection";
    assert!(more.err.contains(line), "{}", more.err);
    let json = more.json();
    assert_eq!(json["left_out"]["waiting"], 1);
    assert_eq!(json["imports"][0]["left_out"]["waiting"], 1);
    let run = json["run"].as_str().unwrap().to_owned();
    let later = place.stackline(&["diagnose", &run, "--json"]);
    assert!(later.err.contains(line), "{}", later.err);
    assert_eq!(later.json()["left_out"]["waiting"], 1);
}
