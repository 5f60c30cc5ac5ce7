//! Two ends of a connection on a path that bytes control: for the fuzz target and the tests, which share this
//! walk.
//!
//! The first byte chooses the options, and whether only **strangers** forge packets: they do not know the connection's
//! number, or claim data beyond the grant. Their packets must change nothing: everything that was written arrives. A
//! forger who knows the number may break the connection, but must not make a machine panic, repeat without end at one
//! instant, or deliver bytes that never came.

use crate::fuzz_path::{FuzzPacket, FuzzPath};
use stackline_core::time::{Duration, Instant};
use stackline_proto::blast::negotiation::{BlastParameters, BlastRefusal};
use stackline_proto::blast::wire::{ACK_REQUEST, BlastHeader, BlastPacketKind};
use stackline_proto::blast::{
    BlastArrival, BlastConnection, BlastExtent, BlastOptions, BlastOutput, BlastState,
    BlastStrategy, BlastTimeout,
};

const ID: u32 = 77;
const TOKEN: [u8; 16] = [5; 16];
/// Most bytes that each side writes.
const MOST: u64 = 4000;

struct BlastFuzzEnd {
    connection: BlastConnection,
    handed: u64,
    finished: bool,
    /// Which bytes of the peer's stream have been placed.
    placed: Vec<bool>,
    /// Blasts that wait to be checked.
    checks: Vec<u32>,
}

struct BlastFuzzWalk<'a> {
    path: FuzzPath<'a>,
    ends: [BlastFuzzEnd; 2],
    /// The last data packet of each side.
    data: [BlastHeader; 2],
    now: Instant,
    strangers: bool,
}

/// Runs the steps that the bytes encode.
///
/// # Panics
/// When an invariant is violated.
pub fn packets(bytes: &[u8]) {
    let mut walk = BlastFuzzWalk::new(bytes);
    while let Some(what) = walk.path.step() {
        walk.one(what);
    }
    if walk.strangers {
        walk.end();
    }
}

fn options(choice: u8, sizes: u8) -> BlastOptions {
    let strategies = [
        BlastStrategy::Full,
        BlastStrategy::FullNak,
        BlastStrategy::Partial,
        BlastStrategy::Selective,
    ];
    let packet = [1, 7, 100, 64][usize::from(sizes & 3)];
    let size = packet * [1, 5, 8, 70][usize::from(sizes >> 2 & 3)];
    let fixed = BlastTimeout::Fixed(Duration(3_000_000));
    BlastOptions {
        flight: [1, 2, 5, 40][usize::from(sizes >> 4 & 3)],
        buffer: [50, 300, 1000, 1 << 20][usize::from(sizes >> 6)],
        interval: if choice & 4 == 0 {
            BlastTimeout::Adaptive
        } else {
            fixed
        },
        nak_delay: if choice & 8 == 0 {
            Some(Duration(1_000_000))
        } else {
            None
        },
        checked: choice & 16 != 0,
        patience: Duration(if choice & 32 == 0 {
            u64::MAX / 4
        } else {
            50_000_000
        }),
        ..BlastOptions::blast(strategies[usize::from(choice & 3)], packet, size)
    }
}

impl<'a> BlastFuzzWalk<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        let last = BlastHeader::new(BlastPacketKind::Data, ID);
        let mut path = FuzzPath::new(bytes, last);
        let (choice, sizes) = (path.next(), path.next());
        let strangers = choice & 64 != 0;
        let options = options(if strangers { choice & !32 } else { choice }, sizes);
        let now = Instant(1_000_000_000);
        let end = |connection| BlastFuzzEnd {
            connection,
            handed: 0,
            finished: false,
            placed: Vec::new(),
            checks: Vec::new(),
        };
        let connecting = end(BlastConnection::connect(now, &options, TOKEN, [1; 16], ID));
        let listens = end(BlastConnection::listen(&options, TOKEN, [2; 16]));
        let mut walk = BlastFuzzWalk {
            path,
            ends: [connecting, listens],
            data: [last; 2],
            now,
            strangers,
        };
        walk.flush();
        if choice & 128 != 0 {
            walk.deliver_all();
        }
        walk
    }

    /// One step; its top bit chooses the side.
    fn one(&mut self, what: u8) {
        let side = usize::from(what >> 7);
        match what & 0x1f {
            0..=5 => self.deliver(side),
            6 => drop(self.path.take(side)),
            7 => self.path.duplicate(side),
            8 => self.path.reorder(side),
            9..=11 => self.hand_over(side),
            12 | 13 => self.take(side),
            14..=16 => self.wake(),
            17 => self.pass(),
            18 | 19 => self.forge(side),
            20 => self.corrupt(side),
            21 | 27 => self.answer(side),
            28 | 29 => self.data(side),
            22 => self.claim(side),
            23 => self.judge(side, what & 0x60 == 0),
            24 => self.finish(side),
            25 if !self.strangers => self.ends[side].connection.close(self.now),
            26 => self.stranger_opens(side),
            30 => self.row(side),
            _ => self.deliver_all(),
        }
        self.flush();
    }

    // --- steps of honest ends and their path ---

    fn deliver(&mut self, side: usize) {
        let Some((header, body, payload)) = self.path.take(side) else {
            return;
        };
        self.arrive(side, &header, &body, payload);
    }

    /// Consecutive packets arrive as one step: the result is as if each had arrived by itself, or nothing happens.
    fn row(&mut self, side: usize) {
        let packet = self.ends[side].connection.options().packet as usize;
        let Some((first, ..)) = self.path.to(side).front().cloned() else {
            return;
        };
        let follows = |(n, (header, _, payload)): &(usize, &FuzzPacket)| {
            let like = BlastHeader {
                index: first.index.wrapping_add(*n as u16),
                ..first
            };
            *payload == packet
                && header.kind == BlastPacketKind::Data
                && !header.has(ACK_REQUEST)
                && *header == like
        };
        let count = self
            .path
            .to(side)
            .iter()
            .enumerate()
            .take_while(follows)
            .count();
        if count == 0 {
            return;
        }
        let before = self.ends[side].connection.clone();
        let row = self.ends[side]
            .connection
            .handle_row(self.now, &first, count as u32);
        let after = std::mem::replace(&mut self.ends[side].connection, before);
        let Some(row) = row else {
            assert_eq!(
                format!("{after:?}"),
                format!("{:?}", self.ends[side].connection)
            );
            return;
        };
        for n in 0..count {
            let Some((header, body, payload)) = self.path.take(side) else {
                return;
            };
            let position = row + (n * packet) as u64;
            assert_eq!(
                self.arrive(side, &header, &body, payload),
                BlastArrival::Place {
                    position,
                    check: None
                }
            );
        }
        assert_eq!(
            format!("{after:?}"),
            format!("{:?}", self.ends[side].connection)
        );
    }

    fn arrive(
        &mut self,
        side: usize,
        header: &BlastHeader,
        body: &[u8],
        payload: usize,
    ) -> BlastArrival {
        let end = &mut self.ends[side];
        let arrival = end.connection.handle(self.now, header, body, payload);
        if let BlastArrival::Place { position, check } = arrival {
            let from = usize::try_from(position).expect("nothing beyond what was granted");
            assert!(position + payload as u64 <= end.connection.receiver().limit());
            if end.placed.len() < from + payload {
                end.placed.resize(from + payload, false);
            }
            end.placed[from..from + payload].fill(true);
            end.checks.extend(check.map(|check| check.blast.number));
        }
        let delivered =
            usize::try_from(end.connection.receiver().delivered()).unwrap_or(usize::MAX);
        assert!(
            end.placed
                .get(..delivered)
                .is_some_and(|placed| placed.iter().all(|placed| *placed))
        );
        arrival
    }

    fn hand_over(&mut self, side: usize) {
        let bytes = u64::from(self.path.next()) * 3;
        let end = &mut self.ends[side];
        if !end.finished && end.handed + bytes <= MOST {
            end.handed += bytes;
            end.connection.send(bytes);
        }
    }

    fn take(&mut self, side: usize) {
        let connection = &mut self.ends[side].connection;
        connection.consume(connection.receiver().delivered());
    }

    /// Time advances to the next deadline.
    fn wake(&mut self) {
        let now = self.now;
        let deadlines = self
            .ends
            .each_mut()
            .map(|end| end.connection.deadline(now).map(|(at, _)| at));
        self.now = deadlines.into_iter().flatten().min().unwrap_or(now);
    }

    fn pass(&mut self) {
        let time = Duration(u64::from(self.path.next()) * 200_000);
        self.now += time;
    }

    fn judge(&mut self, side: usize, wrong: bool) {
        for number in std::mem::take(&mut self.ends[side].checks) {
            self.ends[side].connection.checked(number, !wrong);
        }
    }

    fn finish(&mut self, side: usize) {
        self.ends[side].finished = true;
        self.ends[side].connection.finish();
    }

    fn deliver_all(&mut self) {
        for _ in 0..50 {
            for side in [0, 1] {
                while !self.path.to(side).is_empty() {
                    self.deliver(side);
                }
            }
            self.flush();
            if self.path.is_empty() {
                return;
            }
        }
    }

    /// Sends all output; then no machine has a deadline now.
    fn flush(&mut self) {
        for side in [0, 1] {
            let mut outputs = 0;
            while let Some(output) = self.ends[side].connection.poll(self.now, 5) {
                outputs += 1;
                assert!(outputs < 20_000, "it never ends");
                self.leave(side, output);
            }
            let again = self.ends[side].connection.deadline(self.now);
            assert!(again.is_none_or(|(at, _)| at > self.now), "{again:?}");
            // The path holds so many packets; the oldest are lost.
            self.path.bound(side, 5000);
        }
    }

    fn leave(&mut self, side: usize, output: BlastOutput) {
        match output {
            BlastOutput::Control(header, body) => {
                let bytes = body.len();
                self.path.send(1 - side, (header, body, bytes));
            }
            BlastOutput::Run(run) => {
                assert!(run.count > 0);
                for n in 0..run.count {
                    let (position, bytes) = run.span(n);
                    assert!(position + u64::from(bytes) <= self.ends[side].handed);
                    self.data[side] = run.header(n, 0);
                    self.path
                        .send(1 - side, (self.data[side], Vec::new(), bytes as usize));
                }
            }
        }
    }

    // --- steps of forgers ---

    /// Any header, and a few bytes.
    fn forge(&mut self, side: usize) {
        let Some((header, bytes)) = self.path.any_header() else {
            return;
        };
        self.forged(side, header, &bytes[32..], usize::from(bytes[27]));
    }

    /// A header like the last one sent, with one byte changed.
    fn corrupt(&mut self, side: usize) {
        let Some((header, value)) = self.path.corrupt_header() else {
            return;
        };
        let payload = usize::from(self.path.next());
        self.forged(side, header, &[value; 3], payload);
    }

    /// An answer to one of the last packets sent, with any body.
    fn answer(&mut self, side: usize) {
        let BlastHeader {
            blast,
            round,
            index,
            ..
        } = self.data[side];
        let (near, what) = (self.path.next(), self.path.next());
        let header = BlastHeader {
            blast: blast
                .wrapping_sub(u32::from(near & 3))
                .wrapping_add(u32::from(near >> 2 & 1)),
            round: round
                .wrapping_sub(u16::from(near >> 3 & 3))
                .wrapping_add(u16::from(near >> 5 & 1)),
            index: index.saturating_sub(u16::from(what & 15)),
            flags: [0, 0, 0, 4, 8, 16, 20, 255][usize::from(near >> 5)],
            start: u64::from(self.path.next()) * 4,
            ..BlastHeader::new(BlastPacketKind::Answer, ID)
        };
        let body: Vec<u8> = (0..what >> 6).map(|_| self.path.next()).collect();
        self.forged(side, header, &body, body.len());
    }

    /// Data like the last packet of the other side, of a nearby blast or elsewhere.
    fn data(&mut self, side: usize) {
        let like = self.data[1 - side];
        let (near, what) = (self.path.next(), self.path.next());
        let length = if what & 1 == 0 {
            like.length
        } else {
            u32::from(self.path.next())
        };
        let away = if what & 2 == 0 {
            u64::from(like.length)
        } else {
            u64::from(self.path.next())
        };
        let number = like.blast.wrapping_add(u32::from(near & 3));
        let start = like.start + u64::from(near & 3) * away;
        let index = if what & 4 == 0 {
            u16::from(near >> 4)
        } else {
            like.index
        };
        let header = BlastHeader {
            blast: number,
            length,
            start,
            index,
            flags: what >> 6 & 3 & if length == 0 { 3 } else { 1 },
            round: like
                .round
                .wrapping_add(u16::from(what >> 4 & 3))
                .wrapping_sub(1),
            ..BlastHeader::new(BlastPacketKind::Data, ID)
        };
        let packet = self.ends[side].connection.options().packet;
        let (_, bytes) = BlastExtent {
            number,
            start,
            length,
            last: false,
        }
        .span(u32::from(index), packet);
        self.forged(side, header, &[], bytes as usize);
    }

    fn forged(&mut self, side: usize, mut header: BlastHeader, body: &[u8], payload: usize) {
        if self.strangers && header.connection == ID {
            header.connection += 1;
        }
        let arrival = self.arrive(side, &header, body, payload);
        assert!(arrival == BlastArrival::Nothing || !self.strangers);
    }

    /// Data beyond the grant, with the connection's number.
    fn claim(&mut self, side: usize) {
        let (blast, flags) = (u32::from(self.path.next()), self.path.next());
        let limit = self.ends[side].connection.receiver().limit();
        let length = 1 + u32::from(self.path.next());
        let start = [
            limit,
            limit.saturating_sub(u64::from(length)) + 1,
            u64::MAX - u64::from(length),
            u64::MAX,
        ][blast as usize & 3];
        let index = u16::from(flags >> 2 & 3);
        let number = self.data[1 - side].blast.wrapping_add(blast & 3);
        let header = BlastHeader {
            blast: number,
            flags,
            length,
            start,
            index,
            ..BlastHeader::new(BlastPacketKind::Data, ID)
        };
        let arrival = self.arrive(
            side,
            &header,
            &[],
            self.ends[side].connection.options().packet as usize,
        );
        assert!(
            !matches!(arrival, BlastArrival::Place { .. }),
            "{arrival:?}"
        );
    }

    /// Another end opens: with a wrong token, or too late.
    fn stranger_opens(&mut self, side: usize) {
        if self.ends[1].connection.state() == BlastState::Listening {
            return;
        }
        let token = if self.path.next() & 1 == 0 {
            TOKEN
        } else {
            [6; 16]
        };
        let parameters =
            BlastParameters::new(&options(self.path.next(), self.path.next()), token, [3; 16])
                .write();
        let kind = [
            BlastPacketKind::Open,
            BlastPacketKind::Accept,
            BlastPacketKind::Refuse,
        ][usize::from(self.path.next()) % 3];
        let body = if kind == BlastPacketKind::Refuse {
            &[BlastRefusal::Busy as u8][..]
        } else {
            &parameters
        };
        self.arrive(side, &BlastHeader::new(kind, ID + 1), body, body.len());
    }

    // --- the end ---

    /// From now on nothing is lost and every check is right: everything arrives.
    fn end(&mut self) {
        for _ in 0..20_000 {
            for side in [0, 1] {
                while !self.path.to(side).is_empty() {
                    self.deliver(side);
                }
                self.judge(side, false);
                self.take(side);
            }
            self.flush();
            if self.path.is_empty() {
                let done = |end: &BlastFuzzEnd| {
                    end.connection.state() == BlastState::Open && end.connection.sender().is_idle()
                };
                if self.ends.iter().all(done) {
                    break;
                }
                self.wake();
                self.flush();
            }
        }
        for side in [0, 1] {
            let (from, to) = (&self.ends[side], &self.ends[1 - side].connection);
            assert_eq!(
                to.receiver().delivered(),
                from.handed,
                "{:?} {:?}",
                to.facts(),
                from.connection
            );
            assert_eq!(to.receiver().ended(), from.finished);
            assert_eq!(to.state(), BlastState::Open);
        }
    }
}
