//! Summaries of small plans whose figures can be checked by hand.

use super::*;
use crate::testing::{self, part};
use crate::{RepeatedWork, RunMetric, half_width_share, interval_reached};
use stackline_core::catalogue::OptionValue;
use stackline_core::distribution::Distribution;
use stackline_core::plan::{Composer, DataSpec, HostPlan, StoppingCriterion, Via};
use stackline_core::procedure::{DelayArgument, OperationCall, ProcedureStep};
use stackline_core::run_record::{HostUsage, SideRecord, TransportRecord};

pub(crate) fn get(text: &str) -> MeasurementPart {
    MeasurementPart {
        text: text.into(),
        ..part("host khons; 1 from khons bulk_get 1000*10")
    }
}

fn rr() -> MeasurementPart {
    part("host khons; 1 from khons rr 1000, 1000*10")
}

pub(crate) fn plan(composer: Composer, parts: Vec<MeasurementPart>) -> Plan {
    let mut plan = testing::plan("3 warmup 1 bulk_get 1000*10");
    let measurement = &mut plan.measurements[0];
    (measurement.composer, measurement.parts) = (composer, parts);
    plan
}

/// `mb` megabytes in one second.
pub(crate) fn moved(part: usize, run: u32, mb: u64) -> RunRecord {
    let side = SideRecord {
        received_units: mb * 1000,
        received_bytes: mb * 1_000_000,
        ..SideRecord::default()
    };
    RunRecord {
        part,
        run,
        replicas: 1,
        elapsed_ns: 1_000_000_000,
        initiator: side,
        ..RunRecord::default()
    }
}

fn called(run: u32, ns: &[u64]) -> RunRecord {
    let calls = crate::statistics::tests::histogram(ns);
    RunRecord {
        run,
        replicas: 1,
        elapsed_ns: calls.sum,
        calls,
        ..RunRecord::default()
    }
}

#[test]
fn no_runs_give_a_summary_without_figures() {
    let summary = &summarise(&plan(Composer::Basic, vec![get("a")]), &[])[0];
    assert_eq!((summary.runs, summary.units, summary.main), (0, 0.0, None));
    assert!(
        summary.throughput_bit_s.is_none()
            && summary.lost.is_none()
            && summary.cpu_s_per_gb.is_none()
    );
    assert!(summary.flags.is_empty());
    assert_eq!(
        (summary.from.as_str(), summary.to.as_str()),
        ("khons", "local")
    );
}

#[test]
fn bytes_that_are_not_those_of_the_clock_give_no_throughput() {
    for note in [
        stackline_core::run_record::IN_TRANSIT,
        stackline_core::run_record::UNPLACED,
    ] {
        let mut record = moved(0, 0, 100);
        record.responder.notes.push(note.into());
        let summary = &summarise(&plan(Composer::Basic, vec![get("a")]), &[record])[0];
        assert!(
            summary.throughput_bit_s.is_none() && summary.flags.iter().any(|flag| flag == note),
            "{:?}",
            summary.flags
        );
    }
}

#[test]
fn throughput_over_runs_without_the_warmup() {
    let warmup = RunRecord {
        warmup: true,
        ..moved(0, 0, 900)
    };
    let records = [warmup, moved(0, 0, 100), moved(0, 1, 100), moved(0, 2, 106)];
    let summary = &summarise(&plan(Composer::Basic, vec![get("a")]), &records)[0];
    let throughput = summary.throughput_bit_s.unwrap();
    assert_eq!(
        (throughput.n, throughput.min, throughput.max),
        (3, 8e8, 8.48e8)
    );
    assert_eq!(
        (summary.runs, summary.units, summary.unit_bytes),
        (3, 102_000.0, Some(1000))
    );
    assert_eq!(summary.main, Some(RunMetric::Throughput));
    assert!(
        summary.response_s.is_none() && summary.flags.is_empty(),
        "{:?}",
        summary.flags
    );
}

#[test]
fn calls_are_not_throughput_even_when_their_bytes_are_counted() {
    let mut record = called(0, &[1000, 2000, 3000]);
    record.responder.received_bytes = 96;
    let summary = &summarise(&plan(Composer::Basic, vec![rr()]), &[record])[0];
    assert!(summary.throughput_bit_s.is_none());
    assert_eq!(
        (summary.main, summary.units),
        (Some(RunMetric::Response), 3.0)
    );
    assert!((summary.response_s.unwrap().mean - 2e-6).abs() < 1e-15);
    assert!((summary.rate_per_s.unwrap().mean - 500_000.0).abs() < 1e-6);
    assert_eq!(summary.flags, ["one run", "interval from calls"]);
}

#[test]
fn parallel_parts_have_an_aggregate() {
    let records = [moved(0, 0, 100), moved(1, 0, 50), moved(0, 1, 100)];
    let summaries = summarise(
        &plan(Composer::Parallel, vec![get("a"), get("b")]),
        &records,
    );
    let parts: Vec<&str> = summaries.iter().map(|s| s.part.as_str()).collect();
    assert_eq!(parts, ["a", "b", "all"]);
    // The second run was cut before part b was done: it is not a run of all parts.
    assert_eq!(
        summaries.iter().map(|s| s.runs).collect::<Vec<_>>(),
        [2, 1, 1]
    );
    assert_eq!(summaries[2].throughput_bit_s.unwrap().mean, 1.2e9);
    assert!(summaries[2].part_index.is_none());
}

#[test]
fn all_parts_together_last_as_long_as_the_longest() {
    let slow = RunRecord {
        elapsed_ns: 2_000_000_000,
        ..moved(1, 0, 100)
    };
    let summaries = summarise(
        &plan(Composer::Total, vec![get("a"), get("b")]),
        &[moved(0, 0, 100), slow],
    );
    assert_eq!(summaries.len(), 1);
    assert_eq!(summaries[0].throughput_bit_s.unwrap().mean, 8e8);
}

#[test]
fn background_is_marked_and_has_no_aggregate() {
    let load = MeasurementPart {
        background: true,
        ..get("load")
    };
    let summaries = summarise(
        &plan(Composer::Background, vec![get("a"), load]),
        &[moved(0, 0, 1), moved(1, 0, 1)],
    );
    assert_eq!(
        summaries.iter().map(|s| s.background).collect::<Vec<_>>(),
        [false, true]
    );
}

#[test]
fn replicas_last_from_the_first_start_to_the_last_stop() {
    let record = RunRecord {
        replicas: 4,
        span_ns: 4_000_000_000,
        ..moved(0, 0, 100)
    };
    let summary = &summarise(
        &plan(Composer::Basic, vec![get("a")]),
        std::slice::from_ref(&record),
    )[0];
    assert_eq!(summary.throughput_bit_s.unwrap().mean, 2e8);
    let unknown = RunRecord {
        span_ns: 0,
        ..record
    };
    let summary = &summarise(&plan(Composer::Basic, vec![get("a")]), &[unknown])[0];
    assert_eq!(summary.throughput_bit_s.unwrap().mean, 8e8);
}

#[test]
fn costs_are_per_work_done() {
    let mut record = moved(0, 0, 500);
    record.initiator.usage.system_s = 0.2;
    record.responder.usage.user_s = 0.3;
    let summary = &summarise(&plan(Composer::Basic, vec![get("a")]), &[record])[0];
    let cost = summary.cpu_s_per_gb.unwrap();
    assert_eq!((cost.both, cost.initiator, cost.responder), (1.0, 0.4, 0.6));
    assert_eq!(summary.run_values.cpu_s_per_gb, [1.0]);
    assert!(summary.run_values.cpu_us_per_call.is_empty());
    assert_eq!(summary.cpu_us_per_call, None);
    assert_eq!(summary.initiator.cpu_share, Some(0.2));
}

#[test]
fn connections_have_a_rate_and_a_cost() {
    let connects = crate::statistics::tests::histogram(&[100_000, 300_000]);
    let mut record = RunRecord {
        replicas: 1,
        elapsed_ns: 1_000_000,
        connects,
        ..RunRecord::default()
    };
    record.initiator.usage.system_s = 60e-6;
    record.responder.usage.system_s = 20e-6;
    let part = part("host khons; 1 from khons connect_disconnect 0*2");
    let summary = &summarise(&plan(Composer::Basic, vec![part]), &[record])[0];
    assert_eq!(
        (summary.main, summary.rate_of),
        (Some(RunMetric::Connect), Some(RepeatedWork::Connection))
    );
    assert!((summary.rate_per_s.unwrap().mean - 2000.0).abs() < 1e-9);
    let cost = summary.cpu_us_per_call.unwrap();
    assert!((summary.run_values.cpu_us_per_call[0] - 40.0).abs() < 1e-9);
    assert!(
        (cost.both - 40.0).abs() < 1e-9 && (cost.initiator - 30.0).abs() < 1e-9,
        "{cost:?}"
    );
    assert_eq!(summary.cpu_s_per_gb, None);
}

#[test]
fn calls_come_before_connections() {
    let mut record = called(0, &[1000, 1000]);
    record.connects = crate::statistics::tests::histogram(&[10; 5]);
    let summary = &summarise(&plan(Composer::Basic, vec![rr()]), &[record])[0];
    assert_eq!(summary.rate_of, Some(RepeatedWork::Call));
    assert!((summary.rate_per_s.unwrap().mean - 1e6).abs() < 1e-3);
}

/// 500 MB with hosts that were busy for 1 s and 3 s of `elapsed_s`.
fn on_hosts(run: u32, elapsed_s: f64) -> RunRecord {
    let mut record = moved(0, run, 500);
    let host = |user_s| HostUsage {
        user_s,
        system_s: 0.3,
        interrupt_s: 0.2,
        idle_s: 9.0,
        elapsed_s,
        ..HostUsage::default()
    };
    record.initiator.host = Some(HostUsage {
        elapsed_s: elapsed_s * 1.01,
        ..host(0.5)
    });
    record.responder.host = Some(host(2.5));
    record
}

#[test]
fn hosts_have_costs_and_one_machine_counts_once() {
    let mut plan = plan(Composer::Basic, vec![get("a")]);
    let records = [on_hosts(0, 0.5), on_hosts(1, 0.5)];
    let here = summarise(&plan, &records)[0].host_cpu_s_per_gb.unwrap();
    assert_eq!(
        (here.both, here.initiator, here.responder),
        (2.0, 2.0, 6.0),
        "the longer view of one machine"
    );
    let via = Via::Ssh("user@far".into());
    plan.hosts.insert(
        "khons".into(),
        HostPlan {
            via,
            ..Default::default()
        },
    );
    let apart = summarise(&plan, &records)[0].clone();
    assert_eq!(apart.host_cpu_s_per_gb.unwrap().both, 8.0);
    assert_eq!(apart.host_cpu_us_per_call, None);
    assert!(!apart.absent.contains_key("host_cpu"));
    let mut calls = called(0, &[1000; 1000]);
    (calls.initiator.host, calls.responder.host) = (
        records[0].initiator.host.clone(),
        records[0].responder.host.clone(),
    );
    plan.measurements[0].parts = vec![rr()];
    let per_call = summarise(&plan, &[calls])[0].host_cpu_us_per_call.unwrap();
    assert!((per_call.both - 4000.0).abs() < 1e-6, "{per_call:?}");
}

#[test]
fn a_short_period_is_too_few_steps_for_the_cost_of_a_host() {
    let plan = plan(Composer::Basic, vec![get("a")]);
    let short = &summarise(&plan, &[on_hosts(0, 0.05), on_hosts(1, 0.1)])[0];
    assert_eq!(short.host_cpu_s_per_gb, None);
    assert_eq!(
        short.absent["host_cpu"],
        "a run lasted 75.0 ms, but hosts count CPU time in steps of 10 ms"
    );
    let unknown = &summarise(&plan, &[on_hosts(0, 1.0), moved(0, 1, 1)])[0];
    assert_eq!(
        unknown.absent["host_cpu"],
        "the CPU time of a host is unknown for some runs"
    );
    let far = MeasurementPart {
        from: None,
        to: Some("far".into()),
        ..get("b")
    };
    let mut two = self::plan(Composer::Total, vec![get("a"), far]);
    let via = Via::Ssh("user@far".into());
    two.hosts.insert(
        "far".into(),
        HostPlan {
            via,
            ..Default::default()
        },
    );
    let records = [
        on_hosts(0, 1.0),
        RunRecord {
            part: 1,
            ..on_hosts(0, 1.0)
        },
    ];
    assert_eq!(
        summarise(&two, &records)[0].absent["host_cpu"],
        "the parts ran on different hosts"
    );
}

#[test]
fn ends_share_a_core_or_not_over_all_runs() {
    use crate::CoreSharing::{Changing, CoreEach, OneCore};
    // Of each run: where the initiator was at the start and at the end, and the responder.
    let sharing = |places: &[[(usize, usize); 2]]| {
        let plan = plan(Composer::Basic, vec![get("a")]);
        let records: Vec<RunRecord> = places
            .iter()
            .zip(0..)
            .map(|([initiator, responder], run)| {
                let mut record = moved(0, run, 1);
                record.initiator.cpu = Some((initiator.0, initiator.1, true));
                record.responder.cpu = Some((responder.0, responder.1, true));
                record
            })
            .collect();
        summarise(&plan, &records)[0].core_sharing
    };
    let (together, apart) = ([(0, 0), (0, 0)], [(0, 0), (1, 1)]);
    assert_eq!(sharing(&[together, [(1, 1), (1, 1)]]), Some(OneCore));
    assert_eq!(sharing(&[[(0, 1), (1, 0)]]), Some(CoreEach));
    assert_eq!(sharing(&[together, apart]), Some(Changing));
    assert_eq!(sharing(&[[(0, 0), (0, 1)]]), Some(Changing));
    assert_eq!(sharing(&[]), None);
}

#[test]
fn spinning_on_the_core_of_the_peer() {
    let spin = |initiator: (usize, usize), responder: (usize, usize), how: &'static str| {
        move |r: &mut RunRecord| {
            r.responder.settings = BTreeMap::from([("receive".to_owned(), how.to_owned())]);
            r.initiator.cpu = Some((initiator.0, initiator.1, false));
            r.responder.cpu = Some((responder.0, responder.1, true));
        }
    };
    let none: [&str; 0] = [];
    assert_eq!(
        flags_of(get("a"), spin((0, 0), (0, 0), "spin")),
        ["spin on one core"]
    );
    assert_eq!(
        flags_of(get("a"), spin((0, 1), (0, 2), "spin")),
        ["spin on one core"],
        "at the start"
    );
    assert_eq!(
        flags_of(get("a"), spin((1, 0), (2, 0), "spin")),
        ["spin on one core"],
        "at the end"
    );
    assert_eq!(
        flags_of(get("a"), spin((0, 1), (1, 0), "spin")),
        none,
        "never at the same time"
    );
    assert_eq!(flags_of(get("a"), spin((0, 0), (0, 0), "block")), none);
    assert_eq!(
        flags_of(get("a"), |r| r.initiator.settings =
            [("receive".into(), "spin".into())].into()),
        none
    );
    let first_run_only = |r: &mut RunRecord| {
        if r.run == 0 {
            spin((0, 0), (0, 0), "spin")(r)
        }
    };
    assert_eq!(flags_of(get("a"), first_run_only), none);
    let mut apart = plan(Composer::Basic, vec![get("a")]);
    let via = Via::Ssh("user@far".into());
    apart.hosts.insert(
        "khons".into(),
        HostPlan {
            via,
            ..Default::default()
        },
    );
    let mut records = [moved(0, 0, 100), moved(0, 1, 100)];
    records.iter_mut().for_each(spin((0, 0), (0, 0), "spin"));
    assert_eq!(
        summarise(&apart, &records)[0].flags,
        none,
        "core 0 of two machines"
    );
}

#[test]
fn loss_is_absent_where_it_is_not_counted() {
    let mut record = moved(0, 0, 1);
    record.responder.sent_units = 1000;
    record.initiator.lost = Some(10);
    let known = &summarise(&plan(Composer::Basic, vec![get("a")]), &[record.clone()])[0];
    assert_eq!((known.lost, known.lost_share), (Some(10), Some(0.01)));
    assert!(known.flags.contains(&"lost data".to_owned()));
    record.initiator.lost = None;
    let unknown = &summarise(&plan(Composer::Basic, vec![get("a")]), &[record])[0];
    assert_eq!((unknown.lost, unknown.lost_share), (None, None));
}

#[test]
fn lost_calls_are_over_the_calls_made() {
    let mut record = called(0, &[1000, 2000, 3000]);
    record.initiator.lost = Some(1);
    assert_eq!(
        summarise(&plan(Composer::Basic, vec![rr()]), &[record])[0].lost_share,
        Some(0.25)
    );
}

#[test]
fn retransmits_are_summed_over_runs() {
    let with = |run, retransmits, rtt_s| {
        let start = TransportRecord {
            retransmits: 5,
            busy_s: Some(0.0),
            send_buffer_limited_s: Some(0.0),
            ..TransportRecord::default()
        };
        let stop = TransportRecord {
            retransmits,
            rtt_s,
            busy_s: Some(0.5),
            send_buffer_limited_s: Some(0.1),
            ..start
        };
        let mut record = moved(0, run, 1);
        record.initiator.transport = Some((start, stop));
        record
    };
    let side = &summarise(
        &plan(Composer::Basic, vec![get("a")]),
        &[with(0, 7, 0.1), with(1, 6, 0.2)],
    )[0]
    .initiator;
    assert_eq!(side.retransmits, Some(3));
    assert_eq!(side.transport.unwrap().1.rtt_s, 0.2);
    assert_eq!(
        (side.busy_share, side.send_buffer_limited_share),
        (Some(0.5), Some(0.2))
    );
    assert_eq!(
        side.receive_window_limited_share, None,
        "it was not reported"
    );
}

fn flags_of(part: MeasurementPart, change: impl Fn(&mut RunRecord)) -> Vec<String> {
    let mut records = [moved(0, 0, 100), moved(0, 1, 100)];
    records.iter_mut().for_each(change);
    summarise(&plan(Composer::Basic, vec![part]), &records)[0]
        .flags
        .clone()
}

#[test]
fn flags() {
    let none: [&str; 0] = [];
    assert_eq!(flags_of(get("a"), |_| ()), none);
    assert_eq!(
        flags_of(get("a"), |r| r.elapsed_ns += u64::from(r.run) * 200_000_000),
        ["sd>5%"]
    );
    assert_eq!(
        flags_of(get("a"), |r| r.initiator.usage.major_faults = 1),
        ["paging"]
    );
    assert_eq!(
        flags_of(get("a"), |r| r.responder.usage.user_s = 0.99),
        ["core full"]
    );
    let shared = |used: f64| {
        move |r: &mut RunRecord| {
            (r.replicas, r.responder.usage.user_s) = (64, used);
            r.responder.settings = [("threads".into(), "2".into())].into();
        }
    };
    assert_eq!(flags_of(get("a"), shared(1.9)), none);
    assert_eq!(flags_of(get("a"), shared(1.99)), ["core full"]);
    assert_eq!(
        flags_of(get("a"), |r| (r.replicas, r.responder.usage.user_s) =
            (2, 1.9)),
        none
    );
    assert_eq!(flags_of(get("a"), |r| r.limited = true), ["time limit"]);
    assert_eq!(
        flags_of(get("a"), |r| r.initiator.notes = vec!["gso refused".into()]),
        ["gso refused"]
    );
    let copied = |r: &mut RunRecord| {
        r.responder.notes = vec![format!("the kernel copied {} of 9 sends", r.run)]
    };
    assert_eq!(
        flags_of(get("a"), copied),
        ["the kernel copied 1 of 9 sends"]
    );
    let host = |steal_s, throttled_s| {
        Some(HostUsage {
            idle_s: 98.0,
            steal_s,
            throttled_s,
            ..HostUsage::default()
        })
    };
    assert_eq!(
        flags_of(get("a"), |r| r.initiator.host = host(2.0, Some(0.0))),
        ["steal"]
    );
    assert_eq!(
        flags_of(get("a"), |r| r.initiator.host = host(0.5, Some(0.1))),
        ["throttled"]
    );
    assert_eq!(
        flags_of(get("a"), |r| r.initiator.host = host(0.5, None)),
        none
    );
    let used = |name: &str| BTreeMap::from([("congestion".to_owned(), name.to_owned())]);
    assert_eq!(
        flags_of(get("a"), |r| r.responder.settings = used("bbr")),
        ["congestion bbr"]
    );
    assert_eq!(
        flags_of(get("a"), |r| r.responder.settings = used("cubic")),
        none
    );
    let mut named = get("a");
    named
        .stack
        .options
        .insert("congestion".into(), OptionValue::Word("bbr".into()));
    assert_eq!(
        flags_of(named, |r| r.responder.settings = used("bbr")),
        none
    );
    let unlimited = MeasurementPart {
        data: DataSpec {
            count: UnitCount::Unlimited,
            ..get("a").data
        },
        ..get("a")
    };
    assert_eq!(flags_of(unlimited, |r| r.limited = true), none);
    let load = MeasurementPart {
        background: true,
        ..get("load")
    };
    assert_eq!(flags_of(load, |r| r.limited = true), none);
}

#[test]
fn throttling_is_known_if_every_run_reports_it() {
    let with = |run, initiator: Option<f64>, responder: Option<f64>| {
        let host = |throttled_s: Option<f64>| {
            let reason = [("throttled_s".to_owned(), "nobody counts it".to_owned())];
            let absent = if throttled_s.is_none() {
                reason.into()
            } else {
                BTreeMap::new()
            };
            Some(HostUsage {
                throttled_s,
                absent,
                ..HostUsage::default()
            })
        };
        let mut record = moved(0, run, 1);
        (record.initiator.host, record.responder.host) = (host(initiator), host(responder));
        record
    };
    let of = |records: &[RunRecord]| {
        summarise(&plan(Composer::Basic, vec![get("a")]), records).remove(0)
    };
    let one = of(&[with(0, Some(0.5), Some(0.0)), with(1, Some(0.25), None)]);
    assert_eq!(one.initiator.host.unwrap().throttled_s, Some(0.75));
    assert_eq!(one.responder.host.unwrap().throttled_s, None);
    assert_eq!(one.absent["responder throttled_s"], "nobody counts it");
    let both = of(&[with(0, None, None)]);
    assert!(
        both.absent.contains_key("throttled_s")
            && !both.absent.contains_key("initiator throttled_s")
    );
}

#[test]
fn late_is_measured_against_the_interval() {
    let mut paced = get("a");
    paced
        .procedure
        .initiator
        .push(ProcedureStep::Call(OperationCall::Pace(
            DelayArgument::Timing(0),
        )));
    paced.data.timings = vec![Distribution::Exponential(1e-3)];
    let late_by = |ns: u64| {
        flags_of(paced.clone(), move |r| {
            r.lateness = crate::statistics::tests::histogram(&[ns; 10])
        })
    };
    assert!(late_by(60_000).is_empty());
    assert_eq!(late_by(80_000), ["late"]);
    let unpaced = flags_of(get("a"), |r| {
        r.lateness = crate::statistics::tests::histogram(&[900_000; 10])
    });
    assert!(unpaced.is_empty());
}

#[test]
fn until_is_reached_by_a_narrow_interval() {
    let mut plan = plan(Composer::Basic, vec![get("a")]);
    plan.measurements[0].until = Some(StoppingCriterion {
        share: 0.1,
        at_most: 9,
    });
    let measurement = &plan.measurements[0];
    let records = [moved(0, 0, 100), moved(0, 1, 102), moved(0, 2, 101)];
    assert!(
        !interval_reached(measurement, &records[..1]),
        "one run has no interval"
    );
    assert!(
        !interval_reached(measurement, &records[..2]),
        "t = 12.7 at two runs"
    );
    assert!(interval_reached(measurement, &records));
    assert!(
        (half_width_share(measurement, &records).unwrap() - 4.302_65 / 101.0 / 3.0_f64.sqrt())
            .abs()
            < 1e-6
    );
    assert_eq!(
        summarise(&plan, &records[..2])[0].flags,
        ["until not reached"]
    );
}

#[test]
fn until_uses_calls_without_throughput() {
    let mut plan = plan(Composer::Basic, vec![rr()]);
    plan.measurements[0].until = Some(StoppingCriterion {
        share: 0.02,
        at_most: 9,
    });
    let records = [
        called(0, &[1000, 9000]),
        called(1, &[1010, 9010]),
        called(2, &[990, 8990]),
    ];
    assert!(
        interval_reached(&plan.measurements[0], &records),
        "the means agree, however the calls differ"
    );
    assert!(!interval_reached(&plan.measurements[0], &[]));
}

#[test]
fn marks_are_pooled_over_runs() {
    let mark = |run, ns| {
        let mut record = moved(0, run, 1);
        record.initiator.marks.insert(
            "first byte".into(),
            crate::statistics::tests::histogram(&[ns]),
        );
        record
    };
    let summary = &summarise(
        &plan(Composer::Basic, vec![get("a")]),
        &[mark(0, 1000), mark(1, 3000)],
    )[0];
    let first_byte = summary.marks["first byte"];
    assert_eq!(first_byte.n, 2);
    assert!((first_byte.mean - 2e-6).abs() < 1e-15);
}

#[test]
fn the_time_of_a_transfer_is_of_one_amount_moved_to_its_end() {
    let sent = |limited: bool| {
        let mut record = RunRecord {
            elapsed_ns: 1_000_000,
            limited,
            ..RunRecord::default()
        };
        record.responder.received_bytes = 50_000_000;
        record
    };
    let is_transfer = |text: &str, limited: bool| {
        summarise(&testing::plan(text), &[sent(limited)])[0].is_transfer
    };
    assert!(is_transfer("1 bulk_put 64 KiB 50 MB over tcp", false));
    assert!(is_transfer("1 bulk_put 50000000*1 over tcp", false));
    assert!(
        !is_transfer("1 bulk_put 64 KiB*1000 over tcp", false),
        "so many data units"
    );
    assert!(
        !is_transfer("1 timelimit 1 bulk_put 64 KiB 50 MB over tcp", true),
        "not to its end"
    );
}
