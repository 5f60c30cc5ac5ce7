//! `stackline clean`: removes what killed processes of this user left on the machine. What is in use is locked and is
//! not removed.

use crate::exit::{Exit, Result};
use crate::flags;
use crate::output;
use stackline_guard::scratch;

/// A kind of leftover that is removed.
struct LeftoverKind {
    /// The kind's name in JSON.
    key: &'static str,
    /// Its name for one and for several.
    names: [&'static str; 2],
    /// Removes all of this kind and returns how many there were.
    sweep: fn() -> usize,
}

const KINDS: [LeftoverKind; 3] = [
    LeftoverKind {
        key: "temporary_directories",
        names: ["temporary directory", "temporary directories"],
        sweep: scratch::remove_leftovers,
    },
    LeftoverKind {
        key: "trace_instances",
        names: ["trace instance", "trace instances"],
        sweep: stackline_monitor::sweep_trace_instances,
    },
    LeftoverKind {
        key: "control_groups",
        names: ["control group", "control groups"],
        sweep: stackline_os::processor_share::sweep_groups,
    },
];

/// Removes all leftovers and prints what they were.
pub(crate) fn clean(flags: &flags::Clean) -> Result {
    let removed = KINDS.map(|kind| (kind.key, kind.names, (kind.sweep)()));
    if flags.json {
        let counts = removed
            .iter()
            .map(|(key, _, count)| ((*key).to_owned(), (*count).into()));
        output::json(
            &serde_json::json!({ "removed": counts.collect::<serde_json::Map<_, _>>() }),
            true,
        )?;
        return Ok(Exit::Done);
    }
    let some = removed.iter().filter(|(_, _, count)| *count > 0);
    let words = some
        .map(|(_, [one, many], count)| format!("{count} {}", if *count == 1 { one } else { many }));
    let words: Vec<String> = words.collect();
    output::print(&match words.is_empty() {
        true => "nothing to clean\n".to_owned(),
        false => format!("removed: {}\n", words.join(", ")),
    })?;
    Ok(Exit::Done)
}

/// Removes all leftovers silently; called after a process was killed.
pub(crate) fn sweep() {
    for kind in KINDS {
        (kind.sweep)();
    }
}
