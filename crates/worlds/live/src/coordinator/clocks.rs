//! Clocks of hosts as far as they are known by now, and when they are compared with the coordinator's next. `mailbox` sends the queries.

use crate::control::FromAgent;
use stackline_core::clock_offset::Offset;
use stackline_core::trace_index::{ClockCorrection, ClockExchange};
use stackline_events::clock as events;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// At least so long between two comparisons, and at least 1 / `LEAST_PARTS_OF_RUN` of the run so far.
pub(super) const EVERY: Duration = Duration::from_secs(1);
const LEAST_PARTS_OF_RUN: u32 = 64;

/// A host's clock, as far as it is known by now.
#[derive(Debug, Default)]
pub(super) struct AgentHostClock {
    /// Where it is the coordinator's own clock: how far readings of it may be apart, ns.
    pub(super) shared_clock_error_ns: Option<u64>,
    offset: Offset,
    /// Exchanges since the last report.
    fresh: Vec<ClockExchange>,
}

/// Clock queries while a run goes on, answered among its other messages.
#[derive(Debug, Default)]
pub(super) struct RunningClockQueries {
    /// Since when, and when next; nothing between runs.
    pub(super) times: Option<(Instant, Instant)>,
    pub(super) hosts: Vec<String>,
    /// When the open queries were sent, by the coordinator's clock, ns.
    open: BTreeMap<String, u64>,
}

impl RunningClockQueries {
    /// The hosts that are to be asked now: all at once where it is time, but none whose last query is open.
    pub(super) fn hosts_due(&mut self, now: Instant) -> Vec<String> {
        let Some((begun, next)) = &mut self.times else {
            return Vec::new();
        };
        if now < *next {
            return Vec::new();
        }
        *next = now + EVERY.max((now - *begun) / LEAST_PARTS_OF_RUN);
        let is_due = |host: &&String| !self.open.contains_key(*host);
        self.hosts.iter().filter(is_due).cloned().collect()
    }

    /// A query is sent to that host now.
    pub(super) fn begin_query(&mut self, host: &str) {
        self.open.insert(host.to_owned(), events::now_ns());
    }

    /// The exchange that a message ends; `None` where it answers no such query. A host answers in the order of the queries.
    pub(super) fn take_answer(&mut self, host: &str, message: &FromAgent) -> Option<ClockExchange> {
        let FromAgent::Clock {
            heard_ns,
            answered_ns,
            returned_ns,
        } = *message
        else {
            return None;
        };
        let asked_ns = self.open.remove(host)?;
        Some(ClockExchange {
            asked_ns,
            heard_ns,
            answered_ns,
            returned_ns,
        })
    }
}

impl AgentHostClock {
    /// The coordinator's own; how far readings of it may be apart, ns.
    pub(super) fn same(error_ns: u64) -> Self {
        Self {
            shared_clock_error_ns: Some(error_ns),
            ..Self::default()
        }
    }

    /// An exchange that no clock can have made says nothing.
    pub(super) fn take(&mut self, exchange: ClockExchange) {
        if self.offset.take(&exchange) {
            self.fresh.push(exchange);
        }
    }

    /// The clock as it is reported: `read` is what the agent reported of its kernel, and how far its stamps may be off.
    pub(super) fn report(&mut self, read: &ClockCorrection) -> ClockCorrection {
        let clock = match self.shared_clock_error_ns {
            Some(error_ns) => ClockCorrection {
                error_ns: Some(error_ns),
                ..ClockCorrection::default()
            },
            None => self.offset.clock().unwrap_or_default(),
        };
        let error_ns = clock
            .error_ns
            .map(|error| error.saturating_add(read.error_ns.unwrap_or(0)));
        ClockCorrection {
            error_ns,
            kernel: read.kernel.clone(),
            exchanges: std::mem::take(&mut self.fresh),
            ..clock
        }
    }
}
