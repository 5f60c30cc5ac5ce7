//! The client of V's message passing over UDP: sends one message at a time and blocks until the reply.

use super::error::IkpTransferError;
use super::options::{IkpTransferOptions, Protocol};
use super::output::{
    INTERRUPT_INTERVAL, IkpClock, Out, is_interruption, packets_per_call, run_range,
};
use crate::carrier::{self, CarrierWait, PacketCarrier};
use crate::options::PacketWaiting;
use crate::placement::{BatchPosition, PayloadPlacement};
use crate::stream_memory::{Posted, Staging};
use crate::udp::Udp;
use ring::rand::{SecureRandom, SystemRandom};
use stackline_core::time::{Duration, Instant};
use stackline_proto::blast::answer_timeout::RttEstimator;
use stackline_proto::blast::{BlastHeader, BlastPacketKind, BlastTimeout, HEADER};
use stackline_proto::ikp::client::{
    IkpClientArrival, IkpClientCounters, IkpClientPollCause, IkpClientState, IkpFailure,
};
use stackline_proto::ikp::{self, Grants, IkpOutput};
use std::fmt;
use std::net::SocketAddr;
use std::time;

/// If retransmission intervals adapt, a message is not sent again before this time, in ns. It is the least that a socket's own timeout
/// can express, so that an answered send needs no system call but one send and one receive.
const LEAST: Duration = Duration(12_000_000);

/// What a server may do with the client's memory until it replies.
#[derive(Debug, Default)]
pub struct IkpClientSegments<'a> {
    /// Memory that the server may read.
    pub readable: &'a [u8],
    /// Memory that the server may write. Bytes that it does not write are undefined afterwards.
    pub writable: &'a mut [u8],
}

impl<'a> IkpClientSegments<'a> {
    /// The server may neither read nor write.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// The server may read this memory.
    #[must_use]
    pub fn readable(readable: &'a [u8]) -> Self {
        Self {
            readable,
            writable: &mut [],
        }
    }

    /// The server may write this memory.
    #[must_use]
    pub fn writable(writable: &'a mut [u8]) -> Self {
        Self {
            readable: &[],
            writable,
        }
    }
}

/// One client of one server. See [the module](super).
///
/// ```no_run
/// use stackline_transfer::ikp::{IkpUdpClient, IkpTransferOptions, IkpClientSegments};
///
/// let mut client = IkpUdpClient::connect("10.0.0.5:7000".parse()?, &IkpTransferOptions::v())?;
/// let mut reply = [0; 32];
/// let bytes = client.send(b"store this", IkpClientSegments::readable(&[1; 100_000]), &mut reply)?;
/// println!("{} bytes of reply", bytes);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct IkpUdpClient<C: PacketCarrier = Udp> {
    /// The protocol's state machine, which does no input or output itself.
    machine: ikp::IkpClient,
    carrier: C,
    out: Out,
    placement: PayloadPlacement,
    staging: Staging,
    /// A message and the data that travels with it.
    scratch: Vec<u8>,
    waiting: PacketWaiting,
    clock: IkpClock,
    /// When the interrupt was last checked.
    last_check: Instant,
}

impl IkpUdpClient<Udp> {
    /// A client of the server at this address. Nothing is sent: whether there is one shows with the first message.
    ///
    /// # Errors
    /// [`IkpTransferError::Packet`], and [`IkpTransferError::Io`] with what the kernel says of the socket or the route.
    pub fn connect(
        server: SocketAddr,
        options: &IkpTransferOptions,
    ) -> Result<Self, IkpTransferError> {
        let carrier = Udp::connect(server, options.udp)
            .map_err(|error| IkpTransferError::new("connecting", error))?;
        Self::over(carrier, options)
    }
}

impl<C: PacketCarrier> IkpUdpClient<C> {
    /// A client over a carrier at whose other end a server is.
    ///
    /// # Errors
    /// [`IkpTransferError::Packet`] when the carrier does not carry packets as long as the options ask for; [`IkpTransferError::Io`] when
    /// the system gives no random numbers.
    pub fn over(carrier: C, options: &IkpTransferOptions) -> Result<Self, IkpTransferError> {
        let protocol = options.fitted(carrier.facts())?;
        let mut random = [0; 8];
        let none = |_| {
            IkpTransferError::Io(
                "getting random numbers",
                std::io::Error::other("the system has none"),
            )
        };
        SystemRandom::new().fill(&mut random).map_err(none)?;
        let number = u64::from_le_bytes(random);
        Ok(Self {
            machine: ikp::IkpClient::new(&protocol, number as u32, (number >> 32) as u32),
            carrier,
            out: Out::new(options.interrupt.clone()),
            placement: PayloadPlacement::default(),
            staging: Staging::new(1),
            scratch: Vec::new(),
            waiting: options.waiting,
            clock: IkpClock::start(),
            last_check: Instant(0),
        })
    }

    /// Sends a message and waits for its reply, which goes to `reply`; returns the reply's length in bytes. Until then the
    /// server may read and write the segments.
    ///
    /// # Errors
    /// [`IkpTransferError::Long`] when the message or a segment is too long: nothing has been sent then. [`IkpTransferError::Nobody`],
    /// [`IkpTransferError::Silent`], [`IkpTransferError::Refused`] and [`IkpTransferError::Interrupted`]: there was no reply.
    /// [`IkpTransferError::Reply`]: there was one, and `reply` is too short for it. [`IkpTransferError::Io`]: an error of the kernel.
    pub fn send(
        &mut self,
        message: &[u8],
        segments: IkpClientSegments<'_>,
        reply: &mut [u8],
    ) -> Result<usize, IkpTransferError> {
        let bytes = |segment: &[u8]| {
            u32::try_from(segment.len()).map_err(|_| IkpTransferError::Long {
                room: u32::MAX as usize,
            })
        };
        let grants = Grants {
            readable: bytes(segments.readable)?,
            writable: bytes(segments.writable)?,
        };
        let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
        let now = self.clock.now();
        self.machine.send(now, length, grants)?;
        let replied = self.exchange(now, message, segments, reply);
        if replied.is_err() {
            self.machine.abandon();
        }
        replied
    }

    /// Counters of the protocol.
    #[must_use]
    pub const fn counters(&self) -> IkpClientCounters {
        self.machine.counters()
    }

    /// The options of the protocol that are in force.
    #[must_use]
    pub const fn options(&self) -> &Protocol {
        self.machine.options()
    }

    /// The estimate of the round-trip time.
    #[must_use]
    pub const fn rtt(&self) -> &RttEstimator {
        self.machine.rtt()
    }

    /// The carrier underneath.
    #[must_use]
    pub const fn carrier(&self) -> &C {
        &self.carrier
    }

    /// Sends and receives until the reply to the message has come; returns its length in bytes.
    fn exchange(
        &mut self,
        mut now: Instant,
        message: &[u8],
        segments: IkpClientSegments<'_>,
        reply: &mut [u8],
    ) -> Result<usize, IkpTransferError> {
        let IkpClientSegments { readable, writable } = segments;
        let many = writable.len() > self.machine.options().packet as usize;
        self.carrier
            .expect_many(many)
            .map_err(|error| IkpTransferError::new("receiving", error))?;
        let mut posted = Posted::once(writable, 0);
        loop {
            self.flush(now, message, readable)?;
            if let IkpClientState::Failed(failure) = self.machine.state() {
                return Err(match failure {
                    IkpFailure::Silent => IkpTransferError::Silent(self.machine.options().patience),
                    IkpFailure::Refused(refusal) => IkpTransferError::Refused(refusal),
                });
            }
            let wait = self.wait(now)?;
            if let Some(bytes) = self.take(&mut posted, reply, wait)? {
                return Ok(bytes);
            }
            now = self.clock.now();
        }
    }

    /// Sends what the protocol wants to send now.
    fn flush(
        &mut self,
        now: Instant,
        message: &[u8],
        readable: &[u8],
    ) -> Result<(), IkpTransferError> {
        let most = packets_per_call(&self.carrier, self.machine.options().packet);
        while let Some(output) = self.machine.poll(now, most) {
            match output {
                IkpOutput::Control(header, body) => {
                    self.out.packet(&mut self.carrier, &header, &body)?
                }
                IkpOutput::Run(run) => {
                    let (from, to) = run_range(&run);
                    self.out.run(&mut self.carrier, &run, &readable[from..to])?;
                }
                IkpOutput::Message(header) => {
                    let carried = &readable[..self.machine.carried() as usize];
                    let mut payload = message;
                    if !carried.is_empty() {
                        self.scratch.clear();
                        self.scratch.extend_from_slice(message);
                        self.scratch.extend_from_slice(carried);
                        payload = &self.scratch;
                    }
                    self.out.packet(&mut self.carrier, &header, payload)?;
                }
            }
        }
        Ok(())
    }

    /// How long to wait for packets; an error when the call was interrupted.
    fn wait(&mut self, now: Instant) -> Result<CarrierWait, IkpTransferError> {
        if now.since(self.last_check) >= INTERRUPT_INTERVAL {
            self.last_check = now;
            self.out.check_interrupt()?;
        }
        let (at, cause) = self
            .machine
            .deadline(now)
            .unwrap_or((now, IkpClientPollCause::Send));
        let adapts = matches!(self.machine.options().interval, BlastTimeout::Adaptive);
        let least = if cause == IkpClientPollCause::Send && adapts {
            LEAST
        } else {
            Duration::ZERO
        };
        let time = time::Duration::from_nanos(at.since(now).max(least).min(INTERRUPT_INTERVAL).0);
        Ok(match self.waiting {
            _ if time.is_zero() => CarrierWait::No,
            PacketWaiting::Block => CarrierWait::Block(time),
            PacketWaiting::Spin => CarrierWait::Spin(time),
        })
    }

    /// Receives packets and handles them; returns the length of the reply if it is among them.
    fn take(
        &mut self,
        posted: &mut Posted<'_>,
        reply: &mut [u8],
        wait: CarrierWait,
    ) -> Result<Option<usize>, IkpTransferError> {
        let expected = self
            .machine
            .expected()
            .map(|(at, bytes)| (u64::from(at), bytes));
        self.placement.expect_each(posted, expected);
        let packets = match carrier::receive(
            &mut self.carrier,
            HEADER,
            posted.into,
            &self.placement.places,
            wait,
        ) {
            Ok(packets) => packets,
            Err(error) if is_interruption(&error) => {
                return self.out.check_interrupt().map(|()| None);
            }
            Err(error) => return Err(IkpTransferError::new("receiving", error)),
        };
        let now = self.clock.now();
        for index in 0..packets {
            if let Some(bytes) =
                self.arrive(now, BatchPosition { index, packets }, posted, reply)?
            {
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }

    /// Handles one packet; returns the length of the reply if it is one.
    fn arrive(
        &mut self,
        now: Instant,
        received: BatchPosition,
        posted: &mut Posted<'_>,
        reply: &mut [u8],
    ) -> Result<Option<usize>, IkpTransferError> {
        let Self {
            machine,
            carrier,
            placement,
            staging,
            scratch,
            ..
        } = self;
        let packet = carrier.packet(received.index);
        let Some(header) = BlastHeader::read(packet.head) else {
            return Ok(None);
        };
        let at = placement.find(packet.payload, received.index);
        let body = if header.kind == BlastPacketKind::Data {
            &[]
        } else {
            placement.payload(packet.payload, at, posted)
        };
        match machine.handle(now, &header, body, packet.payload.length()) {
            IkpClientArrival::Nothing | IkpClientArrival::Refused => Ok(None),
            IkpClientArrival::Place(offset) => {
                placement.put(carrier, received, at, u64::from(offset), posted, staging);
                Ok(None)
            }
            IkpClientArrival::Reply {
                message,
                offset,
                data,
            } => {
                let (said, bytes) = body.split_at(message as usize);
                if let Some(place) = reply.get_mut(..said.len()) {
                    place.copy_from_slice(said);
                }
                if data > 0 {
                    // Copied by way of `scratch`, because the packet may lie in the memory that its data is copied to.
                    scratch.clear();
                    scratch.extend_from_slice(bytes);
                    posted.into[offset as usize..][..scratch.len()].copy_from_slice(scratch);
                }
                let bytes = message as usize;
                if bytes <= reply.len() {
                    Ok(Some(bytes))
                } else {
                    Err(IkpTransferError::Reply { bytes })
                }
            }
        }
    }
}

impl<C: PacketCarrier> fmt::Debug for IkpUdpClient<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("state", &self.machine.state())
            .field("seen", &self.counters())
            .finish_non_exhaustive()
    }
}
