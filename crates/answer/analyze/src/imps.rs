//! Sums up what the IMPs (the packet switches of the ARPANET) of a run reported to the Network Control Center: for each IMP, and for
//! each direction of each line. Read from IMP_REPORT and IMP_LINE events.

use stackline_core::error::Result;
use stackline_events::table::FIELDS;
use stackline_events::{EventTable, EventValue};
use stackline_runs::StoredRun;
use stackline_runs::events::{EventColumnSelection, read_batches};
use std::collections::BTreeMap;

/// The sums of all reports.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImpAnalysis {
    /// By name of the IMP.
    pub imps: BTreeMap<String, ImpTotals>,
    /// By name of the port: `BBN>Harvard` is the direction from BBN to Harvard.
    pub lines: BTreeMap<String, ImpLineTotals>,
}

impl ImpAnalysis {
    fn add(&mut self, events: &EventTable, row: usize) {
        match events.keyword(row) {
            "IMP_REPORT" => self
                .imps
                .entry(events.host(row).to_owned())
                .or_default()
                .add(events, row),
            "IMP_LINE" => {
                if let EventValue::Text(port) = events.value(row, 1) {
                    self.lines
                        .entry(port.to_owned())
                        .or_default()
                        .add(events, row);
                }
            }
            _ => {}
        }
    }
}

/// Reads the events of a run's reports, batch by batch, so that only these are held in memory.
///
/// # Errors
/// If the run has no events, or they cannot be read.
pub fn read_reports(run: &StoredRun) -> Result<EventTable> {
    let fields: Vec<usize> = (0..FIELDS).collect();
    let mut kept = EventTable::default();
    read_batches(&run.path, &EventColumnSelection::fields(&fields), |batch| {
        let is_report = |row: &usize| batch.keyword(*row).starts_with("IMP_");
        for row in (0..batch.len()).filter(is_report) {
            let values: Vec<_> = (0..10).map(|field| batch.value(row, field)).collect();
            kept.push(
                batch.keyword(row),
                batch.host(row),
                batch.at_ns[row],
                &values,
            );
        }
    })?;
    Ok(kept)
}

/// The sums of one IMP's reports.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ImpTotals {
    /// The time that its reports cover, seconds.
    pub seconds: f64,
    /// Packets that it forwarded, sent or received.
    pub packets: u64,
    /// Messages of its hosts, sent and received.
    pub messages: (u64, u64),
    /// Packets for IMPs that could not be reached.
    pub unreachable: u64,
    /// The share of the time that its processor worked, 0 to 1: on average, and in the busiest report.
    pub busy: (f64, f64),
    /// The most packets that were on their way through it at once.
    pub through: u64,
    /// Buffers for the reassembly of messages: the fewest that were free in any report, and all.
    pub reassembly: (u64, u64),
    /// The time covered by reports without a free reassembly buffer, seconds.
    pub full_seconds: f64,
}

/// The sums of one direction of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ImpLineTotals {
    /// The time that its reports cover, seconds.
    pub seconds: f64,
    /// The time covered by reports in which the line was up, seconds.
    pub up_seconds: f64,
    /// How often it went down.
    pub downs: u64,
    /// The share of the time that it was transmitting, 0 to 1: on average, and in the busiest report.
    pub busy: (f64, f64),
    /// Packets sent, with retransmissions.
    pub packets: u64,
    /// Bits of their data.
    pub bits: u64,
    /// Packets retransmitted.
    pub again: u64,
    /// Packets that arrived and were refused.
    pub refused: u64,
    /// Packets that had arrived before.
    pub duplicates: u64,
}

impl ImpLineTotals {
    /// Data rate, bit/s, over the time covered by reports.
    #[must_use]
    pub fn bit_s(&self) -> f64 {
        if self.seconds > 0.0 {
            self.bits as f64 / self.seconds
        } else {
            0.0
        }
    }
}

/// Sums up the reports in a table of events.
#[must_use]
pub fn reports(events: &EventTable) -> ImpAnalysis {
    let mut all = ImpAnalysis::default();
    (0..events.len()).for_each(|row| all.add(events, row));
    all
}

/// Sums up the reports of each span of `span_ns`, by number of the span. A report counts for the span in which it ends. Spans without
/// reports are left out.
#[must_use]
pub fn reports_each(events: &EventTable, span_ns: u64) -> BTreeMap<u64, ImpAnalysis> {
    let mut spans = BTreeMap::<u64, ImpAnalysis>::new();
    for row in 0..events.len() {
        let ended = events.at_ns[row].saturating_sub(1);
        spans
            .entry(ended / span_ns.max(1))
            .or_default()
            .add(events, row);
    }
    spans
}

/// A data field as a count; 0 if it is absent or negative.
fn count(events: &EventTable, row: usize, field: usize) -> u64 {
    events
        .number(row, field)
        .and_then(|number| u64::try_from(number).ok())
        .unwrap_or(0)
}

/// Adds a report of `more` seconds with a share to (mean over `seconds`, greatest).
fn add_share(busy: &mut (f64, f64), seconds: f64, share: f64, more: f64) {
    let all = seconds + more;
    let mean = if all > 0.0 {
        (busy.0 * seconds + share * more) / all
    } else {
        0.0
    };
    *busy = (mean, busy.1.max(share));
}

/// Adds with saturation: an imported log can hold any numbers.
fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

impl ImpTotals {
    fn add(&mut self, events: &EventTable, row: usize) {
        let field = |field| count(events, row, field);
        let more = field(0) as f64 / 1e9;
        add_share(&mut self.busy, self.seconds, field(5) as f64 / 1e6, more);
        let (free, all) = (field(6), field(8));
        let fewest = if self.seconds > 0.0 {
            self.reassembly.0.min(free)
        } else {
            free
        };
        self.reassembly = (fewest, self.reassembly.1.max(all));
        self.full_seconds += if free == 0 { more } else { 0.0 };
        self.seconds += more;
        add(&mut self.packets, field(1));
        add(&mut self.messages.0, field(2));
        add(&mut self.messages.1, field(3));
        add(&mut self.unreachable, field(4));
        self.through = self.through.max(field(9));
    }
}

impl ImpLineTotals {
    fn add(&mut self, events: &EventTable, row: usize) {
        let field = |field| count(events, row, field);
        let more = field(0) as f64 / 1e9;
        let share = if more > 0.0 {
            field(3) as f64 / 1e9 / more
        } else {
            0.0
        };
        add_share(&mut self.busy, self.seconds, share.min(1.0), more);
        self.seconds += more;
        self.up_seconds += if field(2) > 0 { more } else { 0.0 };
        add(&mut self.packets, field(4));
        add(&mut self.bits, field(5));
        add(&mut self.again, field(6));
        add(&mut self.refused, field(7));
        add(&mut self.duplicates, field(8));
        add(&mut self.downs, field(9));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn reports_add_up() {
        let mut events = EventTable::default();
        for (cpu, free, packets) in [(100_000, 24, 10), (300_000, 16, 30)] {
            let values = [SECOND, packets, 1, 2, 0, cpu, free, 8, 24, 5].map(EventValue::from);
            events.push("IMP_REPORT", "BBN", 0, &values);
            let mut line = [
                SECOND,
                0,
                1,
                SECOND / 4,
                packets,
                1000 * packets,
                1,
                0,
                0,
                0,
            ]
            .map(EventValue::from);
            line[1] = EventValue::Text("BBN>MIT");
            events.push("IMP_LINE", "BBN", 0, &line);
        }
        let reports = reports(&events);
        let bbn = reports.imps["BBN"];
        assert_eq!(
            (bbn.seconds, bbn.packets, bbn.messages, bbn.reassembly),
            (2.0, 40, (2, 4), (16, 24))
        );
        assert!((bbn.busy.0 - 0.2).abs() < 1e-9 && (bbn.busy.1 - 0.3).abs() < 1e-9);
        let line = reports.lines["BBN>MIT"];
        assert_eq!(
            (line.up_seconds, line.busy, line.again, line.bit_s()),
            (2.0, (0.25, 0.25), 2, 20_000.0)
        );
    }
}
