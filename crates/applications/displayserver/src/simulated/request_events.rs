//! The way of each request in virtual time, from its client's call to its answer, as events. It decides nothing and writes no file.

use super::programs::SimulatedDisplayTrial;
use crate::server::unit;
use stackline_core::network::Network;
use stackline_core::time::Instant;
use stackline_events::EventEmitter;
use stackline_net::NodeIndex;
use stackline_sim::usage::{UsageInterval, emit_usage};

/// A point of the way, in its order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DisplayRequestPoint {
    /// The client has made it.
    Call,
    /// The client has handed it over: to the transport, or into the pipe of its host's agent.
    Send,
    /// The agent of the client's host has taken it out of the pipe.
    RemoteAgent,
    /// It is at the internet server's host, and the server has taken it.
    ArriveBetween,
    Internet,
    /// It is at the display's host, and the agent there has taken it.
    Arrive,
    LocalAgent,
    /// The display turns to it, has read and kept it, has drawn what it changes.
    Parse,
    Store,
    Render,
    /// The client knows that it is done.
    Done,
}

impl DisplayRequestPoint {
    /// The keyword of its event: those of a live display, and of what stands between.
    const fn keyword(self) -> &'static str {
        match self {
            Self::Call => "DISPLAY_CALL",
            Self::Send => "DISPLAY_SEND",
            Self::RemoteAgent | Self::LocalAgent => "DISPLAY_AGENT",
            Self::ArriveBetween | Self::Arrive => "DISPLAY_ARRIVE",
            Self::Internet => "DISPLAY_INTERNET",
            Self::Parse => "DISPLAY_PARSE",
            Self::Store => "DISPLAY_STORE",
            Self::Render => "DISPLAY_RENDER",
            Self::Done => "DISPLAY_DONE",
        }
    }

    /// Its host: the client's, the display's, or the internet server's.
    const fn host(self) -> usize {
        match self {
            Self::Call | Self::Send | Self::RemoteAgent | Self::Done => 0,
            Self::ArriveBetween | Self::Internet => 2,
            Self::Arrive | Self::LocalAgent | Self::Parse | Self::Store | Self::Render => 1,
        }
    }
}

/// A request has passed a point.
#[derive(Clone, Copy, Debug)]
pub(super) struct DisplayPointPassage {
    pub(super) at: Instant,
    pub(super) point: DisplayRequestPoint,
    pub(super) request: u32,
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DisplayRequestEvent {
    /// Its host, by its number in the network.
    pub host: u32,
    /// What happened.
    pub keyword: &'static str,
    /// When, ns.
    pub at_ns: u64,
    /// The request, as live: its client's number and its own.
    pub unit: i64,
}

/// The ways of all requests that were simulated with it: clients one behind another.
#[derive(Debug, Default)]
pub struct DisplayRequestPaths {
    clients: u64,
    end_ns: u64,
    events: Vec<DisplayRequestEvent>,
    /// What ports and processors did meanwhile, and when each client began.
    watched: Vec<(u64, Vec<UsageInterval>)>,
}

impl DisplayRequestPaths {
    /// Emits all of them, and what ports and processors of that network did meanwhile. `zero_ns` is added to every time.
    pub fn emit_events(&self, network: &Network, zero_ns: u64, emit: &mut EventEmitter<'_>) {
        for event in &self.events {
            let host = network
                .hosts
                .get(event.host as usize)
                .map_or("", |host| &host.name);
            emit(
                host,
                event.keyword,
                zero_ns + event.at_ns,
                &[event.unit.into()],
            );
        }
        self.watched
            .iter()
            .for_each(|(begin, intervals)| emit_usage(network, intervals, zero_ns + begin, emit));
    }

    /// The requests' events.
    #[must_use]
    pub fn events(&self) -> &[DisplayRequestEvent] {
        &self.events
    }

    /// Those of the next client, which begins where the one before it has ended. Its trials follow each other at once: what is done between
    /// them is not measured, and not kept.
    pub(super) fn add(
        &mut self,
        nodes: [NodeIndex; 3],
        trials: &[SimulatedDisplayTrial],
        passed: &[DisplayPointPassage],
        watched: Vec<UsageInterval>,
    ) {
        self.clients += 1;
        self.watched.push((self.end_ns, watched));
        let begins: Vec<u64> = trials
            .iter()
            .map(|trial| {
                let begin = self.end_ns;
                self.end_ns += trial.end.since(trial.begin).0;
                begin
            })
            .collect();
        let client = self.clients;
        let event = |one: &DisplayPointPassage| {
            let at = trials.partition_point(|trial| *trial.requests.end() < one.request);
            let trial = trials
                .get(at)
                .filter(|trial| trial.requests.contains(&one.request))?;
            Some(DisplayRequestEvent {
                host: nodes[one.point.host()].0,
                keyword: one.point.keyword(),
                // In virtual time points of one moment are common; a nanosecond each keeps their order.
                at_ns: begins[at] + one.at.since(trial.begin).0 + one.point as u64,
                unit: unit(client, one.request),
            })
        };
        self.events.extend(passed.iter().filter_map(event));
    }
}
