//! Requests that were traced on an emulated network: what the network did to them is named.

use super::*;
use stackline_events::unit_ids::unit;

/// Requests on flow 1, the first of which is the quickest, and what a network did.
pub(super) struct Traced {
    pub(super) given: Given,
    packets: u64,
    bytes: u64,
}

pub(super) const EVERY_US: u64 = 20_000;

impl Traced {
    /// With answers of so many bytes.
    pub(super) fn new(bytes: u64) -> Self {
        let given = request_account::nothing();
        Self {
            given,
            packets: 0,
            bytes,
        }
    }

    pub(super) fn event(&mut self, us: u64, host: &str, keyword: &str, data: &str) {
        self.given.event(us, host, keyword, data);
    }

    /// The `n`-th request, whose answer leaves after 5 ms and is so long on its way.
    fn request(&mut self, n: u64, back_us: u64, network: &str) {
        let (unit, at, bytes) = (unit(1, n), n * EVERY_US, self.bytes);
        let end = at + 5_000 + back_us;
        self.event(
            at,
            "client",
            "APP_CALL",
            &format!("{unit}; 2; {}; 100", n * 100),
        );
        self.event(
            at + 5_000,
            "server",
            "APP_REPLY",
            &format!("{unit}; 3; {}; {bytes}", n * bytes),
        );
        let request = format!(
            "{unit}; call; HTTP/1.1; 1; GET /; 200; client; server; curl; python3; 100; {bytes}; 0"
        );
        self.event(end, "client", "REQUEST", &request);
        let (total, back) = ((5_000 + back_us) * 1000, back_us * 1000);
        let times =
            format!("{unit}; {total}; ; ; ; 0; 0; 2000000; 0; 3000000; 0; {back}; 0; 4000000");
        self.event(end, "client", "REQUEST_TIME", &times);
        if !network.is_empty() {
            self.event(
                end,
                "client",
                "REQUEST_NETWORK",
                &format!("{unit}; {network}"),
            );
        }
    }

    /// A packet with the first bytes of the answer to the `n`-th request.
    pub(super) fn own(&self, n: u64, bytes: u64) -> String {
        format!(
            "; 3; {}; {bytes}; x>client; server>client; 7",
            n * self.bytes
        )
    }

    /// Comes to the queue of the port and leaves it.
    pub(super) fn through(
        &mut self,
        (from_us, to_us): (u64, u64),
        packet: &str,
        length: u64,
        queued: u64,
    ) {
        self.packets += 1;
        let number = self.packets;
        self.event(
            from_us,
            "x",
            "NET_ENQUEUE",
            &format!("{packet}; {number}; 1; {length}; {queued}"),
        );
        self.event(
            to_us,
            "x",
            "NET_DEQUEUE",
            &format!("{packet}; {number}; 1; {length}"),
        );
    }

    pub(super) fn finding(&self, kind: &str) -> Finding {
        let found = self.given.found();
        found
            .iter()
            .find(|finding| finding.kind == kind)
            .unwrap_or_else(|| panic!("no {kind}: {found:?}"))
            .clone()
    }

    pub(super) fn sentence(&self, kind: &str) -> String {
        self.finding(kind).sentence
    }
}

/// Short requests, the first one quick, whose answers wait 8 ms behind packets of others on those streams.
fn behind(others: &[&str]) -> Traced {
    let mut traced = Traced::new(100);
    for n in 0..10 {
        let at = n * EVERY_US + 5_000;
        if n == 0 {
            let own = traced.own(n, 100);
            traced.through((at, at + 100), &own, 150, 150);
        } else {
            for at_us in [0, 1] {
                for other in others {
                    let packet = format!("; {other}; ; 1448; x>client; other>client; 9");
                    traced.through((at - 1_000 + at_us, at + 7_900), &packet, 5_000, 0);
                }
            }
            let own = traced.own(n, 100);
            traced.through(
                (at, at + 8_000),
                &own,
                150,
                10_000 * others.len() as u64 + 150,
            );
        }
        traced.request(n, if n == 0 { 2_000 } else { 10_000 }, "");
    }
    traced
}

#[test]
fn a_queue_that_another_connection_fills_is_named_with_it() {
    let mut traced = behind(&["9"]);
    let sentence = traced.sentence("request_queue");
    let before =
        "messages between client and server wait in queues before x>client, 7.88 ms each, ";
    let after = " of the time: of the 10.0 kB queued ahead of them there, 100 % belonged to another connection";
    assert!(
        sentence.starts_with(before) && sentence.ends_with(after),
        "{sentence}"
    );
    traced.event(0, "x", "NET_FLOW", "8; 10.0.0.1:40000; 10.0.0.3:5001; 5");
    let found = traced.finding("request_queue");
    assert!(
        found
            .sentence
            .ends_with("to another connection: 10.0.0.3:5001 > 10.0.0.1:40000"),
        "{}",
        found.sentence
    );
    assert!(found.tries[0].what.contains("before x>client"), "{found:?}");
    assert!(
        found
            .evidence
            .iter()
            .any(|evidence| evidence.what.starts_with("9 packets waited 7")),
        "{found:?}"
    );
}

#[test]
fn several_connections_are_counted_and_the_own_one_is_none_of_them() {
    let mut traced = behind(&["9", "11", "13"]);
    traced.event(0, "x", "NET_FLOW", "12; 10.0.0.3:6; 10.0.0.1:7; 5");
    let sentence = traced.sentence("request_queue");
    assert!(
        sentence.contains("100 % belonged to 3 other connections"),
        "{sentence}"
    );
    let sentence = behind(&["3"]).sentence("request_queue");
    assert!(
        sentence.ends_with("100 % belonged to their own connection"),
        "{sentence}"
    );
}

#[test]
fn what_is_not_known_of_queues_is_not_said() {
    let mut unseen = Traced::new(100);
    (0..10).for_each(|n| unseen.request(n, if n == 0 { 2_000 } else { 10_000 }, ""));
    let sentence = unseen.sentence("request_queue");
    assert!(
        sentence.ends_with("; they wait in queues, or are lost"),
        "{sentence}"
    );
    for n in 0..10 {
        let (own, at) = (unseen.own(n, 100), n * EVERY_US + 5_000);
        unseen.through((at, at + 100), &own, 150, 150);
    }
    let found = unseen.given.found();
    assert!(
        found.iter().all(|finding| finding.kind != "request_queue"),
        "queues are known to be empty: {found:?}"
    );
}

#[test]
fn a_queue_in_which_all_wait_is_no_distance() {
    let mut traced = Traced::new(100);
    for n in 0..10 {
        let (own, at) = (traced.own(n, 100), n * EVERY_US + 5_000);
        traced.through((at, at + 8_000), &own, 150, 10_150);
        traced.request(n, 10_000, "");
    }
    let found = traced.finding("request_queue");
    assert!((found.share - 7.88 / 15.0).abs() < 0.01, "{found:?}");
}

#[test]
fn lost_packets_are_named_with_their_place_and_reason() {
    let lost = |reason: &str, fills: bool| {
        let mut traced = Traced::new(100);
        for n in 0..10 {
            let at = n * EVERY_US + 5_000;
            traced.request(n, 12_000, "0; 0; 1; 10000000; 0; 0; 0; 0; 0");
            if fills {
                traced.through(
                    (at - 100, at + 100),
                    "; 9; ; 1448; x>client; other>client; 9",
                    9_000,
                    9_000,
                );
            }
            let own = traced.own(n, 100);
            traced.event(
                at,
                "x",
                "NET_DROP",
                &format!("{own}; {}; 1; 150; {reason}", 1000 + n),
            );
        }
        traced.event(0, "x", "NET_FLOW", "8; 10.0.0.1:40000; 10.0.0.3:5001; 5");
        traced.sentence("request_loss")
    };
    let sentence = lost("lost on the link", false);
    assert!(
        sentence.contains("10 were retransmitted")
            && sentence.ends_with("; they were lost on the link x>client"),
        "{sentence}"
    );
    let sentence = lost("queue full", false);
    assert!(
        sentence.ends_with("; they were dropped before x>client: queue full"),
        "{sentence}"
    );
    let sentence = lost("queue full", true);
    let whose = "of the 9000 B queued ahead of them there, 100 % belonged to another connection: 10.0.0.3:5001 > 10.0.0.1:40000";
    assert!(
        sentence.ends_with(&format!("queue full; {whose}")),
        "{sentence}"
    );
}

#[test]
fn of_long_messages_the_slowest_link_is_named_and_how_full_it_was() {
    let long = |rate: &str, others: bool| {
        let mut traced = Traced::new(100_000);
        traced.event(0, "x", "PORT_SETUP", &format!("x>client; {rate}"));
        traced.event(0, "server", "PORT_SETUP", "server>x; 1000000000");
        for n in 0..4 {
            let at = n * EVERY_US + 5_000;
            traced.request(n, if n == 0 { 2_000 } else { 12_000 }, "");
            if n == 0 {
                continue;
            }
            // 10 ms for 100 kB are 80 Mbit/s.
            let own = traced.own(n, 100_000);
            traced.through((at, at + 10_000), &own, 100_000, 100_000);
            if others {
                traced.through(
                    (at, at + 5_000),
                    "; 9; ; 1448; x>client; other>client; 9",
                    25_000,
                    9_000,
                );
            }
        }
        traced.sentence("request_rate")
    };
    let slowest = "; the slowest link of their path, x>client (100 Mbit/s), was";
    assert!(
        long("100000000", false).ends_with(&format!("{slowest} 80 % full while they crossed it"))
    );
    let sentence = long("100000000", true);
    let whose = "100 % full while they crossed it, 20 % of that with other traffic";
    assert!(
        sentence.ends_with(&format!("{slowest} {whose}")),
        "{sentence}"
    );
    assert!(
        !long("", false).contains("slowest link"),
        "an unknown rate is none"
    );
}
