//! The rates that the gate states, on drawn samples with fixed seeds, and its verdicts at the edges.
#![allow(
    clippy::unwrap_used,
    reason = "what helpers of a test cannot do fails the test"
)]

use stackline_analyze::{
    ComparedFigure, GateFigure, GateVerdict, JudgedFigure, Label, RegressionOutcome,
    RegressionRule, RegressionVerdict, RunMetric, RunValues, SampleStatistics, Summary, compare,
    compare_by, judge_regressions, judge_with_segments,
};
use stackline_core::distribution::Distribution;
use stackline_core::random::{Generator, Seed};

/// Measurements of a gate.
const MEASUREMENTS: usize = 3;
/// Runs of each measurement on each side.
const RUNS: usize = 20;

fn summary(text: &str, response_s: Vec<f64>) -> Summary {
    Summary {
        text: text.into(),
        part: text.into(),
        stack: "tcp".into(),
        run_values: RunValues {
            response_s,
            ..RunValues::default()
        },
        ..Summary::default()
    }
}

fn throughput(values: &[f64]) -> Summary {
    Summary {
        run_values: RunValues {
            throughput_bit_s: values.to_vec(),
            ..RunValues::default()
        },
        ..summary("x", vec![])
    }
}

/// `n` runs of a mean, with a relative spread.
fn normal(mean: f64, spread: f64, n: usize, generator: &mut Generator) -> Vec<f64> {
    let drawn = Distribution::build("normal", &[mean, mean * spread]).unwrap();
    (0..n).map(|_| drawn.draw(generator)).collect()
}

/// The verdict of a gate of several measurements; the first of them is `change` times as slow.
fn gate(
    number: u64,
    change: f64,
    mut draw: impl FnMut(f64, bool, &mut Generator) -> Vec<f64>,
) -> RegressionOutcome {
    let mut generator = Seed::root(43).child("gate").index(number).generator();
    let mut side = |is_new: bool| -> Vec<Summary> {
        let one = |at: usize| {
            let factor = if is_new && at == 0 { change } else { 1.0 };
            let mean = 1e-3 * (at + 1) as f64 * factor;
            summary(&format!("rr {at}"), draw(mean, is_new, &mut generator))
        };
        (0..MEASUREMENTS).map(one).collect()
    };
    let (base, new) = (side(false), side(true));
    judge_regressions(&compare(&base, &new), RegressionRule::USUAL)
}

fn count(gates: u64, verdict: GateVerdict, one: impl Fn(u64) -> RegressionOutcome) -> usize {
    (0..gates)
        .filter(|number| one(*number).verdict == verdict)
        .count()
}

#[test]
fn of_1000_gates_of_equal_programs_at_most_10_fail_at_a_stated_1_percent() {
    let equal = |number| gate(number, 1.0, |mean, _, g| normal(mean, 0.01, RUNS, g));
    let (failed, passed) = (
        count(1000, GateVerdict::Worse, equal),
        count(1000, GateVerdict::Passed, equal),
    );
    println!("{failed} of 1000 failed, {passed} passed");
    assert!(failed <= 10, "{failed}");
    // A 5 % margin is far beyond a spread of 1 % over 20 runs.
    assert_eq!(failed + passed, 1000);
}

#[test]
fn of_100_gates_with_a_change_of_2_percent_at_least_95_fail() {
    let slower = |number| gate(number, 1.02, |mean, _, g| normal(mean, 0.01, RUNS, g));
    let failed = count(100, GateVerdict::Worse, slower);
    println!("{failed} of 100 failed");
    assert!(failed >= 95, "{failed}");
}

#[test]
fn unequal_spreads_few_runs_and_long_tails_do_not_raise_the_rate() {
    let unequal = |number| {
        gate(number, 1.0, |mean, is_new, g| match is_new {
            false => normal(mean, 0.005, 30, g),
            true => normal(mean, 0.03, 5, g),
        })
    };
    let failed = count(1000, GateVerdict::Worse, unequal);
    println!("unequal: {failed}");
    // At most 1 %, and three standard deviations of such a count.
    assert!(failed <= 20, "{failed}");
    let tailed = |number| {
        gate(number, 1.0, |mean, _, g| {
            let tail = Distribution::build("exponential", &[mean * 0.01]).unwrap();
            (0..RUNS).map(|_| mean + tail.draw(g)).collect()
        })
    };
    let failed = count(1000, GateVerdict::Worse, tailed);
    println!("tailed: {failed}");
    assert!(failed <= 20, "{failed}");
}

#[test]
fn what_is_worse_by_the_margin_seldom_passes() {
    // Few runs with a large spread, so that it is not always found: at most 1 of 100 passes all the same.
    let slower = |number| gate(number, 1.05, |mean, _, g| normal(mean, 0.04, 5, g));
    let passed = count(1000, GateVerdict::Passed, slower);
    println!("{passed} of 1000 passed");
    assert!(passed <= 20, "{passed}");
}

fn judged(base: &[f64], new: &[f64], rule: RegressionRule) -> JudgedFigure {
    let sides = [base, new].map(|values| vec![summary("x", values.to_vec())]);
    judge_regressions(&compare(&sides[0], &sides[1]), rule)
        .figures
        .remove(0)
}

const BASE: [f64; 6] = [1.00, 1.01, 0.99, 1.005, 0.995, 1.0];

fn times(factor: f64) -> Vec<f64> {
    BASE.iter().map(|value| value * factor).collect()
}

#[test]
fn each_verdict_has_its_place() {
    let verdict = |factor: f64| judged(&BASE, &times(factor), RegressionRule::USUAL).verdict;
    assert_eq!(verdict(1.0), RegressionVerdict::Same);
    assert_eq!(verdict(1.03), RegressionVerdict::Worse);
    assert_eq!(verdict(0.9), RegressionVerdict::Better);
    let tolerant = RegressionRule {
        tolerance: 0.03,
        ..RegressionRule::USUAL
    };
    assert_eq!(
        judged(&BASE, &times(1.03), tolerant).verdict,
        RegressionVerdict::Same
    );
    assert_eq!(
        judged(&BASE, &times(1.06), tolerant).verdict,
        RegressionVerdict::Worse
    );
    let wide = [0.5, 1.2, 0.8, 1.3, 0.6, 0.9];
    let open = judged(&BASE, &wide, RegressionRule::USUAL);
    assert_eq!(open.verdict, RegressionVerdict::CannotSay);
    assert!(open.more_runs.is_some_and(|more| more > 10), "{open:?}");
    let better = [0.80, 0.95, 0.99, 0.85, 0.90, 0.97];
    let not_worse = judged(&BASE, &better, RegressionRule::USUAL);
    assert_eq!(
        not_worse.verdict,
        RegressionVerdict::NotWorse,
        "{not_worse:?}"
    );
}

#[test]
fn less_throughput_is_worse() {
    let gate = |a: &[f64], b: &[f64]| {
        judge_regressions(
            &compare(&[throughput(a)], &[throughput(b)]),
            RegressionRule::USUAL,
        )
    };
    let slower = gate(&BASE, &times(0.9));
    assert_eq!(slower.verdict, GateVerdict::Worse);
    let (low, high) = slower.figures[0].bounds.unwrap();
    assert!(low < 0.9 && 0.9 < high && high < 0.95, "{low} {high}");
    assert_eq!(
        gate(&BASE, &times(1.1)).figures[0].verdict,
        RegressionVerdict::Better
    );
}

#[test]
fn equal_runs_decide_without_spread() {
    let verdict = |value: f64| judged(&[1.0; 3], &[value; 3], RegressionRule::USUAL).verdict;
    assert_eq!(verdict(1.0), RegressionVerdict::Same);
    assert_eq!(verdict(1.001), RegressionVerdict::Worse);
    assert_eq!(verdict(0.999), RegressionVerdict::Better);
}

#[test]
fn one_run_cannot_be_judged() {
    let one = judged(&[1.0], &[2.0, 2.1], RegressionRule::USUAL);
    assert_eq!(one.verdict, RegressionVerdict::CannotSay);
    assert_eq!((one.bounds, one.p_worse, one.more_runs), (None, None, None));
    assert_eq!(
        one.reason.unwrap(),
        "1 and 2 counted runs, but each side needs two"
    );
}

#[test]
fn what_only_the_baseline_has_leaves_the_gate_undecided() {
    let (x, y) = (summary("x", BASE.to_vec()), summary("y", BASE.to_vec()));
    let other = Summary {
        application: "stream".into(),
        ..y.clone()
    };
    let lost = judge_regressions(
        &compare(&[x.clone(), other.clone()], std::slice::from_ref(&x)),
        RegressionRule::USUAL,
    );
    assert_eq!(
        (lost.verdict, lost.missing.len()),
        (GateVerdict::Undecided, 1)
    );
    let more = judge_regressions(
        &compare(std::slice::from_ref(&x), &[x.clone(), other]),
        RegressionRule::USUAL,
    );
    assert_eq!((more.verdict, more.added.len()), (GateVerdict::Passed, 1));
    let other_stack = Summary {
        stack: "unix".into(),
        ..summary("z", BASE.to_vec())
    };
    let unlike = judge_regressions(
        &compare(&[summary("x", BASE.to_vec())], &[other_stack]),
        RegressionRule::USUAL,
    );
    assert_eq!(unlike.caveats, ["the texts differ: `z` is judged by `x`"]);
    let none = judge_regressions(&[], RegressionRule::USUAL);
    assert_eq!(none.verdict, GateVerdict::Undecided);
}

#[test]
fn the_proposed_runs_decide_where_means_and_spread_stay() {
    let noisy = |factor: f64, n: usize| -> Vec<f64> {
        (0..n)
            .map(|at| factor * if at % 2 == 0 { 1.08 } else { 0.92 })
            .collect()
    };
    let few = judged(&noisy(1.0, 6), &noisy(1.0, 6), RegressionRule::USUAL);
    let more = few.more_runs.unwrap() as usize;
    let then = |n: usize| judged(&noisy(1.0, n), &noisy(1.0, n), RegressionRule::USUAL).verdict;
    // The spread of more runs is a little less (n - 1 against n), and numbers here are even.
    assert_eq!(
        then((6 + more).next_multiple_of(2)),
        RegressionVerdict::Same
    );
    assert_eq!(then((6 + more) / 2 / 2 * 2), RegressionVerdict::CannotSay);
}

#[test]
fn a_change_of_5_percent_of_a_segment_of_1_percent_is_found_in_30_runs() {
    // Twenty segments with a spread of 3 % of their own; the first, 1 % of the whole, becomes slower by 5 %.
    let gate = |number: u64, change: f64| {
        let mut generator = Seed::root(43).child("segments").index(number).generator();
        let mut side = |change: f64| -> Vec<SampleStatistics> {
            let segment = |at: usize| {
                let mean = if at == 0 { 1e-5 * change } else { 5e-5 };
                SampleStatistics::from_values(&normal(mean, 0.03, 30, &mut generator)).unwrap()
            };
            (0..20).map(segment).collect()
        };
        let (base, new) = (side(1.0), side(change));
        let segments = base.into_iter().zip(new).enumerate();
        let segments: Vec<ComparedFigure> = segments
            .map(|(at, (base, new))| ComparedFigure {
                label: Label {
                    text: "rr".into(),
                    part: "rr".into(),
                    stack: "tcp".into(),
                },
                figure: GateFigure::Segment(format!("segment {at}")),
                base,
                new,
            })
            .collect();
        judge_with_segments(&[], &segments, RegressionRule::USUAL)
    };
    let found = |number: &u64| gate(*number, 1.05).figures[0].verdict == RegressionVerdict::Worse;
    let found = (0..100).filter(found).count();
    let alarms = count(1000, GateVerdict::Worse, |number| gate(number, 1.0));
    println!("{found} of 100 found, {alarms} of 1000 gates of equal segments fail");
    assert!(found >= 95, "{found}");
    assert!(alarms <= 10, "{alarms}");
}

#[test]
fn a_segment_that_cannot_be_said_does_not_leave_the_gate_undecided() {
    let wide = SampleStatistics::from_values(&[1.0, 3.0, 2.0]).unwrap();
    let segment = |name: &str| ComparedFigure {
        label: Label {
            text: "x".into(),
            part: "x".into(),
            stack: "tcp".into(),
        },
        figure: GateFigure::Segment(name.into()),
        base: wide,
        new: wide,
    };
    let same = compare(&[summary("x", BASE.to_vec())], &[summary("x", times(1.0))]);
    let judged = judge_with_segments(&same, &[segment("path a>b")], RegressionRule::USUAL);
    assert_eq!(judged.verdict, GateVerdict::Passed);
    assert_eq!(judged.figures[1].verdict, RegressionVerdict::CannotSay);
    let alone = judge_with_segments(&[], &[segment("path a>b")], RegressionRule::USUAL);
    assert_eq!(alone.verdict, GateVerdict::Undecided);
}

#[test]
fn percentiles_that_differ_by_their_last_digit_alone_are_the_same() {
    let percentile = |value: f64| Summary {
        run_values: RunValues {
            response_percentiles_s: [vec![], vec![], vec![value; 5]],
            ..RunValues::default()
        },
        ..summary("x", vec![])
    };
    let judge = |value: f64| {
        let metrics = [RunMetric::ResponseP99];
        let sides = [percentile(1.0), percentile(value)];
        let compared = compare_by(&sides[..1], &sides[1..], &metrics);
        judge_regressions(&compared, RegressionRule::USUAL).verdict
    };
    assert_eq!(judge(1.01), GateVerdict::Passed);
    assert_eq!(judge(1.03), GateVerdict::Worse);
}
