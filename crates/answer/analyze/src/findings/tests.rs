//! Each kind where it is, and where it nearly is.

mod calls;
mod ends;
mod lost_data;
mod observed;
mod outages;
mod reordering;
mod request_account;
mod request_classes;
mod request_failures;
mod request_network;
mod request_views;
mod requests;
mod session;
mod waits;

use super::*;
use crate::lifelines::Lifelines;
use crate::testing::{over, plan};
use calls::paced;
use ends::writer;
use stackline_core::distribution::Distribution;
use stackline_core::network::{LinkRate, Network, RateSchedule};
use stackline_core::plan::{MeasurementPart, Plan, World};
use stackline_core::procedure::{DelayArgument, OperationCall, ProcedureStep};
use stackline_core::run_record::{
    Histogram, HostUsage, NetworkRecord, PortRecord, RunRecord, SenderLimitTimes, SideRecord,
    TransportRecord,
};
use stackline_core::stack::OptionValue;
use stackline_core::time::Duration;
use stackline_core::trace_index::{ClockCorrection, HostTrace, Index, RunFlow, RunSpan};
use stackline_events::unit_ids::{EventStreamDirection, stream};
use stackline_events::{EventTable, TextEvent};
use waits::{own, stalls};

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

#[test]
fn only_a_full_link_limits() {
    assert_eq!(used(0.95).kinds(), ["network_limited"]);
    assert_eq!(used(0.8).kinds(), NOTHING);
}

#[test]
fn of_equally_full_links_the_first_is_named_and_all_are_to_be_faster() {
    let equal = |mbit_s: f64| {
        used(0.95).with(|given| {
            let first = given.plan.networks[0]
                .links
                .iter_mut()
                .find(|link| link.ends.0 == "a0")
                .unwrap();
            first.rate = LinkRate::Constant(mbit_s * 1e6);
            let ports = &mut given.records[0].network.as_mut().unwrap().ports;
            ports.push(PortRecord {
                name: "a0>s".into(),
                ..ports[0].clone()
            });
        })
    };
    let found = equal(100.0).found().remove(0);
    assert!(
        found.sentence.starts_with("the link a0>s is full")
            && found.sentence.ends_with("; equally full: s>b"),
        "{found:?}"
    );
    assert!(
        found.tries[0]
            .what
            .starts_with("faster links a0>s, s>b (all of them)"),
        "{found:?}"
    );
    let found = equal(120.0).found().remove(0);
    assert!(
        found.sentence.starts_with("the link s>b is full")
            && !found.sentence.contains("equally full"),
        "{found:?}"
    );
}

#[test]
fn a_rate_that_changes_is_judged_by_what_it_was_during_the_run() {
    // 100 Mbit/s for 9 s and 10 Mbit/s from then on: 91 Mbit/s over 10 s.
    let steps = vec![(Duration::ZERO, 1e8), (Duration::from_seconds(9.0), 1e7)];
    let varying = |share: f64| {
        used(share).with(|given| {
            let link = given.plan.networks[0]
                .links
                .iter_mut()
                .find(|link| link.ends.1 == "b")
                .unwrap();
            link.rate = LinkRate::Schedule(RateSchedule {
                steps: steps.clone(),
                period: None,
            });
        })
    };
    assert!(
        !varying(0.5).kinds().contains(&"network_limited"),
        "{:?}",
        varying(0.5).kinds()
    );
    let found = varying(0.9).found().remove(0);
    assert!(
        found
            .sentence
            .contains("99 % of 91.0 Mbit/s on average is used"),
        "{found:?}"
    );
}

#[test]
fn healthy_runs_leave_no_time_unexplained() {
    assert_eq!(used(0.8).all(), ["unexplained"]);
    let sentence = &used(0.8).found()[0].sentence;
    assert!(
        sentence.starts_with("20 % of the time is unexplained"),
        "{sentence}"
    );
    let seen = &used(0.8).found()[0].evidence[0].what;
    assert!(seen.ends_with("; other findings explain 0 %"), "{seen}");
    let paced = used(0.8).paced();
    assert_eq!(paced.all(), ["healthy"]);
    assert_eq!(calls(&[(20, 4)]).all(), ["healthy"]);
    // However little the cause takes of the time, what is not known comes behind it.
    let small = used(0.2).with(|given| given.transport(|t| t.send_buffer_limited_s = Some(0.7)));
    assert_eq!(small.all(), ["socket_buffer", "unexplained"]);
    assert!(small.found()[1].rank() > small.found()[0].rank());
    let all = used(0.2).with(|given| given.transport(|t| t.send_buffer_limited_s = Some(7.8)));
    assert_eq!(all.all(), ["socket_buffer"]);
}

#[test]
fn one_loss_in_a_long_time_is_no_link_loss() {
    let lossy = |n: u64| {
        used(0.4).with(|given| {
            given
                .port()
                .for_each(|port| _ = port.drops.insert("lost on the link".into(), n))
        })
    };
    assert_eq!(lossy(60).kinds(), ["link_loss"]);
    let long = lossy(1).with(|given| {
        given.records[0].elapsed_ns = 200 * SECOND;
        given.records[0].span_ns = 200 * SECOND;
        given.transport(|t| t.busy_s = Some(200.0));
    });
    assert_eq!(long.kinds(), NOTHING);
}

#[test]
fn an_opening_window_is_not_the_cost_of_a_loss() {
    // 1 MB over 100 Mbit/s and 80 ms: the window's growth takes most of it, a loss or not.
    let given = |lost: u64| {
        bulk(1, 0.62, 1_000_000, None).with(|given| {
            given.plan.networks = vec![network(100.0, 40, 1)];
            given
                .port()
                .for_each(|port| _ = port.drops.insert("lost on the link".into(), lost));
        })
    };
    let found = given(1).found();
    assert_eq!(found[0].kind, "slow_start");
    let cost: f64 = found
        .iter()
        .filter(|finding| finding.kind == "link_loss")
        .map(|finding| finding.share)
        .sum();
    assert!(cost < 0.3, "{cost}");
    assert_eq!(given(0).found()[0].kind, "slow_start");
}

#[test]
fn a_buffer_below_a_packet_for_each_stream_is_undersized() {
    let drops = |streams: usize, queue: u64| {
        bulk(streams, 10.0, 50_000_000 / streams as u64, Some(queue)).with(|given| {
            given
                .port()
                .for_each(|port| _ = port.drops.insert("queue full".into(), 200))
        })
    };
    let fixed = drops(1, 20_000);
    assert_eq!(fixed.kinds(), ["queue_drop"]);
    assert!(
        fixed.found()[0]
            .tries
            .iter()
            .any(|advice| advice.what.contains("`pace`")),
        "{:?}",
        fixed.found()
    );
    // No figure is made of the mean of a rate that changes.
    let varying = drops(1, 20_000).with(|given| {
        let link = given.plan.networks[0]
            .links
            .iter_mut()
            .find(|link| link.ends.1 == "b")
            .unwrap();
        link.rate = LinkRate::Schedule(RateSchedule {
            steps: vec![(Duration::ZERO, 1e8)],
            period: None,
        });
    });
    assert_eq!(
        varying.found()[0].tries[0].what,
        "a longer queue before s>b, whose rate varies"
    );
    assert_eq!(drops(4, 5_999).kinds(), ["undersized_buffer"]);
    assert_eq!(drops(4, 6_000).kinds(), ["queue_drop"]);
    let sentence = &drops(4, 4_500).found()[0].sentence;
    assert!(
        sentence
            .contains("it holds 4500 B, but 4 streams with packets of up to 1500 B need 6000 B"),
        "{sentence}"
    );
}

#[test]
fn losses_at_the_same_moments_are_synchronised() {
    let drops = |apart_ms: u64| {
        bulk(3, 10.0, 16_000_000, Some(20_000)).with(|given| {
            given
                .port()
                .for_each(|port| _ = port.drops.insert("queue full".into(), 9));
            for moment in 0..3 {
                for flow in 0..3 {
                    let at = 1_000_000 + moment * 3_000_000 + u64::from(flow) * apart_ms * 1000;
                    let data = format!(
                        "; {}; {}; 1448; s>b; a>b; 0; 1; 1; 1500; queue full",
                        stream(flow, EventStreamDirection::There),
                        moment * 1448
                    );
                    given.event(at, "s", "NET_DROP", &data);
                }
            }
        })
    };
    assert_eq!(drops(1).kinds(), ["synchronised_loss"]);
    assert_eq!(drops(900).kinds(), ["queue_drop"]);
}

#[test]
fn a_small_window_limits_when_it_is_waited_for() {
    let waits = |share: f64, buffer: &str, bytes: u64| {
        bulk(1, 10.0, bytes, None).with(|given| {
            given.transport(|t| t.receive_window_limited_s = Some(10.0 * share));
            given.records[0]
                .responder
                .settings
                .insert("receive_buffer".into(), buffer.into());
        })
    };
    assert_eq!(
        waits(0.9, "102679 B", 30_000_000).kinds(),
        ["window_below_bdp"]
    );
    assert_eq!(waits(0.04, "102679 B", 30_000_000).kinds(), NOTHING);
    // Large enough for the path: then its reader holds it shut.
    assert_eq!(
        waits(0.9, "1000000 B", 30_000_000).kinds(),
        ["receiver_limited"]
    );
}

#[test]
fn a_buffer_that_a_kernel_would_cut_is_not_advised_without_its_limit() {
    let advice = |world, asked: Option<u64>, memory: &str| {
        let given = bulk(1, 10.0, 30_000_000, None).with(|given| {
            given.transport(|t| t.receive_window_limited_s = Some(9.0));
            given.plan.measurements[0].world = world;
            if let Some(bytes) = asked {
                let options = &mut given.part().stack.options;
                options.insert("receive_buffer".into(), OptionValue::Number(bytes));
            }
            let settings = &mut given.records[0].responder.settings;
            settings.insert("receive_buffer".into(), memory.into());
        });
        given.found().remove(0).tries[0].text()
    };
    let of_cut = advice(World::Emulated, Some(1 << 20), "102679 B");
    assert!(
        of_cut.contains("with sysctl net.core.rmem_max, which limited it to 51339 B, raised to "),
        "{of_cut}"
    );
    let unknown = advice(World::Emulated, None, "102679 B");
    assert!(
        unknown.contains(", unless sysctl net.core.rmem_max limits it to less"),
        "{unknown}"
    );
    assert!(!advice(World::Simulated, None, "102679 B").contains("rmem_max"));
}

#[test]
fn within_one_machine_a_closed_window_is_the_readers() {
    let live = |rtt_s: f64, bytes: u64| {
        bulk(1, 10.0, bytes, None).with(|given| {
            given.plan.networks.clear();
            given.plan.measurements[0].across = None;
            given.transport(|t| (t.receive_window_limited_s, t.rtt_s) = (Some(5.0), rtt_s));
        })
    };
    assert_eq!(live(0.03, 12_000_000).kinds(), ["window_below_bdp"]);
    // At 5.5 Gbit/s of the 35 that the window lets go, and at a tenth of what one lets go over a path, its reader is behind.
    assert_eq!(live(15e-6, 6_875_000_000).kinds(), ["receiver_limited"]);
    assert_eq!(live(0.03, 1_000_000).kinds(), ["receiver_limited"]);
}

#[test]
fn one_packet_at_a_time_is_a_window() {
    let waits = |name: &str, bytes: u64| {
        bulk(1, 10.0, bytes, None).with(|given| {
            given.part().stack = over(name, [("packet".to_owned(), 1024)]);
            given.records[0].initiator.transport = None;
        })
    };
    assert_eq!(waits("saw", 512_000).kinds(), ["window_below_bdp"]);
    // At ten times the rate it is something else.
    assert_eq!(waits("saw", 51_200).kinds(), NOTHING);
    // A few calls before a file do not hide what limits the file.
    let after_calls = waits("saw", 512_000).with(|given| {
        given.records[0].calls = Histogram {
            counts: vec![(200 * MS, 3)],
            sum: 600 * MS,
            squares: 0.0,
            min_max: Some((200 * MS, 200 * MS)),
        };
    });
    assert_eq!(after_calls.kinds(), ["window_below_bdp"]);
}

#[test]
fn a_full_send_buffer_limits() {
    let waits = |share: f64| {
        bulk(1, 10.0, 30_000_000, None)
            .with(|given| given.transport(|t| t.send_buffer_limited_s = Some(10.0 * share)))
    };
    assert_eq!(waits(0.5).kinds(), ["socket_buffer"]);
    assert_eq!(waits(0.04).kinds(), NOTHING);
    // A buffer that is all on its way over a full path does not limit it.
    let full = used(0.97).with(|given| given.transport(|t| t.send_buffer_limited_s = Some(5.0)));
    assert_eq!(full.kinds(), ["network_limited"]);
}

#[test]
fn a_larger_buffer_is_requested_by_the_option_of_the_stack() {
    let tried = |stack: &str, change: fn(&mut TransportRecord)| {
        let given = bulk(1, 10.0, 30_000_000, None).with(|given| {
            given.part().stack = over(stack, []);
            given.transport(change);
        });
        given.found()[0].tries[0].what.clone()
    };
    let window = |stack| tried(stack, |t| t.receive_window_limited_s = Some(9.0));
    let buffer = |stack| tried(stack, |t| t.send_buffer_limited_s = Some(9.0));
    for (sentence, option) in [
        (window("quic"), "quic(receive_buffer = 5"),
        (buffer("quic"), "quic(send_buffer = 5"),
    ] {
        assert!(
            sentence.contains(option) && !sentence.contains("tcp"),
            "{sentence}"
        );
    }
    for (sentence, sysctl) in [(window("tcp"), "tcp_rmem"), (buffer("tcp"), "tcp_wmem")] {
        assert!(
            sentence.contains("`tcp(") && sentence.contains(sysctl),
            "{sentence}"
        );
    }
}

/// 30 MB in 10 s over a stack of granted packets, which has neither a congestion window nor a send buffer.
fn granted(options: &[(&str, u64)], bytes: u64) -> Given {
    bulk(1, 10.0, bytes, None).with(|given| {
        given.part().stack = over(
            "blast",
            options
                .iter()
                .map(|(name, value)| ((*name).to_owned(), *value)),
        );
        given.transport(|t| (t.cwnd_segments, t.send_buffer_limited_s) = (None, None));
        given.records[0].responder.settings.clear();
    })
}

#[test]
fn a_grant_of_the_receiver_is_a_window() {
    let waits = |buffer: u64| {
        granted(&[("buffer", buffer)], 30_000_000)
            .with(|given| given.transport(|t| t.receive_window_limited_s = Some(9.0)))
    };
    let found = waits(65_536).found();
    assert_eq!(found[0].kind, "window_below_bdp");
    assert!(
        found[0].tries[0].what.contains("`blast(buffer = 5"),
        "{}",
        found[0].tries[0].what
    );
    assert!(!waits(1_000_000).kinds().contains(&"window_below_bdp"));
}

#[test]
fn a_rate_in_the_specification_limits_the_sender() {
    let rate = 24_000_000;
    assert_eq!(
        granted(&[("rate", rate)], 30_000_000).kinds(),
        ["sender_limited"]
    );
    // Far below its rate something else is in the way; beyond what the link takes the link is.
    assert_eq!(granted(&[("rate", rate)], 15_000_000).kinds(), NOTHING);
    let full = (0.97 * 1e8 / 8.0 * 10.0 * 1448.0 / 1500.0) as u64;
    assert_eq!(
        granted(&[("rate", 8 * full / 10)], full).kinds(),
        ["network_limited"]
    );
}

#[test]
fn the_share_of_one_of_several_parts_names_the_part() {
    let given = bulk(3, 10.0, 10_000_000, None).with(|given| {
        given.plan.measurements[0].parts[1].text = "bulk_put 1 KiB".into();
        given.records[1]
            .initiator
            .transport
            .as_mut()
            .unwrap()
            .1
            .send_buffer_limited_s = Some(8.2);
    });
    let finding = given
        .found()
        .into_iter()
        .find(|finding| finding.kind == "socket_buffer")
        .unwrap();
    assert!(
        finding
            .sentence
            .contains("82 % of the time of `bulk_put 1 KiB`"),
        "{}",
        finding.sentence
    );
    assert!(
        finding.evidence[0].what.contains("82 %"),
        "{}",
        finding.evidence[0].what
    );
    assert!(
        (finding.share - 0.82 / 3.0).abs() < 1e-6,
        "{}",
        finding.share
    );
}

#[test]
fn stalls_within_the_clocks_error_are_not_explained() {
    let blurred = stalls(400, own, 0, "").with(|given| given.lifelines.clock_error_ns = SECOND);
    assert_eq!(blurred.kinds(), NOTHING);
}

#[test]
fn steps_and_large_errors_of_clocks_are_trouble() {
    let clock = |clock: ClockCorrection| {
        used(0.5).with(|given| {
            drop(given.index.hosts.insert(
                "b".into(),
                HostTrace {
                    clock,
                    ..HostTrace::default()
                },
            ))
        })
    };
    let kinds = clock(ClockCorrection {
        steps: vec![(SECOND, 5_000_000)],
        ..ClockCorrection::default()
    })
    .kinds();
    assert_eq!(kinds, ["clock_trouble"]);
    assert_eq!(
        clock(ClockCorrection {
            error_ns: Some(50 * MS),
            ..ClockCorrection::default()
        })
        .kinds(),
        ["clock_trouble"]
    );
    assert_eq!(
        clock(ClockCorrection {
            error_ns: Some(50_000),
            offset_ns: 3_000,
            ..ClockCorrection::default()
        })
        .kinds(),
        NOTHING
    );
}

#[test]
fn a_clock_that_is_corrected_is_noted_at_most() {
    let clock = |given: Given, clock: ClockCorrection| {
        given.with(|given| {
            drop(given.index.hosts.insert(
                "b".into(),
                HostTrace {
                    clock,
                    ..HostTrace::default()
                },
            ))
        })
    };
    let ahead = || ClockCorrection {
        offset_ns: 80_000_000,
        error_ns: Some(50_000),
        ..ClockCorrection::default()
    };
    let fast = || ClockCorrection {
        drift_ppm: 300.0,
        error_ns: Some(50_000),
        ..ClockCorrection::default()
    };
    assert_eq!(
        clock(calls(&[(20, 4)]), ahead()).all(),
        ["healthy", "clock_trouble"]
    );
    assert_eq!(
        clock(calls(&[(20, 4)]), fast()).all(),
        ["healthy", "clock_trouble"]
    );
    // What one clock shows comes before what two cannot.
    let blurred = || ClockCorrection {
        error_ns: Some(50 * MS),
        ..ClockCorrection::default()
    };
    let found = clock(writer(1, 7), blurred());
    assert_eq!(found.kinds(), ["clock_trouble"]);
    let found = clock(writer(5, 1), blurred()).found();
    assert_eq!(
        [found[0].kind, found[1].kind],
        ["application_limited", "clock_trouble"]
    );
    assert_eq!(
        found[1].evidence[0].what,
        "error 50.0 ms, half a round trip 10.0 ms"
    );
}

#[test]
fn many_lost_events_are_a_finding() {
    let lost = |lost: u64| {
        writer(0, 10).with(|given| {
            drop(given.index.hosts.insert(
                "s".into(),
                HostTrace {
                    lost,
                    ..HostTrace::default()
                },
            ))
        })
    };
    assert_eq!(lost(1000).kinds(), ["lost_events"]);
    assert_eq!(lost(10).kinds(), NOTHING);
}

#[test]
fn findings_are_ranked_by_share_times_confidence() {
    let given = bulk(1, 10.0, 30_000_000, None).with(|given| {
        given.transport(|t| {
            t.receive_window_limited_s = Some(2.0);
            t.send_buffer_limited_s = Some(6.0);
        });
    });
    assert_eq!(given.kinds(), ["socket_buffer", "window_below_bdp"]);
    let ranks: Vec<f64> = given.found().iter().map(Finding::rank).collect();
    assert!(ranks[0] >= ranks[1]);
}

#[test]
fn huge_figures_do_not_panic() {
    let most = i64::MAX;
    let hostile = writer(5, 1).with(|given| {
        given.lifelines.clock_error_ns = u64::MAX;
        for keyword in [
            "TCP_RETRANSMIT",
            "NET_DROP",
            "PROCESS_PAUSED",
            "EVENTS_LOST",
            "APP_RECEIVED",
            "TCP_SEGMENT",
        ] {
            for (first, second) in [(most, most), (i64::MIN, most), (-1, i64::MIN)] {
                given.event(
                    u64::MAX / 1000 - 1,
                    "b",
                    keyword,
                    &format!("{first}; {second}; {first}; {second}; s>b"),
                );
                given.event(0, "a0", keyword, &format!("{second}; 0; {first}; {second}"));
            }
        }
        let trace = HostTrace {
            lost: u64::MAX,
            recorded: u64::MAX,
            ..HostTrace::default()
        };
        given.index.hosts.insert("a0".into(), trace.clone());
        given.index.hosts.insert("b".into(), trace);
    });
    assert!(!hostile.found().is_empty());
}

/// Streams beside one another that use a tenth of the link together; so many of them wait for their send buffer.
fn waiting(streams: usize, wait: usize) -> Given {
    bulk(streams, 10.0, 12_500_000 / streams as u64, None).with(|given| {
        for record in given.records.iter_mut().take(wait) {
            record
                .initiator
                .transport
                .as_mut()
                .unwrap()
                .1
                .send_buffer_limited_s = Some(9.0);
        }
    })
}

#[test]
fn a_cause_in_every_stream_has_share_one() {
    for streams in [1, 2, 12, 40] {
        let found = waiting(streams, streams).found();
        assert_eq!(
            found.iter().map(|finding| finding.kind).collect::<Vec<_>>(),
            ["socket_buffer"],
            "{streams}"
        );
        assert!(
            (found[0].share - 0.9).abs() < 1e-6,
            "{streams}: {}",
            found[0].share
        );
    }
    let sentence = &waiting(3, 3).found()[0].sentence;
    let together = "; the same holds for other parts (2 of 2: a1 to b, a2 to b): 90 % of the total time of all parts";
    assert!(sentence.ends_with(together), "{sentence}");
}

#[test]
fn a_cause_in_one_stream_has_the_share_of_its_stream() {
    let found = waiting(4, 1).found();
    assert_eq!(
        [found[0].kind, found[1].kind],
        ["socket_buffer", "unexplained"]
    );
    assert!(
        (found[0].share - 0.9 / 4.0).abs() < 1e-6,
        "{}",
        found[0].share
    );
    assert!(
        !found[0].sentence.contains("beside it"),
        "{}",
        found[0].sentence
    );
}
