//! Makes text safe and fit for a terminal: foreign characters that would steer it are replaced, and wide lines are folded.

mod fold;

pub use fold::fold;

use std::borrow::Cow;

/// The text without control characters, colours included. It may come from outside, as host names in a log and
/// messages of a peer do.
#[must_use]
pub fn harmless(text: &str) -> Cow<'_, str> {
    if text.contains(steers) {
        text.replace(steers, "\u{fffd}").into()
    } else {
        text.into()
    }
}

/// Whether a terminal would react to the character instead of showing it: control characters, and characters that
/// change the order in which others are shown (Unicode Standard Annex 9) or end a line.
#[must_use]
pub fn steers(c: char) -> bool {
    let reorders = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || reorders
        || matches!(c, '\u{2028}' | '\u{2029}')
}

/// The line without control characters, except that a colour of the whole line is kept.
#[must_use]
pub fn coloured(line: &str) -> String {
    let painted = line.strip_prefix("\u{1b}[").and_then(|rest| {
        let (code, rest) = rest.split_once('m')?;
        let is_code = code
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b';');
        Some((code, rest.strip_suffix("\u{1b}[0m")?)).filter(|_| is_code)
    });
    match painted {
        Some((code, text)) => format!("\u{1b}[{code}m{}\u{1b}[0m", harmless(text)),
        None => harmless(line).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_replaced() {
        assert_eq!(harmless("a\n\tb ü"), "a\n\tb ü");
        assert_eq!(
            harmless("\u{1b}[2Jx\u{7}\u{9b}y\r"),
            "\u{fffd}[2Jx\u{fffd}\u{fffd}y\u{fffd}"
        );
        assert_eq!(harmless("\u{1b}[31mred"), "\u{fffd}[31mred");
    }

    #[test]
    fn only_a_whole_line_is_coloured() {
        let (red, ends) = ("\u{1b}[1;31m", "\u{1b}[0m");
        assert_eq!(
            coloured(&format!("{red}name {red}x{ends}")),
            format!("{red}name \u{fffd}[1;31mx{ends}")
        );
        assert_eq!(coloured(&format!("{red}name")), "\u{fffd}[1;31mname");
        assert_eq!(coloured("\u{1b}]0;title\u{7}"), "\u{fffd}]0;title\u{fffd}");
    }
}
