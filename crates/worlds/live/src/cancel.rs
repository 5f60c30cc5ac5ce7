//! What makes the threads of a job stop: flags, the timer of a time limit, and waits that check the flags.

use crate::clock;
use crate::error::{Error, Result};
use crate::readiness;
use stackline_core::time::{Duration, Instant};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A long wait checks its flags this often.
const LONGEST_SLEEP: Duration = Duration(20_000_000);

/// Flags shared by the threads of one job and its agent.
#[derive(Debug, Default)]
pub struct LiveCancelFlags {
    limit: AtomicBool,
    ended: AtomicBool,
}

impl LiveCancelFlags {
    /// The time limit has come, or a load is no longer wanted: end cleanly.
    pub fn reach_limit(&self) {
        self.limit.store(true, Ordering::Relaxed);
    }

    /// End at once.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        self.limit.store(true, Ordering::Relaxed);
    }

    /// Whether the limit was reached.
    #[inline]
    #[must_use]
    pub fn limit(&self) -> bool {
        self.limit.load(Ordering::Relaxed)
    }

    /// Whether to end at once.
    #[inline]
    #[must_use]
    pub fn ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// What an interrupted system call means: carry on, or end.
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
    dismissed: AtomicBool,
}

/// How soon a timer notices that it was started; as much later it may go off.
const NOTICE: std::time::Duration = std::time::Duration::from_millis(1);

impl LimitTimer {
    /// A timer that waits to be started; its thread ends once it went off or was dismissed.
    ///
    /// # Errors
    /// When there is no thread to be had.
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

    /// Its thread ends soon.
    pub fn dismiss(&self) {
        self.dismissed.store(true, Ordering::Relaxed);
    }
}

/// Waits until `moment`, until the limit comes (then it is false) or until the job is ended; spinning when the
/// specification asks for it.
///
/// # Errors
/// [`Error::interrupted`].
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

/// The endpoint pauses; others of its thread go on.
fn pause_until(moment: Instant) {
    if !readiness::sleep_until(moment) {
        clock::sleep_until(moment);
    }
}

/// It pauses for so long.
pub(crate) fn pause(time: std::time::Duration) {
    pause_until(clock::now() + Duration(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)));
}
