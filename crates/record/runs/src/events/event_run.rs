//! Runs made of events that a program of stackline emits itself: the timings of blocks, and of requests to a display.

use super::{SortStopSignal, Spooling, write_index};
use crate::{RunDirectory, RunFileAccess, runs_root};
use stackline_core::error::Result;
use stackline_core::trace_index::{HostTrace, Index};
use stackline_events::{EmittedEvent, EventEmitter, EventLog, keyword};
use std::collections::BTreeMap;
use std::time::SystemTime;

/// Adds an event to its host's log; the log is created with the host's first event.
pub fn emit_event(logs: &mut BTreeMap<String, EventLog>, event: &EmittedEvent<'_>) {
    let host = event.host;
    if !logs.contains_key(host) {
        let mut log = EventLog::default();
        log.host(host);
        logs.insert(host.to_owned(), log);
    }
    if let Some(log) = logs.get_mut(host) {
        log.push(keyword::intern(event.keyword), event.at_ns, event.values);
    }
}

/// Stores what `emit_events` emits as a run in the directory of runs, and returns the run's path. `reference` is the
/// host in whose clock lifelines are drawn.
///
/// # Errors
/// When the run cannot be stored.
pub fn keep_run(
    name: &str,
    access: RunFileAccess,
    reference: &str,
    emit_events: impl FnOnce(&mut EventEmitter<'_>),
) -> Result<String> {
    let mut logs: BTreeMap<String, EventLog> = BTreeMap::new();
    emit_events(&mut |event| emit_event(&mut logs, event));
    let directory = RunDirectory::create(&runs_root(), name, SystemTime::now(), access)?;
    let spool = Spooling::start(directory.path())?;
    for (host, log) in &logs {
        spool.append(host, log)?;
    }
    let mut index = Index {
        reference: reference.to_owned(),
        ..Index::default()
    };
    for (host, settled) in spool.settle(&SortStopSignal::default())? {
        let trace: &mut HostTrace = index.hosts.entry(host).or_default();
        settled.record_in(trace);
    }
    let path = directory.path().to_path_buf();
    write_index(&path, &index)?;
    directory.finish(&[], true, None)?;
    Ok(path.display().to_string())
}
