//! Makes the run records of a run, one for each part, from what its two sides observed.

use crate::observation::SideObservation;
use stackline_core::far_end::is_address;
use stackline_core::plan::Measurement;
use stackline_core::procedure::{self, PairSide};
use stackline_core::run_record::RunRecord;

/// Identifies a run of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct MeasurementRun<'p> {
    /// The measurement.
    pub measurement: &'p Measurement,
    /// The index of the measurement in the plan.
    pub index: usize,
    /// The number of the run, from 0.
    pub run: u32,
    /// Whether the run is left out of every total.
    pub warmup: bool,
}

/// The records of a run, by part. Each observation comes with the index of its part and its side.
#[must_use]
pub fn make_records(
    run: &MeasurementRun<'_>,
    observed: impl IntoIterator<Item = (usize, PairSide, SideObservation)>,
) -> Vec<RunRecord> {
    let mut records: Vec<RunRecord> = (0..)
        .zip(&run.measurement.parts)
        .map(|(part, about)| RunRecord {
            measurement: run.index,
            part,
            run: run.run,
            warmup: run.warmup,
            replicas: about.replicas,
            ..RunRecord::default()
        })
        .collect();
    for (part, side, observed) in observed {
        let Some(record) = records.get_mut(part) else {
            continue;
        };
        record.limited |= observed.limited;
        record.lateness.merge(&observed.lateness);
        record.own_lateness.merge(&observed.own_lateness);
        match side {
            PairSide::Initiator => {
                record.elapsed_ns = observed.elapsed_ns;
                record.span_ns = observed.span_ns;
                record.calls = observed.calls;
                record.connects = observed.connects;
                record.opening = observed.opening;
                record.timed_calls = observed.timed_calls;
                record.initiator_intervals = observed.intervals;
                record.initiator = observed.record;
            }
            PairSide::Responder => {
                record.responder_intervals = observed.intervals;
                record.responder = observed.record;
            }
        }
    }
    for (record, part) in records.iter_mut().zip(&run.measurement.parts) {
        if record.initiator.transport.is_none() {
            let reason = if procedure::repeats_connections(&part.procedure.initiator) {
                "no connection stays open from clock start to clock stop".to_string()
            } else {
                format!("{} reports no transport statistics", part.stack.name)
            };
            record.absent.insert("transport".into(), reason);
        }
        if let Some(server) = part.to.as_ref().filter(|to| is_address(to)) {
            // A far end confirms what it was sent, as by its answer; only then is it counted.
            if record.initiator.bytes_are_timed() {
                record.responder.received_bytes = record.initiator.sent_bytes;
                record.responder.received_units = record.initiator.sent_units;
            }
            let reason = format!("{server} is outside the run; CPU is the client's alone");
            record.absent.insert("responder".into(), reason);
        }
    }
    records
}
