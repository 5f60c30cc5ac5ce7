//! Drives a connection's state machine (`proto::blast`) over a carrier, on the calling thread: sends its output, waits for packets until
//! its deadline, and puts every payload in its place. Data travels in blasts: groups of packets that are acknowledged together.
//!
//! Packets are received straight into the places where the machine expects them. A packet that arrives instead of another one (after
//! a loss or a retransmission) is moved; nothing else is copied.

use crate::carrier::{self, CarrierWait, INTERRUPT_INTERVAL_NS, PacketCarrier};
use crate::carrier_link::CarrierLink;
use crate::connection_trace::ConnectionTrace;
use crate::error::Error;
use crate::operation::ChannelOperation;
use crate::options::{BlastChannelOptions, PacketWaiting};
use crate::packet_train::{Train, first_train};
use crate::placement::{BatchPosition, PayloadPlacement};
use crate::receive_batching::{self, ReceiveBatching};
use crate::seal::{SealSide, SealVerdict};
use crate::stream_memory::{self, Posted, Staging};
use stackline_core::time::{Duration, Instant};
use stackline_proto::blast::negotiation::Nonce;
use stackline_proto::blast::wire::{ABORT, FIN};
use stackline_proto::blast::{
    BlastArrival, BlastConnection, BlastFailure, BlastHeader, BlastOutput, BlastPacketKind,
    BlastState, Check,
};
use std::io::{self, ErrorKind};
use std::mem;
use std::thread;
use std::time;

/// How often an interrupt is checked, which is also the longest wait.
const INTERRUPT_INTERVAL: Duration = Duration(INTERRUPT_INTERVAL_NS);
/// Most trains and control packets that are sent before arrived packets are looked for.
const RUNS: u32 = 8;
/// Fewest consecutive packets that are handled together as a row: handling fewer saves nothing.
const LEAST_ROW: usize = 4;

/// Packets that arrived and were dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Packets without a known header.
    pub strange: u64,
    /// Sealed packets that are not genuine.
    pub forged: u64,
    /// Sealed packets that were received before, or are too old to tell.
    pub replayed: u64,
}

/// A connection's state machine, its carrier, and the data that arrived before a receive was posted for it.
pub(crate) struct Driver<C> {
    pub(crate) connection: BlastConnection,
    pub(crate) link: CarrierLink<C>,
    /// Data that no receive has been posted for; made when the connection is open.
    pub(crate) staging: Option<Staging>,
    pub(crate) placement: PayloadPlacement,
    pub(crate) dropped: Dropped,
    side: SealSide,
    nonce: Nonce,
    waiting: PacketWaiting,
    /// When the driver was made.
    origin: time::Instant,
    /// When the interrupt was last checked.
    last_check: Instant,
    /// When a packet was last received from the peer, or the operation began.
    last_received: Instant,
    /// When the peer was last probed.
    last_probe: Instant,
    /// Whether the peer's host has reported in this operation that the peer's process is gone.
    refused: bool,
    /// Whether the peer has closed the open connection because it gave up.
    aborted: bool,
    /// Whether nothing has been sent in this operation.
    idle_before: bool,
    batching: ReceiveBatching,
    trace: ConnectionTrace,
}

/// The instant at which a driver is made, on its own clock.
pub(crate) const BEGIN: Instant = Instant(1);

impl<C: PacketCarrier> Driver<C> {
    /// A driver for a state machine that was made at [`BEGIN`].
    pub(crate) fn new(
        carrier: C,
        options: &BlastChannelOptions,
        connection: BlastConnection,
        side: SealSide,
        nonce: Nonce,
    ) -> Self {
        Self {
            connection,
            link: CarrierLink::new(carrier, options),
            staging: None,
            placement: PayloadPlacement::default(),
            dropped: Dropped::default(),
            side,
            nonce,
            waiting: options.waiting,
            origin: time::Instant::now(),
            last_check: BEGIN,
            last_received: BEGIN,
            last_probe: BEGIN,
            refused: false,
            aborted: false,
            idle_before: true,
            batching: ReceiveBatching::new(),
            trace: ConnectionTrace::default(),
        }
    }

    /// The present instant on the driver's clock.
    pub(crate) fn now(&self) -> Instant {
        BEGIN + Duration(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Sends and receives until `done` returns true, or until the connection is closed.
    pub(crate) fn drive(
        &mut self,
        operation: &mut ChannelOperation<'_>,
        done: impl Fn(&BlastConnection) -> bool,
    ) -> Result<(), Error> {
        // Nothing is received between operations. After a long time without one, packets that wait are handled before the peer is taken
        // for silent.
        let begun = self.now();
        let away = begun.since(self.last_received) > INTERRUPT_INTERVAL;
        self.last_received = begun;
        self.refused = false;
        self.idle_before = true;
        if away && self.connection.state() != BlastState::Opening {
            self.connection.resume(begun);
            self.take(operation, CarrierWait::No)?;
        }
        loop {
            let now = self.now();
            let all = self.send_out(now, operation)?;
            match self.connection.state() {
                BlastState::Failed(BlastFailure::Silent) => {
                    return Err(Error::Silent(self.connection.options().patience));
                }
                BlastState::Failed(BlastFailure::Refused(refusal)) => {
                    return Err(Error::Refused(refusal));
                }
                BlastState::Closed if self.aborted && !done(&self.connection) => {
                    // Both ends may have been interrupted.
                    return self.link.check_interrupt().and(Err(Error::Closed));
                }
                BlastState::Closed => return Ok(()),
                _ if all && done(&self.connection) => return Ok(()),
                _ => {}
            }
            self.check_interrupt(now)?;
            let wait = if all && !self.refused {
                self.wait(now)
            } else {
                CarrierWait::No
            };
            self.take(operation, wait)?;
        }
    }

    /// Sends the machine's output; returns whether that was all. Once the peer's host has reported that the peer's process is gone,
    /// nothing is sent, but packets that the peer sent before may still wait to be read.
    fn send_out(&mut self, now: Instant, operation: &ChannelOperation<'_>) -> Result<bool, Error> {
        if self.refused {
            return Ok(true);
        }
        match self.flush(now, operation) {
            Err(Error::Gone) => {
                self.refused = true;
                Ok(true)
            }
            all => all,
        }
    }

    /// When the connection has just been opened: derives the session's keys, and makes room for data that comes before a receive.
    fn start_session(&mut self) {
        if self.connection.state() != BlastState::Open || self.staging.is_some() {
            return;
        }
        self.staging = Some(Staging::new(self.connection.options().buffer));
        let (own, peer) = (&self.nonce, self.connection.peer_nonce());
        let (initiator, answers) = if self.side == SealSide::Initiator {
            (own, peer)
        } else {
            (peer, own)
        };
        if let Some(seal) = &mut self.link.seal {
            seal.open_session(self.side, initiator, answers);
        }
    }

    // --- what leaves ---

    /// Sends the machine's output, at most [`RUNS`] trains and control packets; returns whether that was all. Consecutive runs are sent
    /// together as one train, even if they are of different blasts.
    pub(crate) fn flush(
        &mut self,
        now: Instant,
        operation: &ChannelOperation<'_>,
    ) -> Result<bool, Error> {
        self.start_session();
        let packet = self.connection.options().packet;
        let long = self.link.train(packet);
        let idle_before = mem::take(&mut self.idle_before);
        let most = if idle_before {
            first_train(self.connection.sender().waiting(), packet, long)
        } else {
            long
        };
        let mut train = Train::default();
        let mut departed = 0;
        while departed < RUNS {
            let output = self.connection.poll(now, most - train.packets);
            if let Some(output) = &output {
                self.trace.leaves(output, packet);
            }
            match output {
                Some(BlastOutput::Run(run)) => {
                    if !train.continues_with(&run) {
                        departed += self.send_train(operation, &mut train)?;
                    }
                    let checks = run.requests_ack && self.connection.options().checked;
                    let check = if checks {
                        operation.check(run.blast.start, run.blast.end())?
                    } else {
                        0
                    };
                    self.link.queue(&run, check, train.packets as usize);
                    train.add(&run);
                    if train.packets == most {
                        departed += self.send_train(operation, &mut train)?;
                    }
                }
                Some(BlastOutput::Control(header, body)) => {
                    departed += 1 + self.send_train(operation, &mut train)?;
                    self.link.control(&header, &body)?;
                }
                None => {
                    self.send_train(operation, &mut train)?;
                    return self.keep_alive(now).map(|()| true);
                }
            }
        }
        self.send_train(operation, &mut train)?;
        Ok(false)
    }

    /// Sends the packets of a train, if there are any, and empties it; returns how many trains were sent: 1 or 0.
    fn send_train(
        &mut self,
        operation: &ChannelOperation<'_>,
        train: &mut Train,
    ) -> Result<u32, Error> {
        let Train {
            from,
            to,
            packets,
            each,
        } = mem::take(train);
        if packets == 0 {
            return Ok(0);
        }
        self.link
            .send(packets as usize, operation.slice(from, to)?, each as usize)
            .map(|()| 1)
    }

    /// Probes a peer that has been silent for a quarter of the patience: an end that only receives would otherwise never find out that
    /// the peer is gone.
    fn keep_alive(&mut self, now: Instant) -> Result<(), Error> {
        if self.connection.state() != BlastState::Open {
            return Ok(());
        }
        let patience = self.connection.options().patience;
        let silent = now.since(self.last_received);
        if silent > patience {
            return Err(Error::Silent(patience));
        }
        let often = Duration(patience.0 / 4);
        if silent > often && now.since(self.last_probe) > often {
            self.last_probe = now;
            return self.link.control(
                &BlastHeader::new(BlastPacketKind::Probe, self.connection.id()),
                &[],
            );
        }
        Ok(())
    }

    /// Sends one CLOSE that tells the peer, which may be waiting, that this end has given up.
    pub(crate) fn abort(&mut self) {
        let waits = matches!(
            self.connection.state(),
            BlastState::Opening | BlastState::Open | BlastState::Failed(BlastFailure::Silent)
        );
        if waits {
            let fin = if self.connection.receiver().ended() {
                FIN
            } else {
                0
            };
            let start = self.connection.receiver().delivered();
            let close = BlastHeader {
                flags: ABORT | fin,
                start,
                ..BlastHeader::new(BlastPacketKind::Close, self.connection.id())
            };
            self.link.tries_once();
            let _ = self.link.control(&close, &[]);
        }
    }

    // --- what arrives ---

    /// Checks from time to time whether the operation is to be interrupted, even if it never has to wait.
    fn check_interrupt(&mut self, now: Instant) -> Result<(), Error> {
        if now.since(self.last_check) < INTERRUPT_INTERVAL {
            return Ok(());
        }
        self.last_check = now;
        self.link.check_interrupt()
    }

    /// How to wait for packets: until the machine's deadline, at most [`INTERRUPT_INTERVAL`].
    fn wait(&mut self, now: Instant) -> CarrierWait {
        let until = self
            .connection
            .deadline(now)
            .map_or(INTERRUPT_INTERVAL, |(at, _)| at.since(now))
            .min(INTERRUPT_INTERVAL);
        let time = time::Duration::from_nanos(until.0);
        match self.waiting {
            _ if time.is_zero() => CarrierWait::No,
            PacketWaiting::Block => CarrierWait::Block(time),
            PacketWaiting::Spin => CarrierWait::Spin(time),
        }
    }

    /// Receives packets, for which it may wait, and handles them; then tells the machine how much of the data that arrived in order is in
    /// the caller's memory, so that the peer may send more.
    fn take(
        &mut self,
        operation: &mut ChannelOperation<'_>,
        wait: CarrierWait,
    ) -> Result<(), Error> {
        let packet = self.connection.options().packet as usize;
        let most = self.link.places(packet);
        self.placement.expect(
            &operation.posted,
            self.connection.receiver().expected_rows(),
            packet,
            most,
        );
        let packets = match self.receive(operation, wait) {
            Ok(packets) => packets,
            Err(error) if error.kind() == ErrorKind::Interrupted => {
                return self.link.check_interrupt();
            }
            // The kernel reports this before it delivers packets that came earlier.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused && !self.refused => {
                self.refused = true;
                return Ok(());
            }
            Err(error) => return self.receive_failed(error),
        };
        if packets == 0 {
            return if self.refused {
                self.receive_failed(ErrorKind::ConnectionRefused.into())
            } else {
                Ok(())
            };
        }
        let now = self.now();
        self.batching.received(packets as u64 * packet as u64);
        let mut index = 0;
        while index < packets {
            let row = if self.link.seal.is_none() {
                self.row(now, index, packets, &operation.posted)
            } else {
                0
            };
            if row == 0 {
                self.arrive(now, BatchPosition { index, packets }, &mut operation.posted);
            }
            index += row.max(1);
        }
        let delivered = self.connection.receiver().delivered();
        self.connection
            .consume(delivered.min(operation.posted.end()));
        Ok(())
    }

    /// Reads once. In the middle of a long transfer, if nothing is there, it first sleeps for a short time: see [`ReceiveBatching`].
    fn receive(
        &mut self,
        operation: &mut ChannelOperation<'_>,
        wait: CarrierWait,
    ) -> io::Result<usize> {
        let (carrier, head, places) = (
            &mut self.link.carrier,
            self.link.head,
            &self.placement.places,
        );
        let receiver = self.connection.receiver();
        let long = operation.posted.end().saturating_sub(receiver.delivered())
            > receive_batching::LEAST_REMAINING;
        if long && matches!(wait, CarrierWait::Block(_)) && carrier.facts().joined_in {
            let packets = carrier::receive(
                carrier,
                head,
                operation.posted.into,
                places,
                CarrierWait::No,
            )?;
            if packets > 0 {
                return Ok(packets);
            }
            if let Some(time) = self.batching.next_sleep(self.connection.options().buffer) {
                thread::sleep(time);
            }
        }
        carrier::receive(carrier, head, operation.posted.into, places, wait)
    }

    /// Handles the failure of a read. While the connection is being closed and everything is acknowledged, it counts as the peer's answer
    /// to the CLOSE: nothing can be lost any more.
    fn receive_failed(&mut self, error: io::Error) -> Result<(), Error> {
        if self.connection.state() != BlastState::Closing || !self.connection.sender().is_idle() {
            return Err(Error::new("receiving", error));
        }
        let goodbye = BlastHeader::new(BlastPacketKind::Closed, self.connection.id());
        self.connection.handle(self.now(), &goodbye, &[], 0);
        Ok(())
    }

    /// Handles the packets from `index` on together if they are a row (consecutive packets of a blast) that was received in the right
    /// places; returns how many, 0 if they have to be handled one by one.
    fn row(&mut self, now: Instant, index: usize, packets: usize, posted: &Posted<'_>) -> usize {
        let packet = self.connection.options().packet as usize;
        let row = self
            .placement
            .row(&self.link.carrier, index, packets, packet);
        if row < LEAST_ROW {
            return 0;
        }
        let Some(header) = BlastHeader::read(self.link.carrier.packet(index).head) else {
            return 0;
        };
        let position = header
            .start
            .saturating_add(u64::from(header.index) * packet as u64);
        if posted.place(position) != Some(self.placement.places[index].at) {
            return 0;
        }
        self.trace.arrived(&header);
        match self.connection.handle_row(now, &header, row as u32) {
            Some(_) => {
                self.last_received = now;
                row
            }
            None => 0,
        }
    }

    /// Handles one of the packets of a read.
    fn arrive(&mut self, now: Instant, received: BatchPosition, posted: &mut Posted<'_>) {
        let index = received.index;
        let at = match &mut self.link.seal {
            None => self
                .placement
                .find(self.link.carrier.packet(index).payload, index),
            Some(seal) => match self.placement.open(&self.link.carrier, seal, index, posted) {
                (SealVerdict::Genuine, at) => at,
                (SealVerdict::Forged, _) => return self.dropped.forged += 1,
                (SealVerdict::Replayed, _) => return self.dropped.replayed += 1,
            },
        };
        let packet = self.link.carrier.packet(index);
        let Some(header) = BlastHeader::read(packet.head) else {
            return self.dropped.strange += 1;
        };
        let body = match header.kind {
            BlastPacketKind::Data => &[],
            _ => self.placement.payload(packet.payload, at, posted),
        };
        let was_open = self.connection.state() == BlastState::Open;
        self.trace.arrived(&header);
        let arrival = self
            .connection
            .handle(now, &header, body, packet.payload.length());
        self.aborted |= was_open && header.has(ABORT) && self.connection.closed_by_peer();
        self.last_received = now;
        if header.kind != BlastPacketKind::Data {
            // The next packet may need the keys that this one brought.
            self.start_session();
        }
        let BlastArrival::Place { position, check } = arrival else {
            return;
        };
        let Some(staging) = &mut self.staging else {
            return;
        };
        self.placement
            .put(&self.link.carrier, received, at, position, posted, staging);
        if let Some(check) = check {
            self.verify(check, posted);
        }
    }

    /// Compares the CRC-32C of a blast's bytes with what its sender computed, and tells the machine the result.
    fn verify(&mut self, check: Check, posted: &Posted<'_>) {
        let Some(staging) = &self.staging else { return };
        let mut sum = 0;
        let blast = check.blast;
        stream_memory::for_each_piece(
            posted,
            staging,
            blast.start,
            blast.length as usize,
            |part| sum = crc32c::crc32c_append(sum, part),
        );
        self.connection.checked(blast.number, sum == check.wanted);
    }

    /// Handles a packet that a listener received for this connection.
    pub(crate) fn inject(&mut self, header: &BlastHeader, body: &[u8]) {
        let now = self.now();
        self.connection.handle(now, header, body, body.len());
        self.last_received = now;
        self.start_session();
    }
}
