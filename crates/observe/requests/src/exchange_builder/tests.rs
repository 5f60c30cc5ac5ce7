//! Requests over a path whose times are known.

mod any_packets;
mod connection_origins;
mod many_requests;
mod name_lookups;
mod phases;
mod shared_connection;
mod unanswered;

use super::*;
use crate::time_account::{ExchangePhase, account_time};

pub(super) const MS: u64 = 1_000_000;
const CLIENT: &str = "10.0.0.1:50000";
const SERVER: &str = "10.0.0.2:80";

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// Two hosts, 5 ms apart.
pub(super) struct Path {
    pub(super) builder: Builder,
    /// Of each direction, what was sent.
    sent: [u64; 2],
    acked: [u64; 2],
    window: u16,
}

impl Path {
    pub(super) fn new() -> Self {
        let host = |name: &str, address: &str| ObservedHost {
            name: name.into(),
            addresses: vec![address.parse().unwrap()],
        };
        let builder = Builder::new(vec![host("a", "10.0.0.1"), host("b", "10.0.0.2")]);
        Self {
            builder,
            sent: [0; 2],
            acked: [0; 2],
            window: 60_000,
        }
    }

    fn segment(&self, direction: usize, from: u64, bytes: u64, flags: &str) -> DissectedSegment {
        let ends = [
            (address(CLIENT), address(SERVER)),
            (address(SERVER), address(CLIENT)),
        ][direction];
        let syn = flags.contains('S');
        DissectedSegment {
            ends,
            // An end has a sequence number too.
            sequence: if syn {
                999
            } else {
                1000 + from as u32 + u32::from(flags.contains('R'))
            },
            bytes,
            syn,
            fin: flags.contains('F'),
            reset: flags.contains('R'),
            acknowledged: (!syn || direction == 1).then(|| 1000 + self.acked[direction] as u32),
            window: self.window,
            selectively_acknowledged: None,
            window_scale: syn.then_some(0),
            largest_segment: None,
            ttl: 64,
            length: 40 + bytes,
        }
    }

    /// A segment leaves at that moment and arrives 5 ms later, unless it is lost.
    pub(super) fn send(&mut self, at_ms: u64, direction: usize, data: &[u8], flags: &str) {
        let from = self.sent[direction];
        self.sent[direction] += data.len() as u64;
        self.pass(at_ms, direction, from, data, flags);
    }

    fn pass(&mut self, at_ms: u64, direction: usize, from: u64, data: &[u8], flags: &str) {
        let segment = self.segment(direction, from, data.len() as u64, flags);
        self.builder
            .segment(direction, true, at_ms * MS, &segment, data);
        if !flags.contains('X') {
            self.builder
                .segment(1 - direction, false, (at_ms + 5) * MS, &segment, data);
            self.acked[1 - direction] = self.acked[1 - direction].max(from + data.len() as u64);
        }
    }

    pub(super) fn connect(&mut self, at_ms: u64) {
        self.send(at_ms, 0, b"", "S");
        self.send(at_ms + 5, 1, b"", "S");
        self.send(at_ms + 10, 0, b"", "");
    }

    pub(super) fn finish(mut self) -> Vec<Exchange> {
        self.builder.finish().0
    }
}

/// The parts of an exchange's time that are there, in ms.
pub(super) fn parts(exchange: &Exchange) -> Vec<(ExchangePhase, i64)> {
    let account = account_time(exchange).unwrap();
    let all: i64 = account.iter().flatten().sum();
    let total = exchange.end_ns().unwrap() - exchange.begin_ns().unwrap();
    assert_eq!(all, total as i64, "parts add up");
    ExchangePhase::ALL
        .into_iter()
        .zip(account)
        .filter_map(|(part, ns)| Some((part, ns? / MS as i64)))
        .filter(|(_, ms)| *ms != 0)
        .collect()
}

const GET: &[u8] = b"GET /a HTTP/1.1\r\n\r\n";
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
