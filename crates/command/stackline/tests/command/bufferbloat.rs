//! How much latency grows under load: across a modelled line, as physics has it, and at a web server.

use crate::support::daemons::{free_port, served};
use crate::support::{Finished, Place, has_program, number, skip};
use crate::web_servers::{connections_with, nginx};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

fn median(answer: &Value, phase: usize) -> f64 {
    number(answer, &format!("/phases/{phase}/latency_s/median"))
}

#[test]
fn a_full_queue_adds_what_it_holds_and_fq_codel_does_not() {
    let place = Place::new();
    let words = [
        "bufferbloat",
        "--json",
        "--down",
        "50 Mbit/s",
        "--up",
        "10 Mbit/s",
    ];
    let more = [
        "--rtt",
        "30 ms",
        "--queue",
        "128 KiB",
        "--cure",
        "128 KiB fq_codel",
    ];
    let finished = place.stackline(&[&words[..], &more].concat());
    finished.succeeds();
    let answers = finished.json();
    let (before, cured) = (&answers[0], &answers[1]);
    for answer in [before, cured] {
        assert!((median(answer, 0) - 0.030).abs() < 0.001, "{answer}");
        let rpm = number(answer, "/phases/0/round_trips_per_minute/both");
        assert!((rpm - 2000.0).abs() < 20.0, "{answer}");
        // Headers take their part: 1448 of 1500 bytes are data.
        for (phase, rate) in [(1, 50e6), (2, 10e6)] {
            let load = number(answer, &format!("/phases/{phase}/load_bit_s"));
            assert!((0.85..0.97).contains(&(load / rate)), "{answer}");
        }
    }
    // 128 KiB take 105 ms upwards at 10 Mbit/s, and 21 ms downwards.
    let [down, up] = [1, 2].map(|phase| median(before, phase));
    assert!(
        (0.035..0.055).contains(&down) && (0.08..0.14).contains(&up),
        "{before}"
    );
    assert!(
        [1, 2].iter().all(|phase| median(cured, *phase) < 0.036),
        "{cured}"
    );
    assert_eq!(
        (&before["worst"], &before["grade"]),
        (&"upload".into(), &"C".into())
    );
    assert_eq!(cured["grade"], "A+", "{cured}");
}

#[test]
fn a_full_queue_is_as_long_as_its_packets_take_to_leave() {
    let place = Place::new();
    let line = [
        "--down",
        "100 Mbit/s",
        "--up",
        "20 Mbit/s",
        "--rtt",
        "20 ms",
    ];
    let more = [
        "--queue",
        "1000 packets",
        "--cure",
        "none",
        "--seconds",
        "20",
    ];
    let finished = place.stackline(&[&["bufferbloat", "--json"], &line[..], &more].concat());
    finished.succeeds();
    let answer = &finished.json()[0];
    // A packet that just finds room waits for 1000 packets of 1500 bytes: 600 ms upwards, 120 ms downwards. Probes of which a packet is
    // lost are among the slowest.
    for (phase, rate) in [(1, 100e6), (2, 20e6)] {
        let full_s = 0.020 + 1000.0 * 1500.0 * 8.0 / rate;
        let share = number(answer, &format!("/phases/{phase}/latency_s/p90")) / full_s;
        assert!((0.85..1.0).contains(&share), "{share} of {full_s} s");
    }
    let idle = answer["phases"][0]["series"].as_array().unwrap();
    let is_short = |probe: &Value| (number(probe, "/latency_s") - 0.020).abs() < 0.001;
    assert!(idle.len() > 200 && idle.iter().all(is_short));
    assert_eq!(answer["phases"][2]["self_latency_s"], Value::Null);
    assert_eq!(answer["http"], Value::Null);
}

/// A web server that gives 1 MB and takes what is posted, `/up` excepted.
fn web() -> SocketAddr {
    served(serve)
}

fn serve(stream: TcpStream) {
    let mut writer = stream.try_clone().unwrap();
    let mut reader = BufReader::new(stream);
    loop {
        let (mut line, mut length, mut path) = (String::new(), 0, String::new());
        while reader.read_line(&mut line).is_ok_and(|read| read > 0) && line != "\r\n" {
            if path.is_empty() {
                path = line.split(' ').nth(1).unwrap_or_default().to_owned();
            }
            if let Some(written) = line.strip_prefix("Content-Length: ") {
                length = written.trim().parse().unwrap();
            }
            line.clear();
        }
        if line.is_empty() {
            return;
        }
        let body = reader.by_ref().take(length).bytes().count();
        let answer = match (path.as_str(), body) {
            ("/refuses", 1..) => "HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n".into(),
            ("/big", 0) => format!(
                "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n{}",
                "x".repeat(1_000_000)
            ),
            _ => "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi".into(),
        };
        if writer.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

#[test]
fn a_web_server_is_measured_in_both_directions() {
    let place = Place::new();
    let address = web();
    let url = format!("http://{address}/big");
    let upload = format!("http://{address}/refuses");
    let short = ["--seconds", "1", "--loads", "2", "--json"];
    let finished = place.stackline(&[&["bufferbloat", &url][..], &short].concat());
    finished.succeeds();
    let answer = &finished.json()[0];
    for phase in 0..3 {
        assert!(
            number(answer, &format!("/phases/{phase}/latency_s/n")) > 3.0,
            "{answer}"
        );
    }
    assert!(number(answer, "/phases/1/load_bit_s") > 1e6, "{answer}");
    assert!(number(answer, "/phases/2/load_bit_s") > 1e6, "{answer}");
    assert!(answer["grade"].is_string());
    // A direction that the server refuses is absent with the reason.
    let words = ["bufferbloat", &url, "--upload", &upload];
    let finished = place.stackline(&[&words[..], &short].concat());
    finished.succeeds();
    let answer = &finished.json()[0];
    let why = answer["phases"][2]["absent"].as_str().unwrap();
    assert!(why.contains("status 405"), "{why}");
    assert_eq!(answer["worst"], "download");
}

/// `bufferbloat` at a server, shortly.
fn ask(place: &Place, words: &[&str]) -> Finished {
    let short = ["--seconds", "1", "--loads", "2"];
    place.stackline(&[&["bufferbloat"], words, &short].concat())
}

#[test]
fn a_server_chooses_its_version_and_probes_are_on_loading_connections() {
    if !has_program("/usr/sbin/nginx", "nginx-light") {
        skip("no nginx");
        return;
    }
    let place = Place::new();
    let nginx = nginx(&place);
    let [tls, _, _, tls_http1] = nginx.ports;
    let url = format!("https://localhost:{tls}/big");
    let root = format!("https://localhost:{tls}/own");
    let upload = format!("https://localhost:{tls}/up");
    let words = [
        &*url,
        "--insecure",
        "--probe",
        &root,
        "--upload",
        &upload,
        "--json",
    ];
    let finished = ask(&place, &words);
    finished.succeeds();
    let answer = &finished.json()[0];
    assert_eq!(answer["http"], "HTTP/2");
    let path = answer["path"].as_str().unwrap();
    assert!(path.ends_with("(HTTP/2, as the server chose)"), "{path}");
    for phase in 0..3 {
        let at = |name: &str| number(answer, &format!("/phases/{phase}/{name}"));
        assert!(
            at("latency_s/n") > 3.0 && at("self_latency_s/n") > 3.0,
            "{answer}"
        );
        let rate = |name: &str| at(&format!("round_trips_per_minute/{name}"));
        let mean = f64::midpoint(rate("foreign"), rate("self"));
        assert!((rate("both") - mean).abs() < 1e-6 * mean, "{answer}");
        assert_eq!(answer["phases"][phase]["self_absent"], Value::Null);
        let series = answer["phases"][phase]["series"].as_array().unwrap();
        let of = |kind: &str| series.iter().filter(|probe| probe["probe"] == kind).count();
        assert_eq!(of("foreign") as f64, at("latency_s/n"));
        assert_eq!(of("self") as f64, at("self_latency_s/n"));
    }
    // Both loads, down and up, have two connections with probes on them; after 1000 requests nginx ends one.
    let probed = connections_with(&place, "/own");
    for uri in ["/big", "/up"] {
        let loaded = connections_with(&place, uri);
        let with_both = loaded.intersection(&probed).count();
        assert!(with_both >= 2, "{loaded:?} {probed:?}");
    }
    // A server without HTTP/2 has no such probes, which the text says.
    let url = format!("https://localhost:{tls_http1}/big");
    let finished = ask(&place, &[&url, "--insecure"]);
    finished.succeeds();
    let lines = [
        "(HTTP/1.1, as the server chose)",
        "no requests on the loading connections: over HTTP/1.1 a connection carries one request at a time",
    ];
    assert!(
        lines.iter().all(|line| finished.out.contains(line)),
        "{}",
        finished.out
    );
    assert!(!finished.out.contains("over time"), "{}", finished.out);
}

#[test]
fn what_a_server_refuses_has_a_hint_about_the_flag() {
    if !has_program("/usr/sbin/nginx", "nginx-light") {
        skip("no nginx");
        return;
    }
    let place = Place::new();
    let nginx = nginx(&place);
    let [tls, plain, _, tls_http1] = nginx.ports;
    let missing = format!("http://127.0.0.1:{plain}/missing");
    let big = format!("http://127.0.0.1:{plain}/big");
    let secure = format!("https://localhost:{tls}/big");
    let old = format!("https://localhost:{tls_http1}/big");
    for (words, expected) in [
        (
            &[&*big, "--probe", &missing][..],
            [
                "status 404 Not Found: http://127.0.0.1:",
                "--probe URL something small, --upload URL what takes uploads",
            ],
        ),
        (&[&*secure], ["certificate", "or --insecure"]),
        (
            &[&*old, "--insecure", "--http", "2"],
            ["(ALPN)", "--http 1 is what every web server speaks"],
        ),
    ] {
        let finished = ask(&place, words);
        finished.fails(1, &expected[..1]).hints(expected[1]);
        // The error and its hint are all that is printed.
        assert_eq!(finished.err.lines().count(), 2, "{}", finished.err);
        assert_eq!(finished.out, "");
    }
    // Without any load there is no answer.
    let small = format!("http://127.0.0.1:{plain}/");
    let finished = ask(&place, &[&missing, "--probe", &small]);
    finished.fails(1, &["status 404"]);
    assert_eq!(finished.out, "");
    // An upload that is refused leaves the rest.
    let finished = ask(&place, &[&big, "--upload", &missing]);
    finished.succeeds();
    assert!(finished.out.contains("! upload: "), "{}", finished.out);
    assert!(finished.out.contains("status 404"), "{}", finished.out);
    let nobody = format!("https://127.0.0.1:{}/", free_port());
    let finished = ask(&place, &[&nobody]);
    assert_eq!(finished.out, "");
    assert!(finished.err.starts_with("error: "), "{}", finished.err);
}

#[test]
fn latency_over_time_is_drawn_where_it_is_asked_for() {
    let place = Place::new();
    let line = ["--down", "8 Mbit/s", "--up", "1 Mbit/s", "--seconds", "2"];
    let drawn = ["--plot", "-o", "latency.svg"];
    let mut command = place.command(&[&["bufferbloat"], &line[..], &drawn].concat());
    let finished = place.finish(command.env("LC_ALL", "C"));
    finished.succeeds();
    assert!(finished.out.is_ascii(), "{}", finished.out);
    assert_eq!(
        finished.out.matches("latency over time: # median").count(),
        2
    );
    assert!(
        finished.out.ends_with("drawn in latency.svg\n"),
        "{}",
        finished.out
    );
    let svg = fs::read_to_string(place.path("latency.svg")).unwrap();
    assert!(svg.matches("<circle").count() > 50 && svg.contains("queue 1000 packets"));
    let mut command =
        place.command(&[&["bufferbloat", "--cure", "none"], &line[..], &drawn[..1]].concat());
    let finished = place.finish(command.env("LC_ALL", "C.UTF-8"));
    assert!(finished.out.contains('█'), "{}", finished.out);
    for (more, expected) in [
        (["-o", "x.html"], "the type of x.html is unknown"),
        (["--plot", "--json"], "cannot be used with"),
    ] {
        let words = [&["bufferbloat"], &line[..], &more].concat();
        place.stackline(&words).fails(2, &[expected]);
    }
}

#[test]
fn a_rate_without_a_unit_is_most_likely_one_of_megabits() {
    let place = Place::new();
    for (words, expected) in [
        (
            ["--down", "20", "--up", "5 Mbit/s"],
            "write --down '20 Mbit/s'",
        ),
        (
            ["--down", "20 Mbit/s", "--up", "2.5"],
            "write --up '2.5 Mbit/s'",
        ),
    ] {
        let finished = place.stackline(&[&["bufferbloat"], &words[..]].concat());
        finished.fails(2, &["has no unit"]).hints(expected);
    }
    let line = ["bufferbloat", "--down", "20 Mbit/s", "--up", "5 Mbit/s"];
    let finished = place.stackline(&[&line[..], &["--rtt", "20"]].concat());
    finished
        .fails(2, &["has no unit"])
        .hints("write --rtt '20 ms'");
}

#[test]
fn mistakes_are_refused_before_anything_runs() {
    let place = Place::new();
    let rates = ["--up", "1 Mbit/s", "--down"];
    for words in [
        ["100 Mbitt/s", "--rtt", "1 ms"],
        ["1 Mbit/s", "--queue", "wide"],
    ] {
        let finished = place.stackline(&[&["bufferbloat"], &rates[..], &words].concat());
        finished.mistakes(&["unexpected"]);
    }
    for (words, expected) in [
        (&["ftp://a/"][..], "is not the address of a web server"),
        (&["http://a/", "--down", "1 Mbit/s"], "cannot be used with"),
        (&[], "<URL>"),
        (&["http://a/", "--http", "3"], "over TLS alone"),
        (
            &["http://a/", "--http", "4"],
            "invalid value '4' for '--http",
        ),
    ] {
        let finished = place.stackline(&[&["bufferbloat"], words].concat());
        finished.fails(2, &[expected]);
    }
    let spec = place.stackline(&[
        "bufferbloat",
        "--spec",
        "--down",
        "1 Mbit/s",
        "--up",
        "1 Mbit/s",
    ]);
    spec.succeeds();
    place.write("line.stackline", &spec.out);
    place.stackline(&["check", "line.stackline"]).succeeds();
}
