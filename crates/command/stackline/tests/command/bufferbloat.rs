//! How much latency grows under load: across a modelled line, as physics has it, and at a web server.

use crate::support::daemons::served;
use crate::support::{Place, number};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

fn median(answer: &serde_json::Value, phase: usize) -> f64 {
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
        let rpm = number(answer, "/phases/0/round_trips_per_minute");
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
