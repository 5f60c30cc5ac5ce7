//! Steps, signs of saturation, the knee, verdicts and the search, on systems whose answer is known.

use super::rate_search::RateSearch;
use super::rate_verdict::{MOST_RATES, RateVerdict, judge_values};
use super::*;
use crate::statistics::tests::histogram;
use crate::summarise::summarise;
use stackline_core::expectation::FigureBound;
use stackline_core::run_record::RunRecord;

const SECOND: u64 = 1_000_000_000;

/// A run of a second with `calls` calls of that time, each begun `late` late, of which `own` is the generator's.
fn step(offered: f64, calls: usize, took: u64, [late, own]: [u64; 2]) -> LoadStep {
    let record = RunRecord {
        replicas: 1,
        elapsed_ns: SECOND,
        calls: histogram(&vec![took; calls]),
        lateness: histogram(&vec![late; calls]),
        own_lateness: histogram(&vec![own; calls]),
        ..RunRecord::default()
    };
    let plan = crate::testing::plan("1 rr 64*10 exponential(900 ms) over tcp;");
    let first = LoadStep::new(100.0, &summarise(&plan, &[idle()])[0], None);
    LoadStep::new(offered, &summarise(&plan, &[record])[0], Some(&first))
}

/// The lowest rate: 100 calls of 1 ms, begun 10 us late.
fn idle() -> RunRecord {
    RunRecord {
        replicas: 1,
        elapsed_ns: SECOND,
        calls: histogram(&[1_000_000; 100]),
        lateness: histogram(&[10_000; 100]),
        own_lateness: histogram(&[10_000; 100]),
        ..RunRecord::default()
    }
}

#[test]
fn a_rate_is_too_much_for_the_server_or_for_the_generator() {
    let of = |offered, calls, took, late| step(offered, calls, took, late).saturated;
    assert_eq!(of(1000.0, 990, 2_000_000, [10_000, 10_000]), None);
    assert_eq!(
        of(1000.0, 800, 2_000_000, [90_000_000, 10_000]),
        Some(SaturationSign::Achieved)
    );
    assert_eq!(
        of(1000.0, 990, 11_000_000, [9_000_000, 10_000]),
        Some(SaturationSign::MedianGrown)
    );
    assert_eq!(
        of(1000.0, 990, 2_000_000, [500_000, 500_000]),
        Some(SaturationSign::GeneratorLate)
    );
    // 88 of 100 at random moments is chance, 88 of 100 out of ten thousand is not.
    assert_eq!(of(100.0, 88, 1_000_000, [0, 0]), None);
    assert_eq!(
        of(10_000.0, 8_800, 1_000_000, [0, 0]),
        Some(SaturationSign::Achieved)
    );
}

#[test]
fn the_knee_is_where_power_is_greatest() {
    // M/M/1 with 1000/s: the median is ln 2 / (1000 - rate), and power is greatest at half the capacity.
    let at = |rate: f64| {
        let took = (0.693 / (1000.0 - rate) * 1e9) as u64;
        step(rate, rate as usize, took, [0, 0])
    };
    let steps: Vec<LoadStep> = [100.0, 300.0, 500.0, 700.0, 900.0].map(at).into();
    assert_eq!(knee(&steps).map(|step| step.offered_per_s), Some(500.0));
    assert_eq!(knee(&steps[..2]), None);
    assert_eq!(knee(&steps[..3]), None, "it is not passed");
}

#[test]
fn rates_rise_by_one_factor() {
    assert_eq!(
        geometric_rates(100.0, 1600.0, 5),
        [100.0, 200.0, 400.0, 800.0, 1600.0]
    );
    assert_eq!(geometric_rates(1.0, 3.0, 3), [1.0, 1.73, 3.0]);
    assert_eq!(geometric_rates(5.0, 5.0, 3), [5.0]);
}

/// The next number of SplitMix64, from 0 to 1.
fn uniform(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    to_f64((mixed ^ (mixed >> 31)) >> 11) / to_f64(1 << 53)
}

/// Searches where the figure of a run is `figure(rate)` times a random factor between `1 - noise` and `1 + noise`.
fn search(seed: u64, noise: f64, figure: impl Fn(f64) -> f64) -> RateSearch {
    let bound = FigureBound::Below(5e-3);
    let mut state = seed;
    let mut search = RateSearch::new(1.0, 100_000.0, 100.0, 0.05);
    while let Some(rate) = search.next_rate() {
        let mut values: Vec<f64> = Vec::new();
        let verdict = [4, 8, 16].into_iter().find_map(|runs| {
            while values.len() < runs {
                let chance = uniform(&mut state);
                values.push(figure(rate) * (1.0 + noise * (2.0 * chance - 1.0)));
            }
            let judged = judge_values(&values, bound)?.verdict;
            (judged != RateVerdict::Undecided).then_some(judged)
        });
        search.record(rate, verdict.unwrap_or(RateVerdict::Undecided));
    }
    search
}

/// The 99th percentile of a queue with 1000 answers a second: ln 100 / (1000 - rate) of M/M/1. It is 5 ms at 78.97/s.
fn queue(rate: f64) -> f64 {
    if rate < 1000.0 {
        4.605_17 / (1000.0 - rate)
    } else {
        10.0
    }
}

#[test]
fn without_noise_the_answer_is_as_narrow_as_asked() {
    let found = search(1, 0.0, queue).found();
    let (met, missed) = (found.met_per_s.unwrap(), found.missed_per_s.unwrap());
    assert!(met < 78.97 && missed > 78.97, "{met} {missed}");
    assert!(missed / met <= 1.05, "{met} {missed}");
    assert_eq!(found.undecided_per_s, [0.0; 0]);
}

#[test]
fn with_noise_the_answer_contains_the_truth_and_says_what_is_undecided() {
    let mut wrong = 0;
    let mut undecided = 0;
    for seed in 0..200 {
        let searched = search(seed, 0.3, queue);
        assert!(searched.judged().len() <= MOST_RATES);
        let found = searched.found();
        let is_right = found.met_per_s.is_none_or(|met| met < 78.98)
            && found.missed_per_s.is_none_or(|missed| missed > 78.96);
        wrong += usize::from(!is_right);
        undecided += usize::from(!found.undecided_per_s.is_empty());
    }
    assert!(wrong <= 10, "{wrong} of 200 at a stated 5 %");
    assert!(undecided > 100, "{undecided}");
}

#[test]
fn all_rates_may_miss_or_meet() {
    let found = search(1, 0.0, |_| 1.0).found();
    assert_eq!((found.met_per_s, found.missed_per_s), (None, Some(1.0)));
    let found = search(1, 0.0, |_| 1e-6).found();
    assert_eq!(
        (found.met_per_s, found.missed_per_s),
        (Some(100_000.0), None)
    );
}

#[test]
fn a_rate_that_is_met_above_a_missed_one_is_listed_apart() {
    let mut search = RateSearch::new(1.0, 1000.0, 100.0, 0.05);
    search.record(100.0, RateVerdict::Met);
    search.record(200.0, RateVerdict::Missed);
    search.record(400.0, RateVerdict::Met);
    let found = search.found();
    assert_eq!(
        (found.met_per_s, found.missed_per_s),
        (Some(100.0), Some(200.0))
    );
    assert_eq!(found.met_above_per_s, [400.0]);
    assert_eq!(search.next_rate(), Some(141.0));
}

#[test]
fn one_run_decides_nothing_and_equal_runs_decide_at_once() {
    let below = FigureBound::Below(5.0);
    assert_eq!(
        judge_values(&[1.0], below).unwrap().verdict,
        RateVerdict::Undecided
    );
    assert_eq!(
        judge_values(&[1.0, 1.0], below).unwrap().verdict,
        RateVerdict::Met
    );
    assert_eq!(
        judge_values(&[6.0, 6.0], below).unwrap().verdict,
        RateVerdict::Missed
    );
    assert_eq!(judge_values(&[], below), None);
}
