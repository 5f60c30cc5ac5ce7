//! `stackline display bench --across`: a display in virtual time, what limits it, and a column of the V-System's paper.

use crate::support::Place;
use crate::support::display::rate;
use serde_json::Value;
use std::process::Command;

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
