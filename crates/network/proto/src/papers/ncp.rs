//! One end of a connection of the Host-Host protocol of 1972 (NCP; NIC 8246), which runs over IMPs: a byte stream each way.
//!
//! A message goes on a link, and no other goes on that link before the IMPs have answered it (RFNM). Data goes only as far as the
//! other end has allocated. Whoever has several links sends as many messages at once, each with its place in the stream: the
//! protocol of the time had a connection a link, of which NETSPD used four (BBN 2499, table 6B).
//!
//! What is simplified: a connection opens with one message each way instead of RTS and STR by way of a known socket, both ways
//! share it, and messages of control wait for one another within a connection, not within a pair of hosts. A message that the IMPs
//! lost goes again after half a second, which was left to each host.

use crate::papers::imp::packet::{FULL_MESSAGE_BITS, ImpDeliveryFailure};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use stackline_core::time::{Duration, Instant};

/// What stands before the data of a message behind the leader, bits: byte size and byte count (NIC 8246).
pub const HEADER_BITS: u32 = 40;
/// Most bytes of data of a message.
pub const MESSAGE_BYTES: u32 = (FULL_MESSAGE_BITS - HEADER_BITS) / 8;
/// Bytes of a command on the control link: as long as RTS and STR, the longest.
const COMMAND_BYTES: u32 = 10;
/// A message that was not delivered goes again after this.
const AGAIN: Duration = Duration(500_000_000);
/// After so long without any message delivered the connection is given up.
const PATIENCE: Duration = Duration(120_000_000_000);

/// What is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NcpOptions {
    /// Links, each with one message at a time.
    pub links: u16,
    /// Bytes that a receiver allocates at first, and keeps allocated as its reader takes what comes.
    pub allocate: u64,
    /// Bytes that a sender takes from its application before they are delivered.
    pub send_buffer: u64,
}

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NcpMessageKind {
    /// A connection is asked for, or agreed to (RTS, STR).
    Open,
    /// Data.
    Data,
    /// More may be sent (ALL).
    Allocate,
    /// Nothing more is sent (CLS).
    Close,
    /// The connection is given up, whatever is under way.
    Reset,
}

/// A message between two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NcpMessage {
    /// What it is.
    pub kind: NcpMessageKind,
    /// The link: 0 for control.
    pub link: u16,
    /// Where in the stream its data begins; of `Close` where the stream ends; else how far the other end may send.
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

/// Where a connection is.
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

/// What there was to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NcpReceived {
    /// So many bytes.
    Bytes(u64),
    /// Nothing yet.
    Nothing,
    /// The other end sends no more.
    End,
    /// The connection was given up.
    Broken,
}

/// A link: free, or its message is under way or waits to go again.
#[derive(Clone, Copy, Debug, Default)]
struct NcpLink {
    message: Option<(NcpMessage, Instant)>,
    again: Option<Instant>,
}

/// What it did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NcpCounters {
    /// Messages that went again.
    pub repeated: u64,
    /// Bytes of data delivered, and taken in.
    pub delivered: u64,
    /// See `delivered`.
    pub received: u64,
    /// A smoothed time from a message to its RFNM.
    pub round_trip: Duration,
}

/// One end of a connection.
#[derive(Debug)]
pub struct NcpConnection {
    options: NcpOptions,
    state: NcpState,
    links: Vec<NcpLink>,
    /// Control messages that wait for the control link.
    commands: Vec<NcpMessage>,
    /// The own stream: bytes taken from the application, and sent for the first time; how far it may go.
    taken: u64,
    sent: u64,
    allowed: u64,
    is_closing: bool,
    close_sent: bool,
    close_delivered: bool,
    /// The other's: what came in order, and beyond a gap; what was read; how far it may go; where it ends.
    came: u64,
    beyond: BTreeMap<u64, u32>,
    read: u64,
    granted: u64,
    ends_at: Option<u64>,
    /// Since when nothing was delivered although something was sent.
    silent_since: Option<Instant>,
    /// What the IMPs answered when it was given up for that.
    broken_by: Option<ImpDeliveryFailure>,
    /// What the IMPs said of the last message that did not come through.
    last_failure: Option<ImpDeliveryFailure>,
    /// What has held data up since then, and for how long it did before: the allocation, links.
    held: Option<NcpStallReason>,
    held_since: Instant,
    waited: (Duration, Duration),
    counts: NcpCounters,
}

/// What holds data up that was handed over and not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NcpStallReason {
    /// The other end has allocated no more.
    Allocation,
    /// Every link waits for its RFNM.
    Links,
}

impl NcpConnection {
    /// The end that asks.
    #[must_use]
    pub fn connect(options: NcpOptions, now: Instant) -> Self {
        let mut new = Self::new(options, now);
        new.open();
        new
    }

    /// The end that is asked: it opens when the other's message comes.
    #[must_use]
    pub fn listen(options: NcpOptions, now: Instant) -> Self {
        Self::new(options, now)
    }

    fn new(options: NcpOptions, now: Instant) -> Self {
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

    /// Where it is.
    #[must_use]
    pub const fn state(&self) -> NcpState {
        self.state
    }

    /// What the IMPs answered when it was given up for that.
    #[must_use]
    pub const fn broken_by(&self) -> Option<ImpDeliveryFailure> {
        self.broken_by
    }

    /// What the IMPs said of the last message that did not come through, though it is sent again.
    #[must_use]
    pub const fn last_failure(&self) -> Option<ImpDeliveryFailure> {
        self.last_failure
    }

    /// What is chosen of it.
    #[must_use]
    pub const fn options(&self) -> &NcpOptions {
        &self.options
    }

    /// What it did.
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

    /// Bytes handed over that were not delivered, those of them that may not go yet, bytes that nobody has read.
    #[must_use]
    pub const fn waiting(&self) -> (u64, u64, u64) {
        (
            self.taken - self.counts.delivered,
            self.taken - self.sent,
            self.came - self.read,
        )
    }

    // --- the application ---

    /// Takes so many bytes to send as there is room for; `None` when it is broken or closed.
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

    /// Gives at most so many bytes; what is read is allocated again.
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
        // Not for every byte: a message each would cost as much as the data.
        let room = self.read + self.options.allocate - self.granted;
        let all_used = self.came >= self.granted;
        if self.ends_at.is_none() && room > 0 && (2 * room >= self.options.allocate || all_used) {
            self.granted += room;
            self.command(NcpMessageKind::Allocate, self.granted);
        }
        NcpReceived::Bytes(bytes)
    }

    /// Nothing more is sent.
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

    /// A message of the other end came.
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

    /// It was not.
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
        if message.kind == NcpMessageKind::Reset || is_dead && now.since(since) >= PATIENCE {
            known.message = None;
            self.state = NcpState::Broken;
            self.broken_by = is_dead.then_some(why);
            self.commands.clear();
        } else {
            known.again = Some(now + AGAIN);
        }
    }

    fn look_whether_over(&mut self) {
        if self.close_delivered && self.ends_at.is_some() && self.state == NcpState::Open {
            self.state = NcpState::Over;
        }
    }

    // --- time ---

    /// When it has something to send although nothing happens.
    #[must_use]
    pub fn deadline(&self, now: Instant) -> Option<Instant> {
        if self.next_link().is_some() {
            return Some(now);
        }
        self.links.iter().filter_map(|link| link.again).min()
    }

    /// Bytes of the next message of data, if there were room for it.
    fn next_bytes(&self) -> u64 {
        (self.taken - self.sent).min(u64::from(MESSAGE_BYTES))
    }

    fn free_link(&self) -> Option<usize> {
        self.links
            .iter()
            .skip(1)
            .position(|link| link.message.is_none())
    }

    /// The link of the next message that may go now, and the message.
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
        // What the allocation would cut off waits for more of it as long as an RFNM is to come: fragments cost as much as whole ones.
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

    /// The next message that goes now.
    pub fn poll(&mut self, now: Instant) -> Option<NcpMessage> {
        let next = self.next(now);
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
