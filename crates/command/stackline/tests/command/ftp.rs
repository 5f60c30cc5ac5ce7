//! The stack `ftp`: what a run sends over the wire is what tshark knows as FTP, and takes the round trips that its dialogue has.

use crate::support::emulated::Net;
use crate::support::wire_capture::WireCapture;
use crate::support::{Place, number};
use std::collections::BTreeMap;

/// Runs of each application type, whoever opens the connections for files.
const RUNS: [&str; 5] = [
    "conn_disc 0*2 over ftp(port = 20121)",
    "bulk_get 1024*5 over ftp(port = 20121)",
    "bulk_put 100 kB*2 over ftp(port = 20121, mode = active)",
    "bulk_get 100 kB*2 over ftp(port = 20121, classic, mode = active)",
    "stream 1024*5 over ftp(port = 20121, classic)",
];
/// How many connections they have.
const CONNECTIONS: usize = 2 + 4;

/// How often each value is there.
fn counted(values: &[String]) -> BTreeMap<&str, usize> {
    values.iter().fold(BTreeMap::new(), |mut counts, value| {
        *counts.entry(value.as_str()).or_default() += 1;
        counts
    })
}

#[test]
fn tshark_knows_every_line_and_every_file() {
    let Some(capture) = WireCapture::of_runs(&RUNS, &["-d", "tcp.port==20121,ftp"]) else {
        return;
    };
    assert_eq!(capture.complaints(), Vec::<String>::new());
    let malformed = capture.fields(&["frame.number"], "_ws.malformed");
    assert_eq!(malformed, Vec::<Vec<String>>::new());
    let unknown = "tcp.port == 20121 and tcp.len > 0 and not ftp";
    let unknown = capture.fields(&["frame.number"], unknown);
    assert_eq!(unknown, Vec::<Vec<String>>::new());
    let commands = capture.values("ftp.request.command", "ftp");
    let expected = [
        ("EPRT", 1),
        ("EPSV", 1),
        ("PASS", CONNECTIONS),
        ("PASV", 1),
        ("PORT", 1),
        ("QUIT", CONNECTIONS),
        ("RETR", 2),
        ("STOR", 2),
        ("TYPE", CONNECTIONS),
        ("USER", CONNECTIONS),
    ];
    assert_eq!(counted(&commands), BTreeMap::from(expected));
    let replies = capture.values("ftp.response.code", "ftp");
    let expected = [
        ("150", 4),
        ("200", CONNECTIONS + 2),
        ("220", CONNECTIONS),
        ("221", CONNECTIONS),
        ("226", 4),
        ("227", 1),
        ("229", 1),
        ("230", CONNECTIONS),
        ("331", CONNECTIONS),
    ];
    assert_eq!(counted(&replies), BTreeMap::from(expected));
    // The token is the password, and each run has another.
    let passwords = capture.values("ftp.request.arg", "ftp.request.command == \"PASS\"");
    for password in &passwords {
        let is_hexadecimal = password.bytes().all(|byte| byte.is_ascii_hexdigit());
        assert!(password.len() == 32 && is_hexadecimal, "{password}");
    }
    assert_eq!(counted(&passwords).len(), RUNS.len());
    // It finds the connections for files by what both ends have said of them: no byte goes elsewhere. After PORT it expects the server's port
    // 20, which takes the rights of root; ours comes from any.
    let files = capture.values("tcp.stream", "ftp-data");
    assert_eq!(counted(&files).len(), 3, "{files:?}");
    let others = "tcp.len > 0 and not ftp and not ftp-data and tcp.port != 20121 and not tls";
    let streams = capture.values("tcp.stream", others);
    assert_eq!(counted(&streams).len(), 1, "{streams:?}");
}

#[test]
fn connecting_and_files_take_the_round_trips_of_the_dialogue() {
    const TRIP_S: f64 = 0.2;
    let Some(net) = Net::with("ftp_trips", "host a, b; link a - b 100 Mbit/s 100 ms;") else {
        return;
    };
    let parts: String = ["ftp", "ftp(mode = active)", "ftp(classic)"]
        .into_iter()
        .flat_map(|stack| {
            ["connect_disconnect 0*2", "bulk_get 100*3", "bulk_put 100*3"].map(|what| {
                format!(
                    "2 from a to b {what} over {stack} across {} in emulated;",
                    net.name
                )
            })
        })
        .collect();
    let rows = net.place.measure(&format!("{} {parts}", net.text));
    for row in rows {
        let (trips, time) = match row["application"].as_str() {
            // Of TCP, to the greeting, USER, PASS, TYPE; QUIT.
            Some("connect_disconnect") => (6.0, "/connect_s/min"),
            // EPSV and connecting, or EPRT and being connected to; RETR with the file and its end.
            Some("bulk_get") => (3.0, "/elapsed_s/min"),
            // The same; the file, and the reply that it is there.
            _ => (4.0, "/elapsed_s/min"),
        };
        let time = number(&row, time);
        // A trip is long, so that nothing else takes as much.
        assert_eq!((time / TRIP_S).floor(), trips, "{time} s: {row}");
    }
}

#[test]
fn limits_and_loads_end_files() {
    let place = Place::new();
    let measured = place.measure(
        "1 timelimit 0.05 bulk_get 1000*1000000000 over ftp; 1 timelimit 0.05 bulk_put 1000 over ftp(mode = active);
         1 timelimit 0.05 stream 200*100000 constant(1 ms) over ftp; 1 timelimit 0.05 connect_disconnect 0*2000 constant(1 ms) over ftp;
         1 timelimit 0.05 parallel over ftp: 3 bulk_get 1000 | 2 bulk_put 100;
         1 background: rr 32*500 constant(200 us) | 2 bulk_get 1024*10 over ftp | 2 bulk_put 1024*10 over ftp(mode = active);",
    );
    let got =
        |index: usize, side: &str| number(&measured[index], &format!("/{side}/received_units"));
    for (index, side) in [(0, "initiator"), (1, "responder"), (2, "responder")] {
        assert!(got(index, side) > 0.0, "{}", measured[index]);
    }
    assert!(number(&measured[3], "/connect_s/n") > 0.0);
    let loads: Vec<_> = measured
        .iter()
        .filter(|row| row["background"] == true)
        .collect();
    assert_eq!(loads.len(), 2);
    for (load, side) in loads.into_iter().zip(["initiator", "responder"]) {
        let units = number(load, &format!("/{side}/received_units"));
        assert!(units > 0.0, "{load}");
    }
}

#[test]
fn marks_and_modes_are_in_force() {
    let place = Place::new();
    let measured = place.measure(
        "1 bulk_get 1000*5 over ftp(source = \"127.0.0.8\", source_port = 47121, interface = lo, ttl = 9, dscp = 46);
         1 bulk_put 1000*5 over ftp(source = \"127.0.0.8\", ttl = 9, dscp = 46, mode = active, classic, nagle);
         1 connect_disconnect 0*3 over ftp(source = \"127.0.0.8\", ttl = 9, dscp = 46);",
    );
    let modes = ["passive (EPSV)", "active (PORT)"];
    let nodelay = ["on", "off"];
    for (index, row) in measured.iter().take(2).enumerate() {
        for side in ["initiator", "responder"] {
            let settings = &row[side]["settings"];
            assert_eq!(settings["mode"], modes[index], "{row}");
            assert_eq!(settings["nodelay"], nodelay[index], "{row}");
            assert_eq!(
                (&settings["ttl"], &settings["dscp"]),
                (&"9".into(), &"46".into())
            );
        }
    }
}

#[test]
fn what_ftp_has_nothing_for_is_refused() {
    let place = Place::new();
    let network = "network n { host a, b; link a - b 10 Mbit/s 1 ms; }";
    place
        .run("1 rr 32*10 over ftp")
        .mistakes(&["`ftp` has nothing for RPCCall, which `request_response` uses"])
        .hints("it can do bulk_get, bulk_put, connect_disconnect");
    place
        .run(&format!(
            "{network} 1 from a to b bulk_get 9*9 over ftp across n in simulated"
        ))
        .mistakes(&["`ftp` does not run in this world"])
        .hints("the emulated world supports it");
    place
        .run("1 to \"ftp://127.0.0.1:1/file\" bulk_get 9*9 over ftp(mode = active)")
        .mistakes(&["the address says the protocol: ftp_file"])
        .hints("`over ftp_file(...)`");
}
