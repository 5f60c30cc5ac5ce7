//! The sending side: one message at a time, blocked until the reply.

use super::error::Error;
use super::options::{Options, Protocol};
use super::output::{Clock, INTERRUPT_INTERVAL, Out, is_interruption, part, train};
use crate::carrier::{self, Carrier, Wait};
use crate::memory::{Posted, Staging};
use crate::options::Waiting;
use crate::placement::Placement;
use crate::udp::Udp;
use ring::rand::{SecureRandom, SystemRandom};
use stackline_core::time::{Duration, Instant};
use stackline_proto::blast::interval::RttEstimator;
use stackline_proto::blast::{HEADER, Header, Interval, Kind};
use stackline_proto::ikp::client::{Arrival, Cause, Counters, Failure, State};
use stackline_proto::ikp::{self, Grants, Output};
use std::fmt;
use std::net::SocketAddr;
use std::time;

/// Where intervals adapt, a message is not repeated before this: the least that a socket's own timeout can express, so
/// that an answered send needs no system call but one send and one receive.
const LEAST: Duration = Duration(12_000_000);

/// What a server may do with the client's memory until it replies.
#[derive(Debug, Default)]
pub struct Segments<'a> {
    /// What it may read.
    pub readable: &'a [u8],
    /// What it may write. Bytes that it does not write are undefined afterwards.
    pub writable: &'a mut [u8],
}

impl<'a> Segments<'a> {
    /// Nothing.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// It may read this.
    #[must_use]
    pub fn readable(readable: &'a [u8]) -> Self {
        Self {
            readable,
            writable: &mut [],
        }
    }

    /// It may write here.
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
/// use stackline_transfer::ikp::{Client, Options, Segments};
///
/// let mut client = Client::connect("10.0.0.5:7000".parse()?, &Options::v())?;
/// let mut reply = [0; 32];
/// let bytes = client.send(b"store this", Segments::readable(&[1; 100_000]), &mut reply)?;
/// println!("{} bytes of reply", bytes);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Client<C: Carrier = Udp> {
    machine: ikp::Client,
    carrier: C,
    out: Out,
    placement: Placement,
    staging: Staging,
    /// A message and the data that travels with it.
    scratch: Vec<u8>,
    waiting: Waiting,
    clock: Clock,
    last_check: Instant,
}

impl Client<Udp> {
    /// A client of the server at this address. Nothing is sent: whether there is one shows with the first message.
    ///
    /// # Errors
    /// [`Error::Packet`], and [`Error::Io`] with what the kernel says of the socket or the route.
    pub fn connect(server: SocketAddr, options: &Options) -> Result<Self, Error> {
        let carrier =
            Udp::connect(server, options.udp).map_err(|error| Error::of("connecting", error))?;
        Self::over(carrier, options)
    }
}

impl<C: Carrier> Client<C> {
    /// A client over a carrier at whose other end a server is.
    ///
    /// # Errors
    /// [`Error::Packet`] when the carrier does not carry packets as long as the options ask for; [`Error::Io`] when there are
    /// no random numbers to be had.
    pub fn over(carrier: C, options: &Options) -> Result<Self, Error> {
        let protocol = options.fitted(carrier.facts())?;
        let mut random = [0; 8];
        let none = |_| {
            Error::Io(
                "drawing random numbers",
                std::io::Error::other("the system has none"),
            )
        };
        SystemRandom::new().fill(&mut random).map_err(none)?;
        let number = u64::from_le_bytes(random);
        Ok(Self {
            machine: ikp::Client::new(&protocol, number as u32, (number >> 32) as u32),
            carrier,
            out: Out::new(options.interrupt.clone()),
            placement: Placement::default(),
            staging: Staging::new(1),
            scratch: Vec::new(),
            waiting: options.waiting,
            clock: Clock::start(),
            last_check: Instant(0),
        })
    }

    /// Sends a message and waits for its reply, which goes to `reply`; returns the reply's length in bytes. Until then the
    /// server may read and write the segments.
    ///
    /// # Errors
    /// [`Error::Long`] when the message or a segment is too long: nothing has been sent then. [`Error::Nobody`],
    /// [`Error::Silent`], [`Error::Refused`] and [`Error::Interrupted`]: there was no reply. [`Error::Reply`]: there was, and
    /// `reply` is too short for it. [`Error::Io`]: what the kernel says.
    pub fn send(
        &mut self,
        message: &[u8],
        segments: Segments<'_>,
        reply: &mut [u8],
    ) -> Result<usize, Error> {
        let bytes = |segment: &[u8]| {
            u32::try_from(segment.len()).map_err(|_| Error::Long {
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
    pub const fn counters(&self) -> Counters {
        self.machine.counters()
    }

    /// What of the protocol's options holds.
    #[must_use]
    pub const fn options(&self) -> &Protocol {
        self.machine.options()
    }

    /// Its estimate of round trips.
    #[must_use]
    pub const fn rtt(&self) -> &RttEstimator {
        self.machine.rtt()
    }

    /// The carrier underneath.
    #[must_use]
    pub const fn carrier(&self) -> &C {
        &self.carrier
    }

    fn exchange(
        &mut self,
        mut now: Instant,
        message: &[u8],
        segments: Segments<'_>,
        reply: &mut [u8],
    ) -> Result<usize, Error> {
        let Segments { readable, writable } = segments;
        let many = writable.len() > self.machine.options().packet as usize;
        self.carrier
            .expect_many(many)
            .map_err(|error| Error::of("receiving", error))?;
        let mut posted = Posted::once(writable, 0);
        loop {
            self.flush(now, message, readable)?;
            if let State::Failed(failure) = self.machine.state() {
                return Err(match failure {
                    Failure::Silent => Error::Silent(self.machine.options().patience),
                    Failure::Refused(refusal) => Error::Refused(refusal),
                });
            }
            let wait = self.wait(now)?;
            if let Some(bytes) = self.take(&mut posted, reply, wait)? {
                return Ok(bytes);
            }
            now = self.clock.now();
        }
    }

    fn flush(&mut self, now: Instant, message: &[u8], readable: &[u8]) -> Result<(), Error> {
        let most = train(&self.carrier, self.machine.options().packet);
        while let Some(output) = self.machine.poll(now, most) {
            match output {
                Output::Control(header, body) => {
                    self.out.packet(&mut self.carrier, &header, &body)?
                }
                Output::Run(run) => {
                    let (from, to) = part(&run);
                    self.out.run(&mut self.carrier, &run, &readable[from..to])?;
                }
                Output::Message(header) => {
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

    /// How long to wait for packets.
    fn wait(&mut self, now: Instant) -> Result<Wait, Error> {
        if now.since(self.last_check) >= INTERRUPT_INTERVAL {
            self.last_check = now;
            self.out.check_interrupt()?;
        }
        let (at, cause) = self.machine.deadline(now).unwrap_or((now, Cause::Send));
        let adapts = matches!(self.machine.options().interval, Interval::Adaptive);
        let least = if cause == Cause::Send && adapts {
            LEAST
        } else {
            Duration::ZERO
        };
        let time = time::Duration::from_nanos(at.since(now).max(least).min(INTERRUPT_INTERVAL).0);
        Ok(match self.waiting {
            _ if time.is_zero() => Wait::No,
            Waiting::Block => Wait::Block(time),
            Waiting::Spin => Wait::Spin(time),
        })
    }

    /// Takes what comes; the length of the reply when it is among it.
    fn take(
        &mut self,
        posted: &mut Posted<'_>,
        reply: &mut [u8],
        wait: Wait,
    ) -> Result<Option<usize>, Error> {
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
            Err(error) => return Err(Error::of("receiving", error)),
        };
        let now = self.clock.now();
        for index in 0..packets {
            if let Some(bytes) = self.arrive(now, (index, packets), posted, reply)? {
                return Ok(Some(bytes));
            }
        }
        Ok(None)
    }

    fn arrive(
        &mut self,
        now: Instant,
        (index, packets): (usize, usize),
        posted: &mut Posted<'_>,
        reply: &mut [u8],
    ) -> Result<Option<usize>, Error> {
        let Self {
            machine,
            carrier,
            placement,
            staging,
            scratch,
            ..
        } = self;
        let packet = carrier.packet(index);
        let Some(header) = Header::read(packet.head) else {
            return Ok(None);
        };
        let at = placement.find(packet.payload, index);
        let body = if header.kind == Kind::Data {
            &[]
        } else {
            placement.payload(packet.payload, at, posted)
        };
        match machine.handle(now, &header, body, packet.payload.length()) {
            Arrival::Nothing | Arrival::Refused => Ok(None),
            Arrival::Place(offset) => {
                placement.put(
                    carrier,
                    (index, packets),
                    at,
                    u64::from(offset),
                    posted,
                    staging,
                );
                Ok(None)
            }
            Arrival::Reply {
                message,
                offset,
                data,
            } => {
                let (said, bytes) = body.split_at(message as usize);
                if let Some(place) = reply.get_mut(..said.len()) {
                    place.copy_from_slice(said);
                }
                if data > 0 {
                    // It may itself be where it is copied to.
                    scratch.clear();
                    scratch.extend_from_slice(bytes);
                    posted.into[offset as usize..][..scratch.len()].copy_from_slice(scratch);
                }
                let bytes = message as usize;
                if bytes <= reply.len() {
                    Ok(Some(bytes))
                } else {
                    Err(Error::Reply { bytes })
                }
            }
        }
    }
}

impl<C: Carrier> fmt::Debug for Client<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("state", &self.machine.state())
            .field("seen", &self.counters())
            .finish_non_exhaustive()
    }
}
