//! The intervals of an endpoint: what ended in each one, while the clock runs. A task without an interval pays nothing for them.

use super::Endpoint;
use crate::interval_series::{IntervalReading, IntervalSeries};
use crate::service::EndpointService;
use crate::task::EndpointTask;
use crate::world::EndpointWorld;
use stackline_core::run_record::TransportRecord;
use stackline_core::time::{Duration, Instant};

/// Bytes that are sent in one operation at least, as far as there are so many.
const SENT_TOGETHER: u64 = 64 << 10;

/// The series that a task asks for, if it does.
pub(super) fn series(task: &EndpointTask) -> Option<IntervalSeries> {
    let has_times = task.does("RPCCall") || !task.carries_data;
    Some(IntervalSeries::new(task.interval?, task.pace, has_times))
}

/// What a connection reports now.
fn reading<S: EndpointService>(connection: Option<&S>) -> IntervalReading {
    IntervalReading {
        transport: connection.and_then(EndpointService::transport),
        progress: connection.and_then(EndpointService::progress),
    }
}

/// Counts a call in the interval in which it ended.
#[inline]
pub(super) fn note_call<S: EndpointService>(
    series: &mut IntervalSeries,
    ended: Instant,
    took: Duration,
    connection: &S,
) {
    if series.is_over(ended) {
        series.close(ended, &reading(Some(connection)));
    }
    series.called(took);
}

impl<W: EndpointWorld> Endpoint<W> {
    /// How many data units of this size are received in one operation: all, unless intervals ask for the clock in between.
    pub(super) fn received_portion(&self, bytes: u64) -> u64 {
        match &self.intervals {
            // Each unit that may be lost or late is noted.
            Some(_) if !self.task.reliable && self.task.pace.is_some() => 1,
            Some(series) => series.portion_units(bytes, 0),
            None => u64::MAX,
        }
    }

    /// How many are sent in one operation: larger portions, since a stack may frame what is handed over together; all, where an
    /// operation waits until the peer has everything.
    pub(super) fn sent_portion(&self, bytes: u64) -> u64 {
        let confirms = self
            .connection
            .as_ref()
            .is_some_and(EndpointService::confirms);
        match &self.intervals {
            Some(series) if !confirms => series.portion_units(bytes, SENT_TOGETHER),
            _ => u64::MAX,
        }
    }

    /// Counts data units in the interval in which they ended.
    #[inline]
    pub(super) fn note_moved(&mut self, has_received: bool, units: u64, bytes: u64) {
        let Some(series) = &mut self.intervals else {
            return;
        };
        let now = self.world.now();
        let connection = self.connection.as_ref();
        if series.is_over(now) {
            series.close(now, &reading(connection));
        }
        if has_received
            && units > 0
            && self.task.pace.is_some()
            && let Some(progress) = connection.and_then(EndpointService::progress)
        {
            series.arrived(now, progress);
        }
        series.moved(now, has_received, units, bytes);
    }

    /// Counts a connection, of a task without calls, in the interval in which it was closed.
    pub(super) fn note_connect(&mut self, ended: Instant, took: Duration) {
        let is_unit = !self.task.carries_data;
        let Some(series) = self.intervals.as_mut().filter(|_| is_unit) else {
            return;
        };
        if series.is_over(ended) {
            series.close(ended, &IntervalReading::default());
        }
        series.called(took);
    }

    /// The clock starts; the transport was just asked.
    pub(super) fn begin_intervals(&mut self, at: Instant, transport: Option<TransportRecord>) {
        if let Some(series) = &mut self.intervals {
            let connection = self.connection.as_ref();
            let progress = connection.and_then(EndpointService::progress);
            series.begin(
                at,
                IntervalReading {
                    transport,
                    progress,
                },
            );
        }
    }

    /// The clock stops; the transport was just asked.
    pub(super) fn end_intervals(&mut self, at: Instant, transport: Option<TransportRecord>) {
        if let Some(series) = self.intervals.take() {
            let connection = self.connection.as_ref();
            let progress = connection.and_then(EndpointService::progress);
            let reading = IntervalReading {
                transport,
                progress,
            };
            self.observation.intervals = Some(series.finish(at, &reading));
        }
    }
}
