//! A run's events in stackline's own forms, in the order of time.

use super::merged::Merged;
use crate::Error;
use stackline_events::{EventLog, Value, keyword, text};
use std::collections::BTreeMap;
use std::io::Write;

/// Writes them in NetLogger's text form. How many.
///
/// # Errors
/// When they cannot be read or written.
pub fn export_text(events: Merged, to: &mut dyn Write) -> Result<u64, Error> {
    let (mut count, mut lines) = (0, Vec::new());
    events.each(|table, rows| {
        for row in rows.iter().map(|row| *row as usize) {
            if table.more.is_empty() {
                let values: Vec<Value<'_>> = (0..table.data.len()).map(|field| table.value(row, field)).collect();
                let length = present(&values);
                text::write_line(&mut lines, table.keyword(row), table.host(row), table.at_ns[row], &values[..length]);
            } else {
                lines.extend_from_slice(table.event(row).to_string().as_bytes());
                lines.push(b'\n');
            }
        }
        to.write_all(&lines).map_err(|cause| unwritten(&cause))?;
        lines.clear();
        count += rows.len() as u64;
        Ok(())
    })?;
    to.flush().map_err(|cause| unwritten(&cause))?;
    Ok(count)
}

/// Writes them in the binary form. What of it has no room there is left out: fields beyond 16, what of a text is beyond 4096 bytes.
/// How many.
///
/// # Errors
/// When they cannot be read or written.
pub fn export_tape(events: Merged, to: &mut dyn Write) -> Result<u64, Error> {
    let (mut tape, mut count, mut host) = (EventLog::default(), 0, String::new());
    // A name's number is looked up once.
    let mut numbers: BTreeMap<String, u32> = BTreeMap::new();
    events.each(|table, rows| {
        for row in rows.iter().map(|row| *row as usize) {
            if table.host(row) != host {
                table.host(row).clone_into(&mut host);
                tape.host(&host);
            }
            let name = table.keyword(row);
            let number = match numbers.get(name) {
                Some(number) => *number,
                None => *numbers.entry(name.to_owned()).or_insert(keyword::intern(name)),
            };
            let values: Vec<Value<'_>> = (0..table.data.len()).map(|field| table.value(row, field)).collect();
            tape.push(number, table.at_ns[row], &values[..present(&values)]);
        }
        to.write_all(tape.bytes()).map_err(|cause| unwritten(&cause))?;
        tape.clear();
        count += rows.len() as u64;
        Ok(())
    })?;
    to.flush().map_err(|cause| unwritten(&cause))?;
    Ok(count)
}

/// How many values there are without the absent ones at the end.
fn present(values: &[Value<'_>]) -> usize {
    values.iter().rposition(|value| *value != Value::Absent).map_or(0, |last| last + 1)
}

fn unwritten(cause: &std::io::Error) -> Error {
    let hint = "check that the disk is not full and that the reader of a pipe stays";
    Error::new("cannot write what is exported", hint).because(cause)
}
