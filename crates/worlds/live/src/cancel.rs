//! What makes the threads of a job stop: flags, the timer of a time limit, and waits that check the flags.

use crate::clock;
use crate::error::{Error, Result};
use crate::readiness;
use stackline_core::time::{Duration, Instant};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// Longest sleep, ns, before a wait checks its flags again.
const LONGEST_SLEEP: Duration = Duration(20_000_000);

/// Flags shared by the threads of one job and its agent.
#[derive(Debug, Default)]
pub struct LiveCancelFlags {
    /// Whether endless loops are to stop cleanly.
    limit: AtomicBool,
    /// Not 0 when everything is to stop at once. An integer, because plug-ins read it as C has it.
    ended: AtomicI32,
}

impl LiveCancelFlags {
    /// Makes endless loops stop cleanly: the time limit has come, or a background load is no longer needed.
    pub fn reach_limit(&self) {
        self.limit.store(true, Ordering::Relaxed);
    }

    /// Makes all threads of the job stop at once.
    pub fn end(&self) {
        self.ended.store(1, Ordering::Relaxed);
        self.limit.store(true, Ordering::Relaxed);
    }

    /// Whether endless loops are to stop.
    #[inline]
    #[must_use]
    pub fn limit(&self) -> bool {
        self.limit.load(Ordering::Relaxed)
    }

    /// Whether the job was ended: everything is to stop at once.
    #[inline]
    #[must_use]
    pub fn ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed) != 0
    }

    /// What a plug-in looks at to see whether the job was ended.
    pub(crate) const fn stop(&self) -> &AtomicI32 {
        &self.ended
    }

    /// Called after a system call was interrupted: whether to carry on (Ok) or stop.
    ///
    /// # Errors
    /// [`Error::interrupted`] when the job was ended.
    pub fn interrupted(&self) -> Result<()> {
        if self.ended() {
            Err(Error::interrupted())
        } else {
            Ok(())
        }
    }
}

/// Sets the limit flag after a time. Starting it is one store in memory: no system call and no clock on the measured path.
#[derive(Debug)]
pub struct LimitTimer {
    started: AtomicBool,
    /// Whether the timer is no longer needed.
    dismissed: AtomicBool,
}

/// How often a timer's thread checks whether it was started; the limit flag may be set this much too late.
const NOTICE: std::time::Duration = std::time::Duration::from_millis(1);

impl LimitTimer {
    /// A timer that waits to be started and sets the limit flag `limit` later. Its thread ends after that or after [`Self::dismiss`].
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn new(limit: Duration, flags: Arc<LiveCancelFlags>) -> io::Result<Arc<Self>> {
        let limit_timer = Arc::new(Self {
            started: AtomicBool::new(false),
            dismissed: AtomicBool::new(false),
        });
        let waiting = Arc::clone(&limit_timer);
        std::thread::Builder::new()
            .name("limit".into())
            .stack_size(64 << 10)
            .spawn(move || {
                let gone = || waiting.dismissed.load(Ordering::Relaxed);
                while !waiting.started.load(Ordering::Relaxed) && !gone() {
                    std::thread::sleep(NOTICE);
                }
                let end = clock::now() + limit;
                while clock::now() < end && !gone() {
                    clock::sleep_until(end.min(clock::now() + LONGEST_SLEEP));
                }
                flags.reach_limit();
            })?;
        Ok(limit_timer)
    }

    /// Starts counting; starting it again does nothing.
    pub fn start(&self) {
        self.started.store(true, Ordering::Relaxed);
    }

    /// Makes the timer's thread end soon; it sets the limit flag as it ends.
    pub fn dismiss(&self) {
        self.dismissed.store(true, Ordering::Relaxed);
    }
}

/// Waits until `moment`; `spin` busy-waits. Returns false if the limit flag is set before.
///
/// # Errors
/// [`Error::interrupted`] when the job is ended.
pub fn wait_until(moment: Instant, flags: &LiveCancelFlags, spin: bool) -> Result<bool> {
    loop {
        let now = clock::now();
        if now >= moment {
            return Ok(true);
        }
        flags.interrupted()?;
        if flags.limit() {
            return Ok(false);
        }
        if spin {
            std::hint::spin_loop();
        } else {
            pause_until(moment.min(now + LONGEST_SLEEP));
        }
    }
}

/// Puts the calling endpoint to sleep until `moment`, or until a signal; other endpoints on the same thread go on.
fn pause_until(moment: Instant) {
    if !readiness::sleep_until(moment) {
        clock::sleep_until(moment);
    }
}

/// Puts the calling endpoint to sleep for `time`, or until a signal; other endpoints on the same thread go on.
pub(crate) fn pause(time: std::time::Duration) {
    pause_until(clock::now() + Duration(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)));
}
