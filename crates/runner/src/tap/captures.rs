//! Packets that leave chosen ports of a network, or are dropped before them, as pcapng. It never changes what happens.

use super::names::Names;
use super::packet::{Identity, Wire};
use stackline_core::network::{Network, Rate};
use stackline_core::time::Instant;
use stackline_dissect::pcapng::{Capture, Interface, Settings, Writer, Written};
use stackline_net::{NetworkEvent, Packet, Place, Port, Reason};
use std::fs::File;
use std::io::{self, BufWriter};

/// How many events lie between two writes of what may be written.
const SETTLE_EVERY: u32 = 4096;

/// Packets that leave chosen ports, or are dropped before them.
#[derive(Debug)]
pub(super) struct Captures {
    writer: Writer<BufWriter<File>>,
    /// The interface of each port that is captured.
    interfaces: Vec<Option<u32>>,
    /// The newest packet of each interface: what the link does to it is reported behind its departure.
    newest: Vec<Option<(Identity, Capture)>>,
    snaplen: usize,
    /// Events since what was captured was last settled.
    unsettled: u32,
    fault: Option<io::Error>,
}

impl Captures {
    /// Captures the packets of some ports into a file; `None` is all of them.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn new(
        names: &Names,
        network: &Network,
        ports: Option<&[Port]>,
        file: File,
        settings: Settings,
    ) -> io::Result<Self> {
        let mut interfaces = Vec::new();
        let mut known = Vec::new();
        for ((port, name), rate) in (0..).zip(names.ports()).zip(rates(network)) {
            let chosen = ports.is_none_or(|ports| ports.contains(&Port(port)));
            interfaces.push(chosen.then(|| u32::try_from(known.len()).unwrap_or(u32::MAX)));
            if chosen {
                known.push(Interface { name: name.to_owned(), description: String::new(), speed_bit_s: rate });
            }
        }
        let snaplen = if settings.snaplen == 0 { usize::MAX } else { settings.snaplen as usize };
        let writer = Writer::new(BufWriter::new(file), &known, settings)?;
        let newest = known.iter().map(|_| None).collect();
        Ok(Self { writer, interfaces, newest, snaplen, unsettled: 0, fault: None })
    }

    /// One event.
    pub(super) fn record<P: Wire>(&mut self, at: Instant, place: Place, what: NetworkEvent, packet: &Packet<P>) {
        self.keep(at, place, what, packet);
        self.unsettled += 1;
        // These are reported when they happen, so nothing earlier happens any more.
        let present = matches!(what, NetworkEvent::Enqueue(_) | NetworkEvent::Deliver);
        if present && self.unsettled >= SETTLE_EVERY {
            self.unsettled = 0;
            self.settle(at);
        }
    }

    fn keep<P: Wire>(&mut self, at: Instant, place: Place, what: NetworkEvent, packet: &Packet<P>) {
        let Place::Port(Port(port)) = place else { return };
        let Some(interface) = self.interfaces.get(port as usize).copied().flatten() else { return };
        let comment = match what {
            NetworkEvent::Dequeue => None,
            NetworkEvent::Drop(reason) => Some(format!("dropped: {reason}")),
            NetworkEvent::Duplicate => Some("doubled by the link".to_owned()),
            // A mark is in the packet's own bytes when it leaves.
            NetworkEvent::Enqueue(_) | NetworkEvent::Mark | NetworkEvent::Deliver => return,
        };
        let identity = Identity::of(packet);
        let on_the_link = !matches!(what, NetworkEvent::Drop(reason) if !happens_on_the_link(reason));
        if let (Some(comment), Some((newest, capture))) = (&comment, &mut self.newest[interface as usize])
            && on_the_link
            && *newest == identity
        {
            // Of several segments that left together, the link may lose one.
            let part = packet.bytes() < u64::from(capture.length);
            let of = if part { format!("{} B of it ", packet.bytes()) } else { String::new() };
            capture.comments.push(of + comment);
            return;
        }
        let bytes = packet.payload.wire(self.snaplen).into_owned();
        let length = u32::try_from(packet.bytes()).unwrap_or(u32::MAX);
        let capture = Capture { at_ns: at.0, interface, bytes, length, comments: comment.into_iter().collect() };
        let before = self.newest[interface as usize].replace((identity, capture));
        self.write(before);
    }

    fn write(&mut self, capture: Option<(Identity, Capture)>) {
        if let Some((_, capture)) = capture.filter(|_| self.fault.is_none()) {
            self.fault = self.writer.put(capture).err();
        }
    }

    fn settle(&mut self, until: Instant) {
        for index in 0..self.newest.len() {
            let before = self.newest[index].take_if(|(_, capture)| capture.at_ns < until.0);
            self.write(before);
        }
        if self.fault.is_none() {
            // What happens at that very instant may still be reported.
            self.fault = self.writer.settle(until.0.saturating_sub(1)).err();
        }
    }

    /// Writes what is left; how much there was.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn finish(mut self) -> io::Result<Written> {
        for index in 0..self.newest.len() {
            let last = self.newest[index].take();
            self.write(last);
        }
        match self.fault {
            Some(fault) => Err(fault),
            None => self.writer.finish().map(|(_, written)| written),
        }
    }
}

/// Whether the packet has left the queue by then.
const fn happens_on_the_link(reason: Reason) -> bool {
    matches!(reason, Reason::Lost | Reason::BitError | Reason::CellLost)
}

/// The rate of each port, where it is one and constant.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked rates, and only for reading")]
fn rates(network: &Network) -> impl Iterator<Item = Option<u64>> {
    let rate = |rate: &Rate| if let Rate::Constant(bit_s) = rate { Some(bit_s.round() as u64) } else { None };
    network.links.iter().flat_map(move |link| [rate(&link.rate); 2])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tap::testing::{FIRST, SECOND, network, packet};
    use stackline_net::Segments;

    #[test]
    fn packets_of_chosen_ports_are_captured_once_with_what_became_of_them() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("wan.pcapng");
        let file = File::create(&path).unwrap();
        let settings = Settings { snaplen: 40, ..Settings::default() };
        let mut captures = Captures::new(&Names::of(&network()), &network(), Some(&[Port(2)]), file, settings).unwrap();
        captures.record(Instant(5), SECOND, NetworkEvent::Dequeue, &packet(1));
        captures.record(Instant(5), SECOND, NetworkEvent::Drop(Reason::Lost), &packet(1));
        let part = Packet { segments: Segments::one(500), ..packet(1) };
        captures.record(Instant(5), SECOND, NetworkEvent::Drop(Reason::BitError), &part);
        captures.record(Instant(5), FIRST, NetworkEvent::Dequeue, &packet(2));
        captures.record(Instant(9), SECOND, NetworkEvent::Dequeue, &packet(2));
        captures.record(Instant(7), SECOND, NetworkEvent::Drop(Reason::QueueFull), &packet(3));
        captures.settle(Instant(7));
        captures.record(Instant(8), SECOND, NetworkEvent::Dequeue, &packet(4));
        assert_eq!(captures.finish().unwrap(), Written { packets: 4, late: 0 });
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
}
