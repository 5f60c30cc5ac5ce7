//! Parses Mahimahi traces: a whole number of milliseconds on each line, in ascending order.

use crate::diagnostic::Diagnostic;
use crate::tree::Word;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Most lines of a trace: more than three hours at 1 Mbit/s, or a minute at 200 Mbit/s.
const MOST_MOMENTS: usize = 1_000_000;

/// The moments in a trace's text.
pub(crate) fn parse_moments(text: &str, file: &Word) -> Result<Vec<u32>, Diagnostic> {
    let moments = lines(text).map_err(|(line, what)| {
        let message = format!("line {line} of `{}` {what}", file.text);
        Diagnostic::error(file.span, message, "this trace")
            .hint("each line of a Mahimahi trace is a whole number of milliseconds, no less than the previous one")
    })?;
    if moments.last().is_none_or(|last| *last == 0) {
        let message = format!("the trace `{}` has no time after 0 ms", file.text);
        let diagnostic = Diagnostic::error(file.span, message, "nothing would ever arrive");
        return Err(diagnostic.hint("the last line gives the time after which the trace repeats"));
    }
    Ok(moments)
}

/// Parses one number on each line. The error is the line number and what is wrong with the line.
fn lines(text: &str) -> Result<Vec<u32>, (usize, String)> {
    let mut moments: Vec<u32> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let wrong = |what: String| Err((index + 1, what));
        let digits = line.bytes().all(|byte| byte.is_ascii_digit());
        let Some(moment) = line.parse::<u32>().ok().filter(|_| digits) else {
            return wrong(String::from("is not a whole number of milliseconds"));
        };
        if let Some(last) = moments.last().filter(|last| **last > moment) {
            return wrong(format!("has {moment} after {last}"));
        }
        if moments.len() == MOST_MOMENTS {
            return wrong(format!(
                "is one too many; a trace may have at most {MOST_MOMENTS} lines"
            ));
        }
        moments.push(moment);
    }
    Ok(moments)
}
