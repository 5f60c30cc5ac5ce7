//! CPU time of processes and of hosts for each amount of work, and why it is unknown.

use super::*;
use crate::{RepeatedWork, RunMetric};
use stackline_core::plan::{HostPlan, Via};
use stackline_core::run_record::HostUsage;

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
