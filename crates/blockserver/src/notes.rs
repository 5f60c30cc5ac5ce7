//! What servers and masters say while they run, on stderr: each line once, with nothing of others in it that steers a terminal.

use std::io::Write;

/// Says a line; where nobody listens, nothing.
pub fn say(words: &str) {
    let clean: String = words.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    let _ = writeln!(std::io::stderr(), "{clean}");
}
