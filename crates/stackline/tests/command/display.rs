//! `stackline display`: served to clients and a browser, measured at four levels, what is refused.

use crate::support::{Finished, Place};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// A display that is served until this is dropped.
struct Served {
    child: Child,
    clients: String,
    page: String,
}

impl Served {
    fn start(place: &Place, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stackline"));
        command.args(["display", "serve", "--view", "127.0.0.1:0"]).args(arguments).current_dir(place.path("."));
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut word = || lines.next().unwrap().unwrap().split_once(": ").unwrap().1.trim().to_owned();
        let (clients, page) = (word(), word());
        Self { child, clients, page }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn rate(rates: &Value, picture: &str, name: &str) -> f64 {
    let found = rates["rates"].as_array().unwrap().iter().find(|one| one["picture"] == picture && one["rate"] == name);
    found.unwrap_or_else(|| panic!("no {picture} {name}: {rates}"))["mean"].as_f64().unwrap()
}

#[test]
fn each_level_costs_what_it_saves() {
    let place = Place::new();
    let words = ["display", "bench", "--trials", "2", "--json", "--png", "drawn"];
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
    let table = place.stackline(&["display", "bench", "--trials", "2", "--picture", "text", "--level", "batched"]);
    let table = table.succeeds().out.clone();
    assert!(table.contains("characters/s") && !table.contains("stop-and-wait  2"), "{table}");
}

#[test]
fn a_display_is_served_with_a_page_and_strangers_are_kept_out() {
    let place = Place::new();
    let served = Served::start(&place, &["--listen", "unix:socket", "--secret", "known"]);
    assert_eq!(served.clients, "unix:socket");
    let bench = ["display", "bench", "--to", "unix:socket", "--trials", "1", "--picture", "text", "--level", "batched"];
    place.stackline(&bench).fails(1, &["the display ended the connection"]).hints("--secret");
    place.stackline(&[&bench[..], &["--secret", "known"]].concat()).succeeds();
    let (host, path) = served.page.trim_start_matches("http://").split_once('/').unwrap();
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
fn what_cannot_be_served_is_refused_with_what_can() {
    let place = Place::new();
    let serve = |listen: &str| place.stackline(&["display", "serve", "--view", "127.0.0.1:0", "--listen", listen]);
    serve("0.0.0.0:0").fails(2, &["anybody could draw"]).hints("--secret");
    let unread = serve("nowhere");
    assert!(unread.status.code() == Some(2) && unread.err.contains("HOST:PORT"), "{}", unread.err);
    serve("unix:/no/such/place/socket").fails(3, &["nothing can listen"]).hints("another address");
    place
        .stackline(&["display", "bench", "--to", "127.0.0.1:1"])
        .fails(3, &["no display answers"])
        .hints("display serve");
    place.stackline(&["display", "view", "unix:gone"]).fails(3, &["no display answers"]);
    let both = place.stackline(&["display", "bench", "--png", "x", "--to", "127.0.0.1:1"]);
    assert!(both.status.code() == Some(2) && both.err.contains("cannot be used"), "{}", both.err);
}

#[test]
fn an_item_has_a_line_from_its_call_to_the_pixel() {
    let place = Place::new();
    let mut bench = Command::new(env!("CARGO_BIN_EXE_stackline"));
    bench.args(["display", "bench", "--trials", "1", "--picture", "vectors", "--level", "pipelined"]);
    let ended = bench.current_dir(place.path(".")).env("STACKLINE_EVENTS", "file:bench.tape").output().unwrap();
    assert!(ended.status.success());
    place.stackline(&["import", "bench.tape"]).succeeds();
    let lines = place.stackline(&["lifelines", "last"]).succeeds().out.clone();
    for point in ["CALL", "SEND", "PARSE", "STORE", "RENDER", "DONE"] {
        assert!(lines.contains(&format!("DISPLAY_{point}")), "{point}: {lines}");
    }
    assert!(lines.contains("complete") && !lines.contains("never arrived"), "{lines}");
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
        let own = ["display", "bench", "--across", "lan.stackline", "--picture", "vectors", "--trials", "2", "--json"];
        place.stackline(&[&own[..], words].concat())
    };
    let rates = bench(&["--network", "lan", "--draw", "request = 0.5 ms, pixel = 5 us"]).succeeds().json();
    // The remote host is the slower one, but for what is drawn alone.
    let batched = rate(&rates, "vectors", "batched");
    assert!((240.0..250.0).contains(&batched), "{rates}");
    assert!((430.0..440.0).contains(&rate(&rates, "vectors", "display")), "{rates}");
    let line = bench(&["--network", "serial", "--class", "terminal", "--over", "tty", "--level", "batched"]);
    let batched = rate(&line.succeeds().json(), "vectors", "batched");
    assert!((5.9..6.1).contains(&batched), "{batched}");
    bench(&[]).fails(2, &["networks"]).hints("--network lan");
    bench(&["--network", "lan", "--over", "tty(bits = 99)"]).fails(2, &["serial line"]).hints("bits = 8");
    bench(&["--network", "lan", "--over", "udp"]).fails(2, &["tcp, pup, ikp or a serial line"]).hints("tcp(nodelay)");
    bench(&["--network", "lan", "--over", "tcp(nodelay)", "--level", "batched"]).succeeds();
    bench(&["--network", "lan", "--class", "local", "--over", "ikp"])
        .fails(2, &["no transport"])
        .hints("leave --over and --display-over out");
    bench(&["--network", "lan", "--over", "ikp(packet = 500)"])
        .fails(2, &["V's, of 1024 bytes"])
        .hints("without options");
    bench(&["--network", "lan", "--over", "ikp", "--display-over", "tcp"])
        .fails(2, &["only tcp"])
        .hints("--display-over");
    let session = ["blocks", "replay", "--across", "lan.stackline", "--network", "lan", "--in", "simulated"];
    place.stackline(&session).fails(2, &["costs of their own"]).hints("`copy` counts");
    bench(&["--network", "free", "--class", "local"])
        .fails(2, &["nothing of it takes any time"])
        .hints("per operation");
    bench(&["--network", "lan", "--class", "messages", "--level", "batched"]).succeeds();
    bench(&["--network", "lan", "--client", "pdp"]).fails(2, &["no host pdp"]).hints("sun, vax");
    let draws = bench(&["--network", "lan", "--draw", "circle = 1 ms"]);
    assert!(draws.status.code() == Some(2) && draws.err.contains("circle"), "{}", draws.err);
}

#[test]
fn in_virtual_time_the_way_of_a_request_is_kept() {
    let place = Place::new();
    place.write(
        "lan.stackline",
        "network lan { host sun { work 1 ms per message; } host vax { work 4 ms per operation, 1 ms per message; } link sun - vax 10 Mbit/s 0; }\n",
    );
    let bench = ["display", "bench", "--across", "lan.stackline", "--picture", "vectors", "--trials", "1"];
    let kept =
        ["--level", "stop-and-wait", "--draw", "request = 0.5 ms, added = 4 ms, answer = 8 ms", "--keep", "waits"];
    let table = place.stackline(&[&bench[..], &kept].concat()).succeeds().out.clone();
    assert!(table.contains("-waits; `stackline lifelines last`"), "{table}");
    let lines = place.stackline(&["lifelines", "last", "--json"]).succeeds().json();
    let hosts: Vec<(&str, &str)> =
        [("CALL", "vax"), ("SEND", "vax"), ("ARRIVE", "sun"), ("AGENT", "sun"), ("PARSE", "sun"), ("STORE", "sun")]
            .into();
    let text = lines.to_string();
    for (point, host) in hosts {
        assert!(text.contains(&format!("DISPLAY_{point}")) && text.contains(host), "{point}: {text}");
    }
    let text = place.stackline(&["lifelines", "last"]).succeeds().out.clone();
    assert!(text.contains("to DISPLAY_RENDER sun") && text.contains("to DISPLAY_DONE vax"), "{text}");
    assert!(!text.contains("never arrived") && !text.contains("headless"), "{text}");
    place.stackline(&["diagnose", "last"]).succeeds();
    place.stackline(&["report", "last"]).succeeds();
    let json = place.stackline(&[&bench[..], &["--json", "--keep", "again"]].concat()).succeeds().json();
    assert!(json["run"].as_str().is_some_and(|run| run.ends_with("-again")), "{json}");
    let live = place.stackline(&["display", "bench", "--keep", "live"]);
    assert!(live.status.code() == Some(2) && live.err.contains("--across"), "{}", live.err);
}

/// Factors of a display whose host is the busier one where items come one by one, and whose client's host is where they come in batches.
fn factors(place: &Place, words: &[&str]) -> Finished {
    place.write(
        "lan.stackline",
        "network lan { host sun, vax { work 1 ms per message, 4 ms per operation; } link sun - vax 10 Mbit/s 0; }\n\
         network lossy { host sun; host vax { work 4 ms per operation; } link sun - vax 10 Mbit/s 1 ms loss 2%; }\n",
    );
    let own =
        ["display", "factors", "--across", "lan.stackline", "--draw", "request = 0.5 ms, pixel = 2 us, added = 8 ms"];
    place.stackline(&[&own[..], words].concat())
}

#[test]
fn the_busier_host_matters_and_which_that_is_depends_on_the_level() {
    let place = Place::new();
    let varied = ["-f", "cpu of sun x 2", "-f", "cpu of vax x 2", "-f", "bandwidth x 4"];
    let ranked = |level: &str, first: &str| {
        let words = [&["--network", "lan", "--level", level, "--json"], &varied[..]].concat();
        let json = factors(&place, &words).succeeds().json();
        let response = &json["responses"][0];
        assert_eq!((response["name"].as_str(), response["unit"].as_str()), (Some("rate"), Some("vectors/s")), "{json}");
        let effects = response["answer"]["effects"].as_array().unwrap();
        assert_eq!((effects[0]["factor"].as_str(), effects[0]["rank"].as_u64()), (Some(first), Some(1)), "{json}");
        assert!(effects[0]["share"].as_f64().unwrap() > 0.8, "{json}");
        assert_eq!(effects[2]["factor"], "bandwidth", "{json}");
        // Two runs of each combination, with other seeds, are equal.
        assert_eq!(
            (json["runs"].as_u64(), response["answer"]["intervals"].as_str()),
            (Some(16), Some("none")),
            "{json}"
        );
    };
    ranked("pipelined", "cpu of sun");
    let text = factors(&place, &[&["--network", "lan"], &varied[..]].concat()).succeeds().out.clone();
    assert!(text.contains("if a factor were infinite") && text.contains("  bandwidth: x 1.00"), "{text}");
    ranked("batched", "cpu of vax");
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
        "vectors/s with everything as it is first",
        "of variation",
        "nothing in them is drawn by chance",
    ] {
        assert!(report.contains(words), "{words}: {report}");
    }
    assert!(!report.contains("kept in"), "{report}");
    let lossy = factors(&place, &["--network", "lossy", "-f", "bandwidth x 4", "--json"]).succeeds().json();
    assert_eq!((lossy["runs"].as_u64(), lossy["replicates"].as_u64()), (Some(10), Some(5)), "{lossy}");
}

#[test]
fn what_cannot_be_varied_of_a_display_is_refused_with_what_can() {
    let place = Place::new();
    let refused = |words: &[&str]| factors(&place, &[&["--network", "lan"], words].concat());
    refused(&[]).fails(2, &["no factor"]).hints("level = pipelined, batched");
    refused(&["-f", "stack = tcp, quic"]).fails(2, &["of a measurement"]).hints("level, class, over");
    refused(&["-f", "level = pipelined, slow"]).fails(2, &["no `slow`"]).hints("stop-and-wait");
    refused(&["-f", "gathers x 2"]).fails(2, &["no multiples"]).hints("write levels");
    refused(&["-f", "cpu of pdp x 2"]).fails(2, &["no network has a host `pdp`"]).hints("`vax`");
    refused(&["-f", "class = agent, agent"]).fails(2, &["nothing differs"]).hints("not there already");
    refused(&["-f", "over = tcp, udp"]).fails(2, &["with `over` at udp"]).hints("--over pup");
    refused(&["-f", "bandwidth x 2", "-f", "bandwidth of sun - vax x 2"])
        .fails(2, &["the same thing"])
        .hints("leave one");
    refused(&["-f", "bandwidth x 2", "--level", "structured"]).fails(2, &["no symbols"]).hints("rectangles");
    refused(&["-f", "level = batched, structured"]).fails(2, &["with `level` at structured"]).hints("rectangles");
}

#[test]
fn a_program_draws_through_its_terminal() {
    let place = Place::new();
    let display = Served::start(&place, &["--listen", "127.0.0.1:0"]);
    let program = env!("CARGO_BIN_EXE_stackline");
    let bench = ["--", program, "display", "bench", "--to", "tty", "--trials", "1", "--picture", "rectangles"];
    let mut command = Command::new(program);
    command.args(["display", "terminal", "--listen", "127.0.0.1:0"]).args(bench).current_dir(place.path("."));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let terminal = first.split_once(": ").unwrap().1.trim();
    place.stackline(&["display", "telnet", terminal, "--to", &display.clients, "--typed"]).succeeds();
    child.kill().unwrap();
    let said = child.wait_with_output().unwrap();
    let table = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(table.contains("structured") && table.contains("rectangles/s"), "{table}");
    let open = ["display", "terminal", "--listen", "0.0.0.0:0", "--", "sh"];
    place.stackline(&open).fails(2, &["would run sh"]).hints("--anybody");
    place.stackline(&["display", "bench", "--to", "tty"]).fails(2, &["no terminal"]).hints("display terminal");
    place.stackline(&["display", "telnet", "127.0.0.1:1"]).fails(3, &["no terminal is served"]);
}

#[test]
fn an_agent_gives_a_display_that_is_started_again_its_pictures() {
    let place = Place::new();
    let first = Served::start(&place, &["--listen", "unix:display"]);
    let program = env!("CARGO_BIN_EXE_stackline");
    let mut command = Command::new(program);
    command.args(["display", "agent", "--listen", "unix:agent", "--to", "unix:display"]).current_dir(place.path("."));
    let mut agent = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(agent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let mut bench = Command::new(program);
    bench.args(["display", "bench", "--to", "unix:agent", "--trials", "12", "--json"]).current_dir(place.path("."));
    let bench = bench.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    drop(first);
    let _second = Served::start(&place, &["--listen", "unix:display"]);
    let done = bench.wait_with_output().unwrap();
    agent.kill().unwrap();
    agent.wait().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let rates: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert!(rate(&rates, "text", "display") > 0.0);
    let behind = ["display", "agent", "--to", "tty"];
    place.stackline(&behind).fails(2, &["behind a terminal"]).hints("HOST:PORT or unix:PATH");
}

#[test]
fn a_display_by_messages_is_drawn_on_too() {
    let place = Place::new();
    let display = Served::start(&place, &["--listen", "unix:display", "--listen", "ikp:127.0.0.1:0"]);
    // Streams are told first; the line after them is the page's in `Served`, and here that of messages.
    let by_messages = display.page.clone();
    assert!(by_messages.starts_with("ikp:127.0.0.1:"), "{by_messages}");
    let words = ["display", "bench", "--to", &by_messages, "--trials", "1", "--picture", "rectangles", "--json"];
    assert!(rate(&place.stackline(&words).succeeds().json(), "rectangles", "structured") > 0.0);
    place.stackline(&["display", "agent", "--to", &by_messages]).fails(2, &["nobody stands between"]);
    let open = ["display", "serve", "--listen", "ikp:0.0.0.0:0"];
    place.stackline(&open).fails(2, &["anybody could draw at ikp:0.0.0.0:0"]).hints("--secret");
}
