//! How long a client waits for a server that others have written: not beyond the option `timeout` while it is silent, and not for long
//! after the run's time limit, which no server knows.

use crate::cancel::LiveCancelFlags;
use crate::error::{Error, Result};
use stackline_core::plan::Stack;
use stackline_core::units;
use std::cell::Cell;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The option `timeout` when it is not written.
const SILENCE: Duration = Duration::from_secs(30);
/// The least and the longest `timeout`, s.
const TIMEOUTS: (f64, f64) = (1e-3, 86_400.0);
/// How long a wait looks away from the time limit.
pub(crate) const SLICE: Duration = Duration::from_secs(1);
/// How long after the time limit the operation that was begun before may take: less than what the coordinator allows.
pub(crate) const LATE: Duration = Duration::from_secs(5);

/// The option `timeout`, within reason.
pub(crate) fn server_timeout(stack: &Stack) -> Duration {
    let written = stack.seconds("timeout").filter(|seconds| *seconds > 0.0);
    written.map_or(SILENCE, |seconds| {
        Duration::from_secs_f64(seconds.clamp(TIMEOUTS.0, TIMEOUTS.1))
    })
}

/// How long the client of one connection waits.
#[derive(Debug)]
pub(crate) struct ServerPatience {
    server: SocketAddr,
    /// The protocol, as a specification names it.
    protocol: String,
    silence: Cell<Duration>,
    /// When the time limit was first seen to have passed.
    limit_seen: Cell<Option<Instant>>,
}

impl ServerPatience {
    pub(crate) fn new(stack: &Stack, server: SocketAddr) -> Self {
        Self {
            server,
            protocol: stack.name.clone(),
            silence: Cell::new(server_timeout(stack)),
            limit_seen: Cell::new(None),
        }
    }

    pub(crate) const fn server(&self) -> SocketAddr {
        self.server
    }

    /// Allows no more silence than that from now on; returns what was allowed before.
    pub(crate) fn allow_silence(&self, most: Duration) -> Duration {
        self.silence.replace(most)
    }

    /// How long a system call may wait before the time limit is looked at again.
    pub(crate) fn slice(&self) -> Duration {
        self.silence.get().min(SLICE)
    }

    /// Ends what goes on although the job was ended, or for long after the time limit: a server may send without end.
    ///
    /// # Errors
    /// When it has to end.
    #[inline]
    pub(crate) fn check_limit(&self, flags: &LiveCancelFlags) -> Result<()> {
        if flags.limit() {
            self.check_lateness(flags)
        } else {
            Ok(())
        }
    }

    #[cold]
    fn check_lateness(&self, flags: &LiveCancelFlags) -> Result<()> {
        flags.interrupted()?;
        let since = self.limit_seen.get().unwrap_or_else(Instant::now);
        self.limit_seen.set(Some(since));
        if since.elapsed() < LATE {
            return Ok(());
        }
        let (server, late) = (self.server, LATE.as_secs());
        Err(Error::measurement(format!(
            "the server at {server} had not ended its answer {late} s after the time limit"
        )))
    }

    /// Ends a wait of that length, in which the server has done nothing; `instead` says what it does.
    ///
    /// # Errors
    /// When it was silent for too long.
    pub(crate) fn check_silence(
        &self,
        waited: Duration,
        instead: impl FnOnce() -> &'static str,
    ) -> Result<()> {
        let silence = self.silence.get();
        if waited < silence {
            return Ok(());
        }
        let time = units::format_time(silence.as_secs_f64());
        let (server, instead) = (self.server, instead());
        Err(
            Error::measurement(format!("the server at {server} {instead} for {time}")).hint(
                format!(
                    "for a slower server: `over {}(timeout = 2 min)`",
                    self.protocol
                ),
            ),
        )
    }
}
