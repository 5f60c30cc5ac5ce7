//! Against books and against what is known.

use super::*;
use crate::design::Wish;

fn observed(rows: &[&[f64]]) -> Vec<FactorObservation> {
    let mut all = Vec::new();
    for (row, values) in rows.iter().enumerate() {
        for value in *values {
            all.push(FactorObservation {
                row,
                block: 0,
                order: all.len() as u32,
                value: *value,
            });
        }
    }
    all
}

fn near(is: f64, expected: f64, digits: i32) {
    assert!(
        (is - expected).abs() <= 0.5 * 10_f64.powi(-digits) + 1e-12,
        "{is} instead of {expected}"
    );
}

#[test]
fn memory_and_cache_of_jain() {
    // Jain 1991, example 17.1: 2^2 of memory and cache, MIPS. q0 = 40, qA = 20, qB = 10, qAB = 5; 76, 19 and 5 % of the variation.
    let design = Design::new(&[2, 2], Wish::Full).unwrap();
    let answer = analyse(
        &design,
        &observed(&[&[15.0], &[45.0], &[25.0], &[75.0]]),
        Some(EffectScale::Additive),
    )
    .unwrap();
    assert_eq!(answer.fit().coefficients(), [40.0, 20.0, 10.0, 5.0]);
    let shares: Vec<f64> = answer
        .effects
        .iter()
        .map(|effect| (100.0 * effect.share).round())
        .collect();
    assert_eq!(shares, [76.0, 19.0]);
    near(100.0 * answer.interactions[0].share, 5.0, 0);
    near(answer.fit().total_squares, 2100.0, 9);
}

#[test]
fn memory_and_cache_of_jain_three_times() {
    // Jain 1991, example 18.1 ff.: three replications. q0 41, qA 21.5, qB 9.5, qAB 5; SSE 102, SSA 5547, SSB 1083, SSAB 300, SST 7032;
    // standard deviation of errors 3.57, of effects 1.03; 90 % intervals by t(8).
    let design = Design::new(&[2, 2], Wish::Full).unwrap();
    let runs = observed(&[
        &[15.0, 18.0, 12.0],
        &[45.0, 48.0, 51.0],
        &[25.0, 28.0, 19.0],
        &[75.0, 75.0, 81.0],
    ]);
    let answer = analyse(&design, &runs, Some(EffectScale::Additive)).unwrap();
    assert_eq!(
        answer.fit().coefficients().map_or_round(),
        [41.0, 21.5, 9.5, 5.0]
    );
    near(answer.fit().residual_squares, 102.0, 9);
    let squares: Vec<f64> = (0..3).map(|term| answer.fit().squares(term)).collect();
    [5547.0, 1083.0, 300.0]
        .iter()
        .zip(squares)
        .for_each(|(book, is)| near(is, *book, 6));
    near(answer.fit().total_squares, 7032.0, 6);
    near((answer.fit().residual_squares / 8.0).sqrt(), 3.57, 2);
    assert_eq!(answer.freedom, 8.0);
    assert_eq!(
        answer
            .effects
            .iter()
            .map(|effect| effect.rank)
            .collect::<Vec<_>>(),
        [1, 2]
    );
}

trait Rounded {
    fn map_or_round(self) -> Vec<f64>;
}

impl Rounded for Vec<f64> {
    fn map_or_round(self) -> Vec<f64> {
        self.into_iter()
            .map(|value| (value * 1e9).round() / 1e9)
            .collect()
    }
}

#[test]
fn filtration_rate_of_montgomery() {
    // Montgomery, Design and Analysis of Experiments, example 6.2: unreplicated 2^4, effects of A 21.625, B 3.125, C 9.875, D 14.625,
    // AC -18.125, AD 16.625; in the half fraction D = ABC (example 8.1): A 19.0, B 1.5, C 14.0, D 16.5, AC -18.5, AD 19.0.
    let rates = [
        45.0, 71.0, 48.0, 65.0, 68.0, 60.0, 80.0, 65.0, 43.0, 100.0, 45.0, 104.0, 75.0, 86.0, 70.0,
        96.0,
    ];
    let design = Design::new(&[2; 4], Wish::Full).unwrap();
    let all: Vec<Vec<f64>> = rates.iter().map(|rate| vec![*rate]).collect();
    let rows: Vec<&[f64]> = all.iter().map(Vec::as_slice).collect();
    let answer = analyse(&design, &observed(&rows), Some(EffectScale::Additive)).unwrap();
    let effect = |factor: usize| {
        answer
            .effects
            .iter()
            .find(|one| one.factor == factor)
            .unwrap()
            .estimate
            .value
    };
    [21.625, 3.125, 9.875, 14.625]
        .iter()
        .enumerate()
        .for_each(|(factor, book)| near(effect(factor), *book, 6));
    let of = |factors: &[usize]| {
        answer
            .interactions
            .iter()
            .find(|one| one.factors == factors)
            .unwrap()
            .estimate
            .unwrap()
            .value
    };
    near(of(&[0, 2]), -18.125, 6);
    near(of(&[0, 3]), 16.625, 6);
    // Lenth's margin finds the five that the book takes for real.
    let clear: Vec<usize> = answer
        .effects
        .iter()
        .filter(|one| !one.estimate.may_be_zero())
        .map(|one| one.factor)
        .collect();
    assert_eq!(clear, [0, 3, 2]);

    let half = Design::new(&[2; 4], Wish::Fraction(8)).unwrap();
    let runs: Vec<FactorObservation> = (0..8)
        .map(|row| {
            let value = rates[design.row_of(&half.rows[row]).unwrap()];
            FactorObservation {
                row,
                block: 0,
                order: row as u32,
                value,
            }
        })
        .collect();
    let answer = analyse(&half, &runs, Some(EffectScale::Additive)).unwrap();
    let effect = |factor: usize| {
        answer
            .effects
            .iter()
            .find(|one| one.factor == factor)
            .unwrap()
            .estimate
            .value
    };
    [19.0, 1.5, 14.0, 16.5]
        .iter()
        .enumerate()
        .for_each(|(factor, book)| near(effect(factor), *book, 6));
    let of = |factors: &[usize]| {
        answer
            .interactions
            .iter()
            .find(|one| one.factors == factors)
            .unwrap()
            .estimate
            .unwrap()
            .value
    };
    near(of(&[0, 2]), -18.5, 6);
    near(of(&[0, 3]), 19.0, 6);
}

#[test]
fn products_are_distinguished_from_sums() {
    let design = Design::new(&[2, 2, 2], Wish::Full).unwrap();
    let of = |value: &dyn Fn(&[usize]) -> f64| {
        let runs: Vec<FactorObservation> = (0..16)
            .map(|at| {
                let noise = 1.0 + 0.001 * f64::from((at * 7 % 5) as u8);
                FactorObservation {
                    row: at % 8,
                    block: 0,
                    order: at as u32,
                    value: value(&design.rows[at % 8]) * noise,
                }
            })
            .collect();
        analyse(&design, &runs, None).unwrap()
    };
    let product = of(&|row| 3.0 * 2.0_f64.powi(row[0] as i32) * 5.0_f64.powi(row[1] as i32));
    assert_eq!(product.scale, EffectScale::Multiplicative);
    assert!(
        (product.effects[0].estimate.value.exp() - 5.0).abs() < 0.01
            && product.effects[0].factor == 1
    );
    let sum = of(&|row| 10.0 + 5.0 * row[0] as f64 + 100.0 * row[1] as f64);
    assert_eq!(sum.scale, EffectScale::Additive);
    assert!(sum.effects[2].estimate.may_be_zero() && sum.effects[2].factor == 2);
    assert_eq!(
        sum.effects
            .iter()
            .map(|effect| effect.rank)
            .collect::<Vec<_>>(),
        [1, 2, 3]
    );
}

#[test]
fn three_levels_and_missing_runs() {
    let design = Design::new(&[3, 2], Wish::Full).unwrap();
    let value = |row: &[usize]| [1.0, 4.0, 9.0][row[0]] + 2.0 * row[1] as f64;
    let runs = |rows: &[usize]| -> Vec<FactorObservation> {
        rows.iter()
            .enumerate()
            .map(|(at, row)| {
                let noise = if at % 2 == 0 { 0.01 } else { -0.01 };
                FactorObservation {
                    row: *row,
                    block: 0,
                    order: at as u32,
                    value: value(&design.rows[*row]) + noise,
                }
            })
            .collect()
    };
    let all = analyse(
        &design,
        &runs(&[0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]),
        Some(EffectScale::Additive),
    )
    .unwrap();
    let first = &all.effects[0];
    assert_eq!((first.factor, first.level), (0, 2));
    near(first.levels[0].value, 3.0, 6);
    near(first.levels[1].value, 8.0, 6);
    assert!(all.interactions[0].share < 1e-6 && !all.interactions[0].is_clear);
    // The combination 5 was never run: effects are reported all the same.
    let some = analyse(
        &design,
        &runs(&[0, 0, 1, 1, 2, 2, 3, 3, 4, 4]),
        Some(EffectScale::Additive),
    )
    .unwrap();
    near(some.effects[0].levels[1].value, 8.0, 6);
    assert!(
        some.interactions.is_empty()
            && some
                .doubts
                .iter()
                .any(|doubt| doubt.contains("runs are missing"))
    );
    assert!(analyse(&design, &runs(&[0, 0, 1, 1]), Some(EffectScale::Additive)).is_err());
}

#[test]
fn what_has_no_spread_has_no_width() {
    let design = Design::new(&[2, 2], Wish::Full).unwrap();
    let answer = analyse(
        &design,
        &observed(&[&[1.0, 1.0], &[2.0, 2.0], &[1.0, 1.0], &[2.0, 2.0]]),
        None,
    )
    .unwrap();
    assert_eq!(answer.spread, IntervalSource::None);
    assert_eq!(answer.effects[0].estimate.half, Some(0.0));
    assert!(answer.effects[1].estimate.may_be_zero());
    let zero = observed(&[&[0.0], &[1.0], &[2.0], &[3.0]]);
    assert!(analyse(&design, &zero, Some(EffectScale::Multiplicative)).is_err());
    assert_eq!(
        analyse(&design, &zero, None).unwrap().scale,
        EffectScale::Additive
    );
}

/// A sum of twelve uniform numbers less six is as good as normal; the numbers are Lehmer's.
fn normal(state: &mut u64) -> f64 {
    let mut uniform = || {
        *state = *state * 48_271 % 2_147_483_647;
        *state as f64 / 2_147_483_647.0
    };
    (0..12).map(|_| uniform()).sum::<f64>() - 6.0
}

/// A ratio has the spread of both its means: with that of the difference alone three quarters of the intervals would hold the truth.
#[test]
fn a_ratio_of_differences_has_the_spread_of_both_its_means() {
    let design = Design::new(&[2], Wish::Full).unwrap();
    let (mut state, mut held) = (7, 0);
    for _ in 0..1000 {
        let mut runs = |mean: f64| {
            (0..5)
                .map(|_| mean + 2.0 * normal(&mut state))
                .collect::<Vec<f64>>()
        };
        let (base, level) = (runs(10.0), runs(20.0));
        let answer = analyse(
            &design,
            &observed(&[&base, &level]),
            Some(EffectScale::Additive),
        )
        .unwrap();
        let (ratio, within) = answer.ratio(&design, &[1], &[0]);
        let (least, most) = within.unwrap();
        assert!(least < ratio && ratio < most);
        let average = answer.ratio_on_average(0, 1).unwrap();
        assert!((average.0 / ratio - 1.0).abs() < 1e-9);
        held += usize::from((least..most).contains(&2.0));
    }
    assert!((930..=970).contains(&held), "{held}");
}
