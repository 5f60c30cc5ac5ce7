//! A signal that ends a long sort of events early. A short sort runs to its end, since nobody waits long for it.

use crate::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Events that are still sorted after the flag was raised; they take a fraction of a second.
const STILL: u64 = 300_000;

/// Tells a sort whether to go on. The default value always goes on.
#[derive(Clone, Debug, Default)]
pub struct SortStopSignal(Option<Raised>);

#[derive(Clone, Debug)]
struct Raised {
    /// Raised by another thread to end the sort.
    flag: Arc<AtomicBool>,
    /// Events that may still be sorted after the flag was raised.
    left: Arc<AtomicU64>,
}

impl SortStopSignal {
    /// A signal that is controlled by a flag.
    #[must_use]
    pub fn by(flag: &Arc<AtomicBool>) -> Self {
        Self(Some(Raised {
            flag: Arc::clone(flag),
            left: Arc::new(AtomicU64::new(STILL)),
        }))
    }

    /// Called before `events` more events are sorted.
    ///
    /// # Errors
    /// When the flag is raised and more than [`STILL`] events came since.
    pub(super) fn check(&self, events: usize) -> Result<(), Error> {
        let raised = self
            .0
            .as_ref()
            .filter(|stop| stop.flag.load(Ordering::Relaxed));
        let Some(Raised { left, .. }) = raised else {
            return Ok(());
        };
        let still = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            left.checked_sub(events as u64)
        });
        if still.is_ok() {
            return Ok(());
        }
        left.store(0, Ordering::Relaxed);
        Err(Error::interrupted(
            "its events were not sorted: it was interrupted",
        ))
    }
}
