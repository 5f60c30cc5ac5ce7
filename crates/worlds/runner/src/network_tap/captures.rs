//! Captures packets at chosen sites (ports, or interfaces of hosts) into pcapng files. A packet stands once for each interface of a file,
//! with its fate (drop, duplication) as a comment. Capturing never changes what happens.
//!
//! A packet is captured before the queue of its port, as a capture on a host sees what programs hand to its interface, or after it, as one
//! on the wire does. What a full queue refuses is seen only before it.

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
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, BufWriter};

/// The number of events between two writes of packets whose order is final.
const SETTLE_EVERY: u32 = 4096;
/// The most packets of a port whose fate is waited for; of older ones it stays unknown.
const MOST_PENDING: usize = 4096;

/// Which side of a port's queue is captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CapturePoint {
    /// Packets as they come to the queue.
    #[default]
    BeforeQueue,
    /// Packets as their last bit leaves it.
    AfterQueue,
}

/// A file: some ports, or the interface of a host.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct CaptureSite {
    /// The name of the port, the host or the whole.
    pub(crate) name: String,
    /// Where packets are captured, by interface of the file.
    pub(crate) interfaces: Vec<CapturedPorts>,
    /// The host whose deliveries are captured too, on the first interface.
    pub(crate) host: Option<u32>,
    /// On which side of the queues.
    pub(crate) point: CapturePoint,
}

/// An interface of a capture file.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct CapturedPorts {
    /// The name of the port, or of the host.
    pub(crate) name: String,
    /// The ports whose packets are captured.
    pub(crate) ports: Vec<u32>,
}

/// An interface of one of the files.
#[derive(Clone, Copy, Debug)]
struct FileInterface {
    file: usize,
    interface: u32,
}

/// The files of all capture sites.
#[derive(Debug)]
pub(super) struct Captures {
    files: Vec<Captured>,
    /// By port: the interfaces that capture it.
    of_port: BTreeMap<u32, Vec<FileInterface>>,
    /// By host: the interface that captures it.
    of_host: BTreeMap<u32, FileInterface>,
    /// The most bytes that are kept of a packet.
    snaplen: usize,
    /// Events since packets were last written.
    unsettled: u32,
}

/// A packet that may still get a comment.
#[derive(Debug)]
struct PendingCapture {
    identity: Identity,
    /// Its bytes on the wire; if it has several segments, each with its own headers.
    wire_bytes: u64,
    /// How many of them have left the queue or were dropped.
    gone_bytes: u64,
    capture: PcapngPacket,
}

/// The file of one site.
#[derive(Debug)]
struct Captured {
    writer: PcapngWriter<BufWriter<File>>,
    point: CapturePoint,
    /// By interface: the packets that came last. What a queue and a link do to them is reported later.
    pending: Vec<VecDeque<PendingCapture>>,
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
            captures.add(number, &site);
            let interfaces: Vec<CaptureInterface> = (site.interfaces.iter())
                .map(|one| described(one, &rates))
                .collect();
            let writer = PcapngWriter::new(BufWriter::new(file), &interfaces, settings.clone())?;
            captures.files.push(Captured {
                writer,
                point: site.point,
                pending: interfaces.iter().map(|_| VecDeque::new()).collect(),
                fault: None,
            });
        }
        Ok(captures)
    }

    /// Notes which events the file with that number captures.
    fn add(&mut self, file: usize, site: &CaptureSite) {
        for (interface, captured) in (0..).zip(&site.interfaces) {
            for port in &captured.ports {
                let there = FileInterface { file, interface };
                self.of_port.entry(*port).or_default().push(there);
            }
        }
        let first = FileInterface { file, interface: 0 };
        self.of_host.extend(site.host.map(|host| (host, first)));
    }

    /// Captures the packet of an event at the sites that see it.
    pub(super) fn record<P: WirePayload>(
        &mut self,
        at: Instant,
        place: NetworkLocation,
        what: NetworkEvent,
        packet: &NetworkPacket<P>,
    ) {
        let snaplen = self.snaplen;
        match place {
            NetworkLocation::Port(PortIndex(port)) => {
                for there in self.of_port.get(&port).into_iter().flatten() {
                    self.files[there.file].keep(there.interface, at, what, packet, snaplen);
                }
            }
            NetworkLocation::Host(NodeIndex(host)) if what == NetworkEvent::Deliver => {
                if let Some(there) = self.of_host.get(&host) {
                    let delivered = capture_of(at, there.interface, packet, snaplen);
                    self.files[there.file].write(delivered);
                }
            }
            NetworkLocation::Host(_) => {}
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
    /// Captures a packet that comes to the queue or leaves it, and notes what became of those that were captured.
    fn keep<P: WirePayload>(
        &mut self,
        interface: u32,
        at: Instant,
        what: NetworkEvent,
        packet: &NetworkPacket<P>,
        snaplen: usize,
    ) {
        let is_before = self.point == CapturePoint::BeforeQueue;
        let capture = || capture_of(at, interface, packet, snaplen);
        match what {
            NetworkEvent::Enqueue(_) if is_before => self.put(packet, capture(), 0),
            NetworkEvent::Dequeue if is_before => self.goes(interface, packet),
            NetworkEvent::Dequeue => self.put(packet, capture(), packet.bytes()),
            NetworkEvent::Drop(reason) => {
                let comment = format!("dropped: {reason}");
                let is_on_the_link = happens_on_the_link(reason);
                if self.comments(interface, packet, &comment, is_on_the_link) {
                    self.goes(interface, packet);
                } else if is_before && !is_on_the_link {
                    // A full queue refuses a packet before it has joined, so that it was not reported as coming.
                    let mut refused = capture();
                    refused.comments.push(comment);
                    self.put(packet, refused, packet.bytes());
                }
            }
            NetworkEvent::Duplicate => {
                self.comments(interface, packet, "duplicated by the link", true);
            }
            // A mark is in the packet's own bytes when it leaves.
            NetworkEvent::Enqueue(_) | NetworkEvent::Mark | NetworkEvent::Deliver => {}
        }
    }

    /// Keeps a captured packet, whose fate may still be reported, and writes those whose fate is known.
    fn put<P>(&mut self, packet: &NetworkPacket<P>, capture: PcapngPacket, gone_bytes: u64) {
        let Some(pending) = self.pending.get_mut(capture.interface as usize) else {
            return;
        };
        pending.push_back(PendingCapture {
            identity: Identity::from_packet(packet),
            wire_bytes: packet.bytes(),
            gone_bytes,
            capture,
        });
        // What the link does to a packet is reported right after it has left, before the next one comes.
        let mut known = Vec::new();
        while pending.len() > 1
            && (pending.len() > MOST_PENDING
                || pending
                    .front()
                    .is_some_and(|one| one.gone_bytes >= one.wire_bytes))
        {
            known.extend(pending.pop_front());
        }
        known.into_iter().for_each(|one| self.write(one.capture));
    }

    /// The newest captured packet of which an event is about all or a part; `has_left` says whether it has left the queue already.
    fn pending<P>(
        &mut self,
        interface: u32,
        packet: &NetworkPacket<P>,
        has_left: bool,
    ) -> Option<&mut PendingCapture> {
        let identity = Identity::from_packet(packet);
        let mut newest = self.pending.get_mut(interface as usize)?.iter_mut().rev();
        newest.find(|one| one.identity == identity && (has_left || one.gone_bytes < one.wire_bytes))
    }

    /// A captured packet, or a part of it, leaves the queue.
    fn goes<P>(&mut self, interface: u32, packet: &NetworkPacket<P>) {
        if let Some(one) = self.pending(interface, packet, false) {
            one.gone_bytes += packet.bytes();
        }
    }

    /// Adds a comment on a captured packet; false if it is not there.
    fn comments<P>(
        &mut self,
        interface: u32,
        packet: &NetworkPacket<P>,
        comment: &str,
        has_left: bool,
    ) -> bool {
        let Some(one) = self.pending(interface, packet, has_left) else {
            return false;
        };
        // Of several segments that came together, only some may be meant.
        let of = match packet.bytes() < one.wire_bytes {
            true => format!("{} B of it ", packet.bytes()),
            false => String::new(),
        };
        one.capture.comments.push(of + comment);
        true
    }

    fn write(&mut self, capture: PcapngPacket) {
        if self.fault.is_none() {
            self.fault = self.writer.put(capture).err();
        }
    }

    fn settle(&mut self, until: Instant) {
        let waiting = self.pending.iter().filter_map(|pending| pending.front());
        let first_ns = waiting.map(|one| one.capture.at_ns).min();
        // Events of that very instant may still be reported.
        let until_ns = first_ns.unwrap_or(u64::MAX).min(until.0).saturating_sub(1);
        if self.fault.is_none() {
            self.fault = self.writer.settle(until_ns).err();
        }
    }

    fn finish(mut self) -> io::Result<PcapngTotals> {
        let pending = std::mem::take(&mut self.pending);
        for one in pending.into_iter().flatten() {
            self.write(one.capture);
        }
        match self.fault {
            Some(fault) => Err(fault),
            None => self.writer.finish().map(|(_, written)| written),
        }
    }
}

/// A packet as it is captured. Segments that travel together are one packet with one set of headers.
fn capture_of<P: WirePayload>(
    at: Instant,
    interface: u32,
    packet: &NetworkPacket<P>,
    snaplen: usize,
) -> PcapngPacket {
    let bytes = packet.payload.wire(snaplen).into_owned();
    let length = if bytes.len() < snaplen {
        bytes.len() as u64
    } else {
        packet.bytes()
    };
    PcapngPacket {
        at_ns: at.0,
        interface,
        bytes,
        length: u32::try_from(length).unwrap_or(u32::MAX),
        comments: Vec::new(),
    }
}

/// An interface of a file; that of a single port has its rate.
fn described(captured: &CapturedPorts, rates: &[Option<u64>]) -> CaptureInterface {
    let rate = |port: &u32| rates.get(*port as usize).copied().flatten();
    let only = captured.ports.first().filter(|_| captured.ports.len() == 1);
    CaptureInterface {
        name: captured.name.clone(),
        description: String::new(),
        speed_bit_s: only.and_then(rate),
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
    use crate::network_tap::testing::{FIRST, Fake, SECOND, network, packet};
    use stackline_net::SegmentSizes;

    /// A capture of one port in a file of its own, and what is done with it.
    fn captured(point: CapturePoint, fill: impl FnOnce(&mut Captures)) -> (PcapngTotals, Vec<u8>) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("wan.pcapng");
        let settings = PcapngSettings {
            snaplen: 40,
            ..PcapngSettings::default()
        };
        let site = CaptureSite {
            name: "edge>udjat".into(),
            interfaces: vec![CapturedPorts {
                name: "edge>udjat".into(),
                ports: vec![2],
            }],
            host: None,
            point,
        };
        let sites = vec![(site, File::create(&path).unwrap())];
        let mut captures = Captures::new(&network(), sites, &settings).unwrap();
        fill(&mut captures);
        let totals = captures.finish().unwrap();
        (totals, std::fs::read(&path).unwrap())
    }

    /// How often words stand in a file.
    fn count(file: &[u8], words: &str) -> usize {
        String::from_utf8_lossy(file).matches(words).count()
    }

    #[test]
    fn after_the_queue_packets_stand_when_they_left_with_what_the_link_did() {
        let (totals, file) = captured(CapturePoint::AfterQueue, |captures| {
            let mut record = |at, place, what, packet: &NetworkPacket<Fake>| {
                captures.record(Instant(at), place, what, packet);
            };
            record(5, SECOND, NetworkEvent::Dequeue, &packet(1));
            let lost = NetworkEvent::Drop(DropReason::Lost);
            record(5, SECOND, lost, &packet(1));
            let part = NetworkPacket {
                segments: SegmentSizes::one(500),
                ..packet(1)
            };
            let wrong = NetworkEvent::Drop(DropReason::BitError);
            record(5, SECOND, wrong, &part);
            record(5, FIRST, NetworkEvent::Dequeue, &packet(2));
            record(9, SECOND, NetworkEvent::Dequeue, &packet(2));
            // It never left.
            let full = NetworkEvent::Drop(DropReason::QueueFull);
            record(7, SECOND, full, &packet(3));
            captures.settle(Instant(7));
            captures.record(Instant(8), SECOND, NetworkEvent::Dequeue, &packet(4));
        });
        assert_eq!((totals.packets, totals.late), (3, 0));
        assert_eq!(count(&file, "edge>udjat"), 1);
        assert_eq!(count(&file, "dropped: lost on the link"), 1);
        assert_eq!(
            count(&file, "500 B of it dropped: bit error on the link"),
            1
        );
        assert_eq!(count(&file, "queue full"), 0);
    }

    #[test]
    fn before_the_queue_packets_stand_in_the_order_in_which_they_came_whatever_became_of_them() {
        let (totals, file) = captured(CapturePoint::BeforeQueue, |captures| {
            let mut record = |at, what, packet: &NetworkPacket<Fake>| {
                captures.record(Instant(at), SECOND, what, packet);
            };
            record(1, NetworkEvent::Enqueue(0), &packet(1));
            record(2, NetworkEvent::Enqueue(0), &packet(2));
            record(3, NetworkEvent::Drop(DropReason::QueueFull), &packet(3));
            record(4, NetworkEvent::Dequeue, &packet(1));
            record(4, NetworkEvent::Drop(DropReason::Lost), &packet(1));
            record(5, NetworkEvent::Enqueue(0), &packet(4));
            captures.settle(Instant(6));
            let late = NetworkEvent::Drop(DropReason::CoDel);
            captures.record(Instant(9), SECOND, late, &packet(2));
        });
        assert_eq!((totals.packets, totals.late), (4, 0));
        for words in ["lost on the link", "queue full", "CoDel, queued too long"] {
            assert_eq!(count(&file, words), 1, "{words}");
        }
    }

    #[test]
    fn the_interface_of_a_host_sees_what_it_sends_and_gets() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("khons.pcapng");
        let site = CaptureSite {
            name: "khons".into(),
            interfaces: vec![CapturedPorts {
                name: "khons".into(),
                ports: vec![0],
            }],
            host: Some(0),
            point: CapturePoint::BeforeQueue,
        };
        let sites = vec![(site, File::create(&path).unwrap())];
        let mut captures = Captures::new(&network(), sites, &PcapngSettings::default()).unwrap();
        captures.record(Instant(5), FIRST, NetworkEvent::Enqueue(0), &packet(1));
        captures.record(Instant(7), SECOND, NetworkEvent::Enqueue(0), &packet(1));
        for (host, number) in [(1, 1), (0, 2)] {
            let place = NetworkLocation::Host(NodeIndex(host));
            captures.record(Instant(20), place, NetworkEvent::Deliver, &packet(number));
        }
        assert_eq!(captures.finish().unwrap().packets, 2);
    }
}
