//! A path in virtual time between two ends, and the bytes that travel on it. Data is real: what is delivered is compared.

use crate::blast::wire::{BlastHeader, BlastPacketKind, HEADER};
use crate::blast::{BlastArrival, BlastConnection, BlastOptions, BlastOutput, BlastState, Check};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use stackline_core::time::{Duration, Instant};

/// Bytes after which a stream begins again.
const PERIOD: usize = 1 << 15;
/// What each side's stream is, twice.
static STREAMS: [[u8; 2 * PERIOD]; 2] = [stream(0), stream(91)];

const fn stream(salt: u8) -> [u8; 2 * PERIOD] {
    let mut bytes = [0; 2 * PERIOD];
    let mut at = 0;
    while at < bytes.len() {
        let position = at % PERIOD;
        bytes[at] = ((position ^ (position >> 7)).wrapping_mul(167) as u8).wrapping_add(salt);
        at += 1;
    }
    bytes
}

/// The bytes at a position of a side's stream, [`PERIOD`] of them at most.
fn bytes(side: usize, position: u64, length: usize) -> &'static [u8] {
    &STREAMS[side][position as usize % PERIOD..][..length]
}

/// A check over the bytes of a blast.
fn sum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(7, |sum: u32, byte| {
        sum.wrapping_mul(31).wrapping_add(u32::from(*byte))
    })
}

/// What becomes of a packet: how long each copy of it takes.
pub(super) type Fate = Vec<Duration>;

/// One end with the memory its stream arrives in.
pub(super) struct End {
    pub(super) connection: BlastConnection,
    pub(super) memory: Vec<u8>,
    /// Whether the application takes what arrives at once.
    pub(super) takes: bool,
    /// As far as it has, otherwise.
    taken: u64,
}

/// A packet that one side sent.
pub(super) struct Sent {
    pub(super) at: Instant,
    pub(super) side: usize,
    pub(super) header: BlastHeader,
    pub(super) body: Vec<u8>,
    pub(super) lost: bool,
}

/// Two ends and the packets in flight between them.
pub(super) struct Path<F> {
    pub(super) ends: [End; 2],
    pub(super) now: Instant,
    pub(super) hand: F,
    pub(super) sent: [u64; 2],
    /// The packets of each side, if the test reads them.
    pub(super) log: Option<Vec<Sent>>,
    /// How long a packet occupies the path, and until when it is occupied each way.
    pub(super) slot: Duration,
    free: [Instant; 2],
    /// Of so many packets of data one arrives with a wrong byte; none where it is 0.
    pub(super) spoil: u64,
    under_way: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    order: u64,
}

pub(super) const START: Instant = Instant(1_000_000_000);

impl<F: FnMut(usize, &BlastHeader) -> Fate> Path<F> {
    pub(super) fn new(options: [BlastOptions; 2], hand: F) -> Self {
        let token = [5; 16];
        let end = |connection| End {
            connection,
            memory: Vec::new(),
            takes: true,
            taken: 0,
        };
        let dialling = BlastConnection::connect(START, &options[0], token, [1; 16], 77);
        let listening = BlastConnection::listen(&options[1], token, [2; 16]);
        Self {
            ends: [end(dialling), end(listening)],
            now: START,
            hand,
            sent: [0; 2],
            log: None,
            slot: Duration::ZERO,
            free: [START; 2],
            spoil: 0,
            under_way: BTreeMap::new(),
            order: 0,
        }
    }

    /// Goes on until both ends are open.
    pub(super) fn open(&mut self) {
        let open = |end: &End| end.connection.state() == BlastState::Open;
        while !self.ends.iter().all(open) && self.step() {}
    }

    /// Lets a side send the next bytes of its stream.
    pub(super) fn send(&mut self, side: usize, bytes: u64) {
        self.ends[side].connection.send(bytes);
        self.flush();
    }

    fn put(&mut self, side: usize, header: &BlastHeader, body: &[u8]) {
        self.sent[side] += 1;
        let fate = (self.hand)(side, header);
        if let Some(log) = &mut self.log {
            let body = if header.kind == BlastPacketKind::Data {
                Vec::new()
            } else {
                body.to_vec()
            };
            log.push(Sent {
                at: self.now,
                side,
                header: *header,
                body,
                lost: fate.is_empty(),
            });
        }
        let mut packet = header.write().to_vec();
        packet.extend_from_slice(body);
        let nth = self.sent[side].checked_rem(self.spoil);
        if header.kind == BlastPacketKind::Data && packet.len() > HEADER && nth == Some(0) {
            packet[HEADER] ^= 0x55;
        }
        self.free[side] = self.free[side].max(self.now) + self.slot;
        for delay in fate {
            self.order += 1;
            self.under_way.insert(
                (self.free[side] + delay, self.order),
                (1 - side, packet.clone()),
            );
        }
    }

    pub(super) fn flush(&mut self) {
        for side in [0, 1] {
            while let Some(output) = self.ends[side].connection.poll(self.now, 7) {
                match output {
                    BlastOutput::Control(header, body) => self.put(side, &header, &body),
                    BlastOutput::Run(run) => {
                        // Only the packet that requests an answer carries it, where that is agreed.
                        let wanted =
                            run.requests_ack && self.ends[side].connection.options().checked;
                        let check = if wanted {
                            sum(bytes(side, run.blast.start, run.blast.length as usize))
                        } else {
                            0
                        };
                        for n in 0..run.count {
                            let (position, length) = run.span(n);
                            self.put(
                                side,
                                &run.header(n, check),
                                bytes(side, position, length as usize),
                            );
                        }
                    }
                }
            }
        }
    }

    fn arrive(&mut self, side: usize, packet: &[u8]) {
        let Some(header) = BlastHeader::read(packet) else {
            return;
        };
        let payload = &packet[HEADER..];
        let body = if header.kind == BlastPacketKind::Data {
            &[][..]
        } else {
            payload
        };
        let end = &mut self.ends[side];
        if let BlastArrival::Place { position, check } =
            end.connection
                .handle(self.now, &header, body, payload.len())
        {
            let from = position as usize;
            if end.memory.len() < from + payload.len() {
                end.memory.resize(from + payload.len(), 0xee);
            }
            end.memory[from..from + payload.len()].copy_from_slice(payload);
            if let Some(Check { blast, wanted }) = check {
                let bytes = &end.memory[blast.start as usize..blast.end() as usize];
                end.connection.checked(blast.number, sum(bytes) == wanted);
            }
        }
        if end.takes {
            end.connection
                .consume(end.connection.receiver().delivered());
        }
    }

    /// Invariants: nothing is sent beyond the grant, nothing is delivered that was not sent.
    fn check(&self) {
        for side in [0, 1] {
            let (sender, receiver) = (
                self.ends[side].connection.sender(),
                self.ends[1 - side].connection.receiver(),
            );
            sender.check();
            receiver.check();
            assert!(
                sender.cut() <= receiver.limit()
                    || self.ends[1 - side].connection.state() != BlastState::Open
            );
            assert!(
                sender.acknowledged() <= receiver.delivered()
                    && receiver.delivered() <= sender.cut()
            );
        }
    }

    /// When the next thing happens.
    pub(super) fn next(&mut self) -> Option<Instant> {
        self.flush();
        let deadlines = [0, 1].map(|side| {
            self.ends[side]
                .connection
                .deadline(self.now)
                .map(|(at, _)| at)
        });
        let wake = deadlines.into_iter().flatten().min();
        let next = self.under_way.keys().next().map(|(at, _)| *at);
        self.check();
        assert!(
            wake.is_none_or(|at| at > self.now),
            "it wants to be asked at {wake:?} again"
        );
        wake.into_iter().chain(next).min()
    }

    /// Goes on to the next thing that happens; false when nothing can happen any more.
    pub(super) fn step(&mut self) -> bool {
        let Some(at) = self.next() else { return false };
        self.now = self.now.max(at);
        while let Some(entry) = self
            .under_way
            .first_entry()
            .filter(|entry| entry.key().0 <= self.now)
        {
            let (side, packet) = entry.remove();
            self.arrive(side, &packet);
        }
        self.flush();
        true
    }

    /// Runs until both have sent everything; panics when that takes too many steps. Applications that do not read at
    /// once read when `take` says so: a part of what has arrived, in 256ths.
    pub(super) fn finish(&mut self, steps: usize, mut take: impl FnMut() -> Option<u8>) {
        for _ in 0..steps {
            let idle = |end: &End| {
                end.connection.sender().is_idle() && end.connection.state() == BlastState::Open
            };
            if self.ends.iter().all(idle) || !self.step() {
                return;
            }
            for end in self.ends.iter_mut().filter(|end| !end.takes) {
                let Some(part) = take() else { continue };
                let there = end.connection.receiver().delivered() - end.taken;
                end.taken += (there * (u64::from(part) + 1)).div_ceil(256);
                end.connection.consume(end.taken);
            }
        }
        panic!(
            "not done after {steps} steps at {}: {:#?}",
            self.now, self.ends[0].connection
        );
    }

    /// Whether everything one side was given to send has arrived, byte by byte.
    pub(super) fn arrived(&self, side: usize, bytes: u64) -> bool {
        let to = &self.ends[1 - side];
        to.connection.receiver().delivered() == bytes
            && to.memory.len() as u64 == bytes
            && to
                .memory
                .chunks(PERIOD)
                .all(|part| part == self::bytes(side, 0, part.len()))
    }
}
