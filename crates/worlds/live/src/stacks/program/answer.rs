//! The answers of programs: one line each, `ok`, `ok TEXT`, `end` or `error SENTENCE`.

/// Most bytes of an answer, its line break included.
pub(super) const LONGEST_ANSWER: usize = 4096;

/// An answer, by its first word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProgramAnswer<'a> {
    /// The command was carried out; what else it says, or an empty text.
    Done(&'a str),
    /// The peer has finished: there is nothing to wait for.
    Ended,
    /// It failed, and why.
    Failed(&'a str),
}

/// Reads the line of an answer, without its line break. `None` if it is not an answer.
pub(super) fn parse_answer(line: &[u8]) -> Option<ProgramAnswer<'_>> {
    let line = std::str::from_utf8(line).ok()?;
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.chars().any(char::is_control) {
        return None;
    }
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let rest = rest.trim();
    match word {
        "ok" => Some(ProgramAnswer::Done(rest)),
        "end" if rest.is_empty() => Some(ProgramAnswer::Ended),
        "error" => Some(ProgramAnswer::Failed(match rest {
            "" => "it does not say why",
            _ => rest,
        })),
        _ => None,
    }
}

/// How many units an answer says that were received, of so many: all of them if it names no number. `None` if it names more, or
/// something else.
pub(super) fn units_of(text: &str, most: u64) -> Option<u64> {
    match text {
        "" => Some(most),
        _ => text.parse().ok().filter(|units| *units <= most),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_word_decides() {
        use ProgramAnswer::{Done, Ended, Failed};
        for (line, answer) in [
            ("ok", Some(Done(""))),
            ("ok ", Some(Done(""))),
            ("ok 4711", Some(Done("4711"))),
            ("ok a name\r", Some(Done("a name"))),
            ("end", Some(Ended)),
            ("error no route to host", Some(Failed("no route to host"))),
            ("error", Some(Failed("it does not say why"))),
            ("", None),
            ("OK", None),
            ("okay", None),
            (" ok", None),
            ("end of it", None),
            ("ok\t4711", None),
            ("ok 47\u{1b}11", None),
            ("Traceback (most recent call last):", None),
        ] {
            assert_eq!(parse_answer(line.as_bytes()), answer, "{line:?}");
        }
        assert_eq!(parse_answer(b"ok \xff"), None);
    }

    #[test]
    fn units_are_at_most_those_asked_for() {
        assert_eq!(units_of("", 7), Some(7));
        assert_eq!([units_of("0", 7), units_of("7", 7)], [Some(0), Some(7)]);
        for wrong in ["8", "-1", "7 8", "x", "99999999999999999999999"] {
            assert_eq!(units_of(wrong, 7), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_line_is_harmless(line in prop::collection::vec(any::<u8>(), 0..200), most: u64) {
            if let Some(ProgramAnswer::Done(text) | ProgramAnswer::Failed(text)) = parse_answer(&line) {
                prop_assert!(!text.contains(char::is_control));
                prop_assert!(units_of(text, most).is_none_or(|units| units <= most));
            }
        }
    }
}
