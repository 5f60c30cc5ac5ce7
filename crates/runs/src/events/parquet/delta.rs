//! Parquet's DELTA_BINARY_PACKED: numbers as differences, each 32 of them with as many bits as the largest needs. Times and
//! ids in order of time take two bytes so instead of eight, and nothing has to be compressed.

use super::bits::{number, pack, put_number, unpack, unzigzag, width_of, zigzag};

/// Differences that share a least one.
const BLOCK: usize = 128;
/// Differences that share a width.
const MINIBLOCK: usize = 32;

/// Adds the values to `out`.
pub(super) fn encode(values: &[i64], out: &mut Vec<u8>) {
    put_number(BLOCK as u64, out);
    put_number((BLOCK / MINIBLOCK) as u64, out);
    put_number(values.len() as u64, out);
    put_number(zigzag(values.first().copied().unwrap_or(0)), out);
    let mut before = values.first().copied().unwrap_or(0);
    let mut deltas = [0_i64; BLOCK];
    for block in values.get(1..).unwrap_or_default().chunks(BLOCK) {
        let mut least = i64::MAX;
        for (delta, value) in deltas.iter_mut().zip(block) {
            *delta = value.wrapping_sub(before);
            least = least.min(*delta);
            before = *value;
        }
        encode_block(&deltas[..block.len()], least, out);
    }
}

fn encode_block(deltas: &[i64], least: i64, out: &mut Vec<u8>) {
    put_number(zigzag(least), out);
    let widths = out.len();
    out.resize(widths + BLOCK / MINIBLOCK, 0);
    for (index, deltas) in deltas.chunks(MINIBLOCK).enumerate() {
        let mut above = [0_u64; MINIBLOCK];
        let mut all = 0;
        for (above, delta) in above.iter_mut().zip(deltas) {
            *above = delta.wrapping_sub(least) as u64;
            all |= *above;
        }
        let width = width_of(all);
        out[widths + index] = width as u8;
        pack(&above, width, out);
    }
}

/// Adds the values, `count` of them, to `values`; `None` when the bytes are not in this form or not so many.
pub(super) fn decode(mut bytes: &[u8], count: usize, values: &mut Vec<i64>) -> Option<()> {
    let block = usize::try_from(number(&mut bytes)?).ok()?;
    let miniblocks = usize::try_from(number(&mut bytes)?).ok()?;
    usize::try_from(number(&mut bytes)?).ok().filter(|told| *told == count)?;
    let mut value = unzigzag(number(&mut bytes)?);
    let length = block.checked_div(miniblocks)?;
    if block > 1 << 20 || length == 0 || length % MINIBLOCK != 0 {
        return None;
    }
    values.reserve(count);
    let all = values.len() + count;
    if count > 0 {
        values.push(value);
    }
    let mut above = vec![0; length];
    while values.len() < all {
        let least = unzigzag(number(&mut bytes)?);
        let (widths, rest) = bytes.split_at_checked(miniblocks)?;
        bytes = rest;
        for &width in widths {
            let wanted = length.min(all - values.len());
            if wanted == 0 {
                break;
            }
            let above = &mut above[..wanted];
            unpack(bytes, u32::from(width), above)?;
            values.extend(above.iter().map(|above| {
                value = value.wrapping_add(least).wrapping_add(*above as i64);
                value
            }));
            // The last one may be cut where its values end.
            bytes = bytes.get(length * usize::from(width) / 8..).unwrap_or_default();
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_take_the_bytes_their_distances_need() {
        let mut bytes = Vec::new();
        encode(&(0..128_001).map(|n| n * 100_000).collect::<Vec<i64>>(), &mut bytes);
        assert!(bytes.len() < 128_000 / 16, "{}", bytes.len());
    }

    proptest! {
        #[test]
        fn values_come_back(values in proptest::collection::vec(prop_oneof![any::<i64>(), -99_i64..99], 0..400)) {
            let mut bytes = Vec::new();
            encode(&values, &mut bytes);
            let mut decoded = vec![7];
            prop_assert_eq!(decode(&bytes, values.len(), &mut decoded), Some(()));
            prop_assert_eq!(&decoded[1..], values);
        }

        #[test]
        fn hostile_bytes_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut decoded = Vec::new();
            prop_assert!(decode(&bytes, 1000, &mut decoded).is_none_or(|()| decoded.len() == 1000));
            prop_assert!(decoded.len() <= 1000);
        }
    }
}
