//! `stackline probe`: series that go on, reports of alerts, servers that are down, and the end by Ctrl-C.

use crate::support::daemons::free_port;
use crate::support::{Finished, Place, number, until};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

const RR: &str = "1 rr 32*200 in simulated";

/// `stackline probe -e TEXT --every 20ms WORDS...`
fn probe(place: &Place, text: &str, words: &[&str]) -> Finished {
    place.stackline(&[&["probe", "-e", text, "--every", "20ms"], words].concat())
}

/// The JSON of each line.
fn lines(finished: &Finished) -> Vec<Value> {
    let lines = finished.out.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// What a server got: the path, the media type, the content.
struct Posted {
    path: String,
    media_type: String,
    body: Vec<u8>,
}

/// A web server that takes what is posted. Returns its port.
fn web_server() -> (u16, Receiver<Posted>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, receiver) = channel();
    thread::spawn(move || {
        for socket in listener.incoming() {
            let mut reader = BufReader::new(socket.unwrap());
            while let Some(posted) = posted(&mut reader) {
                let _ = sender.send(posted);
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
                reader.get_mut().write_all(answer).unwrap();
            }
        }
    });
    (port, receiver)
}

fn posted(reader: &mut BufReader<std::net::TcpStream>) -> Option<Posted> {
    let mut head = Vec::new();
    let mut line = String::new();
    while reader.read_line(&mut line).unwrap_or(0) > 2 {
        head.push(line.trim().to_owned());
        line.clear();
    }
    let field = |name: &str| {
        let found = head.iter().find_map(|line| line.strip_prefix(name));
        found.unwrap_or_default().to_owned()
    };
    let path = head.first()?.split(' ').nth(1)?.to_owned();
    let mut body = vec![0; field("Content-Length: ").parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    Some(Posted {
        path,
        media_type: field("Content-Type: "),
        body,
    })
}

/// How many records the segments of a series have.
fn kept(place: &Place, name: &str) -> usize {
    let directory = place.path("runs").join("probes").join(name);
    let segments = fs::read_dir(directory).into_iter().flatten().flatten();
    let lines = segments
        .filter(|one| one.path().extension().is_some_and(|end| end == "probes"))
        .map(|one| fs::read_to_string(one.path()).unwrap().lines().count());
    lines.sum()
}

#[test]
fn a_series_is_kept_listed_shown_drawn_and_removed() {
    let place = Place::new();
    let loss = "network n { host a, b; link a - b 10 Mbit/s 5 ms loss 5%; } \
                1 from a to b rr 32*100 over tcp across n in simulated";
    let finished = probe(&place, loss, &["--name", "lossy", "--count", "5", "--json"]);
    finished.succeeds();
    let probes = lines(&finished);
    assert_eq!(probes.len(), 5);
    let means: Vec<f64> = probes
        .iter()
        .map(|probe| number(probe, "/measurements/0/times_s/mean"))
        .collect();
    assert!(means.iter().all(|mean| *mean > 0.010), "{means:?}");
    // Each probe of a simulation is drawn anew.
    assert!(means.iter().any(|mean| *mean != means[0]), "{means:?}");
    let due: Vec<f64> = probes.iter().map(|one| number(one, "/at_ms")).collect();
    assert!(due[1..].iter().all(|at| *at % 20.0 == 0.0), "{due:?}");
    for probe in &probes {
        assert_eq!(
            (&probe["written"], &probe["alerts"]),
            (&true.into(), &Value::Array(vec![]))
        );
        assert_eq!(probe["measurements"][0]["timed"], "calls");
    }
    // A second process goes on with the series.
    let more = probe(&place, loss, &["--name", "lossy", "--count", "1"]);
    assert!(more.succeeds().err.contains("1 probe"), "{}", more.err);
    assert!(
        more.out.contains("median") && more.out.lines().count() == 1,
        "{}",
        more.out
    );
    let list = place.stackline(&["probe", "list", "--json"]).json();
    assert_eq!(number(&list, "/0/probes"), 6.0);
    assert_eq!(
        (&list[0]["name"], &list[0]["state"]),
        (&"lossy".into(), &"ended".into())
    );
    let list = place.stackline(&["probe", "list"]);
    assert!(list.succeeds().out.contains("lossy"), "{}", list.out);
    let shown = place
        .stackline(&["probe", "show", "lossy", "--json"])
        .json();
    let rows = shown["measurements"][0]["rows"].as_array().unwrap();
    let calls: f64 = rows.iter().map(|row| number(row, "/times_s/n")).sum();
    assert_eq!((calls, number(&shown, "/damaged")), (600.0, 0.0));
    let shown = place.stackline(&["probe", "show", "lossy"]);
    assert!(
        shown
            .succeeds()
            .out
            .lines()
            .all(|line| line.chars().count() <= 80),
        "{}",
        shown.out
    );
    let words = ["probe", "show", "lossy", "-o", "a.csv", "-o", "a.svg"];
    place.stackline(&words).succeeds();
    let csv = fs::read_to_string(place.path("a.csv")).unwrap();
    assert!(
        csv.starts_with("time,measurement,n,median_s,p99_s,max_s,"),
        "{csv}"
    );
    assert!(
        csv.lines()
            .nth(1)
            .is_some_and(|line| line.starts_with("20")),
        "{csv}"
    );
    assert!(
        fs::read_to_string(place.path("a.svg"))
            .unwrap()
            .contains("<svg")
    );
    place
        .stackline(&["probe", "show", "lossy", "--since", "2999-01-01"])
        .fails(2, &["no probe"]);
    // A series is not a run.
    assert_eq!(place.stackline(&["runs", "--json"]).json()["count"], 0);
    place.stackline(&["probe", "remove", "lossy"]).succeeds();
    place
        .stackline(&["probe", "show", "lossy"])
        .fails(2, &["no series is named lossy"]);
}

#[test]
fn an_alert_runs_a_command_posts_and_ends_the_probe() {
    let place = Place::new();
    let (port, got) = web_server();
    let url = format!("http://me:password@127.0.0.1:{port}/hooks/KEY");
    let command = "echo \"$STACKLINE_ALERT is $STACKLINE_ALERT_STATE in $STACKLINE_PROBE\" > heard";
    let words = [
        "--name",
        "web",
        "--alert",
        "p99 > 1 us",
        "--alert",
        "failures > 10 %",
        "--on-alert",
        command,
        "--webhook",
        &url,
        "--exit-on-alert",
        "--json",
    ];
    let finished = probe(&place, RR, &words);
    assert_eq!(
        finished.status.code(),
        Some(4),
        "{}{}",
        finished.out,
        finished.err
    );
    let probes = lines(&finished);
    assert_eq!(probes.len(), 1);
    assert_eq!(probes[0]["alerts"][0]["state"], "firing");
    assert!(
        finished.err.contains("alert firing: p99 > 1 us (now "),
        "{}",
        finished.err
    );
    let heard = fs::read_to_string(place.path("heard")).unwrap();
    assert_eq!(heard, "p99 > 1 us is firing in web\n");
    let posted = got.recv().unwrap();
    assert_eq!(
        (&posted.path[..], &posted.media_type[..]),
        ("/hooks/KEY", "application/json")
    );
    let alert: Value = serde_json::from_slice(&posted.body).unwrap();
    assert_eq!(
        (&alert["version"], &alert["status"]),
        (&"4".into(), &"firing".into())
    );
    assert_eq!(alert["alerts"][0]["labels"]["alertname"], "p99 > 1 us");
    // The address is a secret: nothing prints or keeps it.
    let mut all = format!("{}{}", finished.out, finished.err);
    let directory = place.path("runs").join("probes").join("web");
    for file in fs::read_dir(directory).unwrap().flatten() {
        all += &fs::read_to_string(file.path()).unwrap();
    }
    assert!(!all.contains("KEY") && !all.contains("password"), "{all}");
}

#[test]
fn a_command_that_fails_is_said_and_counted() {
    let place = Place::new();
    let words = [
        "--count",
        "1",
        "--alert",
        "p99 > 1 us",
        "--on-alert",
        "exit 7",
    ];
    let finished = probe(&place, RR, &words);
    finished.succeeds();
    assert!(
        finished.err.contains("reports of alerts that are lost: 1"),
        "{}",
        finished.err
    );
}

#[test]
fn what_is_wrong_is_refused_before_the_first_probe() {
    let place = Place::new();
    probe(&place, RR, &["--alert", "speed > 1 ms"]).mistakes(&["unknown figure `speed`"]);
    probe(&place, RR, &["--alert", "p99 > 1 ms for ever"]).mistakes(&["an alert lasts for a time"]);
    probe(&place, RR, &["--alert", "finding queue_drop"])
        .fails(2, &["needs the events"])
        .hints("--trace");
    probe(
        &place,
        RR,
        &["--alert", "p99 > 1 s", "--webhook", "hooks.example/KEY"],
    )
    .fails(2, &["--webhook", "does not begin with http"]);
    probe(&place, RR, &["--otlp", "ftp://x/"]).fails(2, &["--otlp"]);
    probe(&place, RR, &["--name", "a/b"]).fails(2, &["cannot be the name"]);
    place.stackline(&["probe", "--every", "1m"]).fails(2, &[]);
    place
        .stackline(&["probe", "-e", RR, "--every", "1ms"])
        .fails(2, &["10ms"]);
    assert!(!place.path("runs").join("probes").join("a").exists());
}

#[test]
fn a_collector_that_is_down_ends_nothing() {
    let place = Place::new();
    let url = format!("http://127.0.0.1:{}", free_port());
    let finished = probe(&place, RR, &["--count", "3", "--otlp", &url]);
    finished.succeeds();
    assert_eq!(finished.out.lines().count(), 3);
    let said = &finished.err;
    assert!(said.contains("pushes that are lost: 3 of 3"), "{said}");
}

#[test]
fn a_collector_gets_metrics_and_traces() {
    let place = Place::new();
    let (port, got) = web_server();
    let url = format!("http://127.0.0.1:{port}");
    let words = ["--count", "2", "--trace", "--otlp", &url, "--name", "web"];
    let finished = probe(&place, "1 rr 32*20 in simulated", &words);
    finished.succeeds();
    let all: Vec<Posted> = got.try_iter().collect();
    let paths: Vec<&str> = all.iter().map(|posted| &posted.path[..]).collect();
    assert_eq!(
        paths,
        ["/v1/metrics", "/v1/traces", "/v1/metrics", "/v1/traces"]
    );
    assert!(
        all.iter()
            .all(|posted| posted.media_type == "application/x-protobuf")
    );
    let has = |posted: &Posted, text: &str| {
        let mut windows = posted.body.windows(text.len());
        windows.any(|some| some == text.as_bytes())
    };
    assert!(has(&all[0], "stackline_probe_response_seconds") && has(&all[0], "web"));
    assert!(has(&all[1], "service.name"));
    // The events of a probe do not stay.
    let left: Vec<_> = fs::read_dir(place.path("runs").join("probes").join("web"))
        .unwrap()
        .flatten()
        .filter(|entry| entry.path().is_dir())
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn probes_that_fail_are_counted_and_go_on() {
    let place = Place::new();
    let text = format!("1 to \"http://127.0.0.1:{}/\" rr 0*1", free_port());
    let words = [
        "--count",
        "3",
        "--name",
        "down",
        "--alert",
        "failures > 50 %",
    ];
    let finished = probe(&place, &text, &words);
    assert_eq!(
        finished.status.code(),
        Some(0),
        "{}{}",
        finished.out,
        finished.err
    );
    assert!(
        finished.out.lines().all(|line| line.contains("failed: ")),
        "{}",
        finished.out
    );
    let said = &finished.err;
    assert!(said.contains("3 probes, 3 failed"), "{said}");
    assert!(
        said.contains("alert firing: failures > 50 % (now 100 %)"),
        "{said}"
    );
    let shown = place.stackline(&["probe", "show", "down"]);
    assert!(
        shown.succeeds().out.contains("last failure: "),
        "{}",
        shown.out
    );
}

#[test]
fn metrics_are_served_while_it_goes_on() {
    let place = Place::new();
    let mut command = place.command(&[
        "probe",
        "-e",
        RR,
        "--every",
        "1h",
        "--name",
        "web",
        "--listen",
        ":0",
        "--alert",
        "p99 > 1 us",
    ]);
    command.stdin(std::process::Stdio::null());
    command.stdout(std::process::Stdio::piped());
    command.stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    let address = loop {
        line.clear();
        assert!(said.read_line(&mut line).unwrap() > 0);
        if let Some((_, url)) = line.split_once("metrics at http://") {
            break url.split('/').next().unwrap().trim().to_owned();
        }
    };
    let scraped = until("the first probe is served", || {
        let mut socket = std::net::TcpStream::connect(&address).ok()?;
        let request =
            format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        socket.write_all(request.as_bytes()).ok()?;
        let mut text = String::new();
        socket.read_to_string(&mut text).ok()?;
        text.contains("stackline_probe_up{").then_some(text)
    });
    for name in [
        "stackline_probe_runs_total{probe=\"web\"",
        "stackline_probe_response_seconds_bucket{",
        "stackline_probe_alert_firing{",
        "stackline_probe_unwritten_total{",
    ] {
        assert!(scraped.contains(name), "{name}: {scraped}");
    }
    let id = nix::unistd::Pid::from_raw(i32::try_from(child.id()).unwrap());
    nix::sys::signal::kill(id, Signal::SIGINT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn ctrl_c_ends_it_and_what_was_probed_stays() {
    let place = Place::new();
    for (words, code) in [(&[][..], 0), (&["--count", "2"][..], 130)] {
        let before = kept(&place, "web");
        let words = [
            &["probe", "-e", RR, "--every", "1h", "--name", "web"],
            words,
        ]
        .concat();
        let started = place.start(&mut place.command(&words));
        until("a probe is kept", || {
            (kept(&place, "web") > before).then_some(())
        });
        started.process().signal(Signal::SIGINT);
        let finished = started.finish();
        assert_eq!(
            finished.status.code(),
            Some(code),
            "{}{}",
            finished.out,
            finished.err
        );
        assert!(
            finished.err.contains("1 probe; kept in "),
            "{}",
            finished.err
        );
        assert_eq!(kept(&place, "web"), before + 1);
    }
    // Two at once write no series. What is started here is not looked at for what it leaves: the first one goes on.
    let before = kept(&place, "web");
    let started = place.start(&mut place.command(&["probe", "-e", RR, "--name", "web"]));
    until("a probe is kept", || {
        (kept(&place, "web") > before).then_some(())
    });
    for (words, code, said) in [
        (
            &["probe", "-e", RR, "--name", "web", "--count", "1"][..],
            3,
            "another process writes the series web",
        ),
        (
            &["probe", "remove", "web"][..],
            2,
            "a process writes the series web",
        ),
    ] {
        let output = place.command(words).output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{err}");
        assert!(err.contains(said), "{err}");
    }
    started.process().signal(Signal::SIGTERM);
    started.finish();
    assert!(Path::new(&place.path("runs/probes/web")).is_dir());
}
