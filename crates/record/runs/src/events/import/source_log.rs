//! A log that is imported, and what it calls its hosts.

use crate::Error;
use stackline_events::EventTable;
use std::io::Read;

/// A log that is imported.
pub struct ImportLog<'l> {
    /// Its bytes.
    pub bytes: &'l mut (dyn Read + Send),
    /// What messages call it.
    pub name: &'l str,
    /// What its hosts are to be called instead: a name, in which `*` stands for what the log calls them.
    pub host: Option<&'l str>,
    /// The present, in ns since 1970; what is later is counted.
    pub present_ns: u64,
}

/// That a log could not be read.
pub(super) fn unreadable_log_error(name: &str, cause: &dyn std::fmt::Display) -> Error {
    Error::new(
        format!("cannot read {name}"),
        "none of it was imported; check the file and try again",
    )
    .because(cause)
}

/// Calls every host of a table as a pattern says, in which `*` is its name.
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
