//! Imports logs in NetLogger's text form: one thread parses lines into tables, the calling thread stores them.

use super::chunks::{Chunk, Chunks};
use super::parser::{self, ImportLineCounts};
use super::source_log::{ImportLog, rename_hosts, unreadable_log_error};
use crate::Error;
use crate::events::intake::Intake;
use stackline_core::trace_index::TraceImport;
use stackline_events::EventTable;
use std::sync::mpsc::{SyncSender, sync_channel};

/// Tables that may wait between the two threads.
const WAITING: usize = 2;

/// Imports a whole log. Lines that are not events are counted and skipped.
///
/// # Errors
/// When the log cannot be read, or the events cannot be stored.
pub fn import_text(log: ImportLog<'_>, into: &mut Intake) -> Result<TraceImport, Error> {
    let name = log.name;
    let (to, tables) = sync_channel(WAITING);
    std::thread::scope(|scope| {
        let reading = scope.spawn(move || read(log, &to));
        let (mut events, mut kept) = (0, Ok(()));
        for table in tables {
            events += table.len() as u64;
            kept = into.push(&table);
            if kept.is_err() {
                // Leaving the loop drops the channel, and the other thread's next send fails, which ends it.
                break;
            }
        }
        let read = reading
            .join()
            .map_err(|_| Error::new("the thread that reads a log panicked", "please report it"))?;
        kept?;
        read.map(|import| TraceImport { events, ..import })
            .map_err(|cause| unreadable_log_error(name, &cause))
    })
}

/// Reads a log and sends its tables until the log ends or the receiver is gone.
fn read(log: ImportLog<'_>, to: &SyncSender<EventTable>) -> std::io::Result<TraceImport> {
    let ImportLog {
        bytes: from,
        name,
        host,
        present_ns,
    } = log;
    let (mut met, mut bytes, mut unended) = (ImportLineCounts::default(), 0, false);
    let mut chunks = Chunks::new(from);
    while let Some(chunk) = chunks.next()? {
        let lines = match chunk {
            Chunk::Lines(lines) => lines,
            Chunk::TooLong => {
                met.refuse_endless();
                continue;
            }
        };
        bytes += lines.len() as u64;
        unended = !lines.ends_with(b"\n");
        let mut table = EventTable::default();
        parser::parse(lines, present_ns, &mut table, &mut met);
        if let Some(pattern) = host {
            rename_hosts(&mut table, pattern);
        }
        if to.send(table).is_err() {
            break;
        }
    }
    Ok(summary(name, bytes, unended, met))
}

/// The result of an import, from the counts of its lines.
fn summary(name: &str, bytes: u64, unended: bool, met: ImportLineCounts) -> TraceImport {
    let mut notes: Vec<String> = met
        .first
        .into_iter()
        .map(|(line, what)| format!("{name}, line {line}, is not an event: {what}"))
        .collect();
    if let Some(line) = met.first_future {
        let count = met.future;
        notes.push(format!(
            "{name}: events dated later than the import: {count}, the first in line {line} (a clock is ahead)"
        ));
    }
    if unended {
        notes.push(format!(
            "{name}: the last line has no line break and may be truncated"
        ));
    }
    TraceImport {
        source: name.to_owned(),
        form: "text".to_owned(),
        bytes,
        lines: met.lines,
        refused: met
            .refused
            .into_iter()
            .map(|(cause, count)| (cause.to_owned(), count))
            .collect(),
        notes,
        ..TraceImport::default()
    }
}
