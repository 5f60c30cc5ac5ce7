//! What is left of requests' time when a cause is taken out: never less than what distance, rates and first windows allow.

use super::request_network::Traced;
use super::*;
use stackline_events::unit_ids::unit;

/// A run without anything in it.
pub(super) fn nothing() -> Given {
    let plan = Plan {
        seed: 0,
        hosts: Default::default(),
        networks: Vec::new(),
        measurements: Vec::new(),
    };
    Given {
        plan,
        records: Vec::new(),
        index: Index::default(),
        events: EventTable::default(),
        lifelines: Lifelines::default(),
    }
}

const BYTES: u64 = 1_000_000;

/// A download of 1 MB over 20 ms there and back, on a link of so many Mbit/s: how long its answer takes to leave, and what the network
/// did to it.
struct Download {
    mbit_s: Option<u64>,
    sending_ms: u64,
    network: &'static str,
    is_new: bool,
    drops: u64,
}

impl Download {
    fn found(&self) -> Vec<Finding> {
        let mut traced = Traced::new(BYTES);
        let (unit, sending_us) = (unit(1, 0), self.sending_ms * 1000);
        if let Some(mbit_s) = self.mbit_s {
            traced.event(
                0,
                "x",
                "PORT_SETUP",
                &format!("x>client; {}", mbit_s * 1_000_000),
            );
        }
        traced.event(0, "client", "APP_CALL", &format!("{unit}; 2; 0; 100"));
        traced.event(
            12_000,
            "server",
            "APP_REPLY",
            &format!("{unit}; 3; 0; {BYTES}"),
        );
        let end = 12_000 + sending_us + 10_000;
        let parts = 50;
        for part in 0..parts {
            let at = 12_000 + sending_us * part / parts;
            let packet = format!(
                "; 3; {}; {}; x>client; server>client; 7",
                BYTES / parts * part,
                BYTES / parts
            );
            traced.through((at, at + 100), &packet, BYTES / parts, BYTES / parts);
            if part < self.drops {
                let lost = format!("{packet}; {}; 1; 1500; queue full", 1000 + part);
                traced.event(at, "x", "NET_DROP", &lost);
            }
        }
        let request = format!(
            "{unit}; call; HTTP/1.1; 1; GET /; 200; client; server; curl; nginx; 100; {BYTES}; 0"
        );
        traced.event(end, "client", "REQUEST", &request);
        let connect = if self.is_new { "20000000" } else { "" };
        let round_trip = connect;
        let before = if self.is_new { 20_000 } else { 0 };
        let total = (end + before) * 1000;
        let times = format!(
            "{unit}; {total}; ; {connect}; ; 0; 0; 10000000; 0; 2000000; {}; 10000000; 0; {round_trip}",
            sending_us * 1000
        );
        traced.event(end, "client", "REQUEST_TIME", &times);
        if !self.network.is_empty() {
            traced.event(
                end,
                "client",
                "REQUEST_NETWORK",
                &format!("{unit}; {}", self.network),
            );
        }
        traced.given.found()
    }

    /// What the first finding promises, ms, and how it says so.
    fn without(&self, kind: &str) -> (f64, String) {
        let found = self.found();
        assert_eq!(found[0].kind, kind, "{found:?}");
        let takes = found[0].takes.clone().unwrap();
        (takes.without_s * 1e3, takes.limited_by)
    }
}

const WINDOW: &str = "0; 0; 0; 0; 0; 0; 0; 3000000000";

fn windowed(mbit_s: Option<u64>, is_new: bool) -> Download {
    Download {
        mbit_s,
        sending_ms: 3000,
        network: WINDOW,
        is_new,
        drops: 0,
    }
}

#[test]
fn a_window_that_is_removed_leaves_the_link() {
    // 22 ms of way and work, and 1 MB over 20 Mbit/s.
    let (ms, words) = windowed(Some(20), false).without("request_window");
    assert!((ms - 422.0).abs() < 2.0, "{ms}");
    assert!(
        words.ends_with("the limit would then be x>client (20.0 Mbit/s)"),
        "{words}"
    );
    // A new connection has windows of 10, 20 and 40 segments first.
    let (ms, _) = windowed(Some(20), true).without("request_window");
    assert!((ms - (442.0 + 60.0 - 0.8 * 51.1)).abs() < 25.0, "{ms}");
    // Of a fast link what remains are the windows: 10, 20, 40, 80, 160, 320 segments, then the rest.
    let (ms, words) = windowed(Some(100_000), true).without("request_window");
    assert!((ms - (42.0 + 6.0 * 20.0)).abs() < 2.0, "{ms}");
    assert!(words.contains("initial windows"), "{words}");
    // Where no link is known, none is invented.
    let (ms, words) = windowed(None, false).without("request_window");
    assert!((ms - 22.0).abs() < 2.0, "{ms}");
    assert!(
        words.ends_with("at best, as the capacity of the path is unknown"),
        "{words}"
    );
}

#[test]
fn windows_of_a_new_connection_are_slow_start() {
    let download = |mbit_s, is_new| Download {
        mbit_s,
        sending_ms: 130,
        network: "",
        is_new,
        drops: 0,
    };
    // Five windows of a round trip, and the rest at the rate that makes 130 ms of both: 146 Mbit/s.
    let (ms, words) = download(None, true).without("request_slow_start");
    assert!((ms - 72.0).abs() < 2.0, "{ms}");
    assert!(
        words.ends_with("the capacity of the path is unknown"),
        "{words}"
    );
    let found = download(None, true).found();
    let takes = found[0].takes.clone().unwrap();
    assert!((takes.total_s - 0.1).abs() < 0.002, "{takes:?}");
    // Of a link that is known to be fast, six windows.
    let found = download(Some(100_000), true).found();
    assert_eq!(found[0].kind, "request_slow_start", "{found:?}");
    let takes = found[0].takes.clone().unwrap();
    assert!((takes.total_s - 0.12).abs() < 0.002, "{takes:?}");
    // The window of a connection that was there before is open.
    let found = download(None, false).found();
    assert!(
        found.iter().all(|one| one.kind != "request_slow_start"),
        "{found:?}"
    );
}

#[test]
fn what_losses_keep_small_is_their_time() {
    // 1 MB over 100 Mbit/s takes 80 ms; it took 2 s, of which 200 ms were waits for what was sent again.
    let lossy = |drops, network| Download {
        mbit_s: Some(100),
        sending_ms: 2000,
        network,
        is_new: false,
        drops,
    };
    let found = lossy(5, "0; 0; 5; 200000000").found();
    assert_eq!(found[0].kind, "request_loss", "{found:?}");
    let takes = found[0].takes.clone().unwrap();
    assert!((takes.total_s - 1.92).abs() < 0.01, "{takes:?}");
    assert!((takes.without_s - 0.102).abs() < 0.005, "{takes:?}");
    assert!(!found.iter().any(|one| one.sentence.contains("holds back")));
    // Without a loss it is the sender that holds back.
    let found = lossy(0, "").found();
    assert_eq!(found[0].kind, "request_rate");
    assert!(
        found[0].sentence.contains("the sender holds back"),
        "{found:?}"
    );
    // Where no link is recorded, it is not known which of both it is.
    let unknown = Download {
        mbit_s: None,
        ..lossy(0, "0; 0; 5; 200000000")
    };
    let found = unknown.found();
    assert_eq!(found[0].kind, "request_rate", "{found:?}");
    assert!(
        found[0]
            .sentence
            .contains("; either the path can carry no more, or losses")
            && found[0].confidence < 0.8,
        "{found:?}"
    );
}

#[test]
fn a_full_link_that_drops_is_the_limit_and_not_its_losses() {
    let full = Download {
        mbit_s: Some(20),
        sending_ms: 420,
        network: "0; 0; 5; 20000000",
        is_new: false,
        drops: 5,
    };
    let found = full.found();
    assert_eq!(found[0].kind, "request_rate", "{found:?}");
    let takes = found[0].takes.clone().unwrap();
    assert!(takes.total_s > 0.35, "{takes:?}");
}

#[test]
fn of_a_row_of_requests_one_round_trip_remains() {
    let mut given = nothing();
    for at in 0..10_u64 {
        let end_us = (at + 1) * 40_000;
        let request = format!("{at}; call; RESP; 1; GET k; ; a; b; app; redis; 30; 5; 0");
        given.event(end_us, "a", "REQUEST", &request);
        let times = format!("{at}; 40000000; ; ; ; 0; 0; 20000000; 0; 0; 0; 20000000; 0; 40000000");
        given.event(end_us, "a", "REQUEST_TIME", &times);
    }
    let found = given.found();
    assert_eq!(found[0].kind, "chatty_requests", "{found:?}");
    let takes = found[0].takes.clone().unwrap();
    assert!((takes.without_s - 0.04).abs() < 1e-6, "{takes:?}");
}
