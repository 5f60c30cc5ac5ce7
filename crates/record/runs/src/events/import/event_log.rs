//! Imports logs in the binary form.

use super::source_log::{ImportLog, rename_hosts, unreadable_log_error};
use crate::Error;
use crate::events::intake::Intake;
use stackline_core::trace_index::TraceImport;
use stackline_events::event_log::{EventLogPieces, measure_whole_records};
use std::io::Read;

/// Whether a file that begins with these bytes is in the binary form.
#[must_use]
pub fn begins_event_log(first: &[u8]) -> bool {
    matches!(measure_whole_records(first), Ok(Some(_)))
}

/// Imports a whole log. It ends at the first record that is truncated or damaged; the bytes from there on are counted.
///
/// # Errors
/// When the log cannot be read, does not name the host of its events, or the events cannot be stored.
pub fn import_event_log(log: ImportLog<'_>, into: &mut Intake) -> Result<TraceImport, Error> {
    let ImportLog {
        bytes,
        name,
        host,
        present_ns,
    } = log;
    let mut import = TraceImport {
        source: name.to_owned(),
        form: "tape".to_owned(),
        ..TraceImport::default()
    };
    let mut counted = ByteCountingReader {
        from: bytes,
        bytes: 0,
    };
    let mut pieces = EventLogPieces::new(&mut counted);
    let mut future = 0;
    while let Some(mut table) = pieces
        .next_table()
        .map_err(|cause| unreadable_log_error(name, &cause))?
    {
        import.events += table.len() as u64;
        future += table.at_ns.iter().filter(|at| **at > present_ns).count();
        if let Some(pattern) = host {
            rename_hosts(&mut table, pattern);
        }
        if (0..table.len()).any(|row| table.host(row).is_empty()) {
            let message = format!("{name} does not name the host of its events");
            return Err(Error::new(
                message,
                format!("name the host with `--host NAME={name}`"),
            ));
        }
        into.push(&table)?;
    }
    if pieces.damaged() > 0 {
        import
            .refused
            .insert("truncated or damaged bytes".to_owned(), pieces.damaged());
    }
    import.bytes = counted.bytes;
    if future > 0 {
        import.notes.push(format!(
            "{name}: events dated later than the import: {future} (a clock is ahead)"
        ));
    }
    Ok(import)
}

/// A reader that counts the bytes read.
struct ByteCountingReader<R> {
    from: R,
    bytes: u64,
}

impl<R: Read> Read for ByteCountingReader<R> {
    fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
        let length = self.from.read(to)?;
        self.bytes += length as u64;
        Ok(length)
    }
}
