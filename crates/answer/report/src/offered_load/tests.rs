//! What is printed of curves and of the highest rate.

use super::*;
use stackline_analyze::SampleStatistics;
use stackline_analyze::offered_load::SaturationSign;
use stackline_analyze::offered_load::rate_search::FoundRate;

fn step(offered_per_s: f64, p99_s: f64, late_s: f64) -> LoadStep {
    let latency = |value_s: f64| {
        Some(LoadLatency {
            value_s,
            ci95_s: Some((0.9 * value_s, 1.1 * value_s)),
        })
    };
    LoadStep {
        offered_per_s,
        achieved_per_s: SampleStatistics::from_values(&[offered_per_s]),
        runs: 3,
        operations: 1000,
        p50: latency(0.1 * p99_s),
        p99: latency(p99_s),
        p999: None,
        generator_lateness_s: SampleStatistics::from_values(&[late_s]),
        generator_late_share: Some(if late_s > 1e-4 { 0.25 } else { 0.0 }),
        lost_share: None,
        saturated: None,
    }
}

fn form() -> LoadForm {
    LoadForm {
        pairs: 8,
        is_poisson: true,
        runs: 3,
        directory: Some("runs/load".into()),
    }
}

#[test]
fn a_curve_says_why_it_ended_and_whether_the_generator_was_punctual() {
    let curve = LoadCurve {
        steps: vec![
            step(100.0, 0.010, 2e-5),
            step(1000.0, 0.012, 2e-5),
            step(10_000.0, 1.0, 2e-4),
        ],
        stop: LoadStop::Saturated(SaturationSign::Achieved),
        closed_per_s: Some(2000.0),
    };
    let text = load_curve(&curve, &form());
    let expected = " offered  achieved           p50           p99  p99.9  generator
   100/s     100/s  1.00 ms ±10%  10.0 ms ±10%      -    20.0 us
";
    assert!(text.starts_with(expected), "{text}");
    for words in [
        "stopped at 10.0 k/s: less than 95 % of the offered load was achieved",
        "the highest rate before is 1.00 k/s",
        "knee at 1.00 k/s",
        "made 2.00 k/s",
        "at random moments (Poisson), by 8 pairs together",
        "at 10.0 k/s it began 25.0 % of",
        "kept in runs/load\n",
    ] {
        assert!(
            text.replace('\n', " ").contains(&words.replace('\n', " ")),
            "{words}: {text}"
        );
    }
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let json = load_curve_json(&curve, &form());
    assert_eq!(json["knee_per_s"], 1000.0);
    assert_eq!(json["stop"]["by"], "achieved");
}

#[test]
fn the_highest_rate_is_an_interval_with_what_is_undecided_in_it() {
    let tried = |rate, p99, verdict| TriedRate {
        step: step(rate, p99, 2e-5),
        figures: Vec::new(),
        verdict,
    };
    let answer = HighestRate {
        expectations: vec!["p99 < 5 ms".into()],
        tried: vec![
            tried(100.0, 0.001, RateVerdict::Met),
            tried(150.0, 0.005, RateVerdict::Undecided),
            tried(200.0, 0.009, RateVerdict::Missed),
        ],
        found: FoundRate {
            met_per_s: Some(100.0),
            missed_per_s: Some(200.0),
            undecided_per_s: vec![150.0],
            met_above_per_s: Vec::new(),
        },
        limits: (1.0, 1000.0),
        failed: vec![(400.0, "the server refused".into())],
        is_exhausted: false,
        is_interrupted: false,
    };
    let text = highest_rate(&answer, &form());
    for words in [
        "200/s     200/s  900 us ±10%  9.00 ms ±10%      -    20.0 us  missed",
        "highest rate with p99 < 5 ms: at least 100/s, less than 200/s",
        "err with at most 5 %",
        "the runs do not decide 150/s",
        "at 400/s the runs failed, which counts as missed: the server refused",
        "the generator was punctual",
    ] {
        assert!(text.replace('\n', " ").contains(words), "{words}: {text}");
    }
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let none = HighestRate {
        found: FoundRate {
            missed_per_s: Some(1.0),
            ..FoundRate::default()
        },
        ..answer
    };
    assert!(highest_rate(&none, &form()).contains("even the lowest rate"));
}
