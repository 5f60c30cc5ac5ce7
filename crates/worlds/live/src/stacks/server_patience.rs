//! How long a client waits for a server that others have written: not beyond the option `timeout` while it is silent, and not for long
//! after the run's time limit, which no server knows, unless it is still receiving what was sent.

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
/// How long after the time limit the operation that was begun before may take, unless the server is still receiving what was sent.
pub(crate) const LATE: Duration = Duration::from_secs(5);
/// How long it may take in all: less than what the coordinator allows, and an agent that is silent.
pub(crate) const LATEST: Duration = Duration::from_secs(45);

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
    /// What was seen after the time limit had passed.
    lateness: Cell<Option<ServerLateness>>,
}

/// What a client has seen of its server after the time limit.
#[derive(Clone, Copy, Debug)]
struct ServerLateness {
    /// When the time limit was first seen to have passed.
    limit_seen: Instant,
    /// Bytes that the server's kernel had acknowledged at the last look, and when they became more.
    acknowledged: Option<u64>,
    progress: Instant,
}

impl ServerPatience {
    pub(crate) fn new(stack: &Stack, server: SocketAddr) -> Self {
        Self {
            server,
            protocol: stack.name.clone(),
            silence: Cell::new(server_timeout(stack)),
            lateness: Cell::new(None),
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

    /// Ends what goes on although the job was ended, or for long after the time limit: a server may send without end. `acknowledged` is
    /// how many bytes the server has acknowledged, if that is known: while they become more, an upload may go on.
    ///
    /// # Errors
    /// When it has to end.
    #[inline]
    pub(crate) fn check_limit(
        &self,
        flags: &LiveCancelFlags,
        acknowledged: impl FnOnce() -> Option<u64>,
    ) -> Result<()> {
        if flags.limit() {
            self.check_lateness(flags, acknowledged())
        } else {
            Ok(())
        }
    }

    #[cold]
    fn check_lateness(&self, flags: &LiveCancelFlags, acknowledged: Option<u64>) -> Result<()> {
        flags.interrupted()?;
        let now = Instant::now();
        let mut seen = self.lateness.get().unwrap_or(ServerLateness {
            limit_seen: now,
            acknowledged,
            progress: now,
        });
        if acknowledged > seen.acknowledged {
            (seen.acknowledged, seen.progress) = (acknowledged, now);
        }
        self.lateness.set(Some(seen));
        let (server, late) = (self.server, now - seen.limit_seen);
        if now - seen.progress >= LATE {
            let late = late.as_secs();
            return Err(Error::measurement(format!(
                "the server at {server} had not ended its answer {late} s after the time limit"
            )));
        }
        if late < LATEST {
            return Ok(());
        }
        let late = LATEST.as_secs();
        Err(Error::measurement(format!(
            "the server at {server} was still receiving an upload {late} s after the time limit"
        ))
        .hint("use a smaller size, or a longer time limit"))
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
