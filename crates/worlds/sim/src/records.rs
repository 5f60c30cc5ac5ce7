//! The records of a run, with what a simulated world cannot know.

use crate::job::Job;
use crate::scene::Scene;
use crate::stacks;
use stackline_core::record::RunRecord;
use stackline_endpoint::observation::{Observation, gather};
use stackline_endpoint::records::{self, Run};
use std::rc::Rc;

/// The records of a run that was carried out; what was observed is by job.
pub(crate) fn records(
    scene: &Scene<'_>,
    jobs: &[Rc<Job>],
    observed: Vec<Vec<Observation>>,
) -> Vec<RunRecord> {
    let run = Run {
        measurement: scene.measurement,
        index: scene.index,
        run: scene.run,
        warmup: scene.warmup,
    };
    let sides = jobs
        .iter()
        .zip(observed)
        .map(|(job, observed)| (job.part, job.task.side, gather(observed)));
    let mut records = records::records(&run, sides);
    records
        .iter_mut()
        .for_each(|record| note_absent(scene, record));
    records
}

fn note_absent(scene: &Scene<'_>, record: &mut RunRecord) {
    let part = &scene.measurement.parts[record.part];
    let mut absent =
        |what: &str, why: &str| record.absent.insert(what.to_string(), why.to_string());
    absent(
        "usage",
        "a simulated host has no processor whose time could be measured",
    );
    if record.initiator.transport.is_some() {
        let (unreported, why) =
            stacks::find(&part.stack.name).map_or((&[][..], ""), |stack| stack.table.unreported);
        unreported
            .iter()
            .for_each(|what| drop(absent(&format!("transport.{what}"), why)));
    }
}
