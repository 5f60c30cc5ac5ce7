//! Parquet's hybrid of runs and packed numbers: what says which rows have a value, and which text of a dictionary it is.

use super::bits::{number, pack, put_number, unpack};

/// Numbers that are packed together.
const EIGHT: usize = 8;

/// Rows in a row.
#[derive(Debug)]
pub(super) enum Stretch<'v> {
    /// So many times this.
    Same(u64, usize),
    /// These.
    Each(&'v [u64]),
}

/// Adds values of `width` bits to `out`.
pub(super) fn encode(values: &[u32], width: u32, out: &mut Vec<u8>) {
    let (mut at, mut packed) = (0, 0);
    while at < values.len() {
        let next = values[at];
        let ahead = &values[at..values.len().min(at + EIGHT)];
        if ahead.iter().any(|value| *value != next) {
            at += ahead.len();
            continue;
        }
        let run = values[at..].iter().take_while(|value| **value == next).count();
        encode_each(&values[packed..at], width, out);
        encode_same(next, run, width, out);
        at += run;
        packed = at;
    }
    encode_each(&values[packed..], width, out);
}

/// Adds one value `count` times.
pub(super) fn encode_same(value: u32, count: usize, width: u32, out: &mut Vec<u8>) {
    if count > 0 {
        put_number((count as u64) << 1, out);
        out.extend_from_slice(&value.to_le_bytes()[..width.div_ceil(8) as usize]);
    }
}

fn encode_each(values: &[u32], width: u32, out: &mut Vec<u8>) {
    if values.is_empty() {
        return;
    }
    put_number((values.len().div_ceil(EIGHT) as u64) << 1 | 1, out);
    for values in values.chunks(EIGHT) {
        let mut eight = [0; EIGHT];
        for (to, from) in eight.iter_mut().zip(values) {
            *to = u64::from(*from);
        }
        pack(&eight, width, out);
    }
}

/// Gives `count` values of `width` bits, stretch by stretch; `None` when the bytes do not hold them.
pub(super) fn decode(
    mut bytes: &[u8],
    width: u32,
    mut count: usize,
    mut each: impl FnMut(Stretch<'_>) -> Option<()>,
) -> Option<()> {
    if width > 32 {
        return None;
    }
    let mut values = [0; 1024];
    while count > 0 {
        let head = number(&mut bytes)?;
        let length = usize::try_from(head >> 1).ok()?;
        if head & 1 == 0 {
            let (value, rest) = bytes.split_at_checked(width.div_ceil(8) as usize)?;
            let mut word = [0; 8];
            word[..value.len()].copy_from_slice(value);
            bytes = rest;
            let run = length.min(count);
            if run == 0 {
                return None;
            }
            each(Stretch::Same(u64::from_le_bytes(word), run))?;
            count -= run;
            continue;
        }
        let mut left = length.checked_mul(EIGHT)?.min(count);
        if left == 0 {
            return None;
        }
        count -= left;
        while left > 0 {
            let some = &mut values[..left.min(1024)];
            unpack(bytes, width, some)?;
            each(Stretch::Each(some))?;
            left -= some.len();
            // The last eight may be cut where the values end.
            bytes = bytes.get(some.len().div_ceil(EIGHT) * width as usize..).unwrap_or_default();
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(bytes: &[u8], width: u32, count: usize) -> Option<Vec<u32>> {
        let mut values = Vec::new();
        decode(bytes, width, count, |stretch| {
            match stretch {
                Stretch::Same(value, count) => values.extend(std::iter::repeat_n(value as u32, count)),
                Stretch::Each(each) => values.extend(each.iter().map(|value| *value as u32)),
            }
            Some(())
        })?;
        Some(values)
    }

    proptest! {
        #[test]
        fn values_come_back(runs in proptest::collection::vec((0_u32..8, 1_usize..40), 0..60), spare in 0_u32..9) {
            let values: Vec<u32> = runs.iter().flat_map(|(value, count)| std::iter::repeat_n(*value, *count)).collect();
            let mut bytes = Vec::new();
            encode(&values, 3 + spare, &mut bytes);
            prop_assert_eq!(all(&bytes, 3 + spare, values.len()), Some(values));
        }

        #[test]
        fn hostile_bytes_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..60), width in 0_u32..40) {
            prop_assert!(all(&bytes, width, 3000).is_none_or(|values| values.len() == 3000));
        }
    }
}
