//! Numbers of a few bits each in a row, low bits first, and numbers of as many bytes as they need.

/// Packs values of at most `width` bits each.
pub(super) fn pack(values: &[u64], width: u32, out: &mut Vec<u8>) {
    if width == 0 {
        return;
    }
    let (mut word, mut filled) = (0_u64, 0_u32);
    for &value in values {
        word |= value << filled;
        filled += width;
        if filled >= 64 {
            out.extend_from_slice(&word.to_le_bytes());
            filled -= 64;
            word = if filled == 0 { 0 } else { value >> (width - filled) };
        }
    }
    out.extend_from_slice(&word.to_le_bytes()[..filled.div_ceil(8) as usize]);
}

/// Fills `out` with the values of `width` bits at the beginning of `bytes`; `None` when these are too few.
pub(super) fn unpack(bytes: &[u8], width: u32, out: &mut [u64]) -> Option<()> {
    if width == 0 {
        out.fill(0);
        return Some(());
    }
    if width > 64 || bytes.len() * 8 < out.len() * width as usize {
        return None;
    }
    let mask = u64::MAX >> (64 - width);
    let mut bit = 0;
    for slot in out {
        let (byte, shift) = (bit >> 3, (bit & 7) as u32);
        let mut value = load(bytes, byte) >> shift;
        if shift + width > 64 {
            value |= u64::from(bytes[byte + 8]) << (64 - shift);
        }
        *slot = value & mask;
        bit += width as usize;
    }
    Some(())
}

#[inline]
fn load(bytes: &[u8], at: usize) -> u64 {
    if let Some(word) = bytes[at..].first_chunk() {
        return u64::from_le_bytes(*word);
    }
    let mut word = [0; 8];
    word[..bytes.len() - at].copy_from_slice(&bytes[at..]);
    u64::from_le_bytes(word)
}

/// Bits a value needs.
pub(super) const fn width_of(value: u64) -> u32 {
    64 - value.leading_zeros()
}

/// Adds a number, seven bits a byte.
pub(super) fn put_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes such a number off the beginning.
pub(super) fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// A number with a sign as one that is small where it is near 0.
pub(super) const fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)) as u64
}

/// And back.
pub(super) const fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_packed_comes_back(values in proptest::collection::vec(any::<u64>(), 0..70), width in 0_u32..=64) {
            let values: Vec<u64> = values.iter().map(|value| if width == 0 { 0 } else { value >> (64 - width) }).collect();
            let mut bytes = Vec::new();
            pack(&values, width, &mut bytes);
            prop_assert_eq!(bytes.len(), (values.len() * width as usize).div_ceil(8));
            let mut again = vec![7; values.len()];
            prop_assert_eq!(unpack(&bytes, width, &mut again), Some(()));
            prop_assert_eq!(again, values);
        }

        #[test]
        fn numbers_come_back(signed: i64) {
            let mut bytes = Vec::new();
            put_number(zigzag(signed), &mut bytes);
            let mut rest = &bytes[..];
            prop_assert_eq!(number(&mut rest).map(unzigzag), Some(signed));
            prop_assert!(rest.is_empty());
        }
    }
}
