//! The tap that records the events of a network, as event logs and as packets in pcapng files. It never changes what
//! happens.
//!
//! The network reports some events ahead of time (departures), so logs have to be sorted by time before they are read.

use super::captures::{CaptureSite, Captures};
use super::events::{NetworkEventLogs, TraceClockStamp};
use super::names::TapNames;
use super::packet::{PacketStreams, WirePayload};
use stackline_core::network::Network;
use stackline_core::time::Instant;
use stackline_dissect::pcapng::{PcapngSettings, PcapngTotals};
use stackline_events::{EventLog, EventLogs};
use stackline_net::{NetworkEvent, NetworkLocation, NetworkPacket, Tap};
use std::fs::File;
use std::io;

/// Records the events and the packets of one network that are wanted.
#[derive(Debug)]
pub(crate) struct RunTapRecorder {
    names: TapNames,
    events: Option<NetworkEventLogs>,
    captures: Option<Captures>,
}

impl RunTapRecorder {
    /// A recorder that records nothing yet.
    pub(crate) fn new(network: &Network) -> Self {
        Self {
            names: TapNames::from_network(network),
            events: None,
            captures: None,
        }
    }

    /// Also records events; `put` takes the event logs of each node, or says why it cannot.
    pub(crate) fn events(
        mut self,
        put: impl FnMut(&str, &EventLog) -> Result<(), String> + Send + 'static,
        stamp: TraceClockStamp,
        streams: PacketStreams,
    ) -> Self {
        let event_logs = EventLogs::new(self.names.nodes.iter().cloned(), put);
        self.events = Some(NetworkEventLogs::new(event_logs, stamp, streams));
        self
    }

    /// Limits the bytes of events on disk; of more a sample is kept.
    pub(crate) fn within(mut self, most_bytes: u64) -> Self {
        self.events = self.events.map(|events| events.within(most_bytes));
        self
    }

    /// Sets the time at which the network's time begins, ns.
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
        sites: Vec<(CaptureSite, File)>,
    ) -> io::Result<Self> {
        // Time in a file is the model's, from 0: the same run writes the same bytes.
        self.captures = Some(Captures::new(network, sites, &PcapngSettings::default())?);
        Ok(self)
    }

    /// Hands on the remaining events and writes the remaining packets to their files. Returns how many packets were
    /// captured.
    ///
    /// # Errors
    /// One sentence when something cannot be kept.
    pub(crate) fn finish(self) -> Result<PcapngTotals, String> {
        self.events.map_or(Ok(()), NetworkEventLogs::finish)?;
        let failed = |cause: io::Error| {
            format!(
                "cannot write the captured packets: {cause}; check that the disk is not full, or capture fewer ports"
            )
        };
        self.captures
            .map_or(Ok(PcapngTotals::default()), Captures::finish)
            .map_err(failed)
    }
}

impl<P: WirePayload> Tap<P> for RunTapRecorder {
    const ON: bool = true;

    fn record(
        &mut self,
        at: Instant,
        place: NetworkLocation,
        what: NetworkEvent,
        packet: &NetworkPacket<P>,
    ) {
        if let Some(events) = &mut self.events {
            events.record(&self.names, at, place, what, packet);
        }
        if let Some(captures) = &mut self.captures {
            captures.record(at, place, what, packet);
        }
    }
}
