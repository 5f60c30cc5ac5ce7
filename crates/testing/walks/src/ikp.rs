//! A client and its server on a path that bytes control: for the fuzz target and the tests, which share this
//! walk.
//!
//! The first byte chooses the options, and whether only **strangers** forge packets: they do not know the client's
//! number. Their packets must change nothing: the message is replied to. A forger who knows the number may break the
//! exchange, but must not make a machine panic, repeat without end at one instant, or touch a byte that was not
//! granted.

use crate::fuzz_path::FuzzPath;
use stackline_core::time::{Duration, Instant};
use stackline_proto::blast::{BlastHeader, BlastPacketKind, BlastStrategy, BlastTimeout};
use stackline_proto::ikp::server::{self, IkpMoveProgress};
use stackline_proto::ikp::{Grants, IkpClient, IkpOptions, IkpOutput, IkpServer, client};

const NUMBER: u32 = 77;
/// Bytes of a message.
const MESSAGE: u32 = 20;

struct IkpFuzzWalk<'a> {
    path: FuzzPath<'a>,
    client: IkpClient,
    server: IkpServer,
    grants: Grants,
    replied: bool,
    now: Instant,
    strangers: bool,
}

/// Runs the steps that the bytes encode.
///
/// # Panics
/// When an invariant is violated.
pub fn packets(bytes: &[u8]) {
    let mut walk = IkpFuzzWalk::new(bytes);
    while let Some(what) = walk.path.step() {
        walk.one(what);
    }
    if walk.strangers {
        walk.end();
    }
}

impl<'a> IkpFuzzWalk<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        let mut path = FuzzPath::new(bytes, BlastHeader::new(BlastPacketKind::Send, NUMBER));
        let (choice, sizes) = (path.next(), path.next());
        let strategies = [
            BlastStrategy::Full,
            BlastStrategy::FullNak,
            BlastStrategy::Partial,
            BlastStrategy::Selective,
        ];
        let fixed = BlastTimeout::Fixed(Duration(3_000_000));
        let strangers = choice & 64 != 0;
        let options = IkpOptions {
            packet: 32 + u32::from(sizes & 3) * 20,
            size: [32, 200, 1000, 4000][usize::from(sizes >> 2 & 3)],
            flight: [1, 2, 5, 40][usize::from(sizes >> 4 & 3)],
            strategy: strategies[usize::from(choice & 3)],
            interval: if choice & 4 == 0 {
                BlastTimeout::Adaptive
            } else {
                fixed
            },
            patience: Duration(if choice & 8 == 0 || strangers {
                u64::MAX / 4
            } else {
                50_000_000
            }),
            once: choice & 16 != 0,
            ..IkpOptions::v()
        };
        let grants = Grants {
            readable: u32::from(path.next()) * 3,
            writable: u32::from(path.next()) * 3,
        };
        let first = if choice & 32 == 0 { 0 } else { u32::MAX };
        let (client, server) = (
            IkpClient::new(&options, NUMBER, first),
            IkpServer::new(&options, NUMBER),
        );
        let now = Instant(1_000_000_000);
        let mut walk = IkpFuzzWalk {
            path,
            client,
            server,
            grants,
            replied: false,
            now,
            strangers,
        };
        walk.send();
        walk.flush();
        walk
    }

    fn send(&mut self) {
        if self.client.send(self.now, MESSAGE, self.grants).is_ok() {
            self.replied = false;
        }
    }

    /// One step; its top bit chooses the side.
    fn one(&mut self, what: u8) {
        let side = usize::from(what >> 7);
        match what & 0x1f {
            0..=5 => self.deliver(side),
            6 => drop(self.path.take(side)),
            7 => self.path.duplicate(side),
            8 => self.path.reorder(side),
            9..=13 => self.serve(),
            14..=16 => self.wake(),
            17 => {
                let time = Duration(u64::from(self.path.next()) * 200_000);
                self.now += time;
            }
            18..=20 => self.forge(side),
            21..=26 => self.corrupt(side),
            27 if !self.strangers => self.client.abandon(),
            28 if !self.strangers => self.server.ignore(self.server.open().unwrap_or(0)),
            _ => self.send(),
        }
        self.flush();
    }

    fn deliver(&mut self, side: usize) {
        let Some((header, body, payload)) = self.path.take(side) else {
            return;
        };
        self.arrive(side, &header, &body, payload);
    }

    /// Whether it was silently dropped.
    fn arrive(&mut self, side: usize, header: &BlastHeader, body: &[u8], payload: usize) -> bool {
        if side == 0 {
            let writable = self.grants.writable as usize;
            match self.client.handle(self.now, header, body, payload) {
                client::IkpClientArrival::Place(at) => assert!(at as usize + payload <= writable),
                client::IkpClientArrival::Reply {
                    message,
                    offset,
                    data,
                } => {
                    assert!(message as usize + data as usize == payload);
                    assert!(offset as usize + data as usize <= writable);
                    self.replied = true;
                }
                client::IkpClientArrival::Refused => {}
                client::IkpClientArrival::Nothing => return true,
            }
            return false;
        }
        let most: u64 = self
            .server
            .expected()
            .map(|(_, bytes)| u64::from(bytes))
            .take(100)
            .sum();
        assert!(most <= 100 * 65_536);
        match self.server.handle(self.now, header, body, payload) {
            server::IkpServerArrival::Message(message) => {
                assert_eq!(message.bytes as usize + message.carried as usize, payload);
                assert!(message.carried <= message.grants.readable);
            }
            server::IkpServerArrival::Place(at) => assert!(at as usize + payload <= 255 * 3),
            server::IkpServerArrival::Refused => {}
            server::IkpServerArrival::Nothing => return true,
        }
        false
    }

    /// The server's process handles its message in some way.
    fn serve(&mut self) {
        let (what, from, bytes) = (
            self.path.next(),
            u32::from(self.path.next()) * 3,
            u32::from(self.path.next()) * 3,
        );
        let Some(transaction) = self.server.open() else {
            return;
        };
        let now = self.now;
        let done = match what & 3 {
            0 => self.server.move_to(transaction, from, bytes),
            1 => self.server.move_from(now, transaction, from, bytes),
            2 => self
                .server
                .reply(now, transaction, u32::from(what >> 2), from, bytes),
            _ => {
                self.server.progress(transaction);
                Ok(())
            }
        };
        if let Err(server::IkpReplyError::Outside(granted)) = done {
            assert!(u64::from(from) + u64::from(bytes) > u64::from(granted));
        }
    }

    fn wake(&mut self) {
        let deadlines = [
            self.client.deadline(self.now).map(|(at, _)| at),
            self.server.deadline(self.now).map(|(at, _)| at),
        ];
        self.now = deadlines.into_iter().flatten().min().unwrap_or(self.now);
    }

    /// Sends all output; then no machine has a deadline now.
    fn flush(&mut self) {
        for side in [0, 1] {
            let mut outputs = 0;
            while let Some(output) = if side == 0 {
                self.client.poll(self.now, 5)
            } else {
                self.server.poll(self.now, 5)
            } {
                outputs += 1;
                assert!(outputs < 5_000, "it never ends");
                self.leave(side, output);
            }
            let again = if side == 0 {
                self.client.deadline(self.now).map(|(at, _)| at)
            } else {
                self.server.deadline(self.now).map(|(at, _)| at)
            };
            assert!(again.is_none_or(|at| at > self.now), "it turns in place");
            // The path holds so many packets; the oldest are lost.
            self.path.bound(side, 500);
        }
    }

    fn leave(&mut self, side: usize, output: IkpOutput) {
        let granted = if side == 0 {
            self.grants.readable
        } else {
            u32::MAX
        };
        match output {
            IkpOutput::Control(header, body) => {
                let bytes = body.len();
                self.path.send(1 - side, (header, body, bytes));
            }
            IkpOutput::Message(header) => {
                let beside = if side == 0 {
                    self.client.carried()
                } else {
                    header.length
                };
                self.path.send(
                    1 - side,
                    (
                        header,
                        Vec::new(),
                        usize::from(header.index) + beside as usize,
                    ),
                );
            }
            IkpOutput::Run(run) => {
                for n in 0..run.count() {
                    let (at, bytes) = run.span(n);
                    assert!(u64::from(at) + u64::from(bytes) <= u64::from(granted));
                    self.path
                        .send(1 - side, (run.header(n), Vec::new(), bytes as usize));
                }
            }
        }
    }

    /// Any header, and a few bytes.
    fn forge(&mut self, side: usize) {
        let Some((header, bytes)) = self.path.any_header() else {
            return;
        };
        self.forged(side, header, &bytes[32..], 8);
    }

    /// A header like the last one sent, with one byte changed.
    fn corrupt(&mut self, side: usize) {
        let Some((header, value)) = self.path.corrupt_header() else {
            return;
        };
        let payload = usize::from(self.path.next());
        self.forged(side, header, &[value; 3], payload);
    }

    fn forged(&mut self, side: usize, mut header: BlastHeader, body: &[u8], payload: usize) {
        if self.strangers && header.connection == NUMBER {
            header.connection += 1;
        }
        let dropped = self.arrive(side, &header, body, payload);
        assert!(dropped || !self.strangers);
    }

    /// From now on nothing is lost, and the server's process replies: the client gets its reply.
    fn end(&mut self) {
        for _ in 0..5_000 {
            if self.client.state() == client::IkpClientState::Idle {
                return assert!(self.replied);
            }
            for side in [0, 1] {
                while !self.path.to(side).is_empty() {
                    self.deliver(side);
                }
            }
            if let Some(transaction) = self.server.open()
                && self.server.progress(transaction) == IkpMoveProgress::Done
            {
                let replied = self.server.reply(self.now, transaction, 1, 0, 0);
                assert!(replied.is_ok());
            }
            self.flush();
            if self.path.is_empty() {
                self.wake();
                self.flush();
            }
        }
        panic!("no reply: {:?} {:?}", self.client, self.server);
    }
}
