//! Sizes on the command line.

use stackline_core::units;

/// What a size looks like.
const FORM: &str =
    "a whole number with B, kB, MB, GB, KiB, MiB, GiB, or k, M, G (1024 of one another) behind it";

/// Bytes, more than none.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let factor = match text[digits.len()..].trim() {
        "" => Some(1),
        "k" | "K" => Some(1 << 10),
        "M" => Some(1 << 20),
        "G" => Some(1 << 30),
        "T" => Some(1 << 40),
        unit => units::find_factor(units::SIZE_UNITS, unit).map(|factor| factor as u64),
    };
    let bytes = factor.and_then(|factor| digits.parse::<u64>().ok()?.checked_mul(factor));
    bytes
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| FORM.to_owned())
}

/// The same, or none at all.
pub(super) fn none_or_size(text: &str) -> Result<u64, String> {
    if text == "0" { Ok(0) } else { size(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_exact() {
        let sizes = [
            ("1", 1),
            ("64k", 65_536),
            ("48KiB", 49_152),
            ("3 kB", 3000),
            ("2G", 2 << 30),
            ("1 TiB", 1 << 40),
        ];
        for (text, bytes) in sizes {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in [
            "",
            "0",
            "-1",
            "k",
            "1.5MiB",
            "12 potatoes",
            "99999999999GiB",
        ] {
            assert_eq!(size(text), Err(FORM.to_owned()), "{text}");
        }
    }
}
