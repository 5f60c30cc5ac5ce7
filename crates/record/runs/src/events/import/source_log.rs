//! A log to be imported, and the renaming of its hosts.

use crate::Error;
use stackline_events::EventTable;
use std::io::Read;

/// A log to be imported.
pub struct ImportLog<'l> {
    /// The log's bytes.
    pub bytes: &'l mut (dyn Read + Send),
    /// The log's name in messages.
    pub name: &'l str,
    /// A pattern for renaming its hosts: a name in which `*` stands for the host's name in the log.
    pub host: Option<&'l str>,
    /// The time of the import, in ns since 1970; later events are counted.
    pub present_ns: u64,
}

/// The error that a log could not be read.
pub(super) fn unreadable_log_error(name: &str, cause: &dyn std::fmt::Display) -> Error {
    Error::new(
        format!("cannot read {name}"),
        "none of it was imported; check the file and try again",
    )
    .because(cause)
}

/// Renames every host of a table by a pattern in which `*` stands for its name.
pub fn rename_hosts(table: &mut EventTable, pattern: &str) {
    let mut numbers = vec![u32::MAX; table.names.len()];
    for row in 0..table.len() {
        let host = table.host[row];
        let known = &mut numbers[host as usize];
        if *known == u32::MAX {
            let name = pattern.replace('*', table.names.text(host));
            *known = table.names.number(&name);
        }
        table.host[row] = *known;
    }
}
