//! What the kernel said of connections that carry much data (`TCP_INFO`), until the account of their transfer is written. Of each
//! connection a bounded number of samples is kept: where there are more, every second one goes, so that the rest are twice as far apart.

use stackline_events::EventEmitter;
use stackline_monitor::observe::transfer_sampler::{TcpInfoCounters, TransferSample};
use std::collections::HashMap;
use std::net::SocketAddr;

/// The most samples of a connection.
const MOST_SAMPLES: usize = 64;
/// The most connections.
const MOST_CONNECTIONS: usize = 4096;
/// A connection that was not sampled for so long has ended, and its transfer would have been taken, ns.
const FORGOTTEN_NS: u64 = 120_000_000_000;

/// One end of a connection: the host's number, its address there, and the other end's.
pub(crate) type SampledEnd = (usize, SocketAddr, SocketAddr);

/// The samples of all connections.
#[derive(Debug, Default)]
pub(crate) struct TransferCounters(HashMap<SampledEnd, SampledTransfer>);

/// The samples of one end of a connection.
#[derive(Debug)]
pub(crate) struct SampledTransfer {
    /// The kernel's identifier of its socket: another one has new counters.
    socket: u64,
    /// When each was taken (ns), and what it says.
    samples: Vec<(u64, TransferSample)>,
    /// Every how many samples one is kept.
    stride: u32,
    /// How many samples came since the last one that is kept for good.
    since_kept: u32,
}

impl TransferCounters {
    /// Adds a sample of a host's connection.
    pub(crate) fn add(&mut self, host: usize, at_ns: u64, sample: TransferSample) {
        let end = (host, sample.local, sample.remote);
        if self.0.len() >= MOST_CONNECTIONS && !self.0.contains_key(&end) {
            self.0.retain(|_, one| one.last_ns() + FORGOTTEN_NS > at_ns);
            if self.0.len() >= MOST_CONNECTIONS {
                return;
            }
        }
        let one = self
            .0
            .entry(end)
            .or_insert_with(|| SampledTransfer::new(sample.socket));
        if one.socket != sample.socket {
            *one = SampledTransfer::new(sample.socket);
        }
        one.add(at_ns, sample);
    }

    /// Takes the samples of an end of a connection that has ended.
    pub(crate) fn take(&mut self, end: SampledEnd) -> Option<SampledTransfer> {
        let (host, local, remote) = end;
        let canonical =
            |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
        self.0.remove(&(host, canonical(local), canonical(remote)))
    }
}

impl SampledTransfer {
    const fn new(socket: u64) -> Self {
        Self {
            socket,
            samples: Vec::new(),
            stride: 1,
            since_kept: 0,
        }
    }

    fn last_ns(&self) -> u64 {
        self.samples.last().map_or(0, |(at_ns, _)| *at_ns)
    }

    fn add(&mut self, at_ns: u64, sample: TransferSample) {
        // Counters only grow, so the newest sample replaces one that is not kept for good and nothing is missing from their sums.
        if self.since_kept > 0 {
            self.samples.pop();
        }
        self.samples.push((at_ns, sample));
        self.since_kept = (self.since_kept + 1) % self.stride;
        if self.samples.len() > MOST_SAMPLES {
            // The newest stays: the counters until then are its own.
            let (count, mut number) = (self.samples.len(), 0_usize);
            self.samples.retain(|_| {
                number += 1;
                (count - number).is_multiple_of(2)
            });
            self.stride = self.stride.saturating_mul(2);
            self.since_kept = 0;
        }
    }

    /// Emits an event of each time between two samples; the first time begins with the connection at `began_ns`, or with the first
    /// sample if the connection is older than its observation. `stream` is that of the data that this end sends.
    pub(crate) fn emit(
        &self,
        host: &str,
        stream: i64,
        began_ns: Option<u64>,
        emit: &mut EventEmitter<'_>,
    ) {
        let mut before = began_ns.map(|began_ns| (began_ns, TcpInfoCounters::default()));
        for (at_ns, sample) in &self.samples {
            let Some((earlier_ns, earlier)) = before.replace((*at_ns, sample.counters)) else {
                continue;
            };
            let (local, remote) = (sample.local.to_string(), sample.remote.to_string());
            let mut row = sample
                .counters
                .row_since(&earlier, at_ns.saturating_sub(earlier_ns));
            row.stream = stream.into();
            row.receive_queue_bytes = sample.receive_queue_bytes.into();
            stackline_events::catalogue::rows::TcpInfo {
                local: local.as_str().into(),
                remote: remote.as_str().into(),
                ..row
            }
            .emit_on(host, *at_ns, emit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_events::EventValue;

    fn sample(socket: u64, sndbuf_limited_ns: u64) -> TransferSample {
        TransferSample {
            local: "10.0.0.1:1".parse().unwrap(),
            remote: "10.0.0.2:2".parse().unwrap(),
            socket,
            receive_queue_bytes: 0,
            counters: TcpInfoCounters {
                sndbuf_limited_ns: Some(sndbuf_limited_ns),
                ..TcpInfoCounters::default()
            },
        }
    }

    /// The times and lengths of the events, and the sum of their times at the send buffer.
    fn emitted(counters: &mut TransferCounters) -> (Vec<(u64, u64)>, u64) {
        let end = (0, sample(1, 0).local, sample(1, 0).remote);
        let (mut spans, mut limited_ns) = (Vec::new(), 0);
        counters
            .take(end)
            .unwrap()
            .emit("a", 2, Some(0), &mut |event| {
                let number = |at: usize| match event.values[at] {
                    EventValue::Number(value) => u64::try_from(value).unwrap(),
                    other => panic!("{other:?}"),
                };
                spans.push((event.at_ns, number(0)));
                limited_ns += number(10);
            });
        (spans, limited_ns)
    }

    #[test]
    fn many_samples_become_few_that_cover_the_same_time() {
        for count in [1, 2, 64, 65, 100, 1_000, 4_321] {
            let mut counters = TransferCounters::default();
            (1..=count).for_each(|at| counters.add(0, at * 10, sample(1, at * 3)));
            let (spans, limited_ns) = emitted(&mut counters);
            assert!(spans.len() <= MOST_SAMPLES, "{count}: {}", spans.len());
            assert_eq!(spans.last().unwrap().0, count * 10);
            assert_eq!(
                spans.iter().map(|(_, length)| length).sum::<u64>(),
                count * 10
            );
            assert_eq!(limited_ns, count * 3);
        }
    }

    #[test]
    fn a_new_socket_of_the_same_addresses_begins_anew() {
        let mut counters = TransferCounters::default();
        counters.add(0, 10, sample(1, 500));
        counters.add(0, 20, sample(2, 7));
        assert_eq!(emitted(&mut counters), (vec![(20, 20)], 7));
    }
}
