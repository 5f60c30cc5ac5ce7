//! The columns of fractions and screening designs (Box, Hunter and Hunter 1978, table 12.15; Plackett and Burman 1946). Factors are
//! letters from A on, without I.

/// A fraction: factors, runs, and what each factor beyond the basic ones is the product of.
pub(crate) type Fraction = (usize, usize, &'static [&'static str]);

/// The fractions of least aberration, for each number of factors those with more runs first.
pub(crate) const FRACTIONS: &[Fraction] = &[
    (3, 4, &["AB"]),
    (4, 8, &["ABC"]),
    (5, 16, &["ABCD"]),
    (5, 8, &["AB", "AC"]),
    (6, 32, &["ABCDE"]),
    (6, 16, &["ABC", "BCD"]),
    (6, 8, &["AB", "AC", "BC"]),
    (7, 64, &["ABCDEF"]),
    (7, 32, &["ABCD", "ABDE"]),
    (7, 16, &["ABC", "BCD", "ACD"]),
    (7, 8, &["AB", "AC", "BC", "ABC"]),
    (8, 64, &["ABCD", "ABEF"]),
    (8, 32, &["ABC", "ABD", "BCDE"]),
    (8, 16, &["BCD", "ACD", "ABC", "ABD"]),
    (9, 128, &["ACDFG", "BCEFG"]),
    (9, 64, &["ABCD", "ACEF", "CDEF"]),
    (9, 32, &["BCDE", "ACDE", "ABDE", "ABCE"]),
    (9, 16, &["ABC", "BCD", "ACD", "ABD", "ABCD"]),
    (10, 128, &["ABCG", "BCDE", "ACDF"]),
    (10, 64, &["BCDF", "ACDF", "ABDE", "ABCE"]),
    (10, 32, &["ABCD", "ABCE", "ABDE", "ACDE", "BCDE"]),
    (10, 16, &["ABC", "BCD", "ACD", "ABD", "ABCD", "AB"]),
    (11, 64, &["CDE", "ABCD", "ABF", "BDEF", "ADEF"]),
    (11, 32, &["ABC", "BCD", "CDE", "ACD", "ADE", "BDE"]),
    (11, 16, &["ABC", "BCD", "ACD", "ABD", "ABCD", "AB", "AC"]),
];

/// The first rows of the screening designs; the others are its rotations, the last is all low.
pub(crate) const SCREENING: [&str; 3] = [
    "++-+++---+-",
    "++--++++-+-+----++-",
    "+++++-+-++--++--+-+----",
];

/// The factors of a word as bits.
pub(crate) fn bits(word: &str) -> u32 {
    word.bytes()
        .map(|letter| 1 << letter_number(letter))
        .fold(0, |all, bit| all | bit)
}

/// A is 0; there is no I, as that is the mean.
const fn letter_number(letter: u8) -> u32 {
    let number = (letter - b'A') as u32;
    if letter > b'I' { number - 1 } else { number }
}
