//! Change points of series with planted steps and without, and those that Apache Otava 0.8.0 finds.

use super::*;
use proptest::prelude::*;
use stackline_core::distribution::Distribution;
use stackline_core::random::Seed;

fn places(series: &[f64]) -> Vec<usize> {
    let found = find_change_points(series, &ChangePointRule::USUAL);
    found.iter().map(|point| point.index).collect()
}

/// `n` values of each mean, with a spread of 1 %.
fn steps(number: u64, parts: &[(usize, f64)]) -> Vec<f64> {
    let mut generator = Seed::root(43).child("series").index(number).generator();
    let noise = Distribution::build("normal", &[1.0, 0.01]).unwrap();
    let part = |&(n, mean): &(usize, f64)| vec![mean; n];
    let means = parts.iter().flat_map(part);
    means
        .map(|mean| mean * noise.draw(&mut generator))
        .collect()
}

const ONE: [u16; 40] = [
    1022, 1006, 1010, 1013, 987, 977, 983, 1005, 1016, 1002, 980, 1021, 976, 993, 991, 1004, 1016,
    978, 995, 1005, 1032, 1049, 1053, 1030, 1030, 1049, 1047, 1053, 1083, 1063, 1057, 1039, 1064,
    1038, 1074, 1068, 1020, 1032, 1047, 1044,
];
const TWO: [u16; 75] = [
    987, 988, 1007, 995, 985, 997, 1010, 1017, 1001, 997, 992, 995, 1005, 1013, 1012, 998, 1009,
    1008, 1005, 975, 999, 997, 1013, 997, 1005, 1033, 1043, 1038, 1040, 1045, 1040, 1038, 1027,
    1031, 1052, 1030, 1035, 1029, 1027, 1000, 1047, 1018, 1022, 1044, 1006, 990, 984, 972, 996,
    982, 989, 986, 996, 1013, 977, 999, 983, 986, 971, 979, 986, 998, 992, 996, 997, 976, 1005,
    987, 997, 988, 993, 996, 967, 1010, 992,
];
const DRIFT: [u16; 60] = [
    993, 995, 995, 1004, 1009, 1021, 1002, 1002, 1011, 1013, 1025, 1024, 1014, 1007, 1024, 1020,
    1032, 1025, 1026, 1021, 1030, 1038, 1028, 1036, 1032, 1043, 1039, 1044, 1044, 1038, 1038, 1054,
    1046, 1043, 1047, 1062, 1055, 1062, 1043, 1072, 1061, 1070, 1061, 1064, 1071, 1079, 1070, 1066,
    1078, 1086, 1067, 1071, 1082, 1077, 1068, 1083, 1086, 1090, 1095, 1081,
];
const SHORT: [u16; 9] = [994, 996, 993, 989, 1001, 1214, 1191, 1182, 1194];

#[test]
fn otava_finds_the_same_with_the_same_probabilities() {
    let of = |series: &[u16], expected: &[(usize, f64, f64, f64)]| {
        let series: Vec<f64> = series.iter().map(|value| f64::from(*value)).collect();
        let found = find_change_points(&series, &ChangePointRule::USUAL);
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (point, (index, p, before, after)) in found.iter().zip(expected) {
            assert_eq!(point.index, *index);
            assert!((point.p / p - 1.0).abs() < 1e-6, "{point:?}");
            assert!((point.before - before).abs() < 1e-9 && (point.after - after).abs() < 1e-9);
        }
    };
    of(&ONE, &[(20, 1.923_744_499_469_633_7e-12, 999.0, 1048.6)]);
    let middle = 1_033.631_578_947_369;
    of(
        &TWO,
        &[
            (25, 5.756_028_938_478_039e-13, 1000.28, middle),
            (44, 9.521_741_931_434_66e-18, middle, 989.967_741_935_483_9),
        ],
    );
    of(&SHORT, &[(5, 3.049_438_408_251_572_5e-9, 994.6, 1195.25)]);
    // Otava prints the mean behind the first one up to a point that it took out: 1021.8.
    let mean = |from: usize, to: usize| {
        let sum: f64 = DRIFT[from..to].iter().map(|value| f64::from(*value)).sum();
        sum / (to - from) as f64
    };
    let [second, third, fourth] = [mean(10, 25), mean(25, 39), mean(39, 55)];
    of(
        &DRIFT,
        &[
            (10, 8.123_144_066_321_399e-5, mean(0, 10), second),
            (25, 9.464_282_752_244_188e-7, second, third),
            (39, 9.198_876_219_832_561e-10, third, fourth),
            (55, 2.167_184_037_942_702_6e-4, fourth, 1087.0),
        ],
    );
}

#[test]
fn planted_steps_are_found_near_their_places() {
    let is_near = |number: &u64| {
        let series = steps(*number, &[(30, 1.0), (30, 1.03), (30, 1.0)]);
        let found = places(&series);
        found.len() == 2 && found[0].abs_diff(30) <= 2 && found[1].abs_diff(60) <= 2
    };
    let found = (0..100).filter(is_near).count();
    println!("{found} of 100 series of 90 values with two steps of 3 %");
    assert!(found >= 85, "{found}");
}

#[test]
fn series_without_a_step_seldom_have_a_change_point() {
    let has_one = |number: &u64| !places(&steps(*number, &[(60, 1.0)])).is_empty();
    let found = (0..1000).filter(has_one).count();
    println!("{found} of 1000 series of 60 equal values");
    // The probability is for one place; the best of many places is judged, so that more than 1 of 1000 is found.
    assert!(found <= 60, "{found}");
}

#[test]
fn small_changes_are_left_out_on_request_and_too_few_values_have_none() {
    let series = steps(1, &[(20, 1.0), (20, 1.05)]);
    let rule = |min_magnitude| ChangePointRule {
        min_magnitude,
        ..ChangePointRule::USUAL
    };
    let found = find_change_points(&series, &rule(0.03));
    assert!(
        found.len() == 1 && (found[0].ratio() - 1.05).abs() < 0.02,
        "{found:?}"
    );
    assert!(find_change_points(&series, &rule(0.1)).is_empty());
    for few in [&[][..], &[1.0], &[1.0, 2.0]] {
        assert!(places(few).is_empty());
    }
}

#[test]
fn a_series_without_spread_changes_where_its_values_do() {
    let exact = [vec![2.0; 10], vec![3.0; 10]].concat();
    assert_eq!(places(&exact), [10]);
    assert_eq!(places(&[1.5; 30]), [0_usize; 0]);
    assert_eq!(places(&[0.0; 30]), [0_usize; 0]);
}

#[test]
fn a_long_series_is_searched_window_by_window() {
    let series = steps(7, &[(400, 1.0), (300, 1.05), (300, 1.0)]);
    let found = find_change_points(&series, &ChangePointRule::USUAL);
    let near = |place: usize| found.iter().any(|point| point.index.abs_diff(place) <= 2);
    assert!(near(400) && near(700), "{found:?}");
}

proptest! {
    #[test]
    fn every_change_point_is_within_the_series_and_keeps_the_rule(
        series in proptest::collection::vec(0.0..100.0_f64, 0..80),
        window in 2_usize..60,
    ) {
        let rule = ChangePointRule { window, ..ChangePointRule::USUAL };
        let found = find_change_points(&series, &rule);
        prop_assert!(found.is_sorted_by_key(|point| point.index));
        for point in &found {
            prop_assert!(point.index > 0 && point.index < series.len());
            prop_assert!(point.p < rule.max_p);
        }
    }
}
