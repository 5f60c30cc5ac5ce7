//! What the network's machine sees, kept as events and as packets for pcapng. It never changes what happens.
//!
//! Both come out sorted by time, though the machine tells some of it ahead. Data of an event, in order: the port
//! (`khons>edge`) or the host it happened at, the hosts it goes between (`khons>udjat`), the flow, the packet's number,
//! segments, bytes, and behind them of `NET_ENQUEUE` the bytes in the queue, of `NET_DROP` the reason.

use stackline_core::network::{Network, Rate};
use stackline_core::time::Instant;
use stackline_events::{Event, Table};
use stackline_net::{Happening, Packet, Place, Port, Reason, Tap};
use stackline_report::topology::port_name;
use stackline_runs::Error;
use stackline_runs::events::write_table;
use stackline_runs::pcapng::{Capture, Interface, Settings, Writer, Written};
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

/// Most events kept when nobody says; each takes about 80 bytes until the end.
pub(crate) const MOST_EVENTS: usize = 4_000_000;

/// A payload that can show itself.
pub(crate) trait Wire {
    /// Its bytes from the network layer's header on, as they are on the wire, at most so many.
    fn wire(&self, most: usize) -> Cow<'_, [u8]>;
}

impl Wire for &[u8] {
    fn wire(&self, most: usize) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self[..self.len().min(most)])
    }
}

impl Wire for stackline_sim::Datagram {
    fn wire(&self, most: usize) -> Cow<'_, [u8]> {
        let mut bytes = self.bytes();
        bytes.truncate(most);
        Cow::Owned(bytes)
    }
}

/// Names of what the machine knows by number.
#[derive(Debug)]
struct Names {
    nodes: Vec<String>,
    /// Of each port, its own name and that of the node that sends into it.
    ports: Vec<(String, String)>,
}

impl Names {
    fn of(network: &Network) -> Self {
        let hosts = network.hosts.iter().map(|host| host.name.clone());
        let nodes = hosts.chain(network.switches.iter().map(|switch| switch.name.clone())).collect();
        let directions = network.links.iter().flat_map(|link| [link.ends.0.clone(), link.ends.1.clone()]);
        let ports = (0..).zip(directions).map(|(port, sender)| (port_name(network, port).unwrap_or_default(), sender));
        Self { nodes, ports: ports.collect() }
    }

    fn node(&self, at: u32) -> &str {
        self.nodes.get(at as usize).map_or("?", String::as_str)
    }

    /// The node and the name of the place in it.
    fn place(&self, place: Place) -> (&str, &str) {
        match place {
            Place::Port(Port(port)) => self.ports.get(port as usize).map_or(("?", "?"), |(name, node)| (node, name)),
            Place::Host(node) => (self.node(node.0), self.node(node.0)),
        }
    }
}

/// What tells a packet from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    from: u32,
    to: u32,
    flow: u32,
    number: u64,
}

impl Identity {
    fn of<P>(packet: &Packet<P>) -> Self {
        Self { from: packet.from.0, to: packet.to.0, flow: packet.flow, number: packet.number }
    }
}

/// An event before it is text.
#[derive(Clone, Copy, Debug)]
struct Seen {
    at: Instant,
    place: Place,
    what: Happening,
    packet: Identity,
    segments: u32,
    bytes: u64,
}

impl Seen {
    fn event(&self, names: &Names) -> Event {
        let (host, place) = names.place(self.place);
        let packet = &self.packet;
        let way = format!("{}>{}", names.node(packet.from), names.node(packet.to));
        let numbers =
            [packet.flow.to_string(), packet.number.to_string(), self.segments.to_string(), self.bytes.to_string()];
        let mut data: Vec<String> = [place.to_owned(), way].into_iter().chain(numbers).collect();
        let keyword = match self.what {
            Happening::Enqueue(queued) => {
                data.push(queued.to_string());
                "NET_ENQUEUE"
            }
            Happening::Dequeue => "NET_DEQUEUE",
            Happening::Mark => "NET_MARK",
            Happening::Duplicate => "NET_DUPLICATE",
            Happening::Drop(reason) => {
                data.push(reason.to_string());
                "NET_DROP"
            }
            Happening::Deliver => "NET_DELIVER",
        };
        Event { keyword: keyword.into(), host: host.to_owned(), at_ns: self.at.0, data }
    }
}

/// Events of a run, in memory until its end.
#[derive(Debug)]
struct Log {
    seen: Vec<Seen>,
    most: usize,
    lost: u64,
    latest: Instant,
}

impl Log {
    fn keep(&mut self, seen: Seen) {
        if self.seen.len() < self.most {
            self.seen.push(seen);
        } else {
            self.lost += 1;
        }
        self.latest = self.latest.max(seen.at);
    }

    /// What there was no room for is the last of them.
    fn table(&self, names: &Names, network: &str) -> Table {
        let mut table = Table::default();
        self.seen.iter().for_each(|seen| table.push_event(&seen.event(names)));
        if self.lost > 0 {
            table.push("NET_EVENTS_LOST", network, self.latest.0, &[self.lost.into()]);
        }
        table
    }
}

/// Packets that leave chosen ports, or are dropped before them.
#[derive(Debug)]
struct Captures {
    writer: Writer<BufWriter<File>>,
    /// The interface of each port that is captured.
    interfaces: Vec<Option<u32>>,
    /// The newest packet of each interface: what the link does to it is told behind its departure.
    newest: Vec<Option<(Identity, Capture)>>,
    snaplen: usize,
    fault: Option<io::Error>,
}

impl Captures {
    fn see<P: Wire>(&mut self, at: Instant, place: Place, what: Happening, packet: &Packet<P>) {
        let Place::Port(Port(port)) = place else { return };
        let Some(interface) = self.interfaces.get(port as usize).copied().flatten() else { return };
        let comment = match what {
            Happening::Dequeue => None,
            Happening::Drop(reason) => Some(format!("dropped: {reason}")),
            Happening::Duplicate => Some("doubled by the link".to_owned()),
            // A mark is in the packet's own bytes when it leaves.
            Happening::Enqueue(_) | Happening::Mark | Happening::Deliver => return,
        };
        let identity = Identity::of(packet);
        let on_the_link = !matches!(what, Happening::Drop(reason) if !happens_on_the_link(reason));
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
            // What happens at that very instant may still be told.
            self.fault = self.writer.settle(until.0.saturating_sub(1)).err();
        }
    }

    fn finish(mut self) -> io::Result<Written> {
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

/// Keeps what it is told to keep of one network.
#[derive(Debug)]
pub(crate) struct Recorder {
    names: Names,
    network: String,
    log: Option<Log>,
    captures: Option<Captures>,
    /// Happenings since what was captured was last settled.
    unsettled: u32,
}

/// How many happenings lie between two looks at what may be written.
const SETTLE_EVERY: u32 = 4096;

impl Recorder {
    /// Keeps nothing yet.
    pub(crate) fn new(network: &Network) -> Self {
        Self { names: Names::of(network), network: network.name.clone(), log: None, captures: None, unsettled: 0 }
    }

    /// Keeps events, at most so many; how many there was no room for is an event too.
    pub(crate) fn events(mut self, most: usize) -> Self {
        self.log = Some(Log { seen: Vec::new(), most, lost: 0, latest: Instant(0) });
        self
    }

    /// Captures the packets of some ports into a file; `None` is all of them.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub(crate) fn capture(
        mut self,
        network: &Network,
        ports: Option<&[Port]>,
        file: File,
        settings: Settings,
    ) -> io::Result<Self> {
        let mut interfaces = Vec::new();
        let mut known = Vec::new();
        for ((port, (name, _)), rate) in (0..).zip(&self.names.ports).zip(rates(network)) {
            let chosen = ports.is_none_or(|ports| ports.contains(&Port(port)));
            interfaces.push(chosen.then(|| u32::try_from(known.len()).unwrap_or(u32::MAX)));
            if chosen {
                known.push(Interface { name: name.clone(), description: String::new(), speed_bit_s: rate });
            }
        }
        let snaplen = if settings.snaplen == 0 { usize::MAX } else { settings.snaplen as usize };
        let writer = Writer::new(BufWriter::new(file), &known, settings)?;
        let newest = known.iter().map(|_| None).collect();
        self.captures = Some(Captures { writer, interfaces, newest, snaplen, fault: None });
        Ok(self)
    }

    /// Writes the events to a file, the captured packets to theirs; says how many of each.
    ///
    /// # Errors
    /// When one of them cannot be written.
    pub(crate) fn finish(self, events: &Path) -> Result<(u64, Written), Error> {
        let (names, network) = (&self.names, &self.network);
        let count = self.log.map_or(Ok(0), |log| write_table(events, &log.table(names, network)))?;
        let failed = |cause: io::Error| Error {
            message: "the captured packets cannot be written".into(),
            cause: Some(cause.to_string()),
            hint: "check that the disk is not full, or capture fewer ports or fewer bytes of each packet".into(),
        };
        let written = self.captures.map_or(Ok(Written::default()), Captures::finish).map_err(failed)?;
        Ok((count, written))
    }
}

/// The rate of each port, where it is one and constant.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked rates, and only for reading")]
fn rates(network: &Network) -> impl Iterator<Item = Option<u64>> {
    let rate = |rate: &Rate| if let Rate::Constant(bit_s) = rate { Some(bit_s.round() as u64) } else { None };
    network.links.iter().flat_map(move |link| [rate(&link.rate); 2])
}

impl<P: Wire> Tap<P> for Recorder {
    const ON: bool = true;

    fn see(&mut self, at: Instant, place: Place, what: Happening, packet: &Packet<P>) {
        if let Some(log) = &mut self.log {
            let (segments, bytes) = (packet.segments.count, packet.bytes());
            log.keep(Seen { at, place, what, packet: Identity::of(packet), segments, bytes });
        }
        if let Some(captures) = &mut self.captures {
            captures.see(at, place, what, packet);
            self.unsettled += 1;
            // These are told when they happen, so nothing earlier happens any more.
            let present = matches!(what, Happening::Enqueue(_) | Happening::Deliver);
            if present && self.unsettled >= SETTLE_EVERY {
                self.unsettled = 0;
                captures.settle(at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_core::network::{Host, Link, Switch};
    use stackline_net::{Ecn, Node, Segments};
    use stackline_runs::events::read_table;

    struct Fake;

    impl Wire for Fake {
        fn wire(&self, most: usize) -> Cow<'_, [u8]> {
            Cow::Owned(vec![0x45; most.min(100)])
        }
    }

    fn network() -> Network {
        let host = |name: &str| Host { name: name.into(), ..Host::default() };
        let link = |a: &str, b: &str| Link { ends: (a.into(), b.into()), rate: Rate::Constant(1e8), ..Link::default() };
        Network {
            name: "wan".into(),
            hosts: vec![host("khons"), host("udjat")],
            switches: vec![Switch { name: "edge".into(), ..Switch::default() }],
            links: vec![link("khons", "edge"), link("edge", "udjat")],
        }
    }

    fn packet(number: u64) -> Packet<Fake> {
        let segments = Segments::one(1500);
        Packet { number, from: Node(0), to: Node(1), flow: 7, ecn: Ecn::NotCapable, segments, payload: Fake }
    }

    const FIRST: Place = Place::Port(Port(0));
    const SECOND: Place = Place::Port(Port(2));

    /// Tells it of these, in that order, and gives the events and how many packets were captured.
    fn recorded(recorder: Recorder, happenings: &[(u64, Place, Happening, u64)]) -> (Vec<String>, Written) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events/wan.parquet");
        let mut recorder = recorder;
        for (at, place, what, number) in happenings {
            recorder.see(Instant(*at), *place, *what, &packet(*number));
        }
        let (count, written) = recorder.finish(&path).unwrap();
        let table = if count > 0 { read_table(&path).unwrap() } else { Table::default() };
        let lines: Vec<String> = (0..table.len()).map(|row| table.event(row).to_string()).collect();
        assert_eq!(lines.len() as u64, count);
        (lines, written)
    }

    #[test]
    fn events_are_sorted_and_carry_their_data() {
        let recorder = Recorder::new(&network()).events(MOST_EVENTS);
        let happenings = [
            (10, FIRST, Happening::Enqueue(3000), 1),
            (120_010, FIRST, Happening::Dequeue, 1),
            (20, SECOND, Happening::Drop(Reason::QueueFull), 2),
            (120_010, Place::Port(Port(3)), Happening::Mark, 9),
            (1_000_000_001, Place::Host(Node(1)), Happening::Deliver, 1),
        ];
        let (lines, written) = recorded(recorder, &happenings);
        let expected = [
            "NET_ENQUEUE; khons; 0; 10; khons>edge; khons>udjat; 7; 1; 1; 1500; 3000",
            "NET_DROP; edge; 0; 20; edge>udjat; khons>udjat; 7; 2; 1; 1500; queue full",
            "NET_DEQUEUE; khons; 0; 120010; khons>edge; khons>udjat; 7; 1; 1; 1500",
            "NET_MARK; udjat; 0; 120010; udjat>edge; khons>udjat; 7; 9; 1; 1500",
            "NET_DELIVER; udjat; 1; 1; udjat; khons>udjat; 7; 1; 1; 1500",
        ];
        assert_eq!(lines, expected);
        assert_eq!(written, Written::default());
    }

    #[test]
    fn what_there_is_no_room_for_is_an_event() {
        let happenings: Vec<_> = (1..6).map(|at| (at, FIRST, Happening::Dequeue, at)).collect();
        let (lines, _) = recorded(Recorder::new(&network()).events(2), &happenings);
        assert_eq!(lines[2], "NET_EVENTS_LOST; wan; 0; 5; 3");
    }

    #[test]
    fn packets_of_chosen_ports_are_captured_once_with_what_became_of_them() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("wan.pcapng");
        let file = File::create(&path).unwrap();
        let settings = Settings { snaplen: 40, ..Settings::default() };
        let mut recorder = Recorder::new(&network()).capture(&network(), Some(&[Port(2)]), file, settings).unwrap();
        recorder.see(Instant(5), SECOND, Happening::Dequeue, &packet(1));
        recorder.see(Instant(5), SECOND, Happening::Drop(Reason::Lost), &packet(1));
        let part = Packet { segments: Segments::one(500), ..packet(1) };
        recorder.see(Instant(5), SECOND, Happening::Drop(Reason::BitError), &part);
        recorder.see(Instant(5), FIRST, Happening::Dequeue, &packet(2));
        recorder.see(Instant(9), SECOND, Happening::Dequeue, &packet(2));
        recorder.see(Instant(7), SECOND, Happening::Drop(Reason::QueueFull), &packet(3));
        recorder.captures.as_mut().unwrap().settle(Instant(7));
        recorder.see(Instant(8), SECOND, Happening::Dequeue, &packet(4));
        let (events, written) = recorder.finish(&directory.path().join("none")).unwrap();
        assert_eq!((events, written), (0, Written { packets: 4, late: 0 }));
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
