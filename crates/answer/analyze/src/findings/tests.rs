//! Each kind where it is, and where it nearly is.

mod calls;
mod ends;
mod full_links;
mod lock_holders;
mod lost_data;
mod messages;
mod observed;
mod outages;
mod packet_losses;
mod proxy_logs;
mod recording_errors;
mod reordering;
mod request_account;
mod request_classes;
mod request_failures;
mod request_network;
mod request_views;
mod requests;
mod session;
mod shares;
mod waits;
mod windows_and_buffers;

use super::*;
use crate::lifelines::Lifelines;
use crate::testing::{over, plan};
use stackline_core::distribution::Distribution;
use stackline_core::network::{LinkRate, Network, RateSchedule};
use stackline_core::plan::{MeasurementPart, Plan};
use stackline_core::procedure::{DelayArgument, OperationCall, ProcedureStep};
use stackline_core::run_record::{
    Histogram, HostUsage, NetworkRecord, PortRecord, RunRecord, SenderLimitTimes, SideRecord,
    TransportRecord,
};
use stackline_core::time::Duration;
use stackline_core::trace_index::{HostTrace, Index, RunFlow, RunSpan};
use stackline_events::unit_ids::{EventStreamDirection, stream};
use stackline_events::{EventTable, TextEvent};

/// A run directory in memory.
struct Given {
    plan: Plan,
    records: Vec<RunRecord>,
    index: Index,
    events: EventTable,
    lifelines: Lifelines,
}

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

/// That part from each of so many senders, in parallel over one link.
fn plan_of(
    mbit_s: f64,
    one_way_ms: u64,
    queue_bytes: Option<u64>,
    senders: usize,
    part: &str,
) -> Plan {
    let of_each = |text: &dyn Fn(usize) -> String| (0..senders).map(text).collect::<String>();
    let hosts = of_each(&|at| format!("a{at}, "));
    let links = of_each(&|at| format!("link a{at} - s 1 Gbit/s 0 ms; "));
    let parts: Vec<String> = (0..senders)
        .map(|at| format!("from a{at} to b {part}"))
        .collect();
    let queue = queue_bytes.map_or_else(String::new, |bytes| format!(" queue {bytes} B"));
    plan(&format!(
        "network n {{ host {hosts}b; switch s; {links}link s - b {mbit_s} Mbit/s {one_way_ms} ms{queue}; }}
         1 parallel across n in simulated: {}",
        parts.join(" | ")
    ))
}

fn network(mbit_s: f64, one_way_ms: u64, senders: usize) -> Network {
    plan_of(mbit_s, one_way_ms, None, senders, "bulk_put 1*1")
        .networks
        .remove(0)
}

/// Transfers of so many bytes in so many seconds over a link of 100 Mbit/s and a round trip of 20 ms.
fn bulk(streams: usize, seconds: f64, bytes: u64, queue: Option<u64>) -> Given {
    let port = PortRecord {
        name: "s>b".into(),
        packets: streams as u64 * bytes / 1448,
        bytes: streams as u64 * bytes / 1448 * 1500,
        ..PortRecord::default()
    };
    let transport = TransportRecord {
        rtt_s: 0.02,
        cwnd_segments: Some(10),
        mss_bytes: 1448,
        busy_s: Some(0.0),
        receive_window_limited_s: Some(0.0),
        send_buffer_limited_s: Some(0.0),
        ..TransportRecord::default()
    };
    let record = |at: usize| RunRecord {
        part: at,
        replicas: 1,
        elapsed_ns: (seconds * 1e9) as u64,
        span_ns: (seconds * 1e9) as u64,
        initiator: SideRecord {
            sent_bytes: bytes,
            transport: Some((
                transport,
                TransportRecord {
                    busy_s: Some(seconds),
                    ..transport
                },
            )),
            settings: [
                ("receive_buffer", "102679 B"),
                ("send_buffer", "65536 B"),
                ("nodelay", "off"),
            ]
            .map(|(name, value)| (name.into(), value.into()))
            .into(),
            ..SideRecord::default()
        },
        responder: SideRecord {
            received_bytes: bytes,
            settings: [("receive_buffer".into(), "102679 B".into())].into(),
            ..SideRecord::default()
        },
        network: Some(NetworkRecord {
            name: "n".into(),
            ports: vec![port.clone()],
            emulation: None,
        }),
        ..RunRecord::default()
    };
    let flow = |at: usize| RunFlow {
        id: at as u32,
        part: at,
        hosts: (format!("a{at}"), "b".into()),
        stack: "tcp".into(),
        ..RunFlow::default()
    };
    let index = Index {
        runs: vec![RunSpan {
            to_ns: (seconds * 1e9) as u64,
            ..RunSpan::default()
        }],
        flows: (0..streams).map(flow).collect(),
        ..Index::default()
    };
    Given {
        plan: plan_of(100.0, 10, queue, streams, "bulk_put 16 KiB*100"),
        records: (0..streams).map(record).collect(),
        index,
        events: EventTable::default(),
        lifelines: Lifelines::default(),
    }
}

/// So many calls that take these ms each, over a round trip of 20 ms.
fn calls(times: &[(u64, u64)]) -> Given {
    let mut given = bulk(1, 1.0, 1, None);
    given.plan = plan_of(100.0, 10, None, 1, "rr 16 KiB, 64*100");
    let n: u64 = times.iter().map(|(_, n)| n).sum();
    let counts: Vec<(u64, u64)> = times.iter().map(|(ms, n)| (ms * MS, *n)).collect();
    let sum: u64 = counts.iter().map(|(value, n)| value * n).sum();
    let record = &mut given.records[0];
    record.calls = Histogram {
        min_max: Some((counts[0].0, counts[counts.len() - 1].0)),
        counts,
        sum,
        squares: 0.0,
    };
    (record.elapsed_ns, record.span_ns) = (sum, sum);
    record.initiator.sent_bytes = 64 * n;
    record.responder.received_bytes = 64 * n;
    given
}

impl Given {
    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn part(&mut self) -> &mut MeasurementPart {
        &mut self.plan.measurements[0].parts[0]
    }

    /// With a pace of its initiators.
    fn paced(self) -> Self {
        self.with(|given| {
            let pace = OperationCall::Pace(DelayArgument::Drawn(Distribution::Constant(0.02)));
            given
                .part()
                .procedure
                .initiator
                .insert(0, ProcedureStep::Call(pace));
        })
    }

    fn port(&mut self) -> impl Iterator<Item = &mut PortRecord> {
        self.records
            .iter_mut()
            .map(|record| &mut record.network.as_mut().unwrap().ports[0])
    }

    fn transport(&mut self, change: impl Fn(&mut TransportRecord)) {
        self.records
            .iter_mut()
            .for_each(|record| change(&mut record.initiator.transport.as_mut().unwrap().1));
    }

    /// Adds an event of a host at a time in us.
    fn event(&mut self, us: u64, host: &str, keyword: &str, data: &str) {
        let (seconds, nanos) = (us / 1_000_000, us % 1_000_000 * 1000);
        let line = format!("{keyword}; {host}; {seconds}; {nanos}; {data}");
        self.events.push_event(&TextEvent::parse(&line).unwrap());
    }

    fn input(&self) -> AnalysisInput<'_> {
        AnalysisInput {
            plan: &self.plan,
            records: &self.records,
            index: &self.index,
            events: &self.events,
            lifelines: &self.lifelines,
        }
    }

    fn found(&self) -> Vec<Finding> {
        diagnose(&self.input())
    }

    fn all(&self) -> Vec<&'static str> {
        self.found().iter().map(|finding| finding.kind).collect()
    }

    /// Causes: what is named.
    fn kinds(&self) -> Vec<&'static str> {
        self.all()
            .into_iter()
            .filter(|kind| !matches!(*kind, "healthy" | "unexplained"))
            .collect()
    }
}

/// No cause.
const NOTHING: [&str; 0] = [];

/// 10 s of a transfer that uses this share of its link.
fn used(share: f64) -> Given {
    bulk(
        1,
        10.0,
        (share * 1e8 / 8.0 * 10.0 * 1448.0 / 1500.0) as u64,
        Some(20_000),
    )
}
