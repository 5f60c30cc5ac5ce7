//! Connections of an endpoint: opening, closing, and what each one reports.

use super::Endpoint;
use crate::service::{ConnectionFacts, EndpointService};
use crate::world::{EndpointStep, EndpointWorld};
use stackline_core::error::Result;

impl<W: EndpointWorld> Endpoint<W> {
    pub(super) async fn connect(&mut self) -> Result<()> {
        let from = self.moments.take().unwrap_or_else(|| self.world.now());
        self.world.emit(EndpointStep::Connect);
        self.connection = Some(self.world.connect().await?);
        self.connecting = self.world.between(from, self.world.now());
        self.world.emit(EndpointStep::Connected);
        if self.task.keeps_calls && self.measuring() {
            let opening = self.connection.as_ref().and_then(EndpointService::opening);
            self.openings.record(opening);
        }
        self.note_settings();
        Ok(())
    }

    pub(super) async fn accept(&mut self) -> Result<()> {
        self.world.emit(EndpointStep::Accept);
        self.connection = Some(self.world.accept().await?);
        self.world.emit(EndpointStep::Accepted);
        self.note_settings();
        if self.started.is_none() && !self.own_clock {
            self.start();
        }
        Ok(())
    }

    /// Records the settings of a new connection before anything is sent, because the end of a bulk transfer may switch
    /// on what the specification did not ask for. In a loop of connections without data the time of this query would be
    /// measured with the first one, so the query is made when that connection ends.
    fn note_settings(&mut self) {
        self.stream_over = false;
        self.counted = ConnectionFacts::default();
        if let Some(connection) = self.connection.as_ref().filter(|_| self.task.carries_data)
            && self.observation.record.settings.is_empty()
        {
            self.observation.record.settings = connection.settings();
        }
    }

    pub(super) async fn disconnect(&mut self) -> Result<()> {
        self.note_connection();
        let Some(connection) = self.connection.take() else {
            return self.open().map(drop);
        };
        self.world.emit(EndpointStep::Disconnect);
        let from = self.world.now();
        connection.disconnect().await?;
        self.world.emit(EndpointStep::Disconnected);
        if self.measuring() {
            // The time between connecting and disconnecting belongs to neither.
            let now = self.world.now();
            let took = self.connecting + self.world.between(from, now);
            self.connects.record(took);
            self.note_connect(now, took);
            self.moments.free(now);
        }
        Ok(())
    }

    pub(super) async fn await_disconnect(&mut self) -> Result<()> {
        // In a loop of connections the clock goes on; otherwise what follows is only the peer's idle time.
        let stops = !self.loops && self.measuring();
        if !self.loops {
            self.stop();
        }
        self.open()?.await_disconnect().await?;
        // Data handed over when the clock stopped was still in flight then, and the peer's clock still ran: the
        // transport is asked again.
        if let Some((_, stop)) = self.observation.record.transport.as_mut().filter(|_| stops) {
            *stop = self
                .connection
                .as_ref()
                .and_then(EndpointService::transport)
                .unwrap_or(*stop);
        }
        self.world.emit(EndpointStep::Disconnected);
        self.note_connection();
        self.connection = None;
        Ok(())
    }

    /// Records what the connection reports before it is closed.
    pub(super) fn note_connection(&mut self) {
        let Some(connection) = &self.connection else {
            return;
        };
        let record = &mut self.observation.record;
        if record.settings.is_empty() {
            record.settings = connection.settings();
        } else if !self.loops {
            // What shows only with use, such as how long a server's answers are.
            for (name, value) in connection.settings() {
                record.settings.entry(name).or_insert(value);
            }
        }
        if !self.task.carries_data {
            return;
        }
        let facts = connection.facts();
        self.lossy |= facts.lost_any();
        record.notes.extend(facts.notes);
        if self.loops && self.started.is_some() && !self.stopped {
            self.transports.add_connection(|| connection.transport());
        }
        if !self.beyond {
            self.count_facts();
        }
    }

    /// Adds what the connection reports beyond what was counted already.
    pub(super) fn count_facts(&mut self) {
        let Some(connection) = &self.connection else {
            return;
        };
        let record = &mut self.observation.record;
        let facts = connection.facts();
        self.lossy |= facts.lost_any();
        if let Some(losses) = facts.losses {
            let before = self.counted.losses.unwrap_or_default();
            let add = |sum: &mut Option<u64>, now: u64, before: u64| {
                *sum = Some(sum.unwrap_or(0) + now.saturating_sub(before))
            };
            add(&mut record.lost, losses.lost, before.lost);
            add(&mut record.duplicated, losses.duplicated, before.duplicated);
            add(&mut record.reordered, losses.reordered, before.reordered);
        }
        if let Some(bytes) = facts.received_bytes
            && record.received_units > 0
        {
            self.arrived += bytes.saturating_sub(self.counted.received_bytes.unwrap_or(0));
            record.received_bytes = self.arrived;
        }
        self.counted = facts;
    }

    /// Called before each data unit or call: at the first one after the clock stopped, counts the reports until then
    /// and closes the counts.
    pub(super) fn close_counts(&mut self) {
        if self.stopped && !self.beyond {
            self.count_facts();
            self.beyond = true;
        }
    }
}
