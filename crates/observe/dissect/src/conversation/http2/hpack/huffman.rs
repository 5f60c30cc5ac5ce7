//! The Huffman code of header fields (RFC 7541, appendix B). It is canonical: codes of one length are consecutive numbers. So it is fully
//! given by the symbols in the order of their codes and the number of codes of each length.

/// The number of codes of each length in bits. The last of the longest codes is the end-of-string symbol, which must not occur.
const COUNTS: [u32; 31] = [
    0, 0, 0, 0, 0, 10, 26, 32, 6, 0, 5, 3, 2, 6, 2, 3, 0, 0, 0, 3, 8, 13, 26, 29, 12, 4, 15, 19,
    29, 0, 4,
];

/// The symbols in the order of their codes.
const SYMBOLS: [u8; 256] = [
    48, 49, 50, 97, 99, 101, 105, 111, 115, 116, 32, 37, 45, 46, 47, 51, 52, 53, 54, 55, 56, 57,
    61, 65, 95, 98, 100, 102, 103, 104, 108, 109, 110, 112, 114, 117, 58, 66, 67, 68, 69, 70, 71,
    72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 86, 87, 89, 106, 107, 113, 118, 119,
    120, 121, 122, 38, 42, 44, 59, 88, 90, 33, 34, 40, 41, 63, 39, 43, 124, 35, 62, 0, 36, 64, 91,
    93, 126, 94, 125, 60, 96, 123, 92, 195, 208, 128, 130, 131, 162, 184, 194, 224, 226, 153, 161,
    167, 172, 176, 177, 179, 209, 216, 217, 227, 229, 230, 129, 132, 133, 134, 136, 146, 154, 156,
    160, 163, 164, 169, 170, 173, 178, 181, 185, 186, 187, 189, 190, 196, 198, 228, 232, 233, 1,
    135, 137, 138, 139, 140, 141, 143, 147, 149, 150, 151, 152, 155, 157, 158, 165, 166, 168, 174,
    175, 180, 182, 183, 188, 191, 197, 231, 239, 9, 142, 144, 145, 148, 159, 171, 206, 215, 225,
    236, 237, 199, 207, 234, 235, 192, 193, 200, 201, 202, 205, 210, 213, 218, 219, 238, 240, 242,
    243, 255, 203, 204, 211, 212, 214, 221, 222, 223, 241, 244, 245, 246, 247, 248, 250, 251, 252,
    253, 254, 2, 3, 4, 5, 6, 7, 8, 11, 12, 14, 15, 16, 17, 18, 19, 20, 21, 23, 24, 25, 26, 27, 28,
    29, 30, 31, 127, 220, 249, 10, 13, 22,
];

/// Decodes a text; `None` if it has an invalid code, or padding that is not the beginning of the end-of-string code.
pub(in crate::conversation) fn decode(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::with_capacity(bytes.len() * 8 / 5);
    let mut code = HuffmanCode::default();
    for byte in bytes {
        for bit in (0..8).rev() {
            text.extend(code.bit(byte >> bit & 1)?);
        }
    }
    (code.length < 8 && code.ones == code.length).then_some(text)
}

/// A code that is being read bit by bit.
#[derive(Default)]
struct HuffmanCode {
    /// The number of bits read so far.
    length: usize,
    /// How many of these bits are ones before the first zero.
    ones: usize,
    /// How far the code lies behind the first code of this length.
    behind: u32,
    /// The number of codes that are shorter.
    shorter: u32,
}

impl HuffmanCode {
    /// Takes the next bit; returns the symbol if it is complete, and `None` if there is no such code.
    fn bit(&mut self, bit: u8) -> Option<Option<u8>> {
        self.ones += usize::from(bit == 1 && self.ones == self.length);
        self.length += 1;
        self.behind = self.behind * 2 + u32::from(bit);
        let count = *COUNTS.get(self.length)?;
        if self.behind < count {
            let symbol = *SYMBOLS.get((self.shorter + self.behind) as usize)?;
            *self = Self::default();
            return Some(Some(symbol));
        }
        self.behind -= count;
        self.shorter += count;
        Some(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_complete() {
        let room: f64 = COUNTS
            .iter()
            .enumerate()
            .map(|(length, count)| f64::from(*count) / 2_f64.powi(length as i32))
            .sum();
        assert!((room - 1.0).abs() < 1e-12);
        let mut symbols = SYMBOLS.to_vec();
        symbols.sort_unstable();
        assert_eq!(symbols, (0..=255).collect::<Vec<u8>>());
    }

    #[test]
    fn a_text_ends_with_ones_of_less_than_a_byte() {
        // `0` is 00000, `1` is 00001, `a` is 00011.
        assert_eq!(decode(&[0b0000_0111]), Some(b"0".to_vec()));
        assert_eq!(decode(&[0b0000_0000, 0b0100_0111]), Some(b"01a".to_vec()));
        assert_eq!(decode(&[]), Some(Vec::new()));
        assert_eq!(decode(&[0b0000_0110]), None, "it ends with a zero");
        assert_eq!(
            decode(&[0b0000_0111, 0xff]),
            None,
            "it ends with a whole byte"
        );
        assert_eq!(decode(&[0xff; 4]), None, "it holds the end");
    }
}
