//! Assembles the lifelines of a run from its event files without keeping the events in memory.
//!
//! Events are read batch by batch. Memory is bounded by the number of events that are read.

use super::{ReadEvents, describe_beyond};
use crate::assemble::{self, Assembler, LifelineOptions};
use crate::lifelines::Lifelines;
use stackline_core::error::Result;
use stackline_core::trace_index::Index;
use stackline_runs::events::{EventColumnSelection as Columns, EventExcerpt, read_batches};
use std::path::Path;

/// Most events that are read, unless a flag sets another number: what is kept of them takes about a quarter of a gigabyte
/// (`ASSEMBLED_EVENT_BYTES` each).
pub const MOST_EVENTS: usize = 6_000_000;

/// Approximate bytes of memory for an event when only lifelines are assembled.
const ASSEMBLED_EVENT_BYTES: f64 = 35.0;

/// The lifelines of a run, with a note if not all its events were read.
///
/// # Errors
/// If its events cannot be read.
pub fn assembled(
    run: &Path,
    index: Option<&Index>,
    options: &LifelineOptions,
    most_events: usize,
) -> Result<(Lifelines, Option<String>)> {
    let mut assembler = Assembler::new(index, options);
    let wanted = Columns::fields(&assemble::fields(options));
    let (none, mut read) = (Index::default(), 0);
    let of = index.unwrap_or(&none);
    let Some(excerpt) = EventExcerpt::select(run, of, most_events as u64)? else {
        read_batches(run, &wanted, |batch| assembler.add(batch, None))?;
        return Ok((assembler.finish(), None));
    };
    excerpt.read(run, of, &wanted, |part| {
        read += part.len();
        assembler.add(part, None);
    })?;
    let what = match excerpt.runs.len() {
        0 => "lifelines cover only the beginning of the run".to_owned(),
        whole => format!(
            "lifelines cover {whole} of {} runs",
            of.runs.iter().filter(|run| !run.warmup).count()
        ),
    };
    Ok((
        assembler.finish(),
        Some(describe_beyond(
            run,
            "lifelines",
            ReadEvents {
                read,
                of: excerpt.of,
                event_bytes: ASSEMBLED_EVENT_BYTES,
            },
            &what,
        )),
    ))
}
