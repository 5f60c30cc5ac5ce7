//! The server of V's message passing over UDP: messages, moves and replies for many clients on one socket and one thread.

use super::error::IkpTransferError;
use super::options::{IkpTransferOptions, Protocol};
use super::output::{
    INTERRUPT_INTERVAL, IkpClock, Out, is_interruption, packets_per_call, run_range,
};
use super::table::{IkpClientTable, RefusedIkpPackets, Ticket};
use crate::carrier::{self, CarrierWait, PacketCarrier};
use crate::options::PacketWaiting;
use crate::placement::{BatchPosition, PayloadPlacement};
use crate::stream_memory::{Posted, Staging};
use crate::udp::Udp;
use socket2::{Domain, Socket, Type};
use stackline_core::time::{Duration, Instant};
use stackline_proto::blast::{BlastHeader, BlastPacketKind, HEADER};
use stackline_proto::ikp::IkpOutput;
use stackline_proto::ikp::server::{IkpMoveProgress, IkpServerArrival};
use stackline_proto::ikp::wire::IkpRefusal;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time;

/// Most outputs (a run of packets, or one packet) that are sent to a client before arrived packets are looked for.
const RUNS: u32 = 8;

/// Receives messages from many clients. See [the module](super).
///
/// ```no_run
/// use stackline_transfer::ikp::{IkpTransferOptions, IkpUdpServer};
///
/// let mut server = IkpUdpServer::bind("10.0.0.5:7000".parse()?, &IkpTransferOptions::default())?;
/// loop {
///     let mut request = server.receive()?;
///     let mut data = vec![0; request.readable()];
///     request.move_from(0, &mut data)?;
///     request.reply(b"stored")?;
/// }
/// # #[allow(unreachable_code)]
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct IkpUdpServer {
    pub(super) carrier: Udp,
    protocol: Protocol,
    pub(super) table: IkpClientTable,
    /// Entries whose message waits to be received, in the order they came.
    queue: VecDeque<usize>,
    out: Out,
    placement: PayloadPlacement,
    staging: Staging,
    waiting: PacketWaiting,
    pub(super) clock: IkpClock,
    /// When the interrupt was last checked.
    last_check: Instant,
    refused: RefusedIkpPackets,
}

impl IkpUdpServer {
    /// Receives at this address, which has to be the one that clients reach it at: on a host with several, bind to one. With
    /// port 0 at any free one, see [`IkpUdpServer::local`].
    ///
    /// # Errors
    /// [`IkpTransferError::Packet`] and [`IkpTransferError::Io`].
    pub fn bind(
        address: SocketAddr,
        options: &IkpTransferOptions,
    ) -> Result<Self, IkpTransferError> {
        let bound = || {
            let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
            socket.bind(&address.into())?;
            Udp::bound(socket, options.udp)
        };
        let mut carrier = bound().map_err(|error| IkpTransferError::Io("binding", error))?;
        carrier
            .expect_many(false)
            .map_err(|error| IkpTransferError::Io("binding", error))?;
        let protocol = options.fitted(carrier.facts())?;
        Ok(Self {
            carrier,
            protocol,
            table: IkpClientTable::new(options.clients, options.strangers_give_way),
            queue: VecDeque::new(),
            out: Out::new(options.interrupt.clone()),
            placement: PayloadPlacement::default(),
            staging: Staging::new(1),
            waiting: options.waiting,
            clock: IkpClock::start(),
            last_check: Instant(0),
            refused: RefusedIkpPackets::default(),
        })
    }

    /// The address at which it receives.
    ///
    /// # Errors
    /// [`IkpTransferError::Io`].
    pub fn local(&self) -> Result<SocketAddr, IkpTransferError> {
        self.carrier
            .local()
            .map_err(|error| IkpTransferError::Io("getting the local address", error))
    }

    /// Counters of refused packets.
    #[must_use]
    pub const fn refused(&self) -> RefusedIkpPackets {
        self.refused
    }

    /// Number of known clients.
    #[must_use]
    pub fn clients(&self) -> usize {
        self.table.entries.len()
    }

    /// Takes the message that has waited longest; `None` when none waits.
    pub(super) fn next(&mut self) -> Option<Ticket> {
        while let Some(entry) = self.queue.pop_front() {
            let known = &mut self.table.entries[entry];
            if let Some(transaction) = known
                .machine
                .open()
                .filter(|_| std::mem::take(&mut known.waits))
            {
                return Some(Ticket {
                    entry,
                    transaction,
                    address: known.address,
                });
            }
        }
        None
    }

    /// Waits for packets, for at most `most`, and handles them; used outside of any move.
    pub(super) fn pause(&mut self, most: Duration) -> Result<(), IkpTransferError> {
        let wait = self.wait(most)?;
        self.take(None, &mut Posted::once(&mut [], 0), wait)
            .map(|_| ())
    }

    /// How to wait for packets for at most `most`; an error when the call was interrupted.
    fn wait(&mut self, most: Duration) -> Result<CarrierWait, IkpTransferError> {
        if self.out.interrupt.is_some() {
            let now = self.clock.now();
            if now.since(self.last_check) >= INTERRUPT_INTERVAL {
                self.last_check = now;
                self.out.check_interrupt()?;
            }
        }
        let time = time::Duration::from_nanos(most.min(INTERRUPT_INTERVAL).0);
        Ok(match self.waiting {
            _ if time.is_zero() => CarrierWait::No,
            PacketWaiting::Block => CarrierWait::Block(time),
            PacketWaiting::Spin => CarrierWait::Spin(time),
        })
    }

    // --- moves ---

    /// Runs until the move of this request has ended or failed: after that the memory is no longer borrowed.
    pub(super) fn move_on(
        &mut self,
        ticket: Ticket,
        data: &[u8],
        offset: u32,
        posted: &mut Posted<'_>,
    ) -> Result<(), IkpTransferError> {
        let moved = self.try_to_move(ticket, data, offset, posted);
        if moved.is_err() {
            self.table.entries[ticket.entry]
                .machine
                .abandon(ticket.transaction);
        }
        moved
    }

    /// Sends and receives until the move has ended. `data` is what is moved to `offset` of the client's segment; `posted` is where data
    /// moved from the client goes.
    fn try_to_move(
        &mut self,
        ticket: Ticket,
        data: &[u8],
        offset: u32,
        posted: &mut Posted<'_>,
    ) -> Result<(), IkpTransferError> {
        loop {
            let now = self.clock.now();
            let all = self.flush(ticket.entry, now, data, offset)?;
            let machine = &mut self.table.entries[ticket.entry].machine;
            match machine.progress(ticket.transaction) {
                IkpMoveProgress::Done => return Ok(()),
                IkpMoveProgress::Failed => {
                    return Err(IkpTransferError::Silent(machine.options().patience));
                }
                IkpMoveProgress::Gone => return Err(IkpTransferError::Gone),
                IkpMoveProgress::Going => {}
            }
            let until = machine
                .deadline(now)
                .map_or(INTERRUPT_INTERVAL, |(at, _)| at.since(now));
            let wait = self.wait(if all { until } else { Duration::ZERO })?;
            self.take(Some(ticket.entry), posted, wait)?;
        }
    }

    // --- what leaves ---

    /// Sends what the protocol wants to send to a client, at most [`RUNS`] outputs; returns whether that was all.
    pub(super) fn flush(
        &mut self,
        entry: usize,
        now: Instant,
        data: &[u8],
        offset: u32,
    ) -> Result<bool, IkpTransferError> {
        let Self {
            table,
            carrier,
            out,
            refused,
            ..
        } = self;
        let entry = &mut table.entries[entry];
        let most = packets_per_call(carrier, entry.machine.options().packet);
        for _ in 0..RUNS {
            let Some(output) = entry.machine.poll(now, most) else {
                return Ok(true);
            };
            carrier.set_destination(entry.address);
            let sent = match output {
                IkpOutput::Control(header, body) => out.packet(carrier, &header, &body),
                IkpOutput::Message(header) => out.packet(carrier, &header, &entry.reply),
                IkpOutput::Run(run) => {
                    let (from, to) = run_range(&run);
                    out.run(
                        carrier,
                        &run,
                        &data[from - offset as usize..to - offset as usize],
                    )
                }
            };
            match sent {
                // A failure on the way to one client must not stop the service of the others.
                Err(IkpTransferError::Io(..) | IkpTransferError::Nobody) => refused.unsent += 1,
                sent => sent?,
            }
        }
        Ok(false)
    }

    // --- what arrives ---

    /// Receives packets and handles them; returns how many came. `moving` is the client whose data is being moved here: its packets are
    /// received straight into the posted memory.
    fn take(
        &mut self,
        moving: Option<usize>,
        posted: &mut Posted<'_>,
        wait: CarrierWait,
    ) -> Result<usize, IkpTransferError> {
        let machine = moving.map(|entry| &self.table.entries[entry].machine);
        let expected = machine.into_iter().flat_map(|machine| machine.expected());
        self.placement
            .expect_each(posted, expected.map(|(at, bytes)| (u64::from(at), bytes)));
        let packets = match carrier::receive(
            &mut self.carrier,
            HEADER,
            posted.into,
            &self.placement.places,
            wait,
        ) {
            Ok(packets) => packets,
            Err(error) if is_interruption(&error) => return self.out.check_interrupt().map(|()| 0),
            Err(error) => return Err(IkpTransferError::new("receiving", error)),
        };
        if packets == 0 {
            return Ok(0);
        }
        let Some(sender) = self.carrier.sender() else {
            self.refused.strange += packets as u64;
            return Ok(packets);
        };
        let now = self.clock.now();
        for index in 0..packets {
            self.arrive(
                now,
                sender,
                BatchPosition { index, packets },
                moving,
                posted,
            )?;
        }
        Ok(packets)
    }

    /// Handles one packet.
    fn arrive(
        &mut self,
        now: Instant,
        sender: SocketAddr,
        received: BatchPosition,
        moving: Option<usize>,
        posted: &mut Posted<'_>,
    ) -> Result<(), IkpTransferError> {
        let index = received.index;
        let Some(header) = BlastHeader::read(self.carrier.packet(index).head) else {
            self.refused.strange += 1;
            return Ok(());
        };
        let Some(entry) = self.entry(now, sender, &header)? else {
            return Ok(());
        };
        let Self {
            table,
            carrier,
            placement,
            staging,
            queue,
            ..
        } = self;
        let known = &mut table.entries[entry];
        let payload = carrier.packet(index).payload;
        let at = placement.find(payload, index);
        let body = if header.kind == BlastPacketKind::Data {
            &[]
        } else {
            placement.payload(payload, at, posted)
        };
        match known.machine.handle(now, &header, body, payload.length()) {
            IkpServerArrival::Nothing | IkpServerArrival::Refused => {}
            IkpServerArrival::Place(from) if moving == Some(entry) => {
                placement.put(carrier, received, at, u64::from(from), posted, staging);
                return Ok(());
            }
            IkpServerArrival::Place(_) => return Ok(()),
            IkpServerArrival::Message(message) => {
                known.message = Some(message);
                known.body.clear();
                known.body.extend_from_slice(body);
                if !std::mem::replace(&mut known.waits, true) {
                    queue.push_back(entry);
                }
                return Ok(());
            }
        }
        // The loop of the move sends what this client's packet calls for.
        if moving == Some(entry) {
            return Ok(());
        }
        self.flush(entry, now, &[], 0).map(|_| ())
    }

    /// The entry of this packet's sender; a new one if the packet is the first message of a client. `None` when the packet is refused.
    fn entry(
        &mut self,
        now: Instant,
        sender: SocketAddr,
        header: &BlastHeader,
    ) -> Result<Option<usize>, IkpTransferError> {
        if let Some(entry) = self.table.find(sender, header.connection) {
            return Ok(Some(entry));
        }
        if header.kind != BlastPacketKind::Send {
            self.refused.unknown += 1;
            return Ok(None);
        }
        if let Some(entry) = self
            .table
            .entry(now, &self.protocol, sender, header.connection)
        {
            return Ok(Some(entry));
        }
        self.refused.full += 1;
        self.carrier.set_destination(sender);
        match self.out.packet(
            &mut self.carrier,
            &IkpRefusal::header(header),
            &[IkpRefusal::Full as u8],
        ) {
            Err(IkpTransferError::Interrupted) => Err(IkpTransferError::Interrupted),
            _ => Ok(None),
        }
    }
}
