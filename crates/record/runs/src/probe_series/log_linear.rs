//! Histograms with few entries: each power of two has 32 equal classes, so a value is known to 1.6 %, and equal values stay few
//! however many calls a probe makes.

use stackline_core::run_record::Histogram;

/// Bits of a value that distinguish the classes of a power of two.
const BITS: u32 = 5;
/// Values below this are classes of their own.
const EXACT: u64 = 1 << (BITS + 1);

/// The class of a value.
fn class_of(value: u64) -> u32 {
    if value < EXACT {
        return value as u32;
    }
    let shift = value.ilog2() - BITS;
    // The leading one of the shifted value counts the power of two.
    (shift << BITS) + (value >> shift) as u32
}

/// The middle of a class; `None` of one that no value has.
fn middle_of(class: u32) -> Option<u64> {
    if u64::from(class) < EXACT {
        return Some(class.into());
    }
    let shift = (class >> BITS) - 1;
    let digits = u64::from(class & ((1 << BITS) - 1) | 1 << BITS);
    let least = digits
        .checked_shl(shift)
        .filter(|least| least >> shift == digits)?;
    Some(least + (1 << shift) / 2)
}

/// The classes of a histogram's values: how far each is from the one before, and how many values it has.
pub(super) fn classes(histogram: &Histogram) -> Vec<(u32, u64)> {
    let mut classes: Vec<(u32, u64)> = Vec::new();
    for (value, n) in &histogram.counts {
        let class = class_of(*value);
        match classes.last_mut() {
            Some((last, count)) if *last == class => *count += n,
            _ => classes.push((class, *n)),
        }
    }
    let mut before = 0;
    for (class, _) in &mut classes {
        (before, *class) = (*class, *class - before);
    }
    classes
}

/// The values of such classes; `None` if they are not those of a histogram.
pub(super) fn counts(classes: &[(u32, u64)]) -> Option<Vec<(u64, u64)>> {
    let (mut class, mut counts, mut all) = (0_u32, Vec::with_capacity(classes.len()), 0_u64);
    for (index, (step, n)) in classes.iter().enumerate() {
        if *n == 0 || (*step == 0 && index > 0) {
            return None;
        }
        class = class.checked_add(*step)?;
        all = all.checked_add(*n)?;
        counts.push((middle_of(class)?, *n));
    }
    Some(counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_known_to_a_sixtieth() {
        for value in (0..64).chain((6..64).flat_map(|bit| {
            let power = 1_u64 << bit;
            [power - 1, power, power + power / 3, power + power / 2 + 1]
        })) {
            let middle = middle_of(class_of(value)).unwrap();
            assert!(middle.abs_diff(value) <= value / 60, "{value}: {middle}");
        }
        let top = middle_of(class_of(u64::MAX)).unwrap();
        assert!(u64::MAX - top <= u64::MAX / 60);
        assert_eq!(middle_of(class_of(u64::MAX) + 1), None);
        assert_eq!(middle_of(u32::MAX), None);
    }

    #[test]
    fn classes_ascend_and_come_back() {
        let values: Vec<u64> = (0..5_000).map(|n| n * n).collect();
        let classes_of: Vec<u32> = values.iter().map(|value| class_of(*value)).collect();
        assert!(classes_of.is_sorted());
        let histogram = Histogram {
            counts: values.iter().map(|value| (*value, 2)).collect(),
            ..Histogram::default()
        };
        let few = classes(&histogram);
        assert!(few.len() < 700, "{}", few.len());
        let back = counts(&few).unwrap();
        assert_eq!(back.iter().map(|(_, n)| n).sum::<u64>(), 10_000);
        assert!(back.is_sorted());
    }

    #[test]
    fn what_is_no_histogram_is_refused() {
        assert_eq!(counts(&[(3, 0)]), None);
        assert_eq!(counts(&[(3, 1), (0, 1)]), None);
        assert_eq!(counts(&[(u32::MAX, 1), (1, 1)]), None);
        assert_eq!(counts(&[(1, u64::MAX), (1, 1)]), None);
        assert_eq!(counts(&[]), Some(Vec::new()));
    }
}
