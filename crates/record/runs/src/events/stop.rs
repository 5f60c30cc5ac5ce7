//! Ends a long sorting of events early when somebody raises a flag. A short one is done to its end: nothing waits for it.

use crate::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Events that are still sorted when the flag is up: a fraction of a second.
const STILL: u64 = 300_000;

/// Whether to go on sorting. The default always goes on.
#[derive(Clone, Debug, Default)]
pub struct SortStopSignal(Option<Raised>);

#[derive(Clone, Debug)]
struct Raised {
    flag: Arc<AtomicBool>,
    left: Arc<AtomicU64>,
}

impl SortStopSignal {
    /// By that flag.
    #[must_use]
    pub fn by(flag: &Arc<AtomicBool>) -> Self {
        Self(Some(Raised {
            flag: Arc::clone(flag),
            left: Arc::new(AtomicU64::new(STILL)),
        }))
    }

    /// So many more events are about to be handled.
    ///
    /// # Errors
    /// When the flag is up and too many came since.
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
