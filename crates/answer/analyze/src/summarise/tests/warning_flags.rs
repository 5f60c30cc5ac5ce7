//! Flags that warn of what disturbed a measurement, and the cores that its ends ran on.

use super::*;
use stackline_core::catalogue::OptionValue;
use stackline_core::distribution::Distribution;
use stackline_core::plan::{DataSpec, HostPlan, Via};
use stackline_core::procedure::{DelayArgument, OperationCall, ProcedureStep};
use stackline_core::run_record::HostUsage;

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
