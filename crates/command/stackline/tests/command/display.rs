//! `stackline display`: served to clients and a browser, measured at four levels, what is refused.

use crate::support::{Finished, Place, until, wait_until};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

/// A command that goes on in the background of a place, beside those that have to leave nothing behind.
fn background(place: &Place, words: &[&str]) -> Command {
    let mut command = place.command(words);
    command.env_remove("STACKLINE_RUNS");
    command
}

/// A secret in a file that only this user reads.
fn private(place: &Place, name: &str) {
    use std::os::unix::fs::PermissionsExt;
    let word = std::path::Path::new(name)
        .file_stem()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    let path = place.write(name, format!("the secret of {word}\n"));
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// A display that is served until this is dropped.
struct Served {
    child: Child,
    clients: String,
    page: String,
}

impl Served {
    fn start(place: &Place, arguments: &[&str]) -> Self {
        let mut command = background(place, &["display", "serve", "--view", "127.0.0.1:0"]);
        command.args(arguments);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut word = || {
            lines
                .next()
                .unwrap()
                .unwrap()
                .split_once(": ")
                .unwrap()
                .1
                .trim()
                .to_owned()
        };
        let (clients, page) = (word(), word());
        Self {
            child,
            clients,
            page,
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn rate(rates: &Value, picture: &str, name: &str) -> f64 {
    let found = rates["rates"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["picture"] == picture && one["rate"] == name);
    found.unwrap_or_else(|| panic!("no {picture} {name}: {rates}"))["mean"]
        .as_f64()
        .unwrap()
}

#[test]
fn each_level_costs_what_it_saves() {
    let place = Place::new();
    let words = [
        "display", "bench", "--trials", "2", "--json", "--png", "drawn",
    ];
    let rates = place.stackline(&words).succeeds().json();
    for picture in ["vectors", "rectangles"] {
        // An answer for each item costs a round trip; without, hundreds go in one, and nothing is drawn.
        assert!(rate(&rates, picture, "construction") > rate(&rates, picture, "stop-and-wait"));
    }
    assert!(rate(&rates, "rectangles", "structured") > 0.0);
    for name in ["vectors", "rectangles", "text"] {
        let png = std::fs::read(place.path(&format!("drawn/{name}.png"))).unwrap();
        assert!(png.starts_with(b"\x89PNG"), "{name}");
    }
    let table = place.stackline(&[
        "display",
        "bench",
        "--trials",
        "2",
        "--picture",
        "text",
        "--level",
        "batched",
    ]);
    let table = table.succeeds().out.clone();
    assert!(
        table.contains("characters/s") && !table.contains("stop-and-wait  2"),
        "{table}"
    );
}

#[test]
fn a_display_is_served_with_a_page_and_strangers_are_kept_out() {
    let place = Place::new();
    private(&place, "known");
    private(&place, "other");
    let served = Served::start(
        &place,
        &["--listen", "127.0.0.1:0", "--secret-file", "known"],
    );
    let bench = [
        "display",
        "bench",
        "--to",
        &served.clients,
        "--trials",
        "1",
        "--picture",
        "text",
        "--level",
        "batched",
    ];
    place
        .stackline(&bench)
        .fails(1, &["the display closed the connection"])
        .hints("--secret-file");
    let with = |file: &str| place.stackline(&[&bench[..], &["--secret-file", file]].concat());
    with("other").fails(1, &["the display closed the connection"]);
    with("known").succeeds();
    // In the environment, which others of this user can read.
    let mut by_variable = place.command(&bench);
    let by_variable =
        place.finish(by_variable.env("STACKLINE_DISPLAY_SECRET", "the secret of known"));
    assert!(
        by_variable
            .succeeds()
            .err
            .contains("a file (--secret-file) is safer"),
        "{}",
        by_variable.err
    );
    let (host, path) = served
        .page
        .trim_start_matches("http://")
        .split_once('/')
        .unwrap();
    let get = |path: &str| {
        let mut stream = TcpStream::connect(host).unwrap();
        write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(get(path).starts_with("HTTP/1.1 200") && get(path).contains("stackline display"));
    assert!(get("").starts_with("HTTP/1.1 403") && get("?0").starts_with("HTTP/1.1 403"));
}

#[test]
fn a_page_that_is_brought_here_says_all_it_has_to_say() {
    let place = Place::new();
    let served = Served::start(&place, &["--listen", "unix:socket"]);
    let (from, token) = served
        .page
        .trim_start_matches("http://")
        .split_once("/?")
        .unwrap();
    // Every user of this machine could read it there.
    let with_token = format!("{from}?{token}");
    let refused = place.stackline(&["display", "view", &with_token, "--listen", "127.0.0.1:0"]);
    refused
        .fails(2, &["do not pass the page secret"])
        .hints("the address opened in the browser");
    let mut child = place
        .command(&["display", "view", from, "--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut first)
        .unwrap();
    let (host, path) = first
        .split_once("http://")
        .unwrap()
        .1
        .trim()
        .split_once('/')
        .unwrap();
    assert_eq!(path, "?SECRET");
    let path = &format!("?{token}");
    let get = |path: &str, more: &str| {
        let mut stream = TcpStream::connect(host).unwrap();
        write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(get(path, "").starts_with("HTTP/1.1 200 "));
    // What the display refuses is not read to its end.
    let long = get(path, &format!("X: {}\r\n", "x".repeat(600_000)));
    assert!(
        long.starts_with("HTTP/1.1 431 ") && long.ends_with("longer than 8192 bytes\n"),
        "{long}"
    );
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Work and bits that no point of a request's way tells of: by what processors and ports did.
#[test]
fn an_internet_server_and_a_slow_return_path_are_named() {
    let place = Place::new();
    place.write(
        "ways.stackline",
        "network server { host sun; host vax; host gw { work 10 ms per message; } router r; link sun - r 10 Mbit/s 0; link gw - r 10 Mbit/s 0; link r - vax 10 Mbit/s 0; }\n\
         network back { host sun; host vax; link vax -> sun 10 Mbit/s 1 ms; link sun -> vax 2400 bit/s 1 ms; }\n\
         network answers { host sun; host vax; link sun - vax 10 Mbit/s 1 ms; }\n\
         network modem { host sun; host vax; link vax -> sun 1200 bit/s 0; link sun -> vax 75 bit/s 0; }\n",
    );
    let bench = |network: &str, words: &[&str]| {
        let own = [
            "display",
            "bench",
            "--across",
            "ways.stackline",
            "--network",
            network,
            "--client",
            "vax",
            "--display",
            "sun",
        ];
        let trial = [
            "--picture",
            "vectors",
            "--level",
            "stop-and-wait",
            "--trials",
            "1",
            "--keep",
            network,
            "--json",
        ];
        place
            .stackline(&[&own[..], &trial, words].concat())
            .succeeds();
        let found = place
            .stackline(&["diagnose", "last", "--json"])
            .succeeds()
            .json();
        let first = &found["findings"][0];
        [
            first["kind"].as_str().unwrap().to_owned(),
            first["sentence"].as_str().unwrap().to_owned(),
        ]
    };
    let [kind, sentence] = bench("server", &["--internet", "gw"]);
    assert!(
        kind == "cpu_limit" && sentence.starts_with("the limit is the processor of gw"),
        "{sentence}"
    );
    let [kind, sentence] = bench("back", &[]);
    assert!(
        kind == "network_limited" && sentence.starts_with("the link sun>vax is full"),
        "{sentence}"
    );
    let [kind, sentence] = bench("answers", &["--draw", "answer = 30 ms"]);
    assert!(
        kind == "cpu_limit" && sentence.starts_with("the limit is the processor of sun"),
        "{sentence}"
    );
    // A serial line may have another rate each way: of 24 bytes there 10 bits each take 0.2 s, of the 4 bytes back 0.53.
    let [kind, sentence] = bench("modem", &["--over", "tty"]);
    assert!(
        kind == "network_limited"
            && sentence.starts_with("the busiest resource is the link sun>vax, in use 76 %"),
        "{sentence}"
    );
}

#[test]
fn what_cannot_be_served_is_refused_with_what_can() {
    let place = Place::new();
    private(&place, "configuration/stackline/display.secret");
    let serve = |listen: &str| {
        place.stackline(&[
            "display",
            "serve",
            "--view",
            "127.0.0.1:0",
            "--listen",
            listen,
        ])
    };
    let unread = serve("nowhere");
    assert!(
        unread.status.code() == Some(2) && unread.err.contains("HOST:PORT"),
        "{}",
        unread.err
    );
    serve("unix:/no/such/place/socket")
        .fails(3, &["cannot listen"])
        .hints("another address");
    place
        .stackline(&["display", "bench", "--to", "127.0.0.1:1"])
        .fails(3, &["no display answers"])
        .hints("display serve");
    for to in ["no-such-host.invalid:1", "pupp:127.0.0.1:1"] {
        let bench = ["display", "bench", "--to", to];
        place
            .stackline(&bench)
            .fails(3, &["cannot resolve the host of", to])
            .hints("pup:, blast:, ngp: or vio:HOST:PORT/");
    }
    place
        .stackline(&["display", "view", "unix:gone"])
        .fails(3, &["no display answers"])
        .hints("--view unix:gone`");
    // The command that serves what is not there, whatever it would be reached by.
    for (to, hint) in [
        (
            "ngp:127.0.0.1:1",
            "`stackline display serve --listen ngp:127.0.0.1:1`",
        ),
        (
            "pup:127.0.0.1:1",
            "`stackline display serve --listen pup:127.0.0.1:1`",
        ),
        (
            "blast:127.0.0.1:1",
            "`stackline display serve --listen blast:127.0.0.1:1`",
        ),
        (
            "ikp:127.0.0.1:1",
            "`stackline display serve --listen ikp:127.0.0.1:1`",
        ),
    ] {
        place
            .stackline(&["display", "bench", "--to", to])
            .fails(3, &["no display answers at", to])
            .hints(hint);
    }
    let through = "vio:127.0.0.1:1/127.0.0.1:2";
    for words in [&["bench", "--to", through][..], &["telnet", through]] {
        let words = [&["display"], words].concat();
        place
            .stackline(&words)
            .fails(3, &["no internet server answers at ikp:127.0.0.1:1"])
            .hints("display internet");
    }
    let telnet = place.stackline(&["display", "telnet", "pup:127.0.0.1:1"]);
    telnet
        .fails(3, &["no terminal is served at pup:127.0.0.1:1"])
        .hints("--listen pup:127.0.0.1:1 -- PROGRAM`");
    let both = place.stackline(&["display", "bench", "--png", "x", "--to", "127.0.0.1:1"]);
    assert!(
        both.status.code() == Some(2) && both.err.contains("cannot be used"),
        "{}",
        both.err
    );
}

#[test]
fn an_item_has_a_line_from_its_call_to_the_pixel() {
    let place = Place::new();
    let mut bench = Command::new(env!("CARGO_BIN_EXE_stackline"));
    bench.args([
        "display",
        "bench",
        "--trials",
        "1",
        "--picture",
        "vectors",
        "--level",
        "pipelined",
    ]);
    let ended = bench
        .current_dir(place.path("."))
        .env("STACKLINE_EVENTS", "file:bench.tape")
        .output()
        .unwrap();
    assert!(ended.status.success());
    place.stackline(&["import", "bench.tape"]).succeeds();
    let lines = place
        .stackline(&["lifelines", "last"])
        .succeeds()
        .out
        .clone();
    for segment in ["gathering", "display wait", "storing", "drawing", "answer"] {
        assert!(lines.contains(segment), "{segment}: {lines}");
    }
    // No request is a block that a cache had.
    assert!(!lines.contains("cache"), "{lines}");
    assert!(
        lines.contains("complete") && !lines.contains("never arrived"),
        "{lines}"
    );
}

#[test]
fn in_virtual_time_it_takes_what_the_hosts_say() {
    let place = Place::new();
    place.write(
        "lan.stackline",
        "network lan { host sun { work 1 ms per message; } host vax { work 4 ms per operation; } link sun - vax 10 Mbit/s 0; }\n\
         network serial { host sun; host vax; link sun - vax 1200 bit/s 0; }\n\
         network free { host sun; host vax; link sun - vax unlimited 0; }\n",
    );
    let bench = |words: &[&str]| {
        let own = [
            "display",
            "bench",
            "--across",
            "lan.stackline",
            "--picture",
            "vectors",
            "--trials",
            "2",
            "--json",
        ];
        place.stackline(&[&own[..], words].concat())
    };
    let rates = bench(&[
        "--network",
        "lan",
        "--draw",
        "request = 0.5 ms, pixel = 5 us",
    ])
    .succeeds()
    .json();
    // The remote host is the slower one, but for what is drawn alone.
    let batched = rate(&rates, "vectors", "batched");
    assert!((240.0..250.0).contains(&batched), "{rates}");
    assert!(
        (430.0..440.0).contains(&rate(&rates, "vectors", "display")),
        "{rates}"
    );
    let line = bench(&[
        "--network",
        "serial",
        "--class",
        "terminal",
        "--over",
        "tty",
        "--level",
        "batched",
    ]);
    let batched = rate(&line.succeeds().json(), "vectors", "batched");
    assert!((5.9..6.1).contains(&batched), "{batched}");
    bench(&[]).fails(2, &["networks"]).hints("--network lan");
    bench(&["--network", "lan", "--over", "tty(bits = 99)"])
        .fails(2, &["serial line"])
        .hints("bits = 8");
    bench(&["--network", "lan", "--over", "udp"])
        .fails(2, &["tcp, pup, blast, saw, window, ikp or a serial line"])
        .hints("tcp(nodelay)");
    bench(&[
        "--network",
        "lan",
        "--over",
        "tcp(nodelay)",
        "--level",
        "batched",
    ])
    .succeeds();
    bench(&["--network", "lan", "--class", "local", "--over", "ikp"])
        .fails(2, &["no transport"])
        .hints("omit --over and --display-over");
    bench(&["--network", "lan", "--over", "ikp(packet = 500)"])
        .fails(2, &["display messages are 1024 bytes long"])
        .hints("without options");
    bench(&["--network", "lan", "--over", "ikp", "--display-over", "tcp"])
        .fails(2, &["only tcp"])
        .hints("--display-over");
    let session = [
        "blocks",
        "replay",
        "--across",
        "lan.stackline",
        "--network",
        "lan",
        "--in",
        "simulated",
    ];
    place
        .stackline(&session)
        .fails(2, &["take no time"])
        .hints("`copy` is simulated");
    bench(&["--network", "free", "--class", "local"])
        .fails(2, &["every step has zero cost"])
        .hints("per operation");
    bench(&[
        "--network",
        "lan",
        "--class",
        "messages",
        "--level",
        "batched",
    ])
    .succeeds();
    for (words, says) in [
        (
            ["bench", "--across", "lan.stackline", "--gathers", "0"],
            "it must be at least 1B",
        ),
        (
            ["vserver", "--polls", "0", "--", "sh"],
            "a time longer than 0, such as 50ms; without --polls",
        ),
        (
            ["vserver", "--polls", "0ms", "--", "sh"],
            "a time longer than 0, such as 50ms; without --polls",
        ),
    ] {
        let none = place.stackline(&[&["display"], &words[..]].concat());
        assert!(
            none.status.code() == Some(2) && none.err.contains(says),
            "{}",
            none.err
        );
    }
    bench(&["--network", "lan", "--client", "pdp"])
        .fails(2, &["no host pdp"])
        .hints("sun, vax");
    let draws = bench(&["--network", "lan", "--draw", "circle = 1 ms"]);
    assert!(
        draws.status.code() == Some(2) && draws.err.contains("circle"),
        "{}",
        draws.err
    );
}

#[test]
fn in_virtual_time_the_path_of_a_request_is_kept() {
    let place = Place::new();
    place.write(
        "lan.stackline",
        "network lan { host sun { work 1 ms per message; } host vax { work 4 ms per operation, 1 ms per message; } link sun - vax 10 Mbit/s 0; }\n",
    );
    let bench = [
        "display",
        "bench",
        "--across",
        "lan.stackline",
        "--picture",
        "vectors",
        "--trials",
        "1",
    ];
    let kept = [
        "--level",
        "stop-and-wait",
        "--draw",
        "request = 0.5 ms, added = 4 ms, answer = 8 ms",
        "--keep",
        "waits",
    ];
    let table = place
        .stackline(&[&bench[..], &kept].concat())
        .succeeds()
        .out
        .clone();
    assert!(
        table.contains("-waits; see `stackline lifelines last`"),
        "{table}"
    );
    let lines = place
        .stackline(&["lifelines", "last", "--json"])
        .succeeds()
        .json();
    let hosts: Vec<(&str, &str)> = [
        ("CALL", "vax"),
        ("SEND", "vax"),
        ("ARRIVE", "sun"),
        ("AGENT", "sun"),
        ("PARSE", "sun"),
        ("STORE", "sun"),
    ]
    .into();
    let text = lines.to_string();
    for (point, host) in hosts {
        assert!(
            text.contains(&format!("DISPLAY_{point}")) && text.contains(host),
            "{point}: {text}"
        );
    }
    let text = place
        .stackline(&["lifelines", "last"])
        .succeeds()
        .out
        .clone();
    assert!(
        text.contains("drawing sun") && text.contains("answer sun>vax"),
        "{text}"
    );
    assert!(
        !text.contains("never arrived") && !text.contains("headless"),
        "{text}"
    );
    place.stackline(&["diagnose", "last"]).succeeds();
    place.stackline(&["report", "last"]).succeeds();
    let json = place
        .stackline(&[&bench[..], &["--json", "--keep", "again"]].concat())
        .succeeds()
        .json();
    assert!(
        json["run"]
            .as_str()
            .is_some_and(|run| run.ends_with("-again")),
        "{json}"
    );
    let live = place.stackline(&["display", "bench", "--keep", "live"]);
    assert!(
        live.status.code() == Some(2) && live.err.contains("--across"),
        "{}",
        live.err
    );
}

/// Factors of a display whose host is the busier one where items come one by one, and whose client's host is where they come in batches.
fn factors(place: &Place, words: &[&str]) -> Finished {
    place.write(
        "lan.stackline",
        "network lan { host sun, vax { work 1 ms per message, 4 ms per operation; } link sun - vax 10 Mbit/s 0; }\n\
         network lossy { host sun; host vax { work 4 ms per operation; } link sun - vax 10 Mbit/s 1 ms loss 2%; }\n",
    );
    let own = [
        "display",
        "factors",
        "--across",
        "lan.stackline",
        "--draw",
        "request = 0.5 ms, pixel = 2 us, added = 8 ms",
    ];
    place.stackline(&[&own[..], words].concat())
}

#[test]
fn the_busier_host_matters_and_which_that_is_depends_on_the_level() {
    let place = Place::new();
    let varied = [
        "-f",
        "cpu of sun x 2",
        "-f",
        "cpu of vax x 2",
        "-f",
        "bandwidth x 4",
    ];
    let ranked = |level: &str, first: &str| {
        let words = [
            &["--network", "lan", "--level", level, "--json"],
            &varied[..],
        ]
        .concat();
        let json = factors(&place, &words).succeeds().json();
        let response = &json["responses"][0];
        assert_eq!(
            (response["name"].as_str(), response["unit"].as_str()),
            (Some("rate"), Some("vectors/s")),
            "{json}"
        );
        let effects = response["answer"]["effects"].as_array().unwrap();
        assert_eq!(
            (effects[0]["factor"].as_str(), effects[0]["rank"].as_u64()),
            (Some(first), Some(1)),
            "{json}"
        );
        assert!(effects[0]["share"].as_f64().unwrap() > 0.8, "{json}");
        assert_eq!(effects[2]["factor"], "bandwidth", "{json}");
        // Two runs of each combination, with other seeds, are equal.
        assert_eq!(
            (
                json["runs"].as_u64(),
                response["answer"]["intervals"].as_str()
            ),
            (Some(16), Some("none")),
            "{json}"
        );
    };
    ranked("pipelined", "cpu of sun");
    let text = factors(&place, &[&["--network", "lan"], &varied[..]].concat())
        .succeeds()
        .out
        .clone();
    assert!(
        text.contains("if a factor were ideal") && text.contains("  bandwidth: x 1.00"),
        "{text}"
    );
    ranked("batched", "cpu of vax");
    // A processor that only draws, of which nothing is written.
    let drawing = factors(
        &place,
        &["--network", "lossy", "-f", "cpu of sun x 2", "--json"],
    )
    .succeeds()
    .json();
    let effect = &drawing["responses"][0]["answer"]["effects"][0];
    assert!(
        effect["factor"] == "cpu of sun" && effect["rank"] == 1,
        "{drawing}"
    );
    let levels = [
        "--network",
        "lan",
        "-f",
        "level = pipelined, batched",
        "-f",
        "over = tcp(mss = 212), pup",
        "--class",
        "terminal",
    ];
    let report = factors(&place, &levels).succeeds().out.clone();
    for words in [
        "level = batched",
        "over = pup",
        "vectors/s with every factor at its first level",
        "of variation",
        "repeated runs are identical: deterministic",
    ] {
        assert!(report.contains(words), "{words}: {report}");
    }
    assert!(!report.contains("kept in"), "{report}");
    let lossy = factors(
        &place,
        &["--network", "lossy", "-f", "bandwidth x 4", "--json"],
    )
    .succeeds()
    .json();
    assert_eq!(
        (lossy["runs"].as_u64(), lossy["replicates"].as_u64()),
        (Some(10), Some(5)),
        "{lossy}"
    );
}

#[test]
fn what_to_change_first_is_reported_and_what_limits_then() {
    let place = Place::new();
    let varied = [
        "--network",
        "lan",
        "-f",
        "cpu of sun x 4",
        "-f",
        "cpu of vax x 4",
        "-f",
        "bandwidth x 4",
    ];
    let with = |words: &[&str]| factors(&place, &[&varied[..], words].concat());
    let json = with(&[
        "--cost",
        "cpu of sun x 4 = 100, cpu of vax x 4 = 80",
        "--spend",
        "120",
        "--json",
    ]);
    let json = json.succeeds().json();
    let steps: Vec<&str> = json["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["factor"].as_str().unwrap())
        .collect();
    // Each host waits for the other: the second one helps once the first is faster, the network never.
    assert_eq!(steps, ["cpu of sun", "cpu of vax"], "{json}");
    let limits = json["limits"].as_array().unwrap();
    let then = |name: &str| {
        limits.iter().find(|limit| limit["factor"] == name).unwrap()["then"]
            .as_str()
            .unwrap()
    };
    assert!(
        then("cpu of sun").starts_with("cpu of vax x 4 gains most"),
        "{json}"
    );
    assert!(
        then("bandwidth").starts_with("cpu of sun x 4 gains most"),
        "{json}"
    );
    let offers = json["offers"].as_array().unwrap();
    let best = offers.iter().find(|offer| offer["best"] == true).unwrap();
    assert_eq!(
        best["bought"],
        serde_json::json!(["cpu of sun x 4"]),
        "{json}"
    );
    let text = with(&["--budget", "1min"]).succeeds().out.clone();
    assert!(
        text.contains("what to change first") && text.contains("  1. cpu of sun x 4: x "),
        "{text}"
    );
    assert!(
        text.contains("within 60.0 s, with runs of") && text.contains("nothing is given up"),
        "{text}"
    );
    let text = with(&["--no-limits"]).succeeds().out.clone();
    assert!(
        !text.contains("what to change first") && !text.contains("if a factor were ideal"),
        "{text}"
    );
    with(&["--cost", "cpu of sun x 8 = 100"])
        .fails(2, &["no factor has the level"])
        .hints("cpu of sun x 4");
    with(&["--cost", "cpu of sun x 4 = 1, cpu of sun x 4 = 2"])
        .fails(2, &["two prices"])
        .hints("omit one");
    with(&["--cost", ""])
        .fails(2, &["no level has a price"])
        .hints("as in");
    with(&["--cost", "cpu of sun x 4 = 1", "--spend", "-3"])
        .fails(2, &["not a valid amount to spend"])
        .hints("--spend");
    let both = with(&["--budget", "1s", "--replicates", "3"]);
    assert!(
        both.status.code() == Some(2) && both.err.contains("cannot be used"),
        "{}",
        both.err
    );
}

#[test]
fn a_rate_of_what_takes_no_time_is_absent_with_its_reason() {
    let place = Place::new();
    place.write(
        "lan.stackline",
        "network lan { host sun; host vax; link sun - vax 10 Mbit/s 1 ms; }\n",
    );
    let words = [
        "display",
        "bench",
        "--across",
        "lan.stackline",
        "--picture",
        "vectors",
        "--trials",
        "2",
    ];
    let bench = |more: &[&str]| place.stackline(&[&words[..], more].concat());
    let text = bench(&["--level", "batched"]).succeeds().out.clone();
    let row = text
        .lines()
        .find(|line| line.starts_with("vectors") && line.contains("construction"))
        .unwrap();
    assert_eq!(
        row.split_whitespace().skip(2).collect::<Vec<_>>(),
        ["-", "-", "-", "vectors/s"],
        "{text}"
    );
    assert!(
        text.contains("construction - no rate: host vax has no cost"),
        "{text}"
    );
    assert!(text.contains("display - no rate"), "{text}");
    let json = bench(&["--level", "batched", "--json"]).succeeds().json();
    let absent = |at: usize| json["rates"][at]["absent"].as_str();
    assert!(
        absent(0).is_some_and(|why| why.contains("vax")) && absent(1).is_none(),
        "{json}"
    );
    assert!(
        json["rates"][0]["mean"].is_null() && json["rates"][1]["mean"].is_number(),
        "{json}"
    );
}

#[test]
fn what_cannot_be_varied_of_a_display_is_refused_with_what_can() {
    let place = Place::new();
    let refused = |words: &[&str]| factors(&place, &[&["--network", "lan"], words].concat());
    refused(&[])
        .fails(2, &["no factor"])
        .hints("level = pipelined, batched");
    refused(&["-f", "stack = tcp, quic"])
        .fails(2, &["belongs to a measurement"])
        .hints("level, class, over");
    refused(&["-f", "level = pipelined, slow"])
        .fails(2, &["unknown level `slow`"])
        .hints("stop-and-wait");
    refused(&["-f", "gathers = 0, 1"])
        .fails(2, &["`gathers`: it must be at least 1B"])
        .hints("200 B");
    refused(&["-f", "gathers x 2"])
        .fails(2, &["cannot be multiplied"])
        .hints("write levels");
    refused(&["-f", "cpu of pdp x 2"])
        .fails(2, &["no network has a host `pdp`"])
        .hints("`vax`");
    refused(&["-f", "foo x 2"])
        .fails(2, &["unknown factor `foo`"])
        .hints("level, class, over");
    refused(&["-f", "class = agent, agent"])
        .fails(2, &["changes nothing"])
        .hints("not already in use");
    refused(&["-f", "over = tcp, udp"])
        .fails(2, &["with `over` at udp"])
        .hints("--over pup");
    refused(&["-f", "bandwidth x 2", "-f", "bandwidth of sun - vax x 2"])
        .fails(2, &["the same thing"])
        .hints("omit one");
    refused(&["-f", "bandwidth x 2", "--level", "structured"])
        .fails(2, &["no symbols"])
        .hints("rectangles");
    refused(&["-f", "pixel x 0.5"])
        .fails(2, &["changes nothing"])
        .hints("cpu of HOST x 2");
    refused(&["-f", "trials = 3, 4"])
        .fails(2, &["changes nothing"])
        .hints("the same for all combinations");
    // Losses that are not there cannot be taken away, and matter all the same.
    place.write(
        "free.stackline",
        "network free { host sun; host vax; link sun - vax 10 Mbit/s 1 ms; }\n",
    );
    let free = [
        "display",
        "factors",
        "--across",
        "free.stackline",
        "-f",
        "loss = 2%",
        "--trials",
        "3",
    ];
    let lossy = place.stackline(&free).succeeds().out.clone();
    assert!(
        lossy.contains("no limit for `loss`: ") && lossy.contains("loss to multiply"),
        "{lossy}"
    );
    refused(&["-f", "level = batched, structured"])
        .fails(2, &["with `level` at structured"])
        .hints("rectangles");
}

#[test]
fn a_program_draws_through_its_terminal() {
    let place = Place::new();
    let display = Served::start(&place, &["--listen", "127.0.0.1:0"]);
    let program = env!("CARGO_BIN_EXE_stackline");
    let bench = [
        "--",
        program,
        "display",
        "bench",
        "--to",
        "tty",
        "--trials",
        "1",
        "--picture",
        "rectangles",
    ];
    let mut command = background(&place, &[]);
    command
        .args(["display", "terminal", "--listen", "127.0.0.1:0"])
        .args(bench);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut first)
        .unwrap();
    let terminal = first.split_once(": ").unwrap().1.trim();
    place
        .stackline(&[
            "display",
            "telnet",
            terminal,
            "--to",
            &display.clients,
            "--typed",
        ])
        .succeeds();
    child.kill().unwrap();
    let said = child.wait_with_output().unwrap();
    let table = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(
        table.contains("structured") && table.contains("rectangles/s"),
        "{table}"
    );
    place
        .stackline(&["display", "bench", "--to", "tty"])
        .fails(2, &["is not a terminal"])
        .hints("display terminal");
    place
        .stackline(&["display", "telnet", "127.0.0.1:1"])
        .fails(3, &["no terminal is served"]);
}

#[test]
fn an_agent_gives_a_display_that_is_started_again_its_pictures() {
    let place = Place::new();
    let first = Served::start(&place, &["--listen", "unix:display"]);
    let mut command = background(
        &place,
        &[
            "display",
            "agent",
            "--listen",
            "unix:agent",
            "--to",
            "unix:display",
        ],
    );
    let mut agent = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(agent.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let mut bench = background(
        &place,
        &[
            "display",
            "bench",
            "--to",
            "unix:agent",
            "--trials",
            "12",
            "--json",
        ],
    );
    let bench = bench
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    thread::sleep(Duration::from_millis(300));
    drop(first);
    let _second = Served::start(&place, &["--listen", "unix:display"]);
    let done = bench.wait_with_output().unwrap();
    agent.kill().unwrap();
    agent.wait().unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let rates: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert!(rate(&rates, "text", "display") > 0.0);
    let behind = ["display", "agent", "--to", "tty"];
    place
        .stackline(&behind)
        .fails(2, &["behind a terminal"])
        .hints("HOST:PORT or unix:PATH");
}

#[test]
fn a_display_by_messages_is_drawn_on_too() {
    let place = Place::new();
    let display = Served::start(
        &place,
        &["--listen", "unix:display", "--listen", "ikp:127.0.0.1:0"],
    );
    // Streams are told first; the line after them is the page's in `Served`, and here that of messages.
    let by_messages = display.page.clone();
    assert!(by_messages.starts_with("ikp:127.0.0.1:"), "{by_messages}");
    let words = [
        "display",
        "bench",
        "--to",
        &by_messages,
        "--trials",
        "1",
        "--picture",
        "rectangles",
        "--json",
    ];
    assert!(
        rate(
            &place.stackline(&words).succeeds().json(),
            "rectangles",
            "structured"
        ) > 0.0
    );
    place
        .stackline(&["display", "agent", "--to", &by_messages])
        .fails(2, &["cannot relay V messages"]);
}

/// A program that is served by its pipes, and where.
fn v_server(place: &Place, program: &[&str]) -> (Child, String) {
    let mut command = background(
        place,
        &["display", "vserver", "--listen", "ikp:127.0.0.1:0", "--"],
    );
    command.args(program);
    let mut server = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let (mut first, out) = (String::new(), server.stdout.take().expect("it is a pipe"));
    BufReader::new(out)
        .read_line(&mut first)
        .expect("it says where it is");
    (
        server,
        first
            .split_once(": ")
            .expect("it says where it is")
            .1
            .trim()
            .to_owned(),
    )
}

#[test]
fn a_program_ends_with_the_execute_that_is_stopped() {
    let place = Place::new();
    let display = Served::start(&place, &["--listen", "127.0.0.1:0"]);
    let said = place.path("number");
    let (mut server, at) = v_server(
        &place,
        &[
            "sh",
            "-c",
            &format!("echo $$. > {}; exec sleep 60", said.display()),
        ],
    );
    let started =
        place.start(&mut place.command(&["display", "execute", &at, "--to", &display.clients]));
    let number = || {
        std::fs::read_to_string(&said)
            .ok()
            .filter(|text| text.ends_with(".\n"))
    };
    let number = until("the program begins", number);
    let program = format!("/proc/{}", number.trim_end_matches(".\n"));
    started.process().signal(Signal::SIGINT);
    started
        .finish()
        .fails(130, &["interrupted before completion"]);
    wait_until("the program has ended", || {
        !std::path::Path::new(&program).exists()
    });
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn execute_fails_where_its_program_does() {
    let place = Place::new();
    let display = Served::start(&place, &["--listen", "127.0.0.1:0"]);
    let executed = |program: &[&str]| {
        let (mut server, at) = v_server(&place, program);
        let executed = place.stackline(&["display", "execute", &at, "--to", &display.clients]);
        server.kill().unwrap();
        server.wait().unwrap();
        executed
    };
    executed(&["sh", "-c", "exit 3"]).fails(1, &["sh exited with code 3"]);
    executed(&["printf", r"\001\000\000\020VG"]).fails(1, &["ended in the middle of a request"]);
    executed(&["sh", "-c", "kill -KILL $$"]).fails(1, &["sh was killed by signal 9"]);
    let bench = [
        "display",
        "bench",
        "--to",
        "pipe",
        "--trials",
        "1",
        "--picture",
        "text",
    ];
    executed(&[&[env!("CARGO_BIN_EXE_stackline")], &bench[..]].concat()).succeeds();
}

#[test]
fn a_program_that_cannot_be_started_is_not_served() {
    let place = Place::new();
    place.write("text", "no program");
    for serves in ["vserver", "terminal"] {
        let refused = |program: &str| place.stackline(&["display", serves, "--", program]);
        refused("no-such-program")
            .fails(2, &["cannot start no-such-program"])
            .hints("check that it is installed");
        refused("./text")
            .fails(2, &["cannot start ./text: it is not executable"])
            .hints("chmod +x ./text");
    }
}

#[test]
fn who_waits_for_a_display_that_says_nothing_is_interrupted_at_once() {
    let place = Place::new();
    let (listener, silent) = (
        TcpListener::bind("127.0.0.1:0").unwrap(),
        UdpSocket::bind("127.0.0.1:0").unwrap(),
    );
    silent
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let interrupted = |words: &[&str], waits: &mut dyn FnMut()| {
        let started = place.start(&mut place.command(words));
        waits();
        started.process().signal(Signal::SIGINT);
        started.finish()
    };
    let tcp = listener.local_addr().unwrap().to_string();
    let mut connections = Vec::new();
    let mut hello = || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 10]).unwrap();
        connections.push(stream);
    };
    interrupted(&["display", "bench", "--to", &tcp], &mut hello)
        .fails(130, &["interrupted before completion"]);
    let [pup, ikp] = ["pup", "ikp"].map(|kind| format!("{kind}:{}", silent.local_addr().unwrap()));
    let mut asked = || assert!(silent.recv(&mut [0; 2000]).unwrap() > 0);
    interrupted(&["display", "bench", "--to", &pup], &mut asked)
        .fails(130, &["interrupted before completion"]);
    let display = Served::start(&place, &["--listen", "127.0.0.1:0"]);
    let executes = ["display", "execute", &ikp, "--to", &display.clients];
    interrupted(&executes, &mut asked).fails(130, &["interrupted before completion"]);
}

/// The command that the profile of the V-System's paper gives, as a shell reads it.
#[test]
fn a_column_of_the_paper_is_made_by_the_command_of_its_profile() {
    let place = Place::new();
    let profile = place
        .stackline(&["reproduce", "vsystem", "--profile"])
        .succeeds()
        .out
        .clone();
    let lines = profile.lines().filter_map(|line| line.strip_prefix("#   "));
    let command: Vec<&str> = lines
        .map(|line| line.trim_end_matches('\\').trim())
        .collect();
    let command = command
        .join(" ")
        .replacen("stackline", env!("CARGO_BIN_EXE_stackline"), 1);
    place.write("vsystem.stackline", profile);
    let made = Command::new("sh")
        .args(["-c", &format!("{command} --json")])
        .current_dir(place.path("."))
        .output();
    let made = made.unwrap();
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let rates: Value = serde_json::from_slice(&made.stdout).unwrap();
    let table = place
        .stackline(&["reproduce", "vsystem", "--only", "Table 3-1", "--runs", "0"])
        .succeeds()
        .out
        .clone();
    for (printed, name) in [
        ("construction", "construction"),
        ("batch", "batched"),
        ("incremental", "pipelined"),
    ] {
        let row = table
            .lines()
            .find(|line| line.trim().starts_with(printed) && line.contains("E-IP"))
            .unwrap();
        let simulated: f64 = row.split_whitespace().nth(3).unwrap().parse().unwrap();
        let here = rate(&rates, "vectors", name);
        assert!((here / simulated - 1.0).abs() < 0.01, "{row}: {here}");
    }
}

/// The first line of a service, and the service.
fn service(place: &Place, words: &[&str]) -> (Child, String) {
    let mut command = background(place, &[&["display"], words].concat());
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut first)
        .unwrap();
    (child, first.split_once(": ").unwrap().1.trim().to_owned())
}

/// Without a flag: the first that serves makes a secret that this user's programs find, and no other user can read.
#[test]
fn on_one_machine_everything_finds_its_secret_and_nobody_else_does() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let display = Served::start(&place, &["--listen", "127.0.0.1:0"]);
    let secret = |name: &str| place.path(&format!("configuration/stackline/{name}.secret"));
    let mode = |path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(secret("display")), 0o600);
    let trial = ["--trials", "1", "--picture", "text", "--level", "batched"];
    let bench =
        |to: &str| place.stackline(&[&["display", "bench", "--to", to], &trial[..]].concat());
    bench(&display.clients).succeeds();
    let (mut agent, at) = service(
        &place,
        &["agent", "--listen", "127.0.0.1:0", "--to", &display.clients],
    );
    bench(&at).succeeds();
    let (mut internet, through) = service(&place, &["internet", "--listen", "ikp:127.0.0.1:0"]);
    assert_eq!(mode(secret("internet")), 0o600);
    let server = through.split_once('/').unwrap().0.to_owned();
    bench(&format!("{server}/{}", display.clients)).succeeds();
    for at in ["127.0.0.1:0", "pup:127.0.0.1:0", "unix:terminal"] {
        let (mut terminal, at) = service(&place, &["terminal", "--listen", at, "--", "sh"]);
        let mut started = place.start(&mut place.command(&["display", "telnet", &at]));
        started.say(b"echo $((6*7))\nexit\n");
        let said = started.finish();
        assert!(said.succeeds().out.contains("42"), "{at}: {}", said.out);
        terminal.kill().unwrap();
        terminal.wait().unwrap();
    }
    assert_eq!(mode(secret("terminal")), 0o600);
    // Somebody else, who has none of these files.
    let stranger = Place::new();
    let without = |words: &[&str]| stranger.stackline(&[&["display"], words].concat());
    without(&[&["bench", "--to", &display.clients], &trial[..]].concat())
        .fails(1, &["the display closed the connection"]);
    let by_server = format!("{server}/{}", display.clients);
    without(&[&["bench", "--to", &by_server], &trial[..]].concat())
        .fails(3, &["the secret does not match"])
        .hints("internet.secret");
    for process in [agent.id(), internet.id(), display.child.id()] {
        let words = std::fs::read(format!("/proc/{process}/cmdline")).unwrap();
        let known = std::fs::read(secret("display")).unwrap();
        assert!(!words.windows(32).any(|window| window == &known[..32]));
    }
    for child in [&mut agent, &mut internet] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

#[test]
fn a_secret_is_no_argument() {
    let place = Place::new();
    for words in [
        &["serve", "--secret", "s"][..],
        &["bench", "--secret", "s"],
        &["telnet", "--secret", "s"],
    ] {
        let refused = place.stackline(&[&["display"], words].concat());
        assert!(
            refused.status.code() == Some(2) && refused.err.contains("unexpected argument"),
            "{}",
            refused.err
        );
    }
    let refused = place.stackline(&[
        "display",
        "bench",
        "--to",
        "vio:word@127.0.0.1:1/127.0.0.1:2",
    ]);
    assert!(
        refused.status.code() == Some(2) && refused.err.contains("from a file or the environment"),
        "{}",
        refused.err
    );
    place.write("short", "short\n");
    let short = [
        "display",
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--secret-file",
        "short",
    ];
    place
        .stackline(&short)
        .fails(2, &["the secret is too short: its length is 5"])
        .hints("8 to");
}
