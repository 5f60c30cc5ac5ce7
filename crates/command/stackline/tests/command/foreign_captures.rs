//! Captures come in: they join the run that they were made of, know one another's connections, and say what happened on each.

use crate::support::Place;
use crate::support::traced::{TRACED, lines};
use std::fs;

#[test]
fn a_capture_of_a_run_joins_its_units() {
    let place = Place::new();
    place
        .stackline(&["run", "-e", TRACED, "--trace", "--capture", "a>b"])
        .succeeds();
    let run = place.kept().0;
    let capture = fs::read_dir(run.join("captures"))
        .unwrap()
        .flatten()
        .next()
        .unwrap()
        .path();
    let (run, capture) = (run.to_str().unwrap(), capture.to_str().unwrap());
    let json = place
        .stackline(&[
            "import",
            capture,
            "--into",
            run,
            "--json",
            "--host",
            &format!("tap={capture}"),
        ])
        .json();
    assert_eq!(json["imports"][0]["form"], "capture");
    let seen = lines(&place, run, "NET_SEEN; tap;");
    let left = lines(&place, run, "NET_DEQUEUE; a;");
    assert!(
        !seen.is_empty() && seen.len() <= left.len(),
        "{} of {}",
        seen.len(),
        left.len()
    );
    let again = lines(&place, run, "TCP_RETRANSMIT; tap;");
    assert_eq!(again.len(), 1, "the one packet that was lost: {again:?}");
}

/// A pcap with one segment of `bytes` of a connection to that port, and its SYN.
fn pcap(port: u8, bytes: usize) -> Vec<u8> {
    let mut file = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
    file.extend([2, 0, 4, 0]);
    [0_u32, 0, 65535, 101]
        .iter()
        .for_each(|word| file.extend(word.to_le_bytes()));
    for (sequence, flags, length) in [(99_u8, 2_u8, 0), (100, 16, bytes)] {
        let total = 40 + length;
        let packet = [
            &[
                0x45,
                0,
                (total >> 8) as u8,
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
                1,
                10,
                0,
                0,
                2,
            ][..],
            &[
                0x13, 0x88, 0, port, 0, 0, 0, sequence, 0, 0, 0, 0, 0x50, flags, 0, 100, 0, 0, 0, 0,
            ][..],
            &vec![7; length][..],
        ]
        .concat();
        [1_u32, 0, total as u32, total as u32]
            .iter()
            .for_each(|word| file.extend(word.to_le_bytes()));
        file.extend(packet);
    }
    file
}

#[test]
fn captures_together_know_one_anothers_connections() {
    let place = Place::new();
    fs::write(place.path("a.pcap"), pcap(80, 500)).unwrap();
    fs::write(place.path("b.pcap"), pcap(81, 600)).unwrap();
    fs::write(place.path("c.pcap"), pcap(80, 700)).unwrap();
    place.stackline(&["import", "a.pcap", "b.pcap"]).succeeds();
    let run = place.kept().0.to_str().unwrap().to_owned();
    place
        .stackline(&["import", "c.pcap", "--into", &run])
        .succeeds();
    let seen = lines(&place, &run, "NET_SEEN;");
    let mut streams: Vec<String> = seen
        .iter()
        .map(|line| {
            line.split("; ")
                .skip(5)
                .take(3)
                .collect::<Vec<_>>()
                .join("; ")
        })
        .collect();
    streams.sort();
    assert_eq!(
        streams,
        ["0; 0; 500", "2; 0; 600", "4; 0; 700"],
        "no two connections share a stream"
    );
}

/// The capture of a run, imported into a run of its own.
fn captured(specification: &str) -> Place {
    let place = Place::new();
    place
        .stackline(&["run", "-e", specification, "--trace", "--capture", "a>b"])
        .succeeds();
    let captures = fs::read_dir(place.kept().0.join("captures")).unwrap();
    let capture = captures.flatten().next().unwrap().path();
    place
        .stackline(&["import", capture.to_str().unwrap(), "--name", "captured"])
        .succeeds();
    place
}

#[test]
fn a_capture_has_a_table_of_connections_that_says_what_happened() {
    let place = captured(TRACED);
    let json = place.stackline(&["lifelines", "last", "--json"]).json();
    let [one] = &json["connections"].as_array().unwrap()[..] else {
        panic!("{json}")
    };
    // Four calls of 3000 bytes over 1 ms each way; packets are captured where they leave a, once each.
    assert_eq!(
        (&one["bytes"][0], &one["again"][0]),
        (&serde_json::json!(12_016), &serde_json::json!(1)),
        "{one}"
    );
    assert_eq!(
        (&one["end"], &one["zero_windows"]),
        (&"open".into(), &0.into()),
        "{one}"
    );
    let text = place
        .stackline(&["lifelines", "last"])
        .succeeds()
        .out
        .clone();
    assert!(
        text.starts_with("connection") && text.contains("10.71.0.1"),
        "{text}"
    );
    let said = place
        .stackline(&["diagnose", "last"])
        .succeeds()
        .out
        .clone();
    assert!(
        said.contains("observed_loss") && said.contains("Looked for: "),
        "{said}"
    );
}

#[test]
fn captures_of_several_places_are_a_file_each() {
    let place = Place::new();
    let text = "network n { host a, b; switch x; link a - x 10 Mbit/s 1 ms; link x - b 10 Mbit/s 1 ms; } 1 from a to b rr 3000*4 over tcp across n in simulated;";
    let run = [
        "run",
        "-e",
        text,
        "--capture",
        "all",
        "--capture",
        "a",
        "--capture",
        "a>x",
    ];
    place.stackline(&run).succeeds();
    let directory = place.kept().0.join("captures");
    let mut files: Vec<String> = fs::read_dir(&directory)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    let names = ["a-x", "a", "all"].map(|name| format!("n.1.1.{name}.pcapng"));
    assert_eq!(files, names);
    let all = fs::read(directory.join(&names[2])).unwrap();
    for port in ["a>x", "x>a", "x>b", "b>x"] {
        assert!(String::from_utf8_lossy(&all).contains(port), "{port}");
    }
    for file in &names[..2] {
        place
            .stackline(&[
                "import",
                directory.join(file).to_str().unwrap(),
                "--name",
                "one",
            ])
            .succeeds();
        let connections =
            place.stackline(&["lifelines", "last", "--json"]).json()["connections"].clone();
        assert_eq!(
            connections[0]["again"],
            serde_json::json!([0, 0]),
            "{file}: {connections}"
        );
        if file == "n.1.1.a.pcapng" {
            // 2 ms each way, and three small packets on links of 10 Mbit/s.
            let round_trip = connections[0]["handshake_ns"].as_u64().unwrap();
            assert!(
                (4_000_000..4_500_000).contains(&round_trip),
                "{connections}"
            );
            assert_eq!(
                connections[0]["bytes"],
                serde_json::json!([12_016, 12_000]),
                "{connections}"
            );
        }
    }
    place
        .stackline(&["run", "-e", text, "--capture", "y"])
        .fails(2, &["no port `y` and no host"])
        .hints("a>x");
}

#[test]
fn a_capture_before_a_queue_is_in_order_whatever_the_queue_drops() {
    let text = "network n { host a, b; link a - b 10 Mbit/s 10 ms queue 20 packets; } 1 from a to b bulk_put 16 KiB 2 MB over tcp(congestion = reno) across n in simulated;";
    let again = |place: &str| {
        let at = Place::new();
        at.stackline(&["run", "-e", text, "--capture", place])
            .succeeds();
        let capture = at.kept().0.join("captures/n.1.1.pcapng");
        let drops = String::from_utf8_lossy(&fs::read(&capture).unwrap())
            .matches("dropped: queue full")
            .count();
        let import = ["import", capture.to_str().unwrap(), "--name", "one"];
        at.stackline(&import).succeeds();
        let shown = at.stackline(&["lifelines", "last", "--json"]).json();
        (
            drops as u64,
            shown["connections"][0]["again"][0].as_u64().unwrap(),
        )
    };
    let (drops, before) = again("a");
    assert!(drops > 10, "{drops}");
    // Each dropped segment is sent again once, perhaps needlessly with its neighbours.
    assert!((drops..=drops + 5).contains(&before), "{drops} {before}");
    let (none, _) = again("after:a>b");
    assert_eq!(none, 0);
}
