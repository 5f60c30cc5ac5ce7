//! The variable-length integers of QUIC (RFC 9000, section 16): one, two, four or eight bytes, whose first two bits say how many.

/// Takes an integer off the front of the bytes; `None` if it is not complete.
pub(crate) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let first = *bytes.first()?;
    let length = 1_usize << (first >> 6);
    let (number, behind) = bytes.split_at_checked(length)?;
    *bytes = behind;
    let first = u64::from(first & 0x3f);
    let rest = number.iter().skip(1);
    Some(rest.fold(first, |number, byte| number << 8 | u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9000, appendix A.1.
    #[test]
    fn numbers_are_those_of_the_standard() {
        let examples: [(&[u8], u64); 5] = [
            (
                &[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c],
                151_288_809_941_952_652,
            ),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
            (&[0x40, 0x25], 37),
        ];
        for (mut bytes, number) in examples {
            assert_eq!(take(&mut &bytes[..bytes.len() - 1]), None);
            assert_eq!((take(&mut bytes), bytes.len()), (Some(number), 0));
        }
    }
}
