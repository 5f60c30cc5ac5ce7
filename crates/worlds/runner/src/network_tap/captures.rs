//! Captures packets at chosen sites (ports, or interfaces of hosts) into pcapng files, one file for each site. A packet
//! stands once in a file, with its fate (drop, duplication) as a comment. Capturing never changes what happens.

use super::packet::{Identity, WirePayload};
use serde::{Deserialize, Serialize};
use stackline_core::network::{LinkRate, Network};
use stackline_core::time::Instant;
use stackline_dissect::pcapng::{
    CaptureInterface, PcapngPacket, PcapngSettings, PcapngTotals, PcapngWriter,
};
use stackline_net::{
    DropReason, NetworkEvent, NetworkLocation, NetworkPacket, NodeIndex, PortIndex,
};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter};

/// The number of events between two writes of packets whose order is final.
const SETTLE_EVERY: u32 = 4096;

/// A place where packets are captured: a port, or the interface of a host.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct CaptureSite {
    /// The name of the port or the host.
    pub(crate) name: String,
    /// The ports whose departures and drops are captured.
    pub(crate) ports: Vec<u32>,
    /// The host whose deliveries are captured.
    pub(crate) host: Option<u32>,
}

/// The files of all capture sites.
#[derive(Debug)]
pub(super) struct Captures {
    files: Vec<Captured>,
    /// By port: the indices of the files that capture it.
    of_port: BTreeMap<u32, Vec<usize>>,
    /// By host: the index of the file that captures it.
    of_host: BTreeMap<u32, usize>,
    /// The most bytes that are kept of a packet.
    snaplen: usize,
    /// Events since packets were last written.
    unsettled: u32,
}

/// The newest packet of a file, which may still get a comment.
#[derive(Debug)]
struct NewestCapturedPacket {
    identity: Identity,
    /// Its bytes on the wire; if it has several segments, each with its own headers.
    wire_bytes: u64,
    capture: PcapngPacket,
}

/// The file of one site.
#[derive(Debug)]
struct Captured {
    writer: PcapngWriter<BufWriter<File>>,
    /// The newest packet is held back: what the link does to it is reported after its departure.
    newest: Option<NewestCapturedPacket>,
    /// The first error of writing; nothing is written after it.
    fault: Option<io::Error>,
}

impl Captures {
    /// Captures the packets of some sites into a file each.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub(super) fn new(
        network: &Network,
        sites: Vec<(CaptureSite, File)>,
        settings: &PcapngSettings,
    ) -> io::Result<Self> {
        let snaplen = if settings.snaplen == 0 {
            usize::MAX
        } else {
            settings.snaplen as usize
        };
        let (of_port, of_host) = (BTreeMap::new(), BTreeMap::new());
        let mut captures = Self {
            files: Vec::new(),
            of_port,
            of_host,
            snaplen,
            unsettled: 0,
        };
        let rates: Vec<Option<u64>> = rates(network).collect();
        // The packets held back by all writers together are bounded.
        let settings = PcapngSettings {
            most_held: settings.most_held / sites.len().max(1),
            ..settings.clone()
        };
        for (number, (site, file)) in sites.into_iter().enumerate() {
            let rate = |port: &u32| rates.get(*port as usize).copied().flatten();
            let speed_bit_s = site
                .ports
                .first()
                .filter(|_| site.ports.len() == 1)
                .and_then(rate);
            for port in &site.ports {
                captures.of_port.entry(*port).or_default().push(number);
            }
            captures
                .of_host
                .extend(site.host.map(|host| (host, number)));
            let interface = CaptureInterface {
                name: site.name,
                description: String::new(),
                speed_bit_s,
            };
            let writer = PcapngWriter::new(BufWriter::new(file), &[interface], settings.clone())?;
            captures.files.push(Captured {
                writer,
                newest: None,
                fault: None,
            });
        }
        Ok(captures)
    }

    /// Captures the packet of an event at the sites that see it.
    pub(super) fn record<P: WirePayload>(
        &mut self,
        at: Instant,
        place: NetworkLocation,
        what: NetworkEvent,
        packet: &NetworkPacket<P>,
    ) {
        match place {
            NetworkLocation::Port(PortIndex(port)) => {
                for file in self.of_port.get(&port).into_iter().flatten() {
                    self.files[*file].keep(at, what, packet, self.snaplen);
                }
            }
            NetworkLocation::Host(NodeIndex(host)) => {
                if let Some(file) = self
                    .of_host
                    .get(&host)
                    .filter(|_| matches!(what, NetworkEvent::Deliver))
                {
                    self.files[*file].put(at, None, packet, self.snaplen);
                }
            }
        }
        self.unsettled += 1;
        // These events are reported when they happen, so no earlier one can follow: packets before them can be written.
        let present = matches!(what, NetworkEvent::Enqueue(_) | NetworkEvent::Deliver);
        if present && self.unsettled >= SETTLE_EVERY {
            self.unsettled = 0;
            self.settle(at);
        }
    }

    fn settle(&mut self, until: Instant) {
        self.files.iter_mut().for_each(|file| file.settle(until));
    }

    /// Writes the remaining packets. Returns how many packets were captured, and how many came too late for their
    /// place.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub(super) fn finish(self) -> io::Result<PcapngTotals> {
        let mut all = PcapngTotals::default();
        for file in self.files {
            let PcapngTotals { packets, late } = file.finish()?;
            all = PcapngTotals {
                packets: all.packets + packets,
                late: all.late + late,
            };
        }
        Ok(all)
    }
}

impl Captured {
    /// Captures a departure, or a drop or duplication: as a comment on the newest packet if that is the same one.
    fn keep<P: WirePayload>(
        &mut self,
        at: Instant,
        what: NetworkEvent,
        packet: &NetworkPacket<P>,
        snaplen: usize,
    ) {
        let comment = match what {
            NetworkEvent::Dequeue => None,
            NetworkEvent::Drop(reason) => Some(format!("dropped: {reason}")),
            NetworkEvent::Duplicate => Some("duplicated by the link".to_owned()),
            // A mark is in the packet's own bytes when it leaves.
            NetworkEvent::Enqueue(_) | NetworkEvent::Mark | NetworkEvent::Deliver => return,
        };
        let on_the_link =
            !matches!(what, NetworkEvent::Drop(reason) if !happens_on_the_link(reason));
        if let (Some(comment), Some(newest)) = (&comment, &mut self.newest)
            && on_the_link
            && newest.identity == Identity::from_packet(packet)
        {
            // Of several segments that left together, the link may lose one.
            let part = packet.bytes() < newest.wire_bytes;
            let of = if part {
                format!("{} B of it ", packet.bytes())
            } else {
                String::new()
            };
            newest.capture.comments.push(of + comment);
            return;
        }
        self.put(at, comment, packet, snaplen);
    }

    /// Makes a packet the newest one and writes the one before.
    fn put<P: WirePayload>(
        &mut self,
        at: Instant,
        comment: Option<String>,
        packet: &NetworkPacket<P>,
        snaplen: usize,
    ) {
        let bytes = packet.payload.wire(snaplen).into_owned();
        // Segments that left together are captured as one packet with one set of headers.
        let wire_bytes = packet.bytes();
        let length = if bytes.len() < snaplen {
            bytes.len() as u64
        } else {
            wire_bytes
        };
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        let capture = PcapngPacket {
            at_ns: at.0,
            interface: 0,
            bytes,
            length,
            comments: comment.into_iter().collect(),
        };
        let before = self.newest.replace(NewestCapturedPacket {
            identity: Identity::from_packet(packet),
            wire_bytes,
            capture,
        });
        self.write(before);
    }

    fn write(&mut self, newest: Option<NewestCapturedPacket>) {
        if let Some(newest) = newest.filter(|_| self.fault.is_none()) {
            self.fault = self.writer.put(newest.capture).err();
        }
    }

    fn settle(&mut self, until: Instant) {
        let before = self.newest.take_if(|newest| newest.capture.at_ns < until.0);
        self.write(before);
        if self.fault.is_none() {
            // Events of that very instant may still be reported.
            self.fault = self.writer.settle(until.0.saturating_sub(1)).err();
        }
    }

    fn finish(mut self) -> io::Result<PcapngTotals> {
        let last = self.newest.take();
        self.write(last);
        match self.fault {
            Some(fault) => Err(fault),
            None => self.writer.finish().map(|(_, written)| written),
        }
    }
}

/// Whether a packet is dropped on the link, after it has left the queue.
const fn happens_on_the_link(reason: DropReason) -> bool {
    matches!(
        reason,
        DropReason::Lost | DropReason::BitError | DropReason::CellLost
    )
}

/// By port: its rate in bit/s, where it is constant.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the rates are checked, and informative only"
)]
fn rates(network: &Network) -> impl Iterator<Item = Option<u64>> {
    let rate = |rate: &LinkRate| {
        if let LinkRate::Constant(bit_s) = rate {
            Some(bit_s.round() as u64)
        } else {
            None
        }
    };
    network
        .links
        .iter()
        .flat_map(move |link| [rate(&link.rate); 2])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network_tap::testing::{FIRST, SECOND, network, packet};
    use stackline_net::SegmentSizes;

    #[test]
    fn packets_of_chosen_ports_are_captured_once_with_what_became_of_them() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("wan.pcapng");
        let file = File::create(&path).unwrap();
        let settings = PcapngSettings {
            snaplen: 40,
            ..PcapngSettings::default()
        };
        let site = CaptureSite {
            name: "edge>udjat".into(),
            ports: vec![2],
            host: None,
        };
        let mut captures = Captures::new(&network(), vec![(site, file)], &settings).unwrap();
        captures.record(Instant(5), SECOND, NetworkEvent::Dequeue, &packet(1));
        captures.record(
            Instant(5),
            SECOND,
            NetworkEvent::Drop(DropReason::Lost),
            &packet(1),
        );
        let part = NetworkPacket {
            segments: SegmentSizes::one(500),
            ..packet(1)
        };
        captures.record(
            Instant(5),
            SECOND,
            NetworkEvent::Drop(DropReason::BitError),
            &part,
        );
        captures.record(Instant(5), FIRST, NetworkEvent::Dequeue, &packet(2));
        captures.record(Instant(9), SECOND, NetworkEvent::Dequeue, &packet(2));
        captures.record(
            Instant(7),
            SECOND,
            NetworkEvent::Drop(DropReason::QueueFull),
            &packet(3),
        );
        captures.settle(Instant(7));
        captures.record(Instant(8), SECOND, NetworkEvent::Dequeue, &packet(4));
        assert_eq!(
            captures.finish().unwrap(),
            PcapngTotals {
                packets: 4,
                late: 0
            }
        );
        let bytes = std::fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        for words in [
            "edge>udjat",
            "dropped: lost on the link",
            "dropped: queue full",
            "500 B of it dropped: bit error on the link",
        ] {
            assert_eq!(text.matches(words).count(), 1, "{words}");
        }
        assert!(!text.contains("khons>edge"));
    }

    #[test]
    fn the_interface_of_a_host_sees_what_it_sends_and_gets() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("khons.pcapng");
        let site = CaptureSite {
            name: "khons".into(),
            ports: vec![0],
            host: Some(0),
        };
        let sites = vec![(site, File::create(&path).unwrap())];
        let mut captures = Captures::new(&network(), sites, &PcapngSettings::default()).unwrap();
        captures.record(Instant(5), FIRST, NetworkEvent::Dequeue, &packet(1));
        captures.record(Instant(7), SECOND, NetworkEvent::Dequeue, &packet(1));
        captures.record(
            Instant(9),
            NetworkLocation::Host(NodeIndex(1)),
            NetworkEvent::Deliver,
            &packet(1),
        );
        captures.record(
            Instant(20),
            NetworkLocation::Host(NodeIndex(0)),
            NetworkEvent::Deliver,
            &packet(2),
        );
        assert_eq!(captures.finish().unwrap().packets, 2);
    }
}
