//! Expectations of figures and findings, at the edges of their bounds.
#![allow(
    clippy::unwrap_used,
    reason = "what helpers of a test cannot do fails the test"
)]

use stackline_analyze::findings::Finding;
use stackline_analyze::{
    DiagnosedFindings, ExpectationVerdict, JudgedExpectation, RunMetric, RunValues,
    SampleStatistics, Summary, expects_findings, judge_expectations,
};
use stackline_core::catalogue::{Capabilities, StackTable};
use stackline_core::plan::{Plan, World};
use stackline_core::run_record::Histogram;
use stackline_spec::{Available, CheckContext, Overrides, check};

/// The plan of a text, live over `tcp`.
fn plan(text: &str) -> Plan {
    const STACKS: [StackTable; 1] = [StackTable {
        name: "tcp",
        ..StackTable::RELIABLE
    }];
    let read_file = |path: &str| Err(path.to_owned());
    let worlds = [Available {
        can: Capabilities::EVERYTHING,
        stacks: &STACKS,
    }];
    let context = CheckContext {
        worlds: &worlds,
        read_file: &read_file,
        cores: &[],
    };
    let checked = check(text, &context, &Overrides::default());
    let mistakes = checked.diagnostics;
    checked
        .plan
        .unwrap_or_else(|| panic!("{text}: {mistakes:?}"))
}

/// The histogram of these times, in ascending order, ns.
fn times(values: &[u64]) -> Histogram {
    let mut counts: Vec<(u64, u64)> = Vec::new();
    for value in values {
        match counts.last_mut() {
            Some((last, n)) if last == value => *n += 1,
            _ => counts.push((*value, 1)),
        }
    }
    Histogram {
        counts,
        sum: values.iter().sum(),
        squares: values.iter().map(|value| (*value as f64).powi(2)).sum(),
        min_max: values.first().copied().zip(values.last().copied()),
    }
}

/// A summary of calls with these mean times of the runs, in seconds; each run made ten equal calls.
fn calls(means: &[f64]) -> Summary {
    let ns = |seconds: f64| (seconds * 1e9).round() as u64;
    let runs: Vec<Histogram> = means.iter().map(|mean| times(&[ns(*mean); 10])).collect();
    Summary {
        part_index: Some(0),
        runs: means.len() as u32,
        main: Some(RunMetric::Response),
        response_s: SampleStatistics::from_runs(&runs, 1e-9),
        response_ns: Histogram::merged(&runs),
        run_values: RunValues {
            response_s: means.to_vec(),
            ..RunValues::default()
        },
        ..Summary::default()
    }
}

fn judged(text: &str, summary: Summary) -> JudgedExpectation {
    let plan = plan(text);
    judge_expectations(&plan, &[summary], None).remove(0)
}

fn verdict(expectation: &str, summary: Summary) -> ExpectationVerdict {
    judged(&format!("5 rr 32*10 expect {expectation}"), summary).verdict
}

#[test]
fn a_bound_inside_the_interval_is_undecided() {
    // 10.0, 10.2, 9.8 ms: mean 10 ms, sd 0.2 ms, t = 4.303: plus and minus 0.497 ms.
    let runs = || calls(&[0.010, 0.0102, 0.0098]);
    assert_eq!(verdict("mean < 10.6 ms", runs()), ExpectationVerdict::Met);
    assert_eq!(
        verdict("mean < 10.4 ms", runs()),
        ExpectationVerdict::Undecided
    );
    assert_eq!(
        verdict("mean < 9.6 ms", runs()),
        ExpectationVerdict::Undecided
    );
    assert_eq!(verdict("mean < 9.4 ms", runs()), ExpectationVerdict::Missed);
    assert_eq!(verdict("mean > 9.4 ms", runs()), ExpectationVerdict::Met);
    assert_eq!(
        verdict("mean > 10.6 ms", runs()),
        ExpectationVerdict::Missed
    );
    assert_eq!(
        verdict("mean >= 10.4 ms", runs()),
        ExpectationVerdict::Undecided
    );
    assert_eq!(
        verdict("mean within 9 ms .. 11 ms", runs()),
        ExpectationVerdict::Met
    );
    assert_eq!(
        verdict("mean within 9 ms .. 10 ms", runs()),
        ExpectationVerdict::Undecided
    );
    assert_eq!(
        verdict("mean within 1 ms .. 2 ms", runs()),
        ExpectationVerdict::Missed
    );
    let undecided = judged("5 rr 32*10 expect mean < 10.4 ms", runs());
    assert!(
        undecided
            .reason
            .unwrap()
            .contains("inside the 95 % interval")
    );
    let (low, high) = undecided.ci95.unwrap();
    assert!(
        (low - 0.009_503).abs() < 1e-6 && (high - 0.010_497).abs() < 1e-6,
        "{low} {high}"
    );
}

#[test]
fn one_run_is_a_single_figure() {
    let one = judged("5 rr 32*10 expect mean < 10.4 ms", calls(&[0.010]));
    assert_eq!((one.verdict, one.ci95), (ExpectationVerdict::Met, None));
    assert_eq!(one.reason.unwrap(), "a single figure, without an interval");
    assert_eq!(
        verdict("max <= 10 ms", calls(&[0.010])),
        ExpectationVerdict::Met
    );
    assert_eq!(
        verdict("max < 10 ms", calls(&[0.010])),
        ExpectationVerdict::Missed
    );
}

#[test]
fn equal_runs_of_a_simulation_decide_at_the_bound() {
    let equal = || Summary {
        world: World::Simulated,
        ..calls(&[0.010; 5])
    };
    assert_eq!(verdict("p90 < 10.001 ms", equal()), ExpectationVerdict::Met);
    assert_eq!(verdict("mean < 10 ms", equal()), ExpectationVerdict::Missed);
    let judged = judged("5 rr 32*10 expect p90 <= 10 ms", equal());
    assert_eq!(judged.verdict, ExpectationVerdict::Met);
    assert!(judged.reason.unwrap().starts_with("deterministic"));
}

#[test]
fn a_percentile_needs_values_above_it() {
    let few = judged("5 rr 32*10 expect p99.9 < 1 s", calls(&[0.010, 0.011]));
    assert_eq!(few.verdict, ExpectationVerdict::Undecided);
    assert_eq!(
        few.reason.unwrap(),
        "1000 values are needed, but only 20 were measured"
    );
    let open = judged("5 rr 32*10 expect p90 < 1 s", calls(&[0.010, 0.011]));
    assert_eq!(open.verdict, ExpectationVerdict::Undecided);
    assert!(open.ci95.unwrap().1.is_infinite() && open.value.is_some());
    // Its lower end is known all the same.
    assert_eq!(
        verdict("p90 > 1 ms", calls(&[0.010, 0.011])),
        ExpectationVerdict::Met
    );
}

#[test]
fn the_interval_of_a_percentile_has_the_ranks_of_the_binomial_distribution() {
    let values: Vec<u64> = (1..=1000).map(|us| us * 1000).collect();
    let run = times(&values);
    let summary = Summary {
        response_s: SampleStatistics::from_histogram(&run, 1e-9),
        response_ns: run,
        ..calls(&[0.01, 0.011])
    };
    // 990 plus and minus 1.96 sqrt(1000 x 0.99 x 0.01) = 6.17: from rank 983 to the one behind rank 997.
    let one = judged("5 rr 32*10 expect p99 < 995 us", summary);
    let (low, high) = one.ci95.unwrap();
    assert_eq!(((low * 1e6).round(), (high * 1e6).round()), (983.0, 998.0));
    assert_eq!(one.verdict, ExpectationVerdict::Undecided);
}

#[test]
fn what_was_not_measured_is_undecided() {
    let none = Summary {
        runs: 0,
        ..calls(&[0.010])
    };
    let judged_none = judged("5 rr 32*10 expect mean < 1 s", none);
    assert_eq!(judged_none.verdict, ExpectationVerdict::Undecided);
    assert_eq!(judged_none.reason.unwrap(), "no run was completed");
    let absent = judged("5 rr 32*10 expect cpu_per_call < 1 s", calls(&[0.01, 0.01]));
    assert_eq!(absent.reason.unwrap(), "it was not measured");
    let other = Summary {
        part_index: Some(3),
        ..calls(&[0.01, 0.01])
    };
    let alone = judged("5 rr 32*10 expect mean < 1 s", other);
    assert_eq!(alone.reason.unwrap(), "this part has no result of its own");
}

fn finding(kind: &'static str, confidence: f64) -> Finding {
    Finding {
        kind,
        sentence: "the queue drops".into(),
        confidence,
        share: 0.5,
        whole: None,
        is_of_units: false,
        saves: None,
        evidence: vec![],
        tries: vec![],
        measurement: Some(0),
        takes: None,
    }
}

#[test]
fn findings_decide_where_they_are_sure_or_events_exclude_them() {
    let plan = plan("5 rr 32*10 expect finding queue_drop, finding not queue_drop");
    assert!(expects_findings(&plan));
    let verdicts = |findings: &[Finding], has_events| {
        let found = DiagnosedFindings {
            findings,
            has_events,
        };
        let all = judge_expectations(&plan, &[calls(&[0.01, 0.01])], Some(found));
        all.into_iter().map(|one| one.verdict).collect::<Vec<_>>()
    };
    use ExpectationVerdict::{Met, Missed, Undecided};
    assert_eq!(
        verdicts(&[finding("queue_drop", 0.9)], false),
        [Met, Missed]
    );
    assert_eq!(
        verdicts(&[finding("queue_drop", 0.4)], true),
        [Undecided, Undecided]
    );
    assert_eq!(verdicts(&[finding("link_loss", 0.9)], true), [Missed, Met]);
    assert_eq!(verdicts(&[], false), [Undecided, Undecided]);
    let elsewhere = Finding {
        measurement: Some(1),
        ..finding("queue_drop", 0.9)
    };
    assert_eq!(verdicts(&[elsewhere], true), [Missed, Met]);
}
