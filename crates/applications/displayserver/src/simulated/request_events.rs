//! The way of each request in virtual time, from its client's call to its answer, as events. Writing them to a file is up to the caller.

use super::programs::SimulatedDisplayTrial;
use crate::server::unit;
use stackline_core::network::Network;
use stackline_core::time::Instant;
use stackline_events::EventEmitter;
use stackline_events::catalogue::families::{DisplayPassage, DisplayPassageEvent};
use stackline_net::NodeIndex;
use stackline_sim::usage::{UsageInterval, emit_usage};

/// A point on the way of a request, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DisplayRequestPoint {
    /// The client has made it.
    Call,
    /// The client has handed it to the transport, or written it into the pipe of its host's agent.
    Send,
    /// The agent of the client's host has taken it out of the pipe.
    RemoteAgent,
    /// It has arrived at the internet server's host.
    ArriveBetween,
    /// The internet server has taken it.
    Internet,
    /// It has arrived at the display's host.
    Arrive,
    /// The agent of the display's host has taken it.
    LocalAgent,
    /// The display begins to handle it.
    Parse,
    /// The display has read and stored it.
    Store,
    /// The display has drawn what it changes.
    Render,
    /// The client knows that it is done.
    Done,
}

impl DisplayRequestPoint {
    /// Its event: as for a live display, and for what lies between.
    const fn event(self) -> DisplayPassageEvent {
        match self {
            Self::Call => DisplayPassageEvent::DisplayCall,
            Self::Send => DisplayPassageEvent::DisplaySend,
            Self::RemoteAgent | Self::LocalAgent => DisplayPassageEvent::DisplayAgent,
            Self::ArriveBetween | Self::Arrive => DisplayPassageEvent::DisplayArrive,
            Self::Internet => DisplayPassageEvent::DisplayInternet,
            Self::Parse => DisplayPassageEvent::DisplayParse,
            Self::Store => DisplayPassageEvent::DisplayStore,
            Self::Render => DisplayPassageEvent::DisplayRender,
            Self::Done => DisplayPassageEvent::DisplayDone,
        }
    }

    /// The index of its host: the client's, the display's, or the internet server's.
    const fn host(self) -> usize {
        match self {
            Self::Call | Self::Send | Self::RemoteAgent | Self::Done => 0,
            Self::ArriveBetween | Self::Internet => 2,
            Self::Arrive | Self::LocalAgent | Self::Parse | Self::Store | Self::Render => 1,
        }
    }
}

/// The passage of a request at a point.
#[derive(Clone, Copy, Debug)]
pub(super) struct DisplayPointPassage {
    pub(super) at: Instant,
    pub(super) point: DisplayRequestPoint,
    pub(super) request: u32,
}

/// An event of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DisplayRequestEvent {
    /// The number of its host in the network.
    pub host: u32,
    /// What it passed.
    pub point: DisplayPassageEvent,
    /// When, ns.
    pub at_ns: u64,
    /// The unit of the request, as live: made of the client's number and the request's.
    pub unit: i64,
}

/// The events of all simulated requests; the clients follow one another in time.
#[derive(Debug, Default)]
pub struct DisplayRequestPaths {
    clients: u64,
    end_ns: u64,
    events: Vec<DisplayRequestEvent>,
    /// When each client began, and the use of ports and processors meanwhile.
    watched: Vec<(u64, Vec<UsageInterval>)>,
}

impl DisplayRequestPaths {
    /// Emits all events, and the use of the network's ports and processors. `zero_ns` is added to every time.
    pub fn emit_events(&self, network: &Network, zero_ns: u64, emit: &mut EventEmitter<'_>) {
        for event in &self.events {
            let host = network
                .hosts
                .get(event.host as usize)
                .map_or("", |host| &host.name);
            let data = DisplayPassage {
                unit: event.unit.into(),
            };
            let at_ns = zero_ns + event.at_ns;
            event.point.emit_on(&data, host, at_ns, emit);
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

    /// Adds the events of the next client, which begins where the previous one ended. Its trials follow one another directly: what happened
    /// between them is left out.
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
                point: one.point.event(),
                // In virtual time several points may have the same time; one more nanosecond for each point keeps their order.
                at_ns: begins[at] + one.at.since(trial.begin).0 + one.point as u64,
                unit: unit(client, one.request),
            })
        };
        self.events.extend(passed.iter().filter_map(event));
    }
}
