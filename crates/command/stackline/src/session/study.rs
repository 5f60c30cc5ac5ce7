//! Many simulated specifications at once, spread over the cores. Each is answered as soon as it is done; nothing is kept.

use super::answers::answer;
use super::made_runs::{SessionResult, in_memory, made, percentiles};
use super::prepared::{PreparedPlan, PreparedSpec, SessionRefusal};
use super::progress_lines::{SessionProgress, WithinStudy};
use super::requests::{RequestedStudy, RequestedText, StudiedText};
use super::waiting::CancelFlags;
use crate::exit::Error;
use crate::flags::{RunFlags, TableFlags};
use serde_json::json;
use stackline_core::plan::World;
use stackline_report::Percentile;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Simulates all specifications of a study. The result says how many there were, and how many failed.
pub(super) fn studied(
    id: u64,
    asked: &RequestedStudy,
    cancel: &CancelFlags,
) -> Result<SessionResult, SessionRefusal> {
    let percentiles = percentiles(&asked.percentiles)?;
    let texts = &asked.specifications;
    let (next, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let progress = SessionProgress::new(id, texts.len() as u64);
    let progress = Arc::new(Mutex::new(progress));
    let work = || {
        while !cancel.signalled.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(text) = texts.get(index) else { return };
            let mut item = match simulated(text, &percentiles, &progress, cancel) {
                Ok(done) => json!({"result": done.result, "notes": done.notes}),
                Err(refusal) => {
                    failed.fetch_add(1, Ordering::Relaxed);
                    json!({"error": refusal.json()})
                }
            };
            item["index"] = index.into();
            let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
            answer(&json!({"id": id, "item": item}));
            progress.step();
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        // This thread is one of them.
        for _ in 1..threads.min(texts.len()) {
            scope.spawn(work);
        }
        work();
    });
    if cancel.signalled.load(Ordering::Relaxed) {
        return Err(Error::interrupted().into());
    }
    Ok(SessionResult {
        result: json!({"specifications": texts.len(), "failed": failed.into_inner()}),
        notes: Vec::new(),
    })
}

/// Simulates one specification.
fn simulated(
    text: &StudiedText,
    percentiles: &[Percentile],
    progress: &Arc<Mutex<SessionProgress>>,
    cancel: &CancelFlags,
) -> Result<SessionResult, SessionRefusal> {
    let mut spec = match text {
        StudiedText::Whole(asked) => PreparedSpec::read(asked)?,
        StudiedText::Plain(text) => PreparedSpec::read(&RequestedText::plain(text))?,
    };
    let other = spec.flags.world.filter(|world| *world != World::Simulated);
    if let Some(world) = other {
        return Err(
            Error::input(format!("`simulate` is not for the {world} world"))
                .hint("use `run` with `keep: false`")
                .into(),
        );
    }
    spec.flags.world = Some(World::Simulated);
    let PreparedPlan { plan, notes } = spec.plan()?;
    let flags = RunFlags {
        text: spec.flags,
        shown: TableFlags {
            percentiles: percentiles.to_vec(),
            ..TableFlags::default()
        },
        ..RunFlags::default()
    };
    let progress = Box::new(WithinStudy(Arc::clone(progress)));
    let writer = in_memory(&plan, progress);
    made(&flags, &plan, writer, cancel, notes)
}
