//! Which runs are made of a plan, in which order and with which seeds, and what is kept of them however they end.

mod common;

use common::{Making, make, plan_of, writer};
use stackline_core::error::Blame;
use stackline_core::plan::{Measurement, Plan, World};
use stackline_core::run_record::RunRecord;
use stackline_core::run_schedule::RunOrder;
use stackline_core::time::Duration;
use stackline_runner::{AfterFailure, RunsBefore, make_runs_of_seeds, simulate, simulate_within};
use stackline_runs::StoredRun;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const NETWORK: &str = "network n { host a, b; link a - b 10 Mbit/s 1 ms; }\n";

/// A network that drops each second packet of the way back, and a procedure that waits there for the one that is lost.
const STUCK: &str = "
    network lossy { host a, b; link a -> b 10 Mbit/s 1 ms; link b -> a 10 Mbit/s 1 ms loss every 2; }
    procedure stuck {
      initiator { ConnectRequest; StartMeasurement; AwaitDataIndication(unit); StopMeasurement; DisconnectRequest; }
      responder { AwaitConnectIndication; Delay(constant(1 ms)); DataRequest(unit); AwaitDisconnectIndication; }
    }\n";

/// `runs rr` across the network.
fn calls(runs: &str) -> String {
    format!("{runs} from a to b rr 100*5 over tcp across n in simulated;\n")
}

#[test]
fn measurements_come_one_after_the_other_and_warm_up_runs_first() {
    let text = [NETWORK, &calls("2 warmup 2"), &calls("1")].concat();
    let made = make(&plan_of(&text), &Making::default());
    let expected = [
        "0: warmup 0",
        "0: warmup 1",
        "0: run 0",
        "0: run 1",
        "1: run 0",
        "finished",
    ];
    assert_eq!(made.journal, expected);
    let kept = |record: &RunRecord| (record.measurement, record.run, record.warmup);
    let records: Vec<_> = made.records.iter().map(kept).collect();
    assert_eq!(
        records,
        [
            (0, 0, true),
            (0, 1, true),
            (0, 0, false),
            (0, 1, false),
            (1, 0, false)
        ]
    );
    let stored = made.stored();
    assert!(stored.complete && stored.reason.is_none());
    assert_eq!(stored.records, made.records);
    assert_eq!(
        stored.environment["worlds"]["simulated"]["runs"], 5,
        "what is known after the last run"
    );
    assert_eq!(made.outcome.digest.map(|(runs, _)| runs), Some(5));
}

thread_local! {
    /// What the stop rule was shown: measurement by its line, and runs.
    static SHOWN: RefCell<Vec<(usize, Vec<u32>)>> = const { RefCell::new(Vec::new()) };
}

#[test]
fn a_measurement_is_repeated_until_its_own_runs_are_enough() {
    let text = [
        NETWORK,
        &calls("2"),
        &calls("2 until 2% at most 50"),
        &calls("1"),
    ]
    .concat();
    let rule = |measurement: &Measurement, records: &[&RunRecord]| {
        let runs = records.iter().map(|record| record.run).collect();
        SHOWN.with_borrow_mut(|shown| shown.push((measurement.line, runs)));
        records.len() == 4
    };
    let making = Making {
        enough: rule,
        ..Making::default()
    };
    let made = make(&plan_of(&text), &making);
    let runs = |index| {
        let of = |record: &&RunRecord| record.measurement == index;
        made.records.iter().filter(of).count()
    };
    assert_eq!([0, 1, 2].map(runs), [2, 4, 1]);
    assert_eq!(
        SHOWN.take(),
        [(3, vec![0, 1]), (3, vec![0, 1, 2]), (3, vec![0, 1, 2, 3])],
        "its own records, from its least number of runs on"
    );
}

#[test]
fn it_is_given_up_after_its_most_runs_and_looked_at_ever_less_often() {
    let text = [NETWORK, &calls("1 until 2% at most 600")].concat();
    let rule = |_: &Measurement, records: &[&RunRecord]| {
        SHOWN.with_borrow_mut(|shown| shown.push((0, vec![records.len() as u32])));
        false
    };
    let making = Making {
        enough: rule,
        ..Making::default()
    };
    let made = make(&plan_of(&text), &making);
    assert_eq!(made.records.len(), 600);
    // After each of 256, then each second, then each fourth beyond 512; the last is not asked for.
    let looks = SHOWN.take().len();
    assert_eq!(looks, 256 + 128 + (600 - 512) / 4 - 1);
}

#[test]
fn one_seed_is_one_sequence_and_no_two_runs_are_alike() {
    let text = |seed: u64| {
        format!(
            "seed {seed}; {NETWORK}3 from a to b rr uniform(100, 20000)*5 over tcp across n in simulated;"
        )
    };
    let times = |seed, twice| {
        let making = Making {
            twice,
            ..Making::default()
        };
        let made = make(&plan_of(&text(seed)), &making);
        let times: Vec<u64> = made
            .records
            .iter()
            .map(|record| record.elapsed_ns)
            .collect();
        (times, made.outcome.digest)
    };
    let first = times(1, false);
    assert_eq!(first, times(1, true), "also where each run is made twice");
    assert_ne!(first, times(2, false));
    let [a, b, c] = first.0[..] else {
        panic!("{first:?}")
    };
    assert!(a != b && b != c && a != c);
}

#[test]
fn a_run_that_fails_in_the_midst_ends_the_plan_and_what_was_done_is_kept() {
    let stuck = "2 from a to b stuck 100 over udp across lossy in simulated;\n";
    let text = [NETWORK, STUCK, &calls("2"), stuck, &calls("4")].concat();
    let made = make(&plan_of(&text), &Making::default());
    let failed = made.outcome.failed.as_ref().unwrap();
    assert!(failed.message.contains("deadlocked"), "{failed}");
    assert_eq!(
        made.journal,
        ["0: run 0", "0: run 1", "1: run 0", "finished"]
    );
    let stored = made.stored();
    assert_eq!((stored.complete, stored.records.len()), (false, 2));
    assert!(stored.reason.unwrap().contains("deadlocked"));
}

#[test]
fn a_measurement_that_fails_ends_no_other_where_the_runs_keep_going() {
    let stuck = "2 from a to b stuck 100 over udp across lossy in simulated;\n";
    let text = [NETWORK, STUCK, &calls("1"), stuck, &calls("2")].concat();
    let making = Making {
        after_failure: AfterFailure::GoOn,
        ..Making::default()
    };
    let made = make(&plan_of(&text), &making);
    assert!(made.outcome.failed.is_none());
    let given_up = &made.outcome.given_up;
    assert_eq!(
        given_up.iter().map(|(index, _)| *index).collect::<Vec<_>>(),
        [1]
    );
    assert!(given_up[0].1.message.contains("deadlocked"));
    assert_eq!(
        made.journal,
        ["0: run 0", "1: run 0", "2: run 0", "2: run 1", "finished"]
    );
    assert_eq!(made.records.len(), 3);
}

#[test]
fn an_interruption_ends_the_run_that_is_under_way_and_keeps_those_before_it() {
    let text = [NETWORK, &calls("1000")].concat();
    let making = Making {
        interrupt_after: Some(3),
        ..Making::default()
    };
    let made = make(&plan_of(&text), &making);
    let failed = made.outcome.failed.as_ref().unwrap();
    assert_eq!(failed.blame, Blame::Interrupted);
    assert_eq!(made.records.len(), 3);
    let stored = made.stored();
    assert_eq!((stored.complete, stored.records.len()), (false, 3));
    assert_eq!(
        stored.environment["worlds"]["simulated"]["runs"], 0,
        "nothing is asked of the worlds after it"
    );
}

#[test]
fn a_world_that_cannot_be_opened_fails_before_the_first_run_of_any() {
    let text = [NETWORK, &calls("2"), "1 rr 32*5 over tcp;"].concat();
    let plan = plan_of(&text);
    let worlds: Vec<World> = plan.measurements.iter().map(|m| m.world).collect();
    assert_eq!(worlds, [World::Simulated, World::Live]);
    let made = make(&plan, &Making::default());
    let failed = made.outcome.failed.unwrap();
    assert_eq!(failed.blame, Blame::Environment);
    assert!(
        failed.message.contains("/there/is/no/such/program"),
        "{failed}"
    );
    assert_eq!(made.journal, ["finished"]);
}

#[test]
fn seeds_are_kept_in_their_order_whichever_is_done_first() {
    let text = [NETWORK, &calls("2 warmup 1")].concat();
    let plan = plan_of(&text);
    let interrupted = Arc::new(AtomicBool::new(false));
    let root = tempfile::tempdir().unwrap();
    let (mut writer, _) = writer(&plan, &root, &Making::default(), &interrupted);
    make_runs_of_seeds(&plan, 5..=8, &interrupted, &mut writer).unwrap();
    let (records, _) = writer.finish(true, None);
    let runs = |warmup| -> Vec<u32> {
        let of = |record: &&RunRecord| record.warmup == warmup;
        records.iter().filter(of).map(|record| record.run).collect()
    };
    assert_eq!(runs(false), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(runs(true), [0, 1, 2, 3]);
    // The second seed's runs are those it makes alone.
    let alone = Plan {
        seed: 6,
        ..plan.clone()
    };
    let alone = make(&alone, &Making::default()).records;
    let renumbered = |record: &RunRecord| RunRecord {
        run: record.run + if record.warmup { 1 } else { 2 },
        ..record.clone()
    };
    let alone: Vec<RunRecord> = alone.iter().map(renumbered).collect();
    assert_eq!(records[3..6], alone[..]);
}

#[test]
fn the_first_seed_that_fails_is_named_and_those_before_it_are_taken() {
    // With one packet in eight lost, some seed of a hundred loses the one that is waited for.
    let text = STUCK.replace("loss every 2", "loss 12%")
        + "1 from a to b stuck 100 over udp across lossy in simulated;";
    let plan = plan_of(&text);
    let mut taken = 0;
    let nobody = AtomicBool::new(false);
    let failed = simulate(&plan, 1..=100, &nobody, |_| taken += 1).unwrap_err();
    let named = format!("seed {}", taken + 1);
    assert!(failed.to_string().contains(&named), "{failed}");
    let stop = AtomicBool::new(true);
    let failed = simulate(&plan, 1..=100, &stop, |_| {}).unwrap_err();
    assert_eq!(failed.blame, Blame::Interrupted);
}

#[test]
fn a_seed_that_takes_more_events_than_it_may_is_given_up_whatever_the_machine() {
    let plan = plan_of(&[NETWORK, &calls("1")].concat());
    let nobody = AtomicBool::new(false);
    let (mut events, mut all) = (Vec::new(), Vec::new());
    simulate_within(&plan, 1..=3, u64::MAX, &nobody, |records, took| {
        events.push(took);
        all.extend(records);
    })
    .unwrap();
    let most = events.iter().copied().max().unwrap();
    let mut again = Vec::new();
    simulate_within(&plan, 1..=3, most, &nobody, |records, _| {
        again.extend(records)
    })
    .unwrap();
    assert_eq!(again, all);
    let mut taken = 0;
    let few = simulate_within(&plan, 1..=3, most / 10, &nobody, |_, _| taken += 1).unwrap_err();
    assert_eq!((few.blame, taken), (Blame::Interrupted, 0));
}

#[test]
fn a_warm_up_by_time_counts_the_time_of_its_world() {
    // Five calls take at least 2 ms each, so that 25 ms of virtual time have begun at most three runs.
    let text = [NETWORK, &calls("1 warmup 25 ms")].concat();
    let made = make(&plan_of(&text), &Making::default());
    let warm: Vec<&RunRecord> = made.records.iter().filter(|r| r.warmup).collect();
    assert!((1..=3).contains(&warm.len()), "{}", warm.len());
    let all_but_last: u64 = warm[1..].iter().map(|record| record.elapsed_ns).sum();
    assert!(all_but_last < Duration::from_seconds(0.025).0);
}

#[test]
fn what_was_made_before_is_taken_over_and_the_records_are_those_of_one_sequence() {
    let text = [
        NETWORK,
        &calls("3 warmup 100 ms"),
        &calls("2 warmup 1 until 2% at most 50"),
        &calls("4"),
    ];
    let plan = plan_of(&text.concat());
    for order in [RunOrder::Declared, RunOrder::Random] {
        let making = |before| Making {
            enough: |_, records| records.len() == 6,
            order,
            before,
            ..Making::default()
        };
        let whole = make(&plan, &making(None));
        let warm = |record: &&RunRecord| record.measurement == 0 && record.warmup;
        assert!(whole.records.iter().filter(warm).count() > 1);
        let stored = whole.stored();
        for kept in 0..=whole.records.len() {
            let mut part = stored.clone();
            part.records.truncate(kept);
            let before = RunsBefore::new(&part);
            let done = before.kept().len();
            let resumed = make(&plan, &making(Some(before)));
            assert_eq!(resumed.records, whole.records, "{kept} kept");
            let made = resumed.outcome.digest.map(|(runs, _)| runs).unwrap();
            assert_eq!(made as usize, whole.records.len() - done, "{kept} kept");
        }
    }
}

#[test]
fn a_run_of_which_not_all_parts_were_kept_is_made_again() {
    let part = "from a to b rr 100*5 over tcp";
    let text = format!("{NETWORK} 2 parallel across n in simulated: {part} | {part};");
    let plan = plan_of(&text);
    let whole = make(&plan, &Making::default());
    assert_eq!(whole.records.len(), 4);
    let mut cut = whole.stored();
    cut.records.truncate(3);
    let before = RunsBefore::new(&cut);
    assert_eq!(before.kept().len(), 2);
    let making = Making {
        before: Some(before),
        ..Making::default()
    };
    assert_eq!(make(&plan, &making).records, whole.records);
}

#[test]
fn a_failure_before_anything_is_taken_over_loses_nothing() {
    // No agent can be started.
    let plan = plan_of("2 rr 32*5; 2 rr 32*6");
    let record = |measurement, run| RunRecord {
        measurement,
        run,
        ..RunRecord::default()
    };
    let records = vec![record(1, 0), record(0, 0)];
    let root = tempfile::tempdir().unwrap();
    let interrupted = Arc::new(AtomicBool::new(false));
    let (stored, _) = writer(&plan, &root, &Making::default(), &interrupted);
    let path = stored.path().to_owned();
    stored.finish(false, None);
    let mut stored = StoredRun::open(&path).unwrap();
    stored.records = records.clone();
    let making = Making {
        before: Some(RunsBefore::new(&stored)),
        ..Making::default()
    };
    let made = make(&plan, &making);
    assert!(made.outcome.failed.is_some());
    assert_eq!(made.stored().records.len(), records.len());
}

#[test]
fn in_random_order_the_records_are_the_same_and_a_row_that_fails_ends_no_other_of_its_sweep() {
    let text = [
        NETWORK,
        &calls("5")
            .replace("100*5", "N*5")
            .replace(";", "; N = 1, 2, 3;"),
    ];
    let plan = plan_of(&text.concat());
    let records = |order| {
        let making = Making {
            order,
            ..Making::default()
        };
        make(&plan, &making).records
    };
    let mut drawn = records(RunOrder::Random);
    let declared = records(RunOrder::Declared);
    assert_ne!(drawn, declared);
    assert_eq!(drawn, records(RunOrder::Sweeps), "it is one sweep");
    drawn.sort_by_key(|record| (record.measurement, record.run));
    assert_eq!(drawn, declared);

    let stuck = "2 from a to b stuck 100 over udp, tcp across lossy in simulated;\n";
    let text = [NETWORK, STUCK, stuck, &calls("1")].concat();
    let making = |after_failure| Making {
        after_failure,
        ..Making::default()
    };
    let made = make(&plan_of(&text), &making(AfterFailure::GoOnInSweep));
    let given_up: Vec<usize> = made.outcome.given_up.iter().map(|one| one.0).collect();
    assert_eq!((given_up, made.records.len()), (vec![0], 3));
    let alone = [NETWORK, STUCK, &stuck.replace(", tcp", ""), &calls("1")].concat();
    let made = make(&plan_of(&alone), &making(AfterFailure::GoOnInSweep));
    assert!(made.outcome.failed.is_some() && made.records.is_empty());
}
