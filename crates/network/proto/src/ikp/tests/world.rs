//! A client and its server in virtual time, and the bytes that travel between them.
//!
//! What arrives is first scribbled to where its receiver expects the next packet, as a carrier that receives straight into
//! the destination does, so that an expectation that would harm what is there shows.

use crate::blast::{BlastHeader, BlastPacketKind, HEADER};
use crate::ikp::server::{IkpMessage, IkpMoveProgress};
use crate::ikp::{Grants, IkpClient, IkpOptions, IkpOutput, IkpServer, client, server};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use stackline_core::time::{Duration, Instant};

pub(super) const START: Instant = Instant(1_000_000_000);

/// The byte at an offset of a segment, in one delivery of a message (0: of the client's own).
pub(super) fn byte(transaction: u32, delivery: u64, offset: u32) -> u8 {
    let mix =
        u64::from(transaction) * 31 + delivery * 77 + u64::from(offset) + u64::from(offset >> 8);
    mix.wrapping_mul(167) as u8
}

/// What the server's process does with a message.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    From(u32, u32),
    To(u32, u32),
    /// Does nothing for a while.
    Think(Duration),
    /// Bytes of message, where the data belongs, and its bytes.
    Reply(u32, u32, u32),
}

/// The server's process, with what it has of the message it works on.
#[derive(Default)]
struct Process {
    acts: VecDeque<Act>,
    message: Option<IkpMessage>,
    delivery: u64,
    memory: Vec<u8>,
    busy_until: Option<Instant>,
    moving: Option<Act>,
    reply: Vec<u8>,
}

/// Everything.
pub(super) struct World<F> {
    pub(super) client: IkpClient,
    pub(super) server: IkpServer,
    pub(super) now: Instant,
    hand: F,
    pub(super) script: Vec<Act>,
    /// What was or is done with the message of each transaction.
    scripts: BTreeMap<u32, Vec<Act>>,
    pub(super) log: Option<Vec<String>>,
    /// Deliveries of each transaction.
    pub(super) deliveries: BTreeMap<u32, u64>,
    pub(super) transaction: u32,
    grants: Grants,
    message: u32,
    memory: Vec<u8>,
    pub(super) replied: Option<u64>,
    process: Process,
    under_way: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    order: u64,
}

impl<F: FnMut(usize, &BlastHeader) -> Vec<Duration>> World<F> {
    pub(super) fn new(options: IkpOptions, first: u32, hand: F) -> Self {
        Self {
            client: IkpClient::new(&options, 7, first.wrapping_sub(1)),
            server: IkpServer::new(&options, 7),
            now: START,
            hand,
            script: Vec::new(),
            scripts: BTreeMap::new(),
            log: None,
            deliveries: BTreeMap::new(),
            transaction: first.wrapping_sub(1),
            grants: Grants::default(),
            message: 0,
            memory: Vec::new(),
            replied: None,
            process: Process::default(),
            under_way: BTreeMap::new(),
            order: 0,
        }
    }

    /// The client sends a message.
    pub(super) fn send(&mut self, message: u32, grants: Grants) {
        self.transaction = self.transaction.wrapping_add(1);
        self.scripts.insert(self.transaction, self.script.clone());
        (self.message, self.grants, self.replied) = (message, grants, None);
        self.memory = alloc::vec![0; grants.writable as usize];
        self.client.send(self.now, message, grants).unwrap();
        self.flush();
    }

    /// Goes on until the message has come to an end.
    pub(super) fn finish(&mut self, steps: usize) {
        for _ in 0..steps {
            if self.client.state() != client::IkpClientState::Sending {
                return;
            }
            assert!(self.step(), "nothing can happen any more");
        }
        panic!(
            "no reply after {steps} steps at {}: {:#?} {:#?}",
            self.now, self.client, self.server
        );
    }

    /// Goes on to the next thing that happens; false when nothing can happen any more.
    pub(super) fn step(&mut self) -> bool {
        self.flush();
        let deadlines = [
            self.client.deadline(self.now).map(|(at, _)| at),
            self.server.deadline(self.now).map(|(at, _)| at),
            self.process.busy_until,
            self.under_way.keys().next().map(|(at, _)| *at),
        ];
        let Some(at) = deadlines.into_iter().flatten().min() else {
            return false;
        };
        self.now = self.now.max(at);
        while let Some(entry) = self
            .under_way
            .first_entry()
            .filter(|entry| entry.key().0 <= self.now)
        {
            let (side, packet) = entry.remove();
            if side == 0 {
                self.at_client(&packet)
            } else {
                self.at_server(&packet)
            }
        }
        self.work();
        self.flush();
        true
    }

    pub(super) fn put(&mut self, side: usize, header: &BlastHeader, body: &[u8]) {
        if let Some(log) = &mut self.log {
            let arrow = ["->", "<-"][side];
            let BlastHeader {
                kind,
                blast,
                round,
                index,
                ..
            } = header;
            let at = (self.now - START).0 / 1000;
            log.push(match kind {
                BlastPacketKind::Data | BlastPacketKind::Answer => {
                    alloc::format!("{at} {arrow} {kind:?} {blast}.{round} packet {index}")
                }
                _ => alloc::format!(
                    "{at} {arrow} {kind:?} {blast} round {round} +{}",
                    body.len()
                ),
            });
        }
        let mut packet = header.write().to_vec();
        packet.extend_from_slice(body);
        for delay in (self.hand)(side, header) {
            self.order += 1;
            self.under_way
                .insert((self.now + delay, self.order), (1 - side, packet.clone()));
        }
    }

    fn flush(&mut self) {
        while let Some(output) = self.client.poll(self.now, 5) {
            let carried = self.client.carried();
            let transaction = self.transaction;
            let body = |from: u32, bytes: u32| {
                (from..from + bytes).map(move |at| byte(transaction, 0, at))
            };
            match output {
                IkpOutput::Control(header, body) => self.put(0, &header, &body),
                IkpOutput::Message(header) => {
                    let bytes: Vec<u8> = (0..self.message)
                        .map(|at| at as u8)
                        .chain(body(0, carried))
                        .collect();
                    self.put(0, &header, &bytes);
                }
                IkpOutput::Run(run) => {
                    for n in 0..run.count() {
                        let (from, bytes) = run.span(n);
                        self.put(0, &run.header(n), &body(from, bytes).collect::<Vec<_>>());
                    }
                }
            }
        }
        while let Some(output) = self.server.poll(self.now, 5) {
            match output {
                IkpOutput::Control(header, body) => self.put(1, &header, &body),
                IkpOutput::Message(header) => {
                    let reply = self.process.reply.clone();
                    self.put(1, &header, &reply);
                }
                IkpOutput::Run(run) => {
                    for n in 0..run.count() {
                        let (from, bytes) = run.span(n);
                        let data = self.data(from, bytes);
                        self.put(1, &run.header(n), &data);
                    }
                }
            }
        }
    }

    /// What the server's process writes there in its present delivery.
    fn data(&self, from: u32, bytes: u32) -> Vec<u8> {
        let transaction = self
            .process
            .message
            .map_or(0, |message| message.transaction);
        (from..from + bytes)
            .map(|at| byte(transaction, self.process.delivery, at))
            .collect()
    }

    fn at_client(&mut self, packet: &[u8]) {
        let Some(header) = BlastHeader::read(packet) else {
            return;
        };
        let payload = &packet[HEADER..];
        if let Some((at, bytes)) = self.client.expected().next() {
            let place = &mut self.memory[at as usize..(at + bytes) as usize];
            let n = payload.len().min(place.len());
            place[..n].copy_from_slice(&payload[..n]);
        }
        let body = if header.kind == BlastPacketKind::Data {
            &[][..]
        } else {
            payload
        };
        match self.client.handle(self.now, &header, body, payload.len()) {
            client::IkpClientArrival::Place(at) => {
                self.memory[at as usize..at as usize + payload.len()].copy_from_slice(payload);
            }
            client::IkpClientArrival::Reply {
                message,
                offset,
                data,
            } => {
                let (text, bytes) = payload.split_at(message as usize);
                assert_eq!(bytes.len(), data as usize);
                self.memory[offset as usize..(offset + data) as usize].copy_from_slice(bytes);
                self.replied = Some(text.first().map_or(1, |byte| u64::from(*byte)));
            }
            client::IkpClientArrival::Nothing | client::IkpClientArrival::Refused => {}
        }
    }

    fn at_server(&mut self, packet: &[u8]) {
        let Some(header) = BlastHeader::read(packet) else {
            return;
        };
        let payload = &packet[HEADER..];
        if let Some((at, bytes)) = self.server.expected().next() {
            let place = &mut self.process.memory[at as usize..(at + bytes) as usize];
            let n = payload.len().min(place.len());
            place[..n].copy_from_slice(&payload[..n]);
        }
        let body = if header.kind == BlastPacketKind::Data {
            &[][..]
        } else {
            payload
        };
        match self.server.handle(self.now, &header, body, payload.len()) {
            server::IkpServerArrival::Message(message) => self.receive(message, payload),
            server::IkpServerArrival::Place(at) => {
                self.process.memory[at as usize..at as usize + payload.len()]
                    .copy_from_slice(payload);
            }
            server::IkpServerArrival::Nothing | server::IkpServerArrival::Refused => {}
        }
    }

    fn receive(&mut self, message: IkpMessage, payload: &[u8]) {
        let count = self.deliveries.entry(message.transaction).or_default();
        *count += 1;
        assert_eq!(payload.len() as u32, message.bytes + message.carried);
        let (text, carried) = payload.split_at(message.bytes as usize);
        assert!(text.iter().enumerate().all(|(at, byte)| *byte == at as u8));
        assert!(
            carried
                .iter()
                .zip(0..)
                .all(|(counters, at)| *counters == byte(message.transaction, 0, at))
        );
        self.process = Process {
            acts: self.scripts[&message.transaction].iter().copied().collect(),
            message: Some(message),
            delivery: *count,
            ..Process::default()
        };
    }

    /// The server's process goes on as far as it can.
    fn work(&mut self) {
        let Some(IkpMessage { transaction, .. }) = self.process.message else {
            return;
        };
        if self.process.busy_until.is_some_and(|at| at > self.now) {
            return;
        }
        self.process.busy_until = None;
        loop {
            match self.server.progress(transaction) {
                IkpMoveProgress::Going => return,
                IkpMoveProgress::Failed | IkpMoveProgress::Gone => {
                    return self.process.acts.clear();
                }
                IkpMoveProgress::Done => self.moved(),
            }
            let Some(act) = self.process.acts.pop_front() else {
                return;
            };
            match act {
                Act::From(offset, bytes) => {
                    self.process.memory = alloc::vec![0; bytes as usize];
                    self.server
                        .move_from(self.now, transaction, offset, bytes)
                        .unwrap();
                    self.process.moving = Some(act);
                }
                Act::To(offset, bytes) => self.server.move_to(transaction, offset, bytes).unwrap(),
                Act::Think(time) => {
                    self.process.busy_until = Some(self.now + time);
                    return;
                }
                Act::Reply(message, offset, data) => {
                    let mut reply = alloc::vec![self.process.delivery as u8; message as usize];
                    reply.extend(self.data(offset, data));
                    self.process.reply = reply;
                    self.server
                        .reply(self.now, transaction, message, offset, data)
                        .unwrap();
                    return;
                }
            }
            self.flush();
        }
    }

    /// What was moved from the client is what the client has.
    fn moved(&mut self) {
        let Some(Act::From(offset, bytes)) = self.process.moving.take() else {
            return;
        };
        let transaction = self
            .process
            .message
            .map_or(0, |message| message.transaction);
        let right = (0..bytes)
            .all(|at| self.process.memory[at as usize] == byte(transaction, 0, offset + at));
        assert!(
            right,
            "what was moved from {offset} on is not what is there"
        );
    }

    /// Whether the client has, byte by byte, what the delivery that was replied to wrote, and the server's process did all.
    pub(super) fn is_right(&self) -> bool {
        let Some(delivery) = self.replied else {
            return false;
        };
        let written = self.script.iter().flat_map(|act| match *act {
            Act::To(offset, bytes) | Act::Reply(_, offset, bytes) => offset..offset + bytes,
            Act::From(..) | Act::Think(_) => 0..0,
        });
        written
            .into_iter()
            .all(|at| self.memory[at as usize] == byte(self.transaction, delivery, at))
    }
}
