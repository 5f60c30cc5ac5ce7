//! Files of events in the text form.

use crate::{Error, files};
use stackline_events::Event;
use stackline_events::text::Events;
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;

/// Writes a file of events, whole or not at all, and the directory it lies in. Returns how many.
///
/// # Errors
/// When it cannot be written, an event cannot be, or one is earlier than the one before.
pub fn write_events<'e>(path: &Path, events: impl IntoIterator<Item = &'e Event>) -> Result<u64, Error> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(|cause| Error::writing(path, &cause))?;
    }
    let mut count = 0;
    files::replace(path, |file| {
        let mut out = BufWriter::new(file);
        let mut latest = 0;
        for event in events {
            let line = event.line().map_err(|cause| refused(path, &cause))?;
            if event.at_ns < latest {
                return Err(refused(path, &format!("an event at {} ns comes behind one at {latest} ns", event.at_ns)));
            }
            latest = event.at_ns;
            writeln!(out, "{line}").map_err(|cause| Error::writing(path, &cause))?;
            count += 1;
        }
        out.flush().map_err(|cause| Error::writing(path, &cause))
    })?;
    Ok(count)
}

fn refused(path: &Path, cause: &str) -> Error {
    let hint = "this is a mistake of the monitor point that made the event; please report it";
    Error::new(format!("cannot write {}", path.display()), hint).because(&cause)
}

/// Reads a file of events one by one.
///
/// # Errors
/// When it cannot be opened.
pub fn read_events(path: &Path) -> Result<Events<BufReader<File>>, Error> {
    let file = File::open(path).map_err(|cause| Error::reading(path, &cause))?;
    Ok(Events::new(BufReader::new(file), &path.display().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(keyword: &str, at_ns: u64, data: &[&str]) -> Event {
        let data = data.iter().map(|&field| field.to_owned()).collect();
        Event { keyword: keyword.into(), host: "khons".into(), at_ns, data }
    }

    #[test]
    fn a_file_is_there_whole_and_sorted_or_not_at_all() {
        let run = tempfile::tempdir().unwrap();
        let path = run.path().join("events/wan.events");
        let events = [event("A", 1, &["x"]), event("B", 1, &[]), event("C", 7, &["", "y"])];
        assert_eq!(write_events(&path, &events).unwrap(), 3);
        let again: Vec<Event> = read_events(&path).unwrap().map(|e| e.unwrap()).collect();
        assert_eq!(again, events);
        let error = write_events(&path, [&events[2], &events[0]]).unwrap_err();
        assert!(error.to_string().ends_with("an event at 1 ns comes behind one at 7 ns"), "{error}");
        assert_eq!(read_events(&path).unwrap().count(), 3, "the old file is untouched");
    }
}
