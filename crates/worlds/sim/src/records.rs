//! Makes the records of a run, and notes in them what a simulated world cannot measure.

use crate::job::SimJob;
use crate::scene::SimRunScene;
use crate::stacks;
use stackline_core::run_record::RunRecord;
use stackline_endpoint::observation::gather;
use stackline_endpoint::records::{self, MeasurementRun};
use std::rc::Rc;

/// The records of a run that was carried out, from what the endpoints of each job observed.
pub(crate) fn gather_records(scene: &SimRunScene<'_>, jobs: &[Rc<SimJob>]) -> Vec<RunRecord> {
    let run = MeasurementRun {
        measurement: scene.measurement,
        index: scene.index,
        run: scene.run,
        warmup: scene.warmup,
    };
    let sides = jobs
        .iter()
        .map(|job| (job.part, job.task.side, gather(job.observed.take())));
    let mut records = records::make_records(&run, sides);
    records
        .iter_mut()
        .for_each(|record| note_absent(scene, record));
    records
}

/// Notes why the record has no processor usage and lacks some transport statistics.
fn note_absent(scene: &SimRunScene<'_>, record: &mut RunRecord) {
    let part = &scene.measurement.parts[record.part];
    let mut absent =
        |what: &str, why: &str| record.absent.insert(what.to_string(), why.to_string());
    absent("usage", "a simulated host has no processor time to measure");
    if record.initiator.transport.is_some() {
        let (unreported, why) = stacks::find_stack(&part.stack.name)
            .map_or((&[][..], ""), |stack| stack.table.unreported);
        unreported
            .iter()
            .for_each(|what| drop(absent(&format!("transport.{what}"), why)));
    }
}
