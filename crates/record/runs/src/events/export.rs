//! Exports a run's events in stackline's own formats, in the order of time.

use super::merged::Merged;
use crate::Error;
use stackline_events::event_log::{LONGEST_TEXT, MOST_NAMES, MOST_VALUES};
use stackline_events::{EventLog, EventTable, EventValue, keyword, text};
use std::collections::BTreeMap;
use std::io::Write;

/// Writes the events in NetLogger's text form. Returns how many.
///
/// # Errors
/// When they cannot be read or written.
pub fn export_text(events: Merged, to: &mut dyn Write) -> Result<u64, Error> {
    let (mut count, mut lines) = (0, Vec::new());
    events.each(|table, rows| {
        for row in rows.iter().map(|row| *row as usize) {
            if table.more.is_empty() {
                let values: Vec<EventValue<'_>> = (0..table.data.len())
                    .map(|field| table.value(row, field))
                    .collect();
                let length = present(&values);
                text::write_line(
                    &mut lines,
                    table.keyword(row),
                    table.host(row),
                    table.at_ns[row],
                    &values[..length],
                );
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

/// What was exported in the binary form, and what did not fit into it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportedEventLog {
    /// Events written.
    pub events: u64,
    /// Events of which the fields beyond [`MOST_VALUES`] were left out.
    pub fields: u64,
    /// Texts, keywords and host names that were cut at [`LONGEST_TEXT`] bytes.
    pub texts: u64,
    /// Events whose keyword was replaced because there are more than [`MOST_NAMES`] keywords.
    pub keywords: u64,
}

impl ExportedEventLog {
    /// What was left out: a line for each reason that occurred.
    #[must_use]
    pub fn left_out(&self) -> Vec<String> {
        let said = [
            (
                self.fields,
                "trailing fields of events with more than",
                MOST_VALUES,
                "",
            ),
            (
                self.texts,
                "ends of texts longer than",
                LONGEST_TEXT,
                " bytes",
            ),
            (
                self.keywords,
                "keywords of events, replaced because there are more than",
                MOST_NAMES,
                " keywords",
            ),
        ];
        let said = said.into_iter().filter(|(count, ..)| *count > 0);
        said.map(|(count, what, most, unit)| format!("left out: {what} {most}{unit}: {count}"))
            .collect()
    }

    /// Counts an event that is written with these values.
    fn count(&mut self, table: &EventTable, row: usize, values: &[EventValue<'_>]) {
        self.events += 1;
        let has_more = table
            .more
            .binary_search_by_key(&row, |(row, _)| *row as usize)
            .is_ok();
        self.fields += u64::from(has_more || values.len() > MOST_VALUES);
        let is_long = |value: &&EventValue<'_>| matches!(value, EventValue::Text(text) if text.len() > LONGEST_TEXT);
        self.texts += values.iter().take(MOST_VALUES).filter(is_long).count() as u64;
    }
}

/// Writes the events in the binary form. What does not fit into it is left out and counted.
///
/// # Errors
/// When the events cannot be read or written.
pub fn export_event_log(events: Merged, to: &mut dyn Write) -> Result<ExportedEventLog, Error> {
    let (mut event_log, mut written, mut host) = (
        EventLog::default(),
        ExportedEventLog::default(),
        String::new(),
    );
    let mut keywords = ExportKeywords::default();
    events.each(|table, rows| {
        for row in rows.iter().map(|row| *row as usize) {
            if table.host(row) != host {
                table.host(row).clone_into(&mut host);
                event_log.host(&host);
                written.texts += u64::from(host.len() > LONGEST_TEXT);
            }
            let number = keywords.number(table.keyword(row), &mut written);
            let values: Vec<EventValue<'_>> = (0..table.data.len())
                .map(|field| table.value(row, field))
                .collect();
            let values = &values[..present(&values)];
            event_log.push(number, table.at_ns[row], values);
            written.count(table, row, values);
        }
        to.write_all(event_log.bytes())
            .map_err(|cause| unwritten(&cause))?;
        event_log.clear();
        Ok(())
    })?;
    to.flush().map_err(|cause| unwritten(&cause))?;
    Ok(written)
}

/// The number of each keyword met, so that it is interned once, and whether that number is the keyword's own.
#[derive(Default)]
struct ExportKeywords(BTreeMap<String, (u32, bool)>);

impl ExportKeywords {
    /// The number of a keyword; counts it in `written` when it was cut or replaced.
    fn number(&mut self, name: &str, written: &mut ExportedEventLog) -> u32 {
        let (number, is_own) = self.0.get(name).copied().unwrap_or_else(|| {
            let number = keyword::intern(name);
            let known = (number, keyword::keyword_name(number) == Some(name));
            self.0.insert(name.to_owned(), known);
            written.texts += u64::from(name.len() > LONGEST_TEXT);
            known
        });
        written.keywords += u64::from(!is_own);
        number
    }
}

/// The number of values without the absent ones at the end.
fn present(values: &[EventValue<'_>]) -> usize {
    values
        .iter()
        .rposition(|value| *value != EventValue::Absent)
        .map_or(0, |last| last + 1)
}

fn unwritten(cause: &std::io::Error) -> Error {
    let hint = "check that the disk is not full, or that the reader of the pipe is still running";
    Error::new("cannot write the export", hint).because(cause)
}

#[cfg(test)]
mod tests {
    use super::super::Intake;
    use super::*;

    fn exported(fill: impl Fn(&mut EventTable)) -> ExportedEventLog {
        let run = tempfile::tempdir().unwrap();
        let (mut table, mut intake) = (EventTable::default(), Intake::begin(run.path()).unwrap());
        fill(&mut table);
        intake.push(&table).unwrap();
        intake.finish().unwrap();
        export_event_log(Merged::open(run.path(), false).unwrap(), &mut Vec::new()).unwrap()
    }

    #[test]
    fn what_has_no_room_in_an_event_log_is_counted_by_reason() {
        let text = "x".repeat(LONGEST_TEXT);
        let longer = format!("{text}x");
        let fits =
            exported(|table| table.push("A", "h", 1, &[EventValue::Text(&text); MOST_VALUES]));
        assert_eq!(
            fits,
            ExportedEventLog {
                events: 1,
                ..ExportedEventLog::default()
            }
        );
        assert!(fits.left_out().is_empty());
        let cut = exported(|table| {
            table.push("A", "h", 1, &[EventValue::from(1); MOST_VALUES + 1]);
            table.push("A", "h", 2, &[EventValue::from(1); 40]);
            table.push(
                "A",
                "h",
                3,
                &[
                    EventValue::Text(&longer),
                    EventValue::from(7),
                    EventValue::Text(&longer),
                ],
            );
            table.push(&longer, "h", 4, &[]);
            table.push(&longer, "h", 5, &[]);
        });
        assert_eq!(
            cut,
            ExportedEventLog {
                events: 5,
                fields: 2,
                texts: 3,
                keywords: 0
            }
        );
        assert_eq!(
            cut.left_out(),
            [
                "left out: trailing fields of events with more than 16: 2",
                "left out: ends of texts longer than 4096 bytes: 3",
            ]
        );
    }
}
