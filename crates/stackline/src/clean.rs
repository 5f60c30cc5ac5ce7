//! `stackline clean`: removes what killed processes of this user left on the machine. What is in use is locked, and stays.

use crate::exit::{Exit, Result};
use crate::flags;
use crate::output;
use stackline_guard::scratch;

/// What is removed, by kind: its name in JSON, one and several of it in words, and what removes it and counts.
const KINDS: [(&str, [&str; 2], fn() -> usize); 3] = [
    ("temporary_directories", ["temporary directory", "temporary directories"], scratch::sweep),
    ("trace_instances", ["trace instance", "trace instances"], stackline_monitor::sweep_trace_instances),
    ("control_groups", ["control group", "control groups"], stackline_shares::sweep_groups),
];

/// Removes it and says what it was.
pub(crate) fn clean(flags: &flags::Clean) -> Result {
    let removed = KINDS.map(|(key, names, sweep)| (key, names, sweep()));
    if flags.json {
        let counts = removed.iter().map(|(key, _, count)| ((*key).to_owned(), (*count).into()));
        output::json(&serde_json::json!({ "removed": counts.collect::<serde_json::Map<_, _>>() }), true)?;
        return Ok(Exit::Done);
    }
    let words = removed.iter().filter(|(_, _, count)| *count > 0);
    let words: Vec<String> =
        words.map(|(_, [one, many], count)| format!("{count} {}", if *count == 1 { one } else { many })).collect();
    output::print(&match words.is_empty() {
        true => "nothing was left behind\n".to_owned(),
        false => format!("removed: {}\n", words.join(", ")),
    })?;
    Ok(Exit::Done)
}

/// Removes it without a word, after a process that was killed.
pub(crate) fn sweep() {
    KINDS.iter().for_each(|(_, _, sweep)| {
        sweep();
    });
}
