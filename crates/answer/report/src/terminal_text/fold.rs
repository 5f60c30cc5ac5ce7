//! Breaks lines that are wider than the terminal between words; continuation lines are aligned with the last column of
//! a table.

use std::fmt::Write as _;

/// Least width in which a table's last column is continued under itself.
const LEAST_COLUMN: usize = 24;

/// The text with lines of at most `columns` columns, where its words allow it. Colour sequences have no width.
#[must_use]
pub fn fold(text: &str, columns: usize) -> String {
    let mut folded = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (body, end) = line
            .strip_suffix('\n')
            .map_or((line, ""), |body| (body, "\n"));
        if width(body) > columns {
            fold_line(body, columns, &mut folded);
        } else {
            folded.push_str(body);
        }
        folded.push_str(end);
    }
    folded
}

fn fold_line(line: &str, columns: usize, folded: &mut String) {
    let hang = hanging_indent(line, columns);
    let (mut at, mut gap) = (0, 0);
    let mut is_first = true;
    for word in line.split(' ') {
        let wide = width(word);
        if word.is_empty() {
            gap += 1;
            continue;
        }
        // Splitting gives one empty word less than a gap has spaces, except before the first word.
        let spaces = gap + usize::from(!is_first);
        if !is_first && at + spaces + wide > columns {
            let _ = write!(folded, "\n{:hang$}", "");
            at = hang;
        } else {
            let _ = write!(folded, "{:spaces$}", "");
            at += spaces;
        }
        folded.push_str(word);
        at += wide;
        (gap, is_first) = (0, false);
    }
}

/// The indentation of continuation lines: that of the last column if it is wide enough, otherwise two more than the
/// line's own.
fn hanging_indent(line: &str, columns: usize) -> usize {
    let plain: Vec<char> = visible(line).collect();
    let begins = plain.iter().take_while(|c| **c == ' ').count();
    let last_column = (begins + 2..plain.len())
        .rev()
        .find(|&at| plain[at] != ' ' && plain[at - 1] == ' ' && plain[at - 2] == ' ');
    last_column
        .filter(|&at| at + LEAST_COLUMN <= columns)
        .unwrap_or((begins + 2).min(columns / 2))
}

fn width(text: &str) -> usize {
    visible(text).count()
}

/// The characters that a terminal shows: all except `ESC [ ... m`.
fn visible(text: &str) -> impl Iterator<Item = char> + '_ {
    let mut steering = false;
    text.chars().filter(move |&c| {
        let was = steering;
        steering = if steering { c != 'm' } else { c == '\u{1b}' };
        !was && !steering
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_stays_and_words_that_are_too_wide_stand_alone() {
        assert_eq!(fold("a  b\n\n c\n", 4), "a  b\n\n c\n");
        assert_eq!(fold("ab abcdefgh ab\n", 4), "ab\n  abcdefgh\n  ab\n");
        assert_eq!(fold("", 10), "");
    }

    #[test]
    fn a_sentence_goes_on_two_columns_further_in() {
        assert_eq!(
            fold("one two three four five\nsix\n", 12),
            "one two\n  three four\n  five\nsix\n"
        );
    }

    #[test]
    fn a_last_column_goes_on_below_itself() {
        let line = "name   1.5 ms  words that explain it and take more than the room";
        assert_eq!(
            fold(line, 44),
            "name   1.5 ms  words that explain it and\n               take more than the room"
        );
    }

    #[test]
    fn colours_take_no_room_and_stay() {
        let line = "\u{1b}[2mone two three\u{1b}[0m\n";
        assert_eq!(fold(line, 13), line);
        assert_eq!(fold(line, 8), "\u{1b}[2mone two\n  three\u{1b}[0m\n");
    }

    #[test]
    fn no_line_is_wider_than_its_terminal_however_narrow() {
        let text = "  a word or two in columns   12   of few letters each\n";
        for columns in 12..60 {
            let folded = fold(text, columns);
            assert!(
                folded.lines().all(|line| width(line) <= columns),
                "{columns}: {folded}"
            );
            let words = |text: &str| {
                text.split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            };
            assert_eq!(words(&folded), words(text));
        }
    }
}
