//! One connection on a wire between two hosts, packet by packet as both see it: what leaves one at a moment arrives at the other later, or
//! is lost. Acknowledgements are made here, as receivers make them.

use std::collections::{BTreeMap, BinaryHeap};

/// Milliseconds, in microseconds.
pub(crate) const MS: u64 = 1000;
const CLIENT: [u8; 4] = [10, 9, 0, 1];
const SERVER: [u8; 4] = [10, 9, 0, 2];
/// Data of a segment.
pub(crate) const SEGMENT: usize = 1448;
/// What the server has room for at first, bytes.
const SERVER_ROOM: u16 = 500 * 128;
/// An acknowledgement leaves so long after what it acknowledges, us.
const ACKS: u64 = 20;

/// Which end sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    Client,
    Server,
}

/// What a segment says beside its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Flags {
    pub(crate) syn: bool,
    pub(crate) fin: bool,
    pub(crate) reset: bool,
    /// It does not arrive.
    pub(crate) is_lost: bool,
    /// Nobody acknowledges it by itself.
    pub(crate) is_silent: bool,
}

/// A segment that leaves.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Segment {
    sequence: u32,
    data: Vec<u8>,
    flags: Flags,
    /// What its sender has room for, in units of 128 bytes, but of bytes in a SYN.
    window: u16,
}

/// What happens at a moment: a segment arrives before others leave.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happens {
    Arrives(Side, Segment),
    Leaves(Side, Segment),
}

/// What a host has received.
#[derive(Default)]
struct Receiver {
    next: u32,
    ahead: BTreeMap<u32, u32>,
}

impl Receiver {
    fn receive(&mut self, segment: &Segment) {
        let length = segment.data.len() as u32 + u32::from(segment.flags.syn || segment.flags.fin);
        if segment.flags.syn {
            self.next = segment.sequence;
        }
        self.ahead
            .insert(segment.sequence, segment.sequence + length);
        while let Some((_, end)) = self
            .ahead
            .range(..=self.next)
            .next_back()
            .map(|(from, end)| (*from, *end))
            && end > self.next
        {
            self.next = end;
        }
    }
}

/// A connection on the wire.
pub(crate) struct Wire {
    /// One way, us.
    pub(crate) delay: u64,
    /// When what is said next is said, us.
    pub(crate) now: u64,
    /// What the client has room for, bytes.
    pub(crate) room: usize,
    port: u16,
    sequence: [u32; 2],
    leaves: Vec<(u64, Side, Segment)>,
}

impl Wire {
    /// To a server so far away, one way.
    pub(crate) fn new(delay: u64) -> Self {
        Self {
            delay,
            now: 1000,
            room: 500 * 128,
            port: 40_001,
            sequence: [1000, 5000],
            leaves: Vec::new(),
        }
    }

    /// A new connection, whose handshake is over when it returns.
    pub(crate) fn opens(&mut self) {
        self.port += 1;
        let syn = Flags {
            syn: true,
            is_silent: true,
            ..Flags::default()
        };
        self.says_at(self.now, Side::Client, b"", syn);
        self.now += self.delay + ACKS;
        self.says_at(self.now, Side::Server, b"", syn);
        self.now += self.delay + ACKS;
        self.says_at(self.now, Side::Client, b"", Flags::default());
        self.now += ACKS;
    }

    /// A segment leaves at a moment, behind all before it. Returns its number.
    pub(crate) fn says_at(&mut self, at: u64, side: Side, data: &[u8], flags: Flags) -> u32 {
        let sequence = self.sequence[side as usize];
        let length = data.len() as u32 + u32::from(flags.syn || flags.fin);
        self.sequence[side as usize] = sequence + length;
        self.again_at(at, side, sequence, data, flags);
        sequence
    }

    /// The same with a number that was there.
    pub(crate) fn again_at(
        &mut self,
        at: u64,
        side: Side,
        sequence: u32,
        data: &[u8],
        flags: Flags,
    ) {
        let segment = Segment {
            sequence,
            data: data.to_vec(),
            flags,
            // How windows are scaled is not agreed on before both SYNs have come.
            window: match (side, flags.syn) {
                (Side::Client, false) => (self.room / 128) as u16,
                (Side::Client, true) => self.room.min(usize::from(u16::MAX)) as u16,
                (Side::Server, false) => 500,
                (Side::Server, true) => SERVER_ROOM,
            },
        };
        self.leaves.push((at, side, segment));
    }

    /// The client's window changes, and it says so at a moment.
    pub(crate) fn has_room_at(&mut self, at: u64, bytes: usize) {
        self.room = bytes;
        self.says_at(at, Side::Client, b"", Flags::default());
    }

    /// A message in segments that leave right behind each other, each in so many us. Returns when the last has left.
    pub(crate) fn bursts(&mut self, side: Side, data: &[u8], each: u64) -> u64 {
        for part in data.chunks(SEGMENT) {
            self.says_at(self.now, side, part, Flags::default());
            self.now += each;
        }
        self.now
    }

    /// A short request that is answered after what the server takes; the clock is the client's then.
    pub(crate) fn asks(&mut self, path: &str, takes: u64, answer: &[u8]) {
        self.requests(path);
        self.now += takes;
        self.bursts(Side::Server, answer, 10);
        self.now += self.delay;
    }

    /// A short request leaves and arrives; the clock is the server's then.
    pub(crate) fn requests(&mut self, path: &str) {
        let head = format!("GET {path} HTTP/1.1\r\nHost: web\r\n\r\n");
        self.bursts(Side::Client, head.as_bytes(), 0);
        self.now += self.delay;
    }

    /// A side ends its direction at a moment, and the other answers.
    pub(crate) fn closes(&mut self, first: Side) {
        let fin = Flags {
            fin: true,
            ..Flags::default()
        };
        let other = if first == Side::Client {
            Side::Server
        } else {
            Side::Client
        };
        self.says_at(self.now, first, b"", fin);
        self.now += self.delay + ACKS;
        self.says_at(self.now, other, b"", fin);
        self.now += 2 * self.delay;
    }

    /// What both sides see: the client's capture and the server's.
    pub(crate) fn captures(self) -> [Vec<u8>; 2] {
        let mut heap = BinaryHeap::new();
        let mut number = 0_u64;
        let mut push = |heap: &mut BinaryHeap<_>, at: u64, what: Happens| {
            number += 1;
            heap.push(std::cmp::Reverse((at, number, what)));
        };
        let room = self.room;
        for (at, side, segment) in self.leaves {
            push(&mut heap, at, Happens::Leaves(side, segment));
        }
        let mut received = [Receiver::default(), Receiver::default()];
        let mut windows = [(room / 128) as u16, 500];
        let mut next = [0_u32; 2];
        let (mut seen, mut ports) = ([Vec::new(), Vec::new()], 40_001_u16);
        while let Some(std::cmp::Reverse((at, _, what))) = heap.pop() {
            let (side, segment, is_leaving) = match what {
                Happens::Leaves(side, segment) => (side, segment, true),
                Happens::Arrives(side, segment) => (side, segment, false),
            };
            if is_leaving {
                if segment.flags.syn && side == Side::Client {
                    ports += 1;
                    received = [Receiver::default(), Receiver::default()];
                }
                windows[side as usize] = segment.window;
                let behind = segment.sequence
                    + segment.data.len() as u32
                    + u32::from(segment.flags.syn || segment.flags.fin);
                next[side as usize] = next[side as usize].max(behind);
                let packet = packet(side, ports, &segment, received[side as usize].next);
                seen[side as usize].push((at, packet.clone()));
                if !segment.flags.is_lost {
                    seen[1 - side as usize].push((at + self.delay, packet));
                    push(&mut heap, at + self.delay, Happens::Arrives(side, segment));
                }
                continue;
            }
            let other = if side == Side::Client {
                Side::Server
            } else {
                Side::Client
            };
            received[other as usize].receive(&segment);
            let has_bytes = !segment.data.is_empty() || segment.flags.fin;
            if has_bytes && !segment.flags.is_silent && !segment.flags.reset {
                let acknowledgement = Segment {
                    sequence: next[other as usize],
                    data: Vec::new(),
                    flags: Flags::default(),
                    window: windows[other as usize],
                };
                push(
                    &mut heap,
                    at + ACKS,
                    Happens::Leaves(other, acknowledgement),
                );
            }
        }
        seen.map(capture)
    }
}

fn packet(side: Side, port: u16, segment: &Segment, acknowledged: u32) -> Vec<u8> {
    let flags = segment.flags;
    let (from, to, own, other) = match side {
        Side::Client => (CLIENT, SERVER, port, 80),
        Side::Server => (SERVER, CLIENT, 80, port),
    };
    let options: &[u8] = if flags.syn {
        &[2, 4, 5, 180, 3, 3, 7, 0]
    } else {
        &[]
    };
    let mut packet = vec![0x45, 0];
    packet.extend((40 + options.len() as u16 + segment.data.len() as u16).to_be_bytes());
    packet.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    packet.extend(from);
    packet.extend(to);
    packet.extend(own.to_be_bytes());
    packet.extend(other.to_be_bytes());
    packet.extend(segment.sequence.to_be_bytes());
    let is_first = flags.syn && side == Side::Client;
    packet.extend(if is_first { 0 } else { acknowledged }.to_be_bytes());
    let bits = [
        (flags.fin, 1),
        (flags.syn, 2),
        (flags.reset, 4),
        (!segment.data.is_empty(), 8),
        (!is_first, 16),
    ];
    let bits: u8 = bits
        .iter()
        .filter(|(is_set, _)| *is_set)
        .map(|(_, bit)| bit)
        .sum();
    packet.extend([((20 + options.len() as u8) / 4) << 4, bits]);
    packet.extend(segment.window.to_be_bytes());
    packet.extend([0; 4]);
    packet.extend(options);
    packet.extend(&segment.data);
    packet
}

/// A capture of bare packets of IP.
fn capture(mut packets: Vec<(u64, Vec<u8>)>) -> Vec<u8> {
    packets.sort_by_key(|(at, _)| *at);
    let mut bytes = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 1 << 18, 101] {
        bytes.extend(word.to_le_bytes());
    }
    for (at, packet) in packets {
        let seconds = 1_700_000_000 + (at / 1_000_000) as u32;
        let length = packet.len() as u32;
        for word in [seconds, (at % 1_000_000) as u32, length, length] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(packet);
    }
    bytes
}
