//! One end of a connection of the Host-Host protocol of 1972 (NCP; NIC 8246), which runs over IMPs: a byte stream each way.
//!
//! Each link carries one message at a time: the next may be sent once the IMPs have answered with an RFNM (Request For Next Message).
//! Data may be sent only as far as the other end has allocated. With several links, as many messages are under way at once, each with
//! its position in the stream; the protocol of the time had one link per connection, and NETSPD used four (BBN 2499, table 6B).
//!
//! Simplifications: a connection opens with one message each way instead of RTS and STR by way of a known socket; it is bidirectional;
//! control messages wait for one another within a connection, not within a pair of hosts. A message that the IMPs lost is sent again
//! after half a second, which was left to each host.

use crate::papers::imp::packet::{FULL_MESSAGE_BITS, ImpDeliveryFailure};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use stackline_core::time::{Duration, Instant};

/// Bits between the leader and the data of a message: byte size and byte count (NIC 8246).
pub const HEADER_BITS: u32 = 40;
/// The most bytes of data in a message.
pub const MESSAGE_BYTES: u32 = (FULL_MESSAGE_BITS - HEADER_BITS) / 8;
/// Bytes of a command on the control link: as long as RTS and STR, the longest.
const COMMAND_BYTES: u32 = 10;
/// A message that was not delivered is sent again after this time.
const AGAIN: Duration = Duration(500_000_000);
/// A connection is given up after this time without any delivery, if the IMPs report that the peer is dead.
const PATIENCE: Duration = Duration(120_000_000_000);

/// The options of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NcpOptions {
    /// Links, each with one message at a time.
    pub links: u16,
    /// Bytes that a receiver allocates at first; what is read is allocated again.
    pub allocate: u64,
    /// Size of the send buffer: undelivered bytes that it can hold.
    pub send_buffer: u64,
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NcpMessageKind {
    /// A connection is asked for, or agreed to (RTS, STR).
    Open,
    /// Data.
    Data,
    /// Allocation: more may be sent (ALL).
    Allocate,
    /// Nothing more is sent (CLS).
    Close,
    /// The connection is given up, whatever is under way.
    Reset,
}

/// A message between two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NcpMessage {
    /// Its kind.
    pub kind: NcpMessageKind,
    /// The link: 0 for control.
    pub link: u16,
    /// A stream position: in `Data` where its data begins, in `Close` where the stream ends, in `Open` and `Allocate` how far the other
    /// end may send.
    pub place: u64,
    /// Bytes of data.
    pub bytes: u32,
}

impl NcpMessage {
    /// Its length on its host's interface, behind the leader, bits.
    #[must_use]
    pub const fn bits(&self) -> u32 {
        HEADER_BITS
            + 8 * if matches!(self.kind, NcpMessageKind::Data) {
                self.bytes
            } else {
                COMMAND_BYTES
            }
    }
}

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NcpState {
    /// It waits for the other end to agree.
    Opening,
    /// It is open.
    Open,
    /// Both ends have closed it, and everything was delivered.
    Over,
    /// It was refused or given up.
    Broken,
}

/// The result of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NcpReceived {
    /// This many bytes.
    Bytes(u64),
    /// Nothing yet.
    Nothing,
    /// The other end sends no more.
    End,
    /// The connection was given up.
    Broken,
}

/// A link: free, or with a message that is under way or waits to be sent again.
#[derive(Clone, Copy, Debug, Default)]
struct NcpLink {
    /// The message, and when it was sent last.
    message: Option<(NcpMessage, Instant)>,
    /// When the message is to be sent again, if the IMPs have lost it.
    again: Option<Instant>,
}

/// Counters of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NcpCounters {
    /// Messages that were sent again.
    pub repeated: u64,
    /// Bytes of own data that were delivered.
    pub delivered: u64,
    /// Bytes of the peer's data that arrived in order.
    pub received: u64,
    /// The smoothed time from a message to its RFNM.
    pub round_trip: Duration,
}

/// One end of a connection.
#[derive(Debug)]
pub struct NcpConnection {
    options: NcpOptions,
    state: NcpState,
    /// The control link 0, then the links for data.
    links: Vec<NcpLink>,
    /// Control messages that wait for the control link.
    commands: Vec<NcpMessage>,
    /// Own stream: bytes taken from the application.
    taken: u64,
    /// Own stream: bytes sent at least once.
    sent: u64,
    /// Own stream: the position up to which the peer has allocated.
    allowed: u64,
    is_closing: bool,
    close_sent: bool,
    close_delivered: bool,
    /// Peer's stream: bytes that arrived in order.
    came: u64,
    /// Peer's stream: data that arrived after a gap, by position, with its length in bytes.
    beyond: BTreeMap<u64, u32>,
    /// Peer's stream: bytes that were read.
    read: u64,
    /// Peer's stream: the position up to which this end has allocated.
    granted: u64,
    /// Peer's stream: the position of its end, once the peer has closed.
    ends_at: Option<u64>,
    /// When the last message was delivered, or the first was sent: silence is measured from here.
    silent_since: Option<Instant>,
    /// Why the peer is dead, if the connection was given up for that.
    broken_by: Option<ImpDeliveryFailure>,
    /// Why the IMPs did not deliver the last message that failed.
    last_failure: Option<ImpDeliveryFailure>,
    /// What holds unsent data up, and since when.
    held: Option<NcpStallReason>,
    held_since: Instant,
    /// How long data was held up before: by the allocation, and by links.
    waited: (Duration, Duration),
    counts: NcpCounters,
}

/// Why data that was handed over is not sent yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NcpStallReason {
    /// The other end has allocated no more.
    Allocation,
    /// Every link waits for its RFNM.
    Links,
}

impl NcpConnection {
    /// The end that asks for the connection.
    #[must_use]
    pub fn connect(options: NcpOptions, now: Instant) -> Self {
        let mut new = Self::new(options, now);
        new.open();
        new
    }

    /// The end that is asked: it opens when the other end's message arrives.
    #[must_use]
    pub fn listen(options: NcpOptions, now: Instant) -> Self {
        Self::new(options, now)
    }

    fn new(options: NcpOptions, now: Instant) -> Self {
        // Link 0 carries the commands.
        let links = alloc::vec![NcpLink::default(); usize::from(options.links.max(1)) + 1];
        Self {
            options,
            state: NcpState::Opening,
            links,
            commands: Vec::new(),
            taken: 0,
            sent: 0,
            allowed: 0,
            is_closing: false,
            close_sent: false,
            close_delivered: false,
            came: 0,
            beyond: BTreeMap::new(),
            read: 0,
            granted: 0,
            ends_at: None,
            silent_since: None,
            broken_by: None,
            last_failure: None,
            held: None,
            held_since: now,
            waited: (Duration::ZERO, Duration::ZERO),
            counts: NcpCounters::default(),
        }
    }

    /// Sends the message that opens the connection and makes the first allocation.
    fn open(&mut self) {
        self.granted = self.options.allocate;
        self.command(NcpMessageKind::Open, self.granted);
    }

    fn command(&mut self, kind: NcpMessageKind, place: u64) {
        self.commands.push(NcpMessage {
            kind,
            link: 0,
            place,
            bytes: 0,
        });
    }

    // --- what is known of it ---

    /// Its state.
    #[must_use]
    pub const fn state(&self) -> NcpState {
        self.state
    }

    /// Why the peer is dead, if the connection was given up for that.
    #[must_use]
    pub const fn broken_by(&self) -> Option<ImpDeliveryFailure> {
        self.broken_by
    }

    /// Why the IMPs did not deliver the last message that failed; it may have been delivered since.
    #[must_use]
    pub const fn last_failure(&self) -> Option<ImpDeliveryFailure> {
        self.last_failure
    }

    /// Its options.
    #[must_use]
    pub const fn options(&self) -> &NcpOptions {
        &self.options
    }

    /// Its counters.
    #[must_use]
    pub const fn counts(&self) -> &NcpCounters {
        &self.counts
    }

    /// How long data was held up until now: by the allocation, and by links that wait for their RFNM.
    #[must_use]
    pub fn waited(&self, now: Instant) -> (Duration, Duration) {
        let (allocation, links) = self.waited;
        let open = now.since(self.held_since);
        match self.held {
            Some(NcpStallReason::Allocation) => (allocation + open, links),
            Some(NcpStallReason::Links) => (allocation, links + open),
            None => self.waited,
        }
    }

    /// Whether there is something to read: bytes, or that no more come.
    #[must_use]
    pub fn readable(&self) -> bool {
        self.read < self.came || self.ends_at == Some(self.came)
    }

    /// Bytes handed over and not delivered; those of them that were not sent yet; bytes that arrived and were not read.
    #[must_use]
    pub const fn waiting(&self) -> (u64, u64, u64) {
        (
            self.taken - self.counts.delivered,
            self.taken - self.sent,
            self.came - self.read,
        )
    }

    // --- the application ---

    /// Takes up to `bytes` bytes to send and returns how many fitted into the send buffer; `None` when it is broken or closed.
    pub fn send(&mut self, bytes: u64) -> Option<u64> {
        if self.state == NcpState::Broken || self.is_closing {
            return None;
        }
        let room = self
            .options
            .send_buffer
            .saturating_sub(self.taken - self.counts.delivered);
        let done = bytes.min(room);
        self.taken += done;
        Some(done)
    }

    /// Reads at most `most` bytes; what is read is allocated again.
    pub fn receive(&mut self, most: u64) -> NcpReceived {
        let bytes = (self.came - self.read).min(most);
        if bytes == 0 {
            return match (self.state, self.ends_at == Some(self.came)) {
                (_, true) => NcpReceived::End,
                (NcpState::Broken, _) => NcpReceived::Broken,
                _ => NcpReceived::Nothing,
            };
        }
        self.read += bytes;
        // Not after every read: an allocation is a message, which costs as much as one of data.
        let room = self.read + self.options.allocate - self.granted;
        let all_used = self.came >= self.granted;
        if self.ends_at.is_none() && room > 0 && (2 * room >= self.options.allocate || all_used) {
            self.granted += room;
            self.command(NcpMessageKind::Allocate, self.granted);
        }
        NcpReceived::Bytes(bytes)
    }

    /// Closes the own stream once everything has been delivered.
    pub const fn close(&mut self) {
        self.is_closing = true;
    }

    /// Gives the connection up and reports it to the other end.
    pub fn abort(&mut self) {
        if !matches!(self.state, NcpState::Over | NcpState::Broken) {
            self.state = NcpState::Broken;
            self.commands.clear();
            self.command(NcpMessageKind::Reset, 0);
        }
    }

    // --- the IMPs ---

    /// Handles a message of the other end.
    pub fn handle(&mut self, message: &NcpMessage) {
        match message.kind {
            NcpMessageKind::Open => {
                if self.state == NcpState::Opening {
                    self.state = NcpState::Open;
                    if self.granted == 0 {
                        self.open();
                    }
                }
                self.allowed = self.allowed.max(message.place);
            }
            NcpMessageKind::Allocate => self.allowed = self.allowed.max(message.place),
            NcpMessageKind::Data => self.data(message.place, message.bytes),
            NcpMessageKind::Close => {
                self.ends_at = Some(message.place);
                self.look_whether_over();
            }
            NcpMessageKind::Reset => self.state = NcpState::Broken,
        }
    }

    /// Handles data at a stream position; duplicates are ignored.
    fn data(&mut self, place: u64, bytes: u32) {
        if place + u64::from(bytes) <= self.came {
            return;
        }
        self.beyond.insert(place, bytes);
        while let Some((place, bytes)) = self
            .beyond
            .first_key_value()
            .map(|(place, bytes)| (*place, *bytes))
        {
            if place > self.came {
                break;
            }
            self.came = self.came.max(place + u64::from(bytes));
            self.beyond.pop_first();
        }
        self.counts.received = self.came;
    }

    /// The message on a link was delivered (RFNM).
    pub fn answered(&mut self, now: Instant, link: u16) {
        let Some(known) = self.links.get_mut(usize::from(link)) else {
            return;
        };
        let Some((message, since)) = known.message.take() else {
            return;
        };
        known.again = None;
        self.silent_since = Some(now);
        let took = now.since(since);
        let smoothed = self.counts.round_trip;
        self.counts.round_trip = if smoothed == Duration::ZERO {
            took
        } else {
            // The gain of TCP's smoothed round-trip time (RFC 6298, section 2).
            Duration((smoothed.0 * 7 + took.0) / 8)
        };
        match message.kind {
            NcpMessageKind::Data => self.counts.delivered += u64::from(message.bytes),
            NcpMessageKind::Close => {
                self.close_delivered = true;
                self.look_whether_over();
            }
            _ => {}
        }
    }

    /// The message on a link was not delivered: it is sent again, unless the connection is given up.
    pub fn failed(&mut self, now: Instant, link: u16, why: ImpDeliveryFailure) {
        let Some(known) = self.links.get_mut(usize::from(link)) else {
            return;
        };
        let Some((message, _)) = known.message else {
            return;
        };
        let is_dead = matches!(
            why,
            ImpDeliveryFailure::DeadHost | ImpDeliveryFailure::DeadImp
        );
        let since = *self.silent_since.get_or_insert(now);
        self.last_failure = Some(why);
        // A reset is not repeated: this end has given up already.
        if message.kind == NcpMessageKind::Reset || is_dead && now.since(since) >= PATIENCE {
            known.message = None;
            self.state = NcpState::Broken;
            self.broken_by = is_dead.then_some(why);
            self.commands.clear();
        } else {
            known.again = Some(now + AGAIN);
        }
    }

    /// The connection is over once both ends have closed it.
    fn look_whether_over(&mut self) {
        if self.close_delivered && self.ends_at.is_some() && self.state == NcpState::Open {
            self.state = NcpState::Over;
        }
    }

    // --- time ---

    /// When it has something to send: at once, or when a lost message is due again.
    #[must_use]
    pub fn deadline(&self, now: Instant) -> Option<Instant> {
        if self.next_link().is_some() {
            return Some(now);
        }
        self.links.iter().filter_map(|link| link.again).min()
    }

    /// Bytes that the next data message would carry if the allocation allowed it.
    fn next_bytes(&self) -> u64 {
        (self.taken - self.sent).min(u64::from(MESSAGE_BYTES))
    }

    /// A free link for data, counted from 0 (link 1).
    fn free_link(&self) -> Option<usize> {
        self.links
            .iter()
            .skip(1)
            .position(|link| link.message.is_none())
    }

    /// The next new message that may be sent now: control first, then data, then the close.
    fn next_link(&self) -> Option<NcpMessage> {
        if let Some(command) = self.commands.first()
            && self.links[0].message.is_none()
        {
            return Some(*command);
        }
        if self.state != NcpState::Open {
            return None;
        }
        let (next, room) = (self.next_bytes(), self.allowed.saturating_sub(self.sent));
        // While an RFNM is still to come, do not send a message that the allocation would cut short: it costs as much as a full one.
        let under_way = self.links.iter().skip(1).any(|link| link.message.is_some());
        let bytes = if room < next && under_way {
            0
        } else {
            next.min(room)
        };
        if let Some(link) = self.free_link().filter(|_| bytes > 0) {
            return Some(NcpMessage {
                kind: NcpMessageKind::Data,
                link: link as u16 + 1,
                place: self.sent,
                bytes: bytes as u32,
            });
        }
        let all_delivered = self.counts.delivered == self.taken;
        let closes =
            self.is_closing && !self.close_sent && all_delivered && self.links[0].message.is_none();
        closes.then_some(NcpMessage {
            kind: NcpMessageKind::Close,
            link: 0,
            place: self.taken,
            bytes: 0,
        })
    }

    /// The next message to be sent now; also accounts for what holds data up.
    pub fn poll(&mut self, now: Instant) -> Option<NcpMessage> {
        let next = self.next(now);
        // Still with the old reason, which held until now.
        self.waited = self.waited(now);
        self.held_since = now;
        self.held = match self.taken > self.sent && self.state == NcpState::Open {
            true if self.sent >= self.allowed => Some(NcpStallReason::Allocation),
            true if self.free_link().is_some() => Some(NcpStallReason::Allocation),
            true => Some(NcpStallReason::Links),
            false => None,
        };
        next
    }

    /// The next message to be sent now: a lost one that is due again, or a new one.
    fn next(&mut self, now: Instant) -> Option<NcpMessage> {
        if let Some(again) = self
            .links
            .iter_mut()
            .find(|link| link.again.is_some_and(|at| at <= now))
        {
            again.again = None;
            if let Some((message, since)) = &mut again.message {
                self.counts.repeated += 1;
                *since = now;
                return Some(*message);
            }
        }
        let message = self.next_link()?;
        match message.kind {
            NcpMessageKind::Data => self.sent += u64::from(message.bytes),
            NcpMessageKind::Close => self.close_sent = true,
            _ => drop(self.commands.remove(0)),
        }
        self.links[usize::from(message.link)].message = Some((message, now));
        self.silent_since.get_or_insert(now);
        Some(message)
    }
}

#[cfg(test)]
mod tests;
