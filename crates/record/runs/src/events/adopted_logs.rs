//! Takes event logs that were written elsewhere into a run. Each event can be changed on the way, because names may
//! have different meanings there.

use super::paths::event_log_files;
use super::spool::{Spooling, open_pieces, read_next_table};
use crate::Error;
use stackline_events::table::FIELDS;
use stackline_events::{EventLog, EventTable, EventValue, keyword};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Passes the events of all event logs of a run directory to `each`, table by table. Returns how many bytes of the
/// logs are damaged.
///
/// # Errors
/// When the logs cannot be read.
pub fn read_event_logs(directory: &Path, mut each: impl FnMut(&EventTable)) -> Result<u64, Error> {
    let mut damaged = 0;
    for log_path in event_log_files(directory)? {
        let mut pieces = open_pieces(&log_path)?;
        while let Some(piece) = read_next_table(&mut pieces, &log_path)? {
            each(&piece);
        }
        damaged += pieces.damaged();
    }
    Ok(damaged)
}

impl Spooling {
    /// Adds the events of all event logs of a directory to this run, then removes the logs. `change` gets each event's
    /// keyword, time and data, may change the data, and returns whether the event is kept.
    ///
    /// # Errors
    /// When they cannot be read or written; event logs that were not added stay in their directory.
    pub fn adopt(
        &self,
        directory: &Path,
        mut change: impl FnMut(&str, u64, &mut [EventValue<'_>]) -> bool,
    ) -> Result<(), Error> {
        for log_path in event_log_files(directory)? {
            let mut pieces = open_pieces(&log_path)?;
            while let Some(piece) = read_next_table(&mut pieces, &log_path)? {
                self.adopt_piece(&piece, &mut change)?;
            }
            fs::remove_file(&log_path).map_err(|cause| Error::writing(&log_path, &cause))?;
        }
        Ok(())
    }

    fn adopt_piece(
        &self,
        piece: &EventTable,
        change: &mut impl FnMut(&str, u64, &mut [EventValue<'_>]) -> bool,
    ) -> Result<(), Error> {
        let mut logs: BTreeMap<u32, EventLog> = BTreeMap::new();
        let mut ids: BTreeMap<u32, u32> = BTreeMap::new();
        for row in 0..piece.len() {
            let mut values: [EventValue<'_>; FIELDS] =
                std::array::from_fn(|field| piece.value(row, field));
            if !change(piece.keyword(row), piece.at_ns[row], &mut values) {
                continue;
            }
            let known = values
                .iter()
                .rposition(|value| *value != EventValue::Absent)
                .map_or(0, |last| last + 1);
            let id = *ids
                .entry(piece.keyword[row])
                .or_insert_with(|| keyword::intern(piece.keyword(row)));
            let log = logs.entry(piece.host[row]).or_insert_with(|| {
                let mut log = EventLog::default();
                log.host(piece.host(row));
                log
            });
            log.push(id, piece.at_ns[row], &values[..known]);
        }
        logs.into_iter()
            .try_for_each(|(host, log)| self.append(piece.names.text(host), &log))
    }
}

#[cfg(test)]
mod tests {
    use super::super::run_events::read_run;
    use super::super::spool::Spool;
    use super::*;

    #[test]
    fn events_come_as_they_are_wanted() {
        let (run, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (host, at) in [("khons", 5), ("udjat", 3)] {
            let mut event_log = EventLog::default();
            event_log.host(host);
            event_log.push(
                keyword::intern("NET_SEEN"),
                at,
                &[
                    EventValue::Absent,
                    at.into(),
                    EventValue::Text("x"),
                    EventValue::Absent,
                ],
            );
            event_log.push(keyword::intern("NET_DROP"), at + 1, &[at.into()]);
            Spool::new(elsewhere.path())
                .append(host, &event_log)
                .unwrap();
        }
        let mut seen = 0;
        assert_eq!(
            read_event_logs(elsewhere.path(), |table| seen += table.len()).unwrap(),
            0
        );
        assert_eq!(seen, 4);
        let spool = Spooling::start(run.path()).unwrap();
        let change = |keyword: &str, _: u64, values: &mut [EventValue<'_>]| {
            values[1] = 7_u64.into();
            keyword == "NET_SEEN"
        };
        spool.adopt(elsewhere.path(), change).unwrap();
        let table = read_run(run.path()).unwrap();
        let lines: Vec<String> = (0..table.len())
            .map(|row| table.event(row).to_string())
            .collect();
        assert_eq!(
            lines,
            [
                "NET_SEEN; khons; 0; 5; ; 7; x",
                "NET_SEEN; udjat; 0; 3; ; 7; x"
            ],
            "host by host"
        );
        assert!(event_log_files(elsewhere.path()).unwrap().is_empty());
    }
}
