//! Lifelines of a run, assembled from its events.
//!
//! Events are taken batch by batch and never all held; what is kept of each is bounded by how many are read at all.

use super::{ReadEvents, describe_beyond};
use crate::assemble::{self, Assembler, LifelineOptions};
use crate::lifelines::Lifelines;
use stackline_core::error::Result;
use stackline_core::trace_index::Index;
use stackline_runs::events::{EventColumnSelection as Columns, EventExcerpt, read_batches};
use std::path::Path;

/// Events that are read at once, unless a flag sets another number: what is kept of them takes a quarter of a gigabyte.
pub const MOST_EVENTS: usize = 6_000_000;

/// Bytes of memory that an event takes, about, when only lifelines are assembled of it.
const ASSEMBLED_EVENT_BYTES: f64 = 35.0;

/// The lifelines of a run, and where not all its events were read, that.
///
/// # Errors
/// When its events cannot be read.
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
    let Some(excerpt) = EventExcerpt::of(run, of, most_events as u64)? else {
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
