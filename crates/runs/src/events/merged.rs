//! All events of a run in the order of time, however many, a portion at a time.

use super::merge::{Input, merge};
use super::{Reader, Wanted, Whole, read_index, whole};
use crate::Error;
use stackline_core::trace::{Clock, Index};
use stackline_events::Table;
use std::path::Path;

/// Events that are given at a time, about.
const PORTION: usize = 1 << 16;

/// The events of all hosts of a run.
pub struct Merged {
    inputs: Vec<Input>,
}

impl std::fmt::Debug for Merged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Merged").field("inputs", &self.inputs.len()).finish()
    }
}

impl Merged {
    /// Of that run, also while it is still being made. With `reference`, times are those of its reference host's clock;
    /// else each host's own.
    ///
    /// # Errors
    /// When it has no events, or they cannot be read.
    pub fn of(run: &Path, reference: bool) -> Result<Self, Error> {
        let index = read_index(run)?.unwrap_or_default();
        let mut inputs = Vec::new();
        let Whole { files, tapes } = whole(run)?;
        for path in files {
            let clock = if reference { clock(&path, &index)? } else { None };
            inputs.push(Input::file(path, 0, clock));
        }
        for table in tapes {
            let clock = (reference && !table.is_empty()).then(|| clock_of(table.host(0), &index)).flatten();
            inputs.push(Input::table(table, clock));
        }
        Ok(Self { inputs })
    }

    /// Gives everything: tables and which of their rows come next.
    ///
    /// # Errors
    /// When a file is damaged, or what `give` says.
    pub fn each(self, give: impl FnMut(&Table, &[u32]) -> Result<(), Error>) -> Result<(), Error> {
        merge(self.inputs, &Wanted::all(), PORTION, give)
    }
}

/// The clock of the host whose events a file has.
fn clock(path: &Path, index: &Index) -> Result<Option<Clock>, Error> {
    let first = Reader::open(path, &Wanted::fields(&[]))?.next_batch()?;
    Ok(first.filter(|table| !table.is_empty()).and_then(|table| clock_of(table.host(0), index)))
}

fn clock_of(host: &str, index: &Index) -> Option<Clock> {
    index.hosts.get(host).map(|host| host.clock.clone())
}
