//! The offset of each host's clock from the coordinator's, as far as it is known, and when the next clock query is due during a run.
//! A query and its answer are one exchange of four time stamps. `mailbox` sends the queries.

use crate::control::FromAgent;
use stackline_core::clock_offset::Offset;
use stackline_core::trace_index::{ClockCorrection, ClockExchange};
use stackline_events::clock as events;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Least time between two queries of a host during a run.
pub(super) const EVERY: Duration = Duration::from_secs(1);
/// The time between two queries is also at least the duration of the run so far divided by this, so that a long run, whose offset is
/// already well known, is disturbed less often.
const LEAST_PARTS_OF_RUN: u32 = 64;

/// What is known of one host's clock.
#[derive(Debug, Default)]
pub(super) struct AgentHostClock {
    /// Set if the agent reads the same clock as the coordinator: how far two readings of one moment may be apart, ns.
    pub(super) shared_clock_error_ns: Option<u64>,
    /// The offset estimated from all exchanges; unused for a shared clock.
    offset: Offset,
    /// Exchanges accepted since the last report.
    fresh: Vec<ClockExchange>,
}

/// The schedule of clock queries while a traced run goes on; their answers come among the run's other messages.
#[derive(Debug, Default)]
pub(super) struct RunningClockQueries {
    /// When the run began, and when the next query is due; `None` between runs.
    pub(super) times: Option<(Instant, Instant)>,
    /// The hosts to query: those whose clock is not the coordinator's.
    pub(super) hosts: Vec<String>,
    /// The queries without an answer yet, by host: when each was sent, by the coordinator's clock, ns.
    open: BTreeMap<String, u64>,
}

impl RunningClockQueries {
    /// The hosts to query now: none before the next query is due, then all without an unanswered query. Sets when the next is due.
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

    /// Notes that a query is being sent to the host.
    pub(super) fn begin_query(&mut self, host: &str) {
        self.open.insert(host.to_owned(), events::now_ns());
    }

    /// The exchange that this message completes; `None` if it is no clock answer or the host has no open query. A host answers queries
    /// in the order they were sent.
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
    /// The clock of an agent that reads the coordinator's own clock; two readings of one moment are at most `error_ns` apart.
    pub(super) fn same(error_ns: u64) -> Self {
        Self {
            shared_clock_error_ns: Some(error_ns),
            ..Self::default()
        }
    }

    /// Adds an exchange; an impossible one (whose time stamps contradict each other) is dropped.
    pub(super) fn take(&mut self, exchange: ClockExchange) {
        if self.offset.take(&exchange) {
            self.fresh.push(exchange);
        }
    }

    /// The correction of this clock for the trace, with the exchanges since the last report. `read` holds what the agent reported: the
    /// kernel's state of the clock, and the error of the agent's time stamps, which is added to that of the offset.
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
