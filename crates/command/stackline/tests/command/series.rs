//! What happened when in a run: intervals that `run` prints, series of kept runs in every form, and what has none.

use crate::support::{Place, has_program, skip};
use crate::terminal::in_terminal;
use serde_json::Value;
use std::fs;

/// A link of which the rate halves after two seconds.
const HALVES: &str =
    "network n { host a, b; link a - b schedule(0 s 10 Mbit/s, 2 s 5 Mbit/s) 5 ms queue 100 packets; }
    1 timelimit 4 from a to b bulk_put 1448 over tcp across n in simulated;";
const DATAGRAMS: &str = "network n { host a, b; link a - b 10 Mbit/s 5 ms loss 5%; }
    1 timelimit 4 from a to b stream 1000 4 Mbit/s over udp across n in simulated;";

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The rates of a run's intervals, bit/s.
fn rates(run: &Value) -> Vec<f64> {
    let rows = run["intervals"][0]["rows"].as_array().unwrap();
    rows.iter()
        .map(|row| row["bit_s"].as_f64().unwrap())
        .collect()
}

#[test]
fn a_run_prints_its_intervals_and_keeps_them() {
    let place = Place::new();
    let words = ["run", "-i", "0.5", "--name", "kept", "-e", HALVES];
    let printed = place.stackline(&words);
    let text = &printed.succeeds().out;
    let lines: Vec<&str> = text.lines().collect();
    let from = lines
        .iter()
        .position(|line| line.contains("interval"))
        .unwrap();
    for word in ["transfer", "rate", "retr", "cwnd", "rtt"] {
        assert!(lines[from].contains(word), "{word}\n{text}");
    }
    assert!(lines[from + 1].contains("0.00-0.50 s"), "{text}");
    assert!(
        lines.iter().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    // The kept run draws the same ones.
    let csv = place.stackline(&["series", "kept", "--only", "throughput"]);
    let rows: Vec<Vec<&str>> = csv
        .succeeds()
        .out
        .lines()
        .map(|l| l.split(',').collect())
        .collect();
    assert_eq!(rows[0], ["series", "line", "from_s", "to_s", "value"]);
    let value = |at: usize| rows[at][4].parse::<f64>().unwrap();
    // 10 Mbit/s of the link are 9.65 Mbit/s of data; from 2 s on half of it.
    assert!((9.0e6..10.0e6).contains(&value(3)), "{}", csv.out);
    assert!((4.4e6..5.0e6).contains(&value(7)), "{}", csv.out);
}

#[test]
fn intervals_do_not_change_how_much_a_simulated_run_carries() {
    let place = Place::new();
    let plain = place.stackline(&["run", "--json", "-e", HALVES]);
    let with = place.stackline(&["run", "--json", "-i", "500ms", "-e", HALVES]);
    let (plain, with) = (json(&plain.succeeds().out), json(&with.succeeds().out));
    let mean = |run: &Value| {
        run["measurements"][0]["throughput_bit_s"]["mean"]
            .as_f64()
            .unwrap()
    };
    assert!(
        (mean(&plain) / mean(&with) - 1.0).abs() < 0.01,
        "{} {}",
        mean(&plain),
        mean(&with)
    );
    assert!(plain.get("intervals").is_none());
    let rates = rates(&with);
    assert!(rates.len() >= 8, "{rates:?}");
    assert!(rates[2] > 1.8 * rates[6], "{rates:?}");
}

#[test]
fn datagrams_have_jitter_and_losses() {
    let place = Place::new();
    let made = place.stackline(&["run", "--json", "-i", "1s", "-e", DATAGRAMS]);
    let run = json(&made.succeeds().out);
    let rows = run["intervals"][0]["rows"].as_array().unwrap();
    let of = |name: &str| -> Vec<f64> {
        let values = rows.iter().filter_map(|row| row[name].as_f64());
        values.collect()
    };
    let (lost, all) = (
        of("lost").iter().sum::<f64>(),
        of("datagrams").iter().sum::<f64>(),
    );
    assert!((0.02..0.09).contains(&(lost / all)), "{lost} {all}");
    assert_eq!(of("jitter_s").len(), rows.len(), "{rows:#?}");
    let text = place.stackline(&["run", "-i", "1s", "-e", DATAGRAMS]);
    let text = &text.succeeds().out;
    assert!(
        text.contains("lost/total") && text.contains("jitter"),
        "{text}"
    );
}

#[test]
fn a_traced_run_is_drawn_in_every_form() {
    let place = Place::new();
    place
        .stackline(&["run", "--trace", "--name", "traced", "-e", HALVES])
        .succeeds();
    let files = ["s.svg", "s.png", "s.pdf", "s.html", "s.csv"];
    let mut words = vec!["series", "traced"];
    words.extend(files.iter().flat_map(|file| ["-o", file]));
    let finished = place.stackline(&words);
    assert_eq!(finished.succeeds().out, files.join("\n") + "\n");
    let read = |name: &str| fs::read_to_string(place.path(name)).unwrap();
    let svg = read("s.svg");
    for word in [
        "throughput, Mbit/s",
        "congestion window",
        "smoothed round trip",
        "fullest state of queues",
        "a&gt;b",
    ] {
        assert!(svg.contains(word), "{word}\n{svg}");
    }
    assert!(
        fs::read(place.path("s.png"))
            .unwrap()
            .starts_with(b"\x89PNG")
    );
    assert!(fs::read(place.path("s.pdf")).unwrap().starts_with(b"%PDF"));
    let page = read("s.html");
    assert!(page.contains("<svg ") && page.contains("<table>"), "{page}");
    // The queue fills until it drops: 100 packets of 1,500 bytes, and the one that is sent.
    let csv = read("s.csv");
    let queued = csv.lines().filter(|line| line.starts_with("queue,a>b,"));
    let queued = queued.filter_map(|line| line.rsplit(',').next()?.parse::<f64>().ok());
    let most = queued.fold(0.0, f64::max);
    assert!((120_000.0..160_000.0).contains(&most), "{most}\n{csv}");
    let report = place.stackline(&["report", "traced", "-o", "page.html"]);
    report.succeeds();
    assert!(read("page.html").contains("id=\"series\""));
}

#[test]
fn a_terminal_has_panels_that_fit() {
    if !has_program("script", "bsdutils") {
        return skip("no script");
    }
    let place = Place::new();
    place
        .stackline(&["run", "--trace", "-i", "1s", "--name", "kept", "-e", HALVES])
        .succeeds();
    let utf8 = [("LC_ALL", "C.UTF-8")];
    for columns in [80, 40] {
        let finished = in_terminal(&place, columns, &["series", "kept"], &utf8);
        let text = finished.succeeds().out.replace('\r', "");
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(longest <= Some(columns as usize), "{columns}\n{text}");
        for word in ["throughput, Mbit/s", "time since the clock started, s"] {
            assert!(text.contains(word), "{word}\n{text}");
        }
    }
}

#[test]
fn what_has_no_series_says_how_to_get_them() {
    let place = Place::new();
    place
        .stackline(&["run", "--name", "plain", "-e", HALVES])
        .succeeds();
    let refused = place.stackline(&["series", "plain"]);
    refused.fails(2, &["neither intervals nor events"]);
    for word in ["--interval 1s", "--trace"] {
        assert!(refused.err.contains(word), "{word}\n{}", refused.err);
    }
    for (words, said) in [
        (
            &["series", "plain", "--measurement", "3"][..],
            "measurement 3 does not exist",
        ),
        (&["series", "plain", "--run", "9"], "run 9 was not made"),
        (&["series", "plain", "--only", "speed"], "speed"),
        (&["series", "plain", "-o", "a.xls"], "type of a.xls"),
        (&["run", "-i", "10us", "-e", HALVES], "from 1 ms to 1 h"),
    ] {
        place.stackline(words).fails(2, &[said]);
    }
}

#[test]
fn a_live_run_has_intervals_of_each_pair_and_of_calls() {
    let place = Place::new();
    let put = "1 timelimit 0.6 2 bulk_put 64 KiB over tcp;";
    let made = place.stackline(&["run", "--json", "-i", "0.2", "-e", put]);
    let run = json(&made.succeeds().out);
    let rows = run["intervals"][0]["rows"].as_array().unwrap();
    let bytes = |row: &Value| row["bytes"].as_u64().unwrap();
    let (pairs, sums): (Vec<&Value>, Vec<&Value>) =
        rows.iter().partition(|row| row.get("pair").is_some());
    assert_eq!(pairs.len(), 2 * sums.len());
    let all: u64 = sums.iter().map(|row| bytes(row)).sum();
    assert_eq!(all, pairs.iter().map(|row| bytes(row)).sum::<u64>());
    assert!(all > 0);
    assert!(
        sums.iter()
            .any(|row| row["window_bytes"].as_u64() > Some(0)),
        "{rows:#?}"
    );
    let calls = place.stackline(&["run", "--json", "-i", "0.1", "-e", "1 rr 32*2000 over tcp;"]);
    let run = json(&calls.succeeds().out);
    let rows = run["intervals"][0]["rows"].as_array().unwrap();
    let ended: u64 = rows.iter().map(|row| row["calls"].as_u64().unwrap()).sum();
    assert_eq!(ended, 2000);
    assert!(rows[0]["median_s"].as_f64() > Some(0.0), "{rows:#?}");
}
