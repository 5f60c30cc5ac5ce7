//! Repairs a text with mistakes: tries small edits at the first mistake, and the first edited text without mistakes
//! becomes the hint. A hint of this kind therefore works when it is followed.
//!
//! The edits undo typing errors and habits from other programs ([`foreign_words`]). Whether a text has mistakes is
//! decided by the function `judge`.

mod candidate_edits;
mod foreign_words;

use crate::diagnostic::{Diagnostic, Severity, TextOrigin};
use crate::spelling;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
pub(crate) use foreign_words::translate_word;
use stackline_core::units::RATE_UNITS;

/// Length of the longest text for which repairs are tried, in bytes.
const LONGEST: usize = 1 << 14;
/// The largest number of texts that one search tries.
const TRIALS: usize = 240;
/// The largest number of edits that are combined in one text.
const CHANGES: usize = 3;
/// The number of edits after which the search goes on at the next mistake, if they remove the first one and the next
/// comes later in the text.
const CONTINUED: usize = 2;
/// Length of the longest corrected part that a hint shows, in bytes; a longer one would not help.
const LONGEST_HINT: usize = 72;

/// Beginnings of hints that list names or guess; a change that was found to work is better.
const VAGUE: &[&str] = &[
    "write its values",
    "the ",
    "its ",
    "see ",
    "docs/",
    "did you mean",
    "declare",
];
/// Words in messages about spelling and form. Only such mistakes are repaired: the meaning of a text is not guessed.
const OF_FORM: &[&str] = &[
    "unexpected ",
    "unknown ",
    "is not part of the language",
    "is never closed",
    "is not a unit",
    "has no option",
    "has no setting",
    "has no values",
    "is not a value of",
    "takes no value",
    "has one size",
    "begins with its number of runs",
];

/// Searches for a corrected text and returns it. The first mistake gets a hint, unless it has one that is as good.
/// `judge` returns the diagnostics of a text; the search ends when `enough` returns true.
pub(crate) fn repair(
    source: &str,
    diagnostics: &mut [Diagnostic],
    judge: impl Fn(&str) -> Vec<Diagnostic>,
    enough: &dyn Fn() -> bool,
) -> Option<String> {
    let is_wrong = |d: &&mut Diagnostic| d.severity == Severity::Error;
    let of_form = |d: &Diagnostic| {
        OF_FORM.iter().any(|words| d.message.contains(words)) && d.origin == TextOrigin::File
    };
    let first = diagnostics
        .iter_mut()
        .find(is_wrong)
        .filter(|first| of_form(first))?;
    if source.len() > LONGEST {
        return None;
    }
    let mut search = RepairSearch {
        judge: &judge,
        enough,
        left: TRIALS,
    };
    let right = search.from(source, first, CHANGES)?;
    let shown = changed(source, &right);
    let as_hinted = candidate_edits::hinted_edits(source, first)
        .iter()
        .any(|edit| edit.apply(source) == right);
    let worse = !as_hinted
        && first.hint.as_ref().is_none_or(|hint| {
            let works = quoted(hint).any(|code| right.contains(code) && !source.contains(code));
            !works && VAGUE.iter().any(|words| hint.starts_with(words))
        });
    if worse && shown.len() <= LONGEST_HINT {
        first.hint = Some(format!("write `{shown}`"));
    }
    Some(right)
}

/// The parts of a hint between backticks.
fn quoted(hint: &str) -> impl Iterator<Item = &str> {
    hint.split('`').skip(1).step_by(2)
}

/// A search for a corrected text.
struct RepairSearch<'j, J> {
    judge: &'j J,
    enough: &'j dyn Fn() -> bool,
    /// Texts that may still be tried.
    left: usize,
}

impl<J: Fn(&str) -> Vec<Diagnostic>> RepairSearch<'_, J> {
    /// A text without mistakes, made by at most `changes` edits at `mistake`, the first one of `text`, and later ones.
    fn from(&mut self, text: &str, mistake: &Diagnostic, changes: usize) -> Option<String> {
        let mut later = Vec::new();
        for edit in candidate_edits::find_edits(text, mistake) {
            self.left = self.left.checked_sub(1).filter(|_| !(self.enough)())?;
            let changed = edit.apply(text);
            let errors = (self.judge)(&changed)
                .into_iter()
                .filter(|d| d.severity == Severity::Error);
            match errors.min_by_key(|error| error.span.start) {
                None => return Some(changed),
                // The first mistake is behind the edit now, so the edit helped.
                Some(next) if next.span.start > edit.end() && later.len() < CONTINUED => {
                    later.push((changed, next))
                }
                Some(_) => {}
            }
        }
        let more = changes.checked_sub(1).filter(|more| *more > 0)?;
        // Breadth first: fewer changes are likelier to be what was meant.
        later
            .into_iter()
            .find_map(|(text, next)| self.from(&text, &next, more))
    }
}

/// The part of the corrected text that differs from the wrong one, with the word before and the word behind it.
fn changed(wrong: &str, right: &str) -> String {
    let before = wrong
        .char_indices()
        .zip(right.chars())
        .find(|((_, a), b)| a != b)
        .map_or(wrong.len(), |((at, _), _)| at);
    // Up to here both are the same, so it is a boundary of characters in both.
    let before = before.min(right.len());
    // Only behind `before`, so that the same beginning and end do not overlap.
    let behind = wrong[before..]
        .chars()
        .rev()
        .zip(right[before..].chars().rev())
        .take_while(|(a, b)| a == b);
    let end = right.len() - behind.map(|(letter, _)| letter.len_utf8()).sum::<usize>();
    let begin = |end: usize| {
        right[..end]
            .trim_end()
            .rfind(char::is_whitespace)
            .map_or(0, |at| at + 1)
    };
    // A word of which only a part differs is shown whole, with the word before it.
    let cut = wrong[before..].starts_with(char::is_alphanumeric)
        && right[..before].ends_with(char::is_alphanumeric);
    let left = if cut {
        begin(begin(before))
    } else {
        begin(before)
    };
    let mut close = word_behind(right, end);
    // A number is shown with its unit: without it, it would be another number.
    let unit = &right[close..word_behind(right, close)];
    if right[..close].ends_with(|c: char| c.is_ascii_digit())
        && is_unit(unit.trim().trim_end_matches([';', '}']))
    {
        close += unit.len();
    }
    let whole = right[left..close].trim().trim_end_matches(';');
    whole
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .to_string()
}

/// Whether a word is a unit of size, time or rate.
fn is_unit(word: &str) -> bool {
    let rate = word
        .strip_suffix("/s")
        .is_some_and(|bits| RATE_UNITS.iter().any(|(unit, _)| *unit == bits));
    rate || spelling::is_unit(word)
}

/// The end, in bytes, of the word that follows the position `at` or that contains it.
fn word_behind(text: &str, at: usize) -> usize {
    let rest = &text[at..];
    let space = rest.len() - rest.trim_start().len();
    at + space
        + rest[space..]
            .find(char::is_whitespace)
            .unwrap_or(rest.len() - space)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_shown_with_its_neighbours() {
        assert_eq!(
            changed("5 rr 32*10 using tcp", "5 rr 32*10 over tcp"),
            "32*10 over tcp"
        );
        assert_eq!(
            changed("5 rr 32*10 6 rr 1*1", "5 rr 32*10; 6 rr 1*1"),
            "32*10; 6"
        );
        assert_eq!(changed("5 rr", "5 rr"), "rr");
        assert_eq!(
            changed("1 timelimit 5 sek rr 32", "1 timelimit 5 s rr 32"),
            "5 s rr"
        );
        assert_eq!(
            changed(
                "1 rr 32 for 500 ms over tcp",
                "1 rr 32 timelimit 500 ms over tcp"
            ),
            "32 timelimit 500 ms"
        );
        assert_eq!(
            changed("link a - b rate 9 kbit/s;", "link a - b 9 kbit/s;"),
            "b 9 kbit/s"
        );
        assert_eq!(changed("1 bulk_gets 64", "1 bulk_get 64"), "1 bulk_get 64");
    }
}
