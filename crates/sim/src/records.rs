//! One record a part, from what its two sides saw.

use crate::Scene;
use crate::job::{Job, Seen, gather};
use crate::stacks;
use stackline_core::program::{self, Side};
use stackline_core::record::RunRecord;
use std::rc::Rc;

/// The records of a run that was carried out; `seen` is by job.
pub(crate) fn records(scene: &Scene<'_>, jobs: &[Rc<Job>], seen: Vec<Vec<Seen>>) -> Vec<RunRecord> {
    let parts = scene.measurement.parts.iter().enumerate();
    let mut records: Vec<RunRecord> = parts
        .map(|(part, about)| RunRecord {
            measurement: scene.index,
            part,
            run: scene.run,
            warmup: scene.warmup,
            replicas: about.replicas,
            ..RunRecord::default()
        })
        .collect();
    for (job, seen) in jobs.iter().zip(seen) {
        let gathered = gather(seen);
        let record = &mut records[job.part];
        record.limited |= gathered.limited;
        record.lateness.merge(&gathered.lateness);
        match job.task.side {
            Side::Initiator => {
                record.elapsed_ns = gathered.elapsed_ns;
                record.span_ns = gathered.span_ns;
                record.calls = gathered.calls;
                record.connects = gathered.connects;
                record.initiator = gathered.record;
            }
            Side::Responder => record.responder = gathered.record,
        }
    }
    records.iter_mut().for_each(|record| note_absent(scene, record));
    records
}

/// What a simulated world cannot know, and why.
fn note_absent(scene: &Scene<'_>, record: &mut RunRecord) {
    let part = &scene.measurement.parts[record.part];
    let mut absent = |what: &str, why: &str| record.absent.insert(what.to_string(), why.to_string());
    absent("usage", "a simulated host has no processor whose time could be told");
    if record.initiator.transport.is_none() {
        if program::repeats_connections(&part.procedure.initiator) {
            absent("transport", "no connection lasts from clock start to stop");
        } else {
            absent("transport", &format!("{} tells nothing of itself", part.stack.name));
        }
    } else {
        let (unreported, why) = stacks::table(&part.stack.name).map_or((&[][..], ""), |table| table.unreported);
        unreported.iter().for_each(|what| drop(absent(&format!("transport.{what}"), why)));
    }
}
