//! A channel: a reliable stream of bytes each way between two ends, for a thread that blocks.

use crate::carrier::{self, PacketCarrier};
use crate::drive::{BEGIN, Driver, Dropped};
use crate::error::Error;
use crate::listener_memory::Life;
use crate::operation::ChannelOperation;
use crate::options::BlastChannelOptions;
use crate::seal::SealSide;
use crate::stream_memory::{Posted, TAIL};
use crate::udp::Udp;
use ring::rand::{SecureRandom, SystemRandom};
use stackline_proto::blast::{self, BlastConnection, BlastHeader, BlastState};
use std::fmt;
use std::net::SocketAddr;

/// One end of a connection that carries a stream of bytes each way.
///
/// [`BlastChannel::send`] returns when the other end has everything; data goes out of the caller's memory and, if the other
/// end is in [`BlastChannel::receive_into`], straight into its caller's. What arrives while no receive is in progress waits in
/// memory of the channel's own, at most as much as was granted (`buffer` of the options); beyond that the peer's sends
/// wait.
///
/// A channel has no thread of its own, so nothing happens between two calls: a peer that sends meanwhile waits, and gives up after its
/// patience. A dropped channel closes. A channel that is dropped after it failed, or in the middle of an operation, notifies the peer
/// once, and the peer's operation ends with [`Error::Closed`].
///
/// ```
/// use stackline_transfer::{BlastChannel, BlastChannelListener, BlastChannelOptions};
///
/// let options = BlastChannelOptions::default();
/// let listener = BlastChannelListener::bind("127.0.0.1:0".parse()?, &options)?;
/// let address = listener.local()?;
/// let server = std::thread::spawn(move || {
///     let mut channel = listener.accept()?;
///     let mut request = [0; 5];
///     channel.receive_into(&mut request)?;
///     channel.send(&request)?;
///     channel.close()
/// });
/// let mut channel = BlastChannel::connect(address, &options)?;
/// channel.send(b"hello")?;
/// let mut reply = [0; 5];
/// channel.receive_into(&mut reply)?;
/// assert_eq!(&reply, b"hello");
/// channel.close()?;
/// server.join().expect("no panic")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct BlastChannel<C: PacketCarrier = Udp> {
    driver: Driver<C>,
    /// By this a listener sees whether the channel still lives; it is dropped after the socket.
    life: Option<Life>,
    /// Stream position of the end of the data that the application has sent.
    sent: u64,
    /// Stream position of the end of the data that the application has received.
    taken: u64,
    /// Whether an operation failed, or was left in the middle: the channel is then of no use.
    broken: bool,
}

/// Facts about a channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlastChannelFacts {
    /// Counts of the protocol's state machine: packets, retransmissions, timeouts, round trips.
    pub connection: blast::BlastFacts,
    /// What the carrier can do.
    pub carrier: carrier::CarrierFacts,
    /// What the carrier counted.
    pub counters: carrier::CarrierCounters,
    /// Packets that were dropped.
    pub dropped: Dropped,
    /// Bytes of data that were moved because they came where they were not expected.
    pub moved: u64,
}

impl BlastChannel<Udp> {
    /// Connects to a listener over UDP.
    ///
    /// # Errors
    /// [`Error::Gone`] when nobody listens there, [`Error::Silent`] when nobody answers within the patience of the options,
    /// [`Error::Refused`] when the terms do not agree, and what the kernel says.
    pub fn connect(peer: SocketAddr, options: &BlastChannelOptions) -> Result<Self, Error> {
        let carrier =
            Udp::connect(peer, options.udp).map_err(|error| Error::new("connecting", error))?;
        Self::connect_over(carrier, options)
    }
}

impl<C: PacketCarrier> BlastChannel<C> {
    /// Opens a connection over a carrier to the peer at its other end.
    ///
    /// # Errors
    /// As [`BlastChannel::connect`].
    pub fn connect_over(carrier: C, options: &BlastChannelOptions) -> Result<Self, Error> {
        let machine = options.fitted(carrier.facts())?;
        let nonce = random()?;
        let number = options
            .number
            .map_or_else(|| random().map(u32::from_le_bytes), Ok)?;
        let connection = BlastConnection::connect(BEGIN, &machine, options.shown(), nonce, number);
        let mut channel = Self::new(Driver::new(
            carrier,
            options,
            connection,
            SealSide::Initiator,
            nonce,
        ));
        channel.opened()?;
        Ok(channel)
    }

    /// Waits for the peer at the other end of a carrier to open a connection.
    ///
    /// # Errors
    /// [`Error::Interrupted`], and what the carrier says. It waits without a bound.
    pub fn answer(carrier: C, options: &BlastChannelOptions) -> Result<Self, Error> {
        let mut channel = Self::listening(carrier, options)?;
        channel.opened()?;
        Ok(channel)
    }

    /// Like [`BlastChannel::answer`], for a peer whose first packet a listener has read: that packet's header and body are given.
    pub(crate) fn answer_to(
        carrier: C,
        options: &BlastChannelOptions,
        header: &BlastHeader,
        body: &[u8],
    ) -> Result<Self, Error> {
        let mut channel = Self::listening(carrier, options)?;
        channel.driver.inject(header, body);
        // The refusal of parameters that do not agree is sent before the channel is dropped.
        let work = channel.idle();
        let now = channel.driver.now();
        channel.driver.flush(now, &work)?;
        match channel.driver.connection.state() {
            BlastState::Open => Ok(channel),
            _ => Err(Error::Refused(blast::negotiation::BlastRefusal::Parameters)),
        }
    }

    /// A channel that waits for a peer to open a connection.
    fn listening(carrier: C, options: &BlastChannelOptions) -> Result<Self, Error> {
        let machine = options.fitted(carrier.facts())?;
        let nonce = random()?;
        let connection = BlastConnection::listen(&machine, options.shown(), nonce);
        Ok(Self::new(Driver::new(
            carrier,
            options,
            connection,
            SealSide::Responder,
            nonce,
        )))
    }

    const fn new(driver: Driver<C>) -> Self {
        Self {
            driver,
            life: None,
            sent: 0,
            taken: 0,
            broken: false,
        }
    }

    /// The same channel, holding `life`, by which a listener notices its end.
    pub(crate) fn living(mut self, life: Life) -> Self {
        self.life = Some(life);
        self
    }

    /// An operation with nothing to send and no memory to receive into.
    fn idle(&self) -> ChannelOperation<'static> {
        ChannelOperation {
            data: &[],
            from: self.sent,
            round: 0,
            posted: Posted::once(&mut [], self.taken),
        }
    }

    /// Waits until the connection is open.
    fn opened(&mut self) -> Result<(), Error> {
        let mut work = self.idle();
        self.driver.drive(&mut work, |connection| {
            connection.state() == BlastState::Open
        })?;
        if self.driver.connection.state() == BlastState::Open {
            Ok(())
        } else {
            Err(Error::Closed)
        }
    }

    /// Sends bytes and waits until the peer has all of them. If `data` is empty, an empty blast is sent, and its acknowledgement awaited.
    ///
    /// # Errors
    /// [`Error::Gone`] or, after the patience of the options, [`Error::Silent`] when the peer is dead; [`Error::Closed`] when
    /// it closed the channel first. The channel is of no use afterwards.
    pub fn send(&mut self, data: &[u8]) -> Result<(), Error> {
        self.exchange(data, &mut []).map(|_| ())
    }

    /// Fills memory with the next bytes of the peer's stream and returns their number: fewer only where the stream
    /// ends, because the peer has finished or closed.
    ///
    /// # Errors
    /// [`Error::Gone`] or [`Error::Silent`] when the peer is dead, [`Error::Closed`] when it gave up. The channel is of no use
    /// afterwards.
    pub fn receive_into(&mut self, into: &mut [u8]) -> Result<usize, Error> {
        self.broken()?;
        let end = self.taken + into.len() as u64;
        let done = move |connection: &BlastConnection| has(connection, end);
        self.work(&[], into, done)
    }

    /// Sends and receives at once, so that two ends that send to each other need no room for what comes meanwhile. Returns the number of
    /// bytes received.
    ///
    /// # Errors
    /// As [`BlastChannel::send`] and [`BlastChannel::receive_into`].
    pub fn exchange(&mut self, data: &[u8], into: &mut [u8]) -> Result<usize, Error> {
        self.broken()?;
        let end = self.taken + into.len() as u64;
        self.driver.connection.send(data.len() as u64);
        let done = move |connection: &BlastConnection| {
            connection.sender().is_idle() && has(connection, end)
        };
        let got = self.work(data, into, done)?;
        self.sent += data.len() as u64;
        self.acknowledged()?;
        Ok(got)
    }

    /// [`Error::Closed`] unless the peer has acknowledged everything: then it closed the channel before, and the channel is of no use.
    fn acknowledged(&mut self) -> Result<(), Error> {
        if self.driver.connection.sender().is_idle() {
            return Ok(());
        }
        self.broken = true;
        Err(Error::Closed)
    }

    /// Sends `total` bytes out of memory that is used as a ring, from call to call: it is longer than [`TAIL`], and its
    /// last [`TAIL`] bytes repeat its first ones. Ends early, after whole units of `unit` bytes, once `stop` returns
    /// true; returns how many bytes the peer has.
    ///
    /// # Errors
    /// As [`BlastChannel::send`]; [`Error::Options`] when the memory is too short, and nothing has been sent then.
    pub fn send_round(
        &mut self,
        data: &[u8],
        total: u64,
        unit: u64,
        mut stop: impl FnMut() -> bool,
    ) -> Result<u64, Error> {
        self.broken()?;
        let round = round(data.len())?;
        // Data is given to the machine in steps little longer than what it can cut into blasts at once, because everything that was given
        // has to be sent even after `stop`.
        let size = u64::from(self.options().size);
        let step = size * u64::from(self.options().flight).min((TAIL as u64 / size).max(1));
        let (mut handed, mut last) = (0, false);
        while !last {
            let more = (total - handed).min(step);
            last = more == total - handed || stop();
            let whole = if last {
                whole_units(handed + more, unit, total) - handed
            } else {
                more
            };
            self.driver.connection.send(whole);
            handed += whole;
            let work = ChannelOperation {
                data,
                from: 0,
                round,
                posted: Posted::once(&mut [], self.taken),
            };
            let (idle, low) = (last, step);
            self.run(work, |connection| {
                let sender = connection.sender();
                if idle {
                    sender.is_idle()
                } else {
                    sender.waiting() <= low
                }
            })?;
        }
        self.sent += handed;
        self.acknowledged()?;
        Ok(handed)
    }

    /// Receives the next `bytes` bytes of the peer's stream into memory that is used as a ring, for bytes that are not
    /// read; it is longer than [`TAIL`], and its last [`TAIL`] bytes receive packets that begin just before. Returns
    /// how many came: fewer only where the stream ends.
    ///
    /// # Errors
    /// As [`BlastChannel::receive_into`]; [`Error::Options`] when the memory is too short, and nothing has been taken then.
    pub fn receive_round(&mut self, into: &mut [u8], bytes: u64) -> Result<u64, Error> {
        self.broken()?;
        round(into.len())?;
        if self.options().checked {
            return self.receive_pieces(into, bytes);
        }
        let end = self.taken.saturating_add(bytes);
        let posted = Posted::round(into, self.taken, bytes);
        let work = ChannelOperation {
            data: &[],
            from: self.sent,
            round: 0,
            posted,
        };
        self.run(work, move |connection| has(connection, end))
            .map(|got| got as u64)
    }

    /// Like [`BlastChannel::receive_round`], for a connection with checksums: received bytes are read again to be checked, so they must not
    /// be overwritten before.
    fn receive_pieces(&mut self, into: &mut [u8], bytes: u64) -> Result<u64, Error> {
        let mut got = 0;
        while got < bytes {
            let most = usize::try_from(bytes - got)
                .unwrap_or(usize::MAX)
                .min(into.len());
            let now = self.receive_into(&mut into[..most])?;
            got += now as u64;
            if now < most {
                break;
            }
        }
        Ok(got)
    }

    /// Waits until any data has come; false when the stream ends instead.
    ///
    /// # Errors
    /// As [`BlastChannel::receive_into`].
    pub fn await_data(&mut self) -> Result<bool, Error> {
        self.broken()?;
        let before = self.driver.connection.receiver().counters().packets;
        let taken = self.taken;
        let came = move |connection: &BlastConnection| {
            let receiver = connection.receiver();
            receiver.delivered() > taken || receiver.counters().packets > before
        };
        self.work(&[], &mut [], |connection| {
            came(connection) || connection.receiver().ended()
        })?;
        Ok(came(&self.driver.connection) && !self.is_over())
    }

    /// Whether the peer's stream has ended and everything of it was taken.
    fn is_over(&self) -> bool {
        let receiver = self.driver.connection.receiver();
        receiver.ended() && receiver.delivered() == self.taken
    }

    /// Waits until the peer closes; false when it sends data instead.
    ///
    /// # Errors
    /// As [`BlastChannel::receive_into`].
    pub fn await_close(&mut self) -> Result<bool, Error> {
        self.broken()?;
        let taken = self.taken;
        self.work(&[], &mut [], move |connection| {
            connection.receiver().delivered() > taken
        })?;
        Ok(self.driver.connection.state() == BlastState::Closed)
    }

    /// Ends this end's stream, and waits until the peer has received the end.
    ///
    /// # Errors
    /// As [`BlastChannel::send`].
    pub fn finish(&mut self) -> Result<(), Error> {
        self.broken()?;
        self.driver.connection.finish();
        self.work(&[], &mut [], |connection| connection.sender().is_idle())
            .map(|_| ())
    }

    /// Closes the channel and waits for the peer's answer, for a second at most.
    ///
    /// # Errors
    /// An error of the carrier. A peer that is gone, or never answers, is no error here: everything sent had arrived.
    pub fn close(mut self) -> Result<(), Error> {
        self.broken()?;
        let now = self.driver.now();
        self.driver.connection.close(now);
        self.work(&[], &mut [], |connection| {
            connection.state() == BlastState::Closed
        })
        .map(|_| ())
    }

    /// [`Error::Broken`] if an earlier operation failed.
    fn broken(&self) -> Result<(), Error> {
        if self.broken {
            Err(Error::Broken)
        } else {
            Ok(())
        }
    }

    /// Sends `data` and receives into `into` until `done` returns true, or the peer has closed; returns how many bytes were received.
    fn work(
        &mut self,
        data: &[u8],
        into: &mut [u8],
        done: impl Fn(&BlastConnection) -> bool,
    ) -> Result<usize, Error> {
        let posted = Posted::once(into, self.taken);
        self.run(
            ChannelOperation {
                data,
                from: self.sent,
                round: data.len(),
                posted,
            },
            done,
        )
    }

    /// Runs an operation until `done` returns true, or the peer has closed; returns how many bytes were received.
    fn run(
        &mut self,
        mut work: ChannelOperation<'_>,
        done: impl Fn(&BlastConnection) -> bool,
    ) -> Result<usize, Error> {
        if let Some(staging) = &self.driver.staging {
            staging.unload(&mut work.posted);
        }
        let delivered = self.driver.connection.receiver().delivered();
        self.driver
            .connection
            .consume(delivered.min(work.posted.end()));
        // The channel counts as broken until the operation succeeds: after a failure it cannot be continued, since the caller's memory, in
        // which data may have arrived, is lost.
        self.broken = true;
        self.driver.drive(&mut work, done)?;
        self.broken = false;
        let end = self
            .driver
            .connection
            .receiver()
            .delivered()
            .min(work.posted.end());
        let got = end.saturating_sub(self.taken);
        self.taken += got;
        Ok(usize::try_from(got).unwrap_or(usize::MAX))
    }

    /// The options in force, which both ends agreed upon.
    #[must_use]
    pub const fn options(&self) -> &blast::BlastOptions {
        self.driver.connection.options()
    }

    /// Whether every packet is encrypted and authenticated.
    #[must_use]
    pub const fn is_sealed(&self) -> bool {
        self.driver.link.seal.is_some()
    }

    /// How many bytes the application has sent, and how many it has received.
    #[must_use]
    pub const fn places(&self) -> (u64, u64) {
        (self.sent, self.taken)
    }

    /// The two ends' addresses, own first, where the carrier has some.
    #[must_use]
    pub fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        self.driver.link.carrier.addresses()
    }

    /// Facts about the channel.
    #[must_use]
    pub fn facts(&self) -> BlastChannelFacts {
        BlastChannelFacts {
            connection: self.driver.connection.facts(),
            carrier: self.driver.link.carrier.facts(),
            counters: self.driver.link.carrier.counters(),
            dropped: self.driver.dropped,
            moved: self.driver.placement.moved,
        }
    }

    /// The carrier of the channel's packets.
    #[must_use]
    pub const fn carrier(&self) -> &C {
        &self.driver.link.carrier
    }
}

/// Whether everything before stream position `end` has arrived, or the stream has ended.
fn has(connection: &BlastConnection, end: u64) -> bool {
    connection.receiver().delivered() >= end || connection.receiver().ended()
}

/// Bytes of a round in `memory` bytes of memory that is used as a ring; an error if there are too few.
fn round(memory: usize) -> Result<usize, Error> {
    let round = memory.checked_sub(TAIL).filter(|round| *round > 0);
    let short =
        || format!("{memory} B of memory is too little for a ring; hint: use more than {TAIL} B");
    round.ok_or_else(|| Error::Options(short()))
}

/// `bytes` rounded up to whole units of `unit` bytes, at most `total`.
fn whole_units(bytes: u64, unit: u64, total: u64) -> u64 {
    bytes
        .checked_next_multiple_of(unit.max(1))
        .map_or(total, |whole| whole.min(total))
}

/// Random bytes.
fn random<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| Error::Io("getting random bytes", std::io::ErrorKind::Other.into()))?;
    Ok(bytes)
}

impl<C: PacketCarrier> Drop for BlastChannel<C> {
    /// Notifies the peer once, without waiting. Otherwise the peer of a broken channel would wait its whole patience:
    /// where a listener has the same address, its host does not report a closed port.
    fn drop(&mut self) {
        if self.broken {
            return self.driver.abort();
        }
        if self.driver.connection.state() != BlastState::Open {
            return;
        }
        let now = self.driver.now();
        self.driver.connection.close(now);
        let work = self.idle();
        let _ = self.driver.flush(now, &work);
    }
}

impl<C: PacketCarrier> fmt::Debug for BlastChannel<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel")
            .field("facts", &self.facts())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
