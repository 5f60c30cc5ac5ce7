//! Keeps what happens in a network, as events and as packets for pcapng. It never changes what happens.
//!
//! The machine reports some of it ahead: whoever reads it sorts it by time.

use super::captures::{Captures, Site};
use super::events::{Events, Stamp};
use super::names::Names;
use super::packet::{Streams, Wire};
use stackline_core::network::Network;
use stackline_core::time::Instant;
use stackline_dissect::pcapng::{Settings, Written};
use stackline_events::{EventLog, EventLogs};
use stackline_net::{NetworkEvent, Packet, Place, Tap};
use std::fs::File;
use std::io;

/// Keeps the events and the packets of one network that are wanted.
#[derive(Debug)]
pub(crate) struct Recorder {
    names: Names,
    events: Option<Events>,
    captures: Option<Captures>,
}

impl Recorder {
    /// Keeps nothing yet.
    pub(crate) fn new(network: &Network) -> Self {
        Self {
            names: Names::of(network),
            events: None,
            captures: None,
        }
    }

    /// Keeps events; `put` takes tapes of each node, or says why it cannot.
    pub(crate) fn events(
        mut self,
        put: impl FnMut(&str, &EventLog) -> Result<(), String> + Send + 'static,
        stamp: Stamp,
        streams: Streams,
    ) -> Self {
        let tapes = EventLogs::new(self.names.nodes.iter().cloned(), put);
        self.events = Some(Events::new(tapes, stamp, streams));
        self
    }

    /// The network's time begins then, ns.
    pub(crate) const fn begin(&mut self, origin_ns: u64) {
        if let Some(events) = &mut self.events {
            events.begin(origin_ns);
        }
    }

    /// Captures the packets of some sites into a file each.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub(crate) fn capture(
        mut self,
        network: &Network,
        sites: Vec<(Site, File)>,
    ) -> io::Result<Self> {
        // Time in a file is the model's, from 0: the same run writes the same bytes.
        self.captures = Some(Captures::new(network, sites, &Settings::default())?);
        Ok(self)
    }

    /// Hands on what is left of the events, writes the captured packets to their file; says how many of these.
    ///
    /// # Errors
    /// One sentence when some of it cannot be kept.
    pub(crate) fn finish(self) -> Result<Written, String> {
        self.events.map_or(Ok(()), Events::finish)?;
        let failed = |cause: io::Error| {
            format!(
                "the captured packets cannot be written: {cause}; check that the disk is not full, or capture fewer ports"
            )
        };
        self.captures
            .map_or(Ok(Written::default()), Captures::finish)
            .map_err(failed)
    }
}

impl<P: Wire> Tap<P> for Recorder {
    const ON: bool = true;

    fn record(&mut self, at: Instant, place: Place, what: NetworkEvent, packet: &Packet<P>) {
        if let Some(events) = &mut self.events {
            events.record(&self.names, at, place, what, packet);
        }
        if let Some(captures) = &mut self.captures {
            captures.record(at, place, what, packet);
        }
    }
}
