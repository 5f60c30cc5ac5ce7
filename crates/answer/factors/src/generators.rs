//! The columns of fractions and screening designs (Box, Hunter and Hunter 1978, table 12.15; Plackett and Burman 1946). Factors are
//! letters from A on, without I.

/// A fraction of a full design with two levels.
#[derive(Clone, Copy)]
pub(crate) struct Fraction {
    /// The number of factors.
    pub(crate) factors: usize,
    /// The number of combinations.
    pub(crate) runs: usize,
    /// For each factor beyond the basic ones: the basic factors whose product its column is.
    pub(crate) products: &'static [&'static str],
}

const fn fraction(factors: usize, runs: usize, products: &'static [&'static str]) -> Fraction {
    Fraction {
        factors,
        runs,
        products,
    }
}

/// The fractions of minimum aberration; for each number of factors, those with more runs first.
pub(crate) const FRACTIONS: &[Fraction] = &[
    fraction(3, 4, &["AB"]),
    fraction(4, 8, &["ABC"]),
    fraction(5, 16, &["ABCD"]),
    fraction(5, 8, &["AB", "AC"]),
    fraction(6, 32, &["ABCDE"]),
    fraction(6, 16, &["ABC", "BCD"]),
    fraction(6, 8, &["AB", "AC", "BC"]),
    fraction(7, 64, &["ABCDEF"]),
    fraction(7, 32, &["ABCD", "ABDE"]),
    fraction(7, 16, &["ABC", "BCD", "ACD"]),
    fraction(7, 8, &["AB", "AC", "BC", "ABC"]),
    fraction(8, 64, &["ABCD", "ABEF"]),
    fraction(8, 32, &["ABC", "ABD", "BCDE"]),
    fraction(8, 16, &["BCD", "ACD", "ABC", "ABD"]),
    fraction(9, 128, &["ACDFG", "BCEFG"]),
    fraction(9, 64, &["ABCD", "ACEF", "CDEF"]),
    fraction(9, 32, &["BCDE", "ACDE", "ABDE", "ABCE"]),
    fraction(9, 16, &["ABC", "BCD", "ACD", "ABD", "ABCD"]),
    fraction(10, 128, &["ABCG", "BCDE", "ACDF"]),
    fraction(10, 64, &["BCDF", "ACDF", "ABDE", "ABCE"]),
    fraction(10, 32, &["ABCD", "ABCE", "ABDE", "ACDE", "BCDE"]),
    fraction(10, 16, &["ABC", "BCD", "ACD", "ABD", "ABCD", "AB"]),
    fraction(11, 64, &["CDE", "ABCD", "ABF", "BDEF", "ADEF"]),
    fraction(11, 32, &["ABC", "BCD", "CDE", "ACD", "ADE", "BDE"]),
    fraction(11, 16, &["ABC", "BCD", "ACD", "ABD", "ABCD", "AB", "AC"]),
];

/// The first rows of the screening designs; the other rows are its rotations, and a last row with all factors low.
pub(crate) const SCREENING: [&str; 3] = [
    "++-+++---+-",
    "++--++++-+-+----++-",
    "+++++-+-++--++--+-+----",
];

/// The factors of a word as bits; A is bit 0.
pub(crate) fn bits(word: &str) -> u32 {
    word.bytes()
        .map(|letter| 1 << letter_number(letter))
        .fold(0, |all, bit| all | bit)
}

/// The number of a factor's letter: A is 0; the letter I is skipped, as it stands for the mean.
const fn letter_number(letter: u8) -> u32 {
    let number = (letter - b'A') as u32;
    if letter > b'I' { number - 1 } else { number }
}
