//! Known samples, and what holds for every sample.

use super::*;
use proptest::prelude::*;

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * b.abs().max(1e-12)
}

/// A histogram that counts exactly.
pub(crate) fn histogram(values: &[u64]) -> Histogram {
    let mut all = Histogram::default();
    for value in values {
        let one = Histogram {
            counts: vec![(*value, 1)],
            sum: *value,
            squares: to_f64(*value).powi(2),
            min_max: Some((*value, *value)),
        };
        all.merge(&one);
    }
    all
}

#[test]
fn quantiles_of_student() {
    for (freedom, t) in [
        (1.0, 12.706_204_7),
        (9.0, 2.262_157_2),
        (30.0, 2.042_272_5),
        (1000.0, 1.962_339_1),
        (1e9, 1.959_964_0),
    ] {
        assert!(
            near(t_quantile(freedom), t),
            "{freedom}: {}",
            t_quantile(freedom)
        );
    }
    for freedom in [60.0, 80.0, 100.0] {
        assert!(
            (t_series(freedom) - t_quantile(freedom)).abs() < 1e-6,
            "{freedom}: {}",
            t_series(freedom)
        );
    }
}

#[test]
fn a_known_sample() {
    let s = SampleStatistics::from_values(&[4.0, 1.0, 3.0, 2.0]).unwrap();
    assert_eq!(
        (s.n, s.mean, s.min, s.max, s.median),
        (4, 2.5, 1.0, 4.0, 2.5)
    );
    assert!(near(s.sd.unwrap(), 1.290_994_4));
    assert!(near(
        s.half_width().unwrap(),
        3.182_446_3 * 1.290_994_4 / 2.0
    ));
    assert!(near(s.p90, 3.7));
}

#[test]
fn no_value_and_one_value() {
    assert_eq!(SampleStatistics::from_values(&[]), None);
    assert_eq!(
        SampleStatistics::from_histogram(&Histogram::default(), 1.0),
        None
    );
    assert_eq!(SampleStatistics::from_runs(&[], 1.0), None);
    let s = SampleStatistics::from_values(&[7.0]).unwrap();
    assert_eq!((s.sd, s.ci95, s.median, s.p999), (None, None, 7.0, 7.0));
    let s = SampleStatistics::from_histogram(&histogram(&[7]), 1e-9).unwrap();
    assert_eq!((s.sd, s.ci95), (None, None));
    assert!(near(s.median, 7e-9));
}

#[test]
fn equal_runs_give_students_interval_of_their_means() {
    let runs = [
        histogram(&[10, 20, 30]),
        histogram(&[12, 22, 32]),
        histogram(&[17, 27, 37]),
    ];
    let pooled = SampleStatistics::from_runs(&runs, 1.0).unwrap();
    let means = SampleStatistics::from_values(&[20.0, 22.0, 27.0]).unwrap();
    assert!(near(pooled.mean, means.mean));
    assert!(near(
        pooled.half_width().unwrap(),
        means.half_width().unwrap()
    ));
}

#[test]
fn one_run_gives_the_interval_of_its_calls() {
    let run = histogram(&[10, 20, 30]);
    assert_eq!(
        SampleStatistics::from_runs(std::slice::from_ref(&run), 1.0),
        SampleStatistics::from_histogram(&run, 1.0)
    );
}

#[test]
fn a_percentile_takes_as_many_values_as_leave_one_above_it() {
    for (percent, needed) in [
        (50.0, 2),
        (75.0, 4),
        (95.0, 20),
        (99.0, 100),
        (99.9, 1000),
        (99.99, 10_000),
        (99.999, 100_000),
    ] {
        assert_eq!(values_needed(percent), needed, "{percent}");
        let times = |n: u64| Histogram {
            counts: (1..=n).map(|ns| (ns, 1)).collect(),
            ..Histogram::default()
        };
        assert_eq!(percentile(&times(needed - 1), percent), None);
        let found = percentile(&times(needed), percent).unwrap() * 1e9;
        assert!(
            (found - to_f64(needed - 1).max(1.0)).abs() < 1e-3,
            "{percent}: {found}"
        );
    }
    let hundred = Histogram {
        counts: (1..=100).map(|ns| (ns, 1)).collect(),
        ..Histogram::default()
    };
    assert!(
        (percentile(&hundred, 7.0).unwrap() * 1e9 - 7.0).abs() < 1e-6,
        "no rank more by rounding"
    );
}

#[test]
fn percentiles_of_a_histogram_are_nearest_ranks() {
    let s =
        SampleStatistics::from_histogram(&histogram(&(1..=1000).collect::<Vec<_>>()), 1.0).unwrap();
    assert_eq!(
        (s.median, s.p90, s.p99, s.p999),
        (500.0, 900.0, 990.0, 999.0)
    );
}

fn check(s: &SampleStatistics) -> Result<(), TestCaseError> {
    let ascending = [s.min, s.median, s.p90, s.p99, s.p999, s.max];
    prop_assert!(
        ascending.windows(2).all(|pair| pair[0] <= pair[1]),
        "{:?}",
        s
    );
    prop_assert!(s.min <= s.mean && s.mean <= s.max, "{:?}", s);
    prop_assert_eq!(s.sd.is_some(), s.n > 1);
    prop_assert_eq!(s.ci95.is_some(), s.n > 1);
    prop_assert!(
        s.ci95
            .is_none_or(|(low, high)| low <= s.mean && s.mean <= high),
        "{:?}",
        s
    );
    Ok(())
}

proptest! {
    #[test]
    fn of_values(values in proptest::collection::vec(-1e9..1e9_f64, 1..200)) {
        check(&SampleStatistics::from_values(&values).unwrap())?;
    }

    #[test]
    fn of_histograms(values in proptest::collection::vec(0..1_000_000_000_u64, 1..200)) {
        let s = SampleStatistics::from_histogram(&histogram(&values), 1e-9).unwrap();
        check(&s)?;
        let exact: Vec<f64> = values.iter().map(|v| to_f64(*v) * 1e-9).collect();
        let exact = SampleStatistics::from_values(&exact).unwrap();
        prop_assert!((s.mean - exact.mean).abs() <= 1e-9);
        prop_assert!((s.sd.unwrap_or(0.0) - exact.sd.unwrap_or(0.0)).abs() <= 1e-6);
    }

    #[test]
    fn of_runs(runs in proptest::collection::vec(proptest::collection::vec(0..1_000_000_u64, 1..40), 2..8)) {
        let runs: Vec<Histogram> = runs.iter().map(|run| histogram(run)).collect();
        check(&SampleStatistics::from_runs(&runs, 1e-9).unwrap())?;
    }
}
