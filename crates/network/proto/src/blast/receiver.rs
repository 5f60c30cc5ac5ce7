//! The receiving machine of one direction: it finds the stream position of each packet, answers requests, and grants
//! what its application has room for (Zwaenepoel 1985, sections 2 and 3.2).
//!
//! The machine holds no data. The fields of a packet are checked against what was agreed and granted before they count.

mod answers;

use super::options::{BlastExtent, BlastOptions, BlastStrategy};
use super::reassembly::BlastReassembly;
use super::wire::{ACK_REQUEST, BlastHeader, BlastPacketKind, FIN, LIMIT, is_before};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use answers::{ANSWERS, AnswerKind, BlastPendingAnswer};
use core::ops::Range;
use stackline_core::time::{Duration, Instant};

/// A receiver reports missing packets by itself only after this many times the longest recent gap between two packets.
const GAPS: u64 = 4;

/// What to do with a packet's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlastArrival {
    /// The packet is new: its payload belongs at this stream position.
    Place {
        /// The stream position.
        position: u64,
        /// The blast that is complete with this packet, if the driver has to check it.
        check: Option<Check>,
    },
    /// Do nothing: the packet is control, a duplicate, or too late.
    Nothing,
    /// The packet breaks what was agreed or granted.
    Refused,
}

/// A blast whose checksum the driver has to compare with its sender's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// The blast.
    pub blast: BlastExtent,
    /// The checksum that its sender computed.
    pub wanted: u32,
}

/// Counters of a receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlastReceiverCounters {
    /// Data packets that were new.
    pub packets: u64,
    /// Data packets that had arrived before.
    pub duplicates: u64,
    /// Packets that broke what was agreed or granted.
    pub violations: u64,
    /// Blasts whose check failed.
    pub failed_checks: u64,
    /// Answers that reported missing packets.
    pub refusals: u64,
    /// NAKs sent without a request, because nothing more came.
    pub unsolicited_naks: u64,
}

/// Which stream positions are granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grant {
    /// This many bytes beyond what the application has taken.
    Ahead(u64),
    /// All positions up to here, in order.
    Until(u64),
    /// The positions between these two, in any order.
    Anywhere(u64, u64),
}

/// The receiving machine.
#[derive(Clone, Debug)]
pub struct BlastReceiver {
    options: BlastOptions,
    connection: u32,
    grant: Grant,
    /// The blasts that are arriving, from number `base` on; `None` for one of which nothing has arrived.
    reassemblies: VecDeque<Option<BlastReassembly>>,
    /// The number of them that are not complete.
    open: usize,
    /// The bytes of all of them.
    claimed: u64,
    /// When the last packet of a blast arrived.
    last_received: Instant,
    /// The longest recent time between two packets of a round.
    gap: Option<Duration>,
    /// The number of the first blast that has not been delivered.
    base: u32,
    /// The stream position up to which everything has arrived.
    delivered: u64,
    /// The end of the farthest blast of which something has arrived.
    highest: u64,
    /// The stream position up to which the application has taken the data.
    consumed: u64,
    /// The limit that was last reported to the sender.
    advertised: u64,
    /// The whole stream has arrived.
    ended: bool,
    answers: VecDeque<BlastPendingAnswer>,
    /// The limit is to be reported to the sender.
    send_limit: bool,
    /// Where the next packet is expected: number of the blast and index of the packet.
    cursor: (u32, u32),
    counters: BlastReceiverCounters,
}

impl BlastReceiver {
    /// A receiver that grants the options' buffer.
    #[must_use]
    pub fn new(options: &BlastOptions, connection: u32) -> Self {
        let options = options.fitted();
        Self {
            options,
            connection,
            grant: Grant::Ahead(options.buffer),
            reassemblies: VecDeque::new(),
            open: 0,
            claimed: 0,
            last_received: Instant(0),
            gap: None,
            base: 0,
            delivered: 0,
            highest: 0,
            consumed: 0,
            advertised: options.buffer,
            ended: false,
            answers: VecDeque::new(),
            send_limit: false,
            cursor: (0, 0),
            counters: BlastReceiverCounters::default(),
        }
    }

    /// A receiver of blasts whose positions may lie anywhere in `granted` ([`crate::ikp`]).
    #[must_use]
    pub fn scattered(options: &BlastOptions, connection: u32, granted: Range<u64>) -> Self {
        let grant = Grant::Anywhere(granted.start, granted.end);
        Self {
            grant,
            delivered: granted.start,
            ..Self::new(options, connection)
        }
    }

    /// Grants these positions and no others; blasts that are arriving are given up.
    pub fn grant(&mut self, granted: Range<u64>) {
        self.grant = Grant::Until(granted.end);
        (self.delivered, self.highest) = (granted.start, granted.start);
        self.reassemblies.clear();
        (self.open, self.claimed) = (0, 0);
    }

    // --- the application's side ---

    /// The stream position up to which everything has arrived.
    #[must_use]
    pub const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Notes that the application has taken everything before this position; the grant moves on as far.
    pub fn consume(&mut self, position: u64) {
        self.consumed = self.consumed.max(position.min(self.delivered));
        // A blocked sender gets the new limit once it is worth a packet.
        let worth = u64::from(self.options.size)
            .min(self.options.buffer / 2)
            .max(1);
        let little = self.advertised.saturating_sub(self.delivered) < worth;
        self.send_limit |= little && self.limit().saturating_sub(self.advertised) >= worth;
    }

    /// Whether the peer has ended its stream and everything has arrived.
    #[must_use]
    pub const fn ended(&self) -> bool {
        self.ended
    }

    /// The stream position up to which it grants.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        match self.grant {
            Grant::Ahead(bytes) => self.consumed.saturating_add(bytes),
            Grant::Until(end) | Grant::Anywhere(_, end) => end,
        }
    }

    /// Its counters.
    #[must_use]
    pub const fn counters(&self) -> BlastReceiverCounters {
        self.counters
    }

    /// The stream positions where the next packets probably belong, in order, with their largest sizes: missing packets
    /// after the last arrival, then what follows all known blasts. The driver can receive straight into these places.
    pub fn expected(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        let packet = u64::from(self.options.packet);
        self.expected_rows().flat_map(move |(from, bytes)| {
            let at = move |n: u64| {
                (
                    from.saturating_add(n * packet),
                    // n is below the number of packets, so something is left for it.
                    packet.min(bytes - n * packet) as u32,
                )
            };
            (0..bytes.div_ceil(packet)).map(at)
        })
    }

    /// Like [`Self::expected`], with adjacent packets combined: the position of the first, and the bytes of all.
    pub fn expected_rows(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let packet = self.options.packet;
        let places = if self.open == 0 {
            0
        } else {
            self.reassemblies.len()
        };
        let known = self
            .reassemblies
            .iter()
            .take(places)
            .flatten()
            .filter(|reassembly| !reassembly.complete);
        let (number, index) = self.cursor;
        let missing = known.flat_map(move |reassembly| {
            let ahead = reassembly.blast.number.wrapping_sub(number) as i32;
            let from = match ahead {
                0 => index,
                1.. => 0,
                // The cursor has passed this blast: what it lacks comes later, if at all.
                _ => reassembly.bitmap.bound(),
            };
            let row = move |from: u32| {
                let first = reassembly.bitmap.next(from, false)?;
                Some((
                    first,
                    reassembly
                        .bitmap
                        .next(first, true)
                        .unwrap_or(reassembly.bitmap.bound()),
                ))
            };
            core::iter::successors(row(from), move |(_, end)| row(*end)).map(move |(first, end)| {
                let ((from, _), (last, bytes)) = (
                    reassembly.blast.span(first, packet),
                    reassembly.blast.span(end - 1, packet),
                );
                (from, (last - from).saturating_add(u64::from(bytes)))
            })
        });
        let beyond = self
            .reassemblies
            .iter()
            .rev()
            .flatten()
            .next()
            .map_or(self.delivered, |last| last.blast.end());
        // Positions whose data has arrived already must not be overwritten.
        let limit = if beyond < self.highest {
            0
        } else {
            self.limit()
        };
        missing.chain((beyond < limit).then(|| (beyond, limit - beyond)))
    }

    // --- what arrives ---

    /// Handles a packet of a blast with `payload` bytes behind its header.
    pub fn handle(&mut self, now: Instant, header: &BlastHeader, payload: usize) -> BlastArrival {
        if header.connection != self.connection {
            return BlastArrival::Nothing;
        }
        match header.kind {
            BlastPacketKind::Data => {}
            BlastPacketKind::Probe => {
                self.send_limit = true;
                return BlastArrival::Nothing;
            }
            _ => return BlastArrival::Nothing,
        }
        let ahead = header.blast.wrapping_sub(self.base) as i32;
        if ahead < 0 {
            self.counters.duplicates += 1;
            // The answer may have been lost: its sender needs another.
            self.queue_answer(header, AnswerKind::Complete);
            return BlastArrival::Nothing;
        }
        match self.check_header(now, header, ahead as usize, payload) {
            Some(()) => self.insert(now, header, ahead as usize),
            None => {
                self.counters.violations += 1;
                BlastArrival::Refused
            }
        }
    }

    /// Handles consecutive packets of a blast: `count` full ones, of which the first has this header and none requests
    /// an answer. Returns the first one's position if they are taken together; `None`, with nothing changed, if each
    /// has to be [handled](Self::handle) by itself.
    pub fn handle_row(&mut self, now: Instant, header: &BlastHeader, count: u32) -> Option<u64> {
        let place = header.blast.wrapping_sub(self.base) as usize;
        let packet = self.options.packet;
        let reassembly = self.reassemblies.get_mut(place)?.as_mut()?;
        let blast = BlastExtent {
            number: header.blast,
            start: header.start,
            length: header.length,
            last: header.has(FIN),
        };
        let first = u32::from(header.index);
        let known = header.kind == BlastPacketKind::Data
            && header.connection == self.connection
            && !header.has(ACK_REQUEST)
            && (reassembly.blast, reassembly.round) == (blast, header.round)
            && !self.ended;
        // Packets that complete the blast, or the short last packet, are handled one by one.
        let ends = reassembly.bitmap.count() + count >= reassembly.bitmap.bound()
            || first + count >= reassembly.bitmap.bound();
        if !known || ends || count == 0 || !reassembly.bitmap.put_row(first, count) {
            return None;
        }
        if reassembly.bitmap.count() > count {
            self.gap = Some(gap(self.gap, now - reassembly.last_received));
        }
        reassembly.note_packet(now);
        self.last_received = now;
        self.cursor = (header.blast, first + count);
        self.counters.packets += u64::from(count);
        Some(reassembly.blast.span(first, packet).0)
    }

    /// Checks the header of a data packet against what was agreed, granted and known of its blast; `None` if it is
    /// wrong.
    fn check_header(
        &mut self,
        now: Instant,
        header: &BlastHeader,
        place: usize,
        payload: usize,
    ) -> Option<()> {
        let blast = BlastExtent {
            number: header.blast,
            start: header.start,
            length: header.length,
            last: header.has(FIN),
        };
        let index = u32::from(header.index);
        let fits = place < self.options.flight as usize
            && blast.length <= self.options.size
            && index < blast.packets(self.options.packet)
            && payload == blast.span(index, self.options.packet).1 as usize
            && !self.ended
            && (!blast.last || blast.length == 0);
        let follows = match self.grant {
            Grant::Anywhere(from, _) => blast.start >= from,
            Grant::Ahead(_) | Grant::Until(_) if place == 0 => blast.start == self.delivered,
            Grant::Ahead(_) | Grant::Until(_) => blast.start >= self.delivered,
        };
        if !fits || !follows || blast.end() > self.limit() {
            return None;
        }
        match self.reassemblies.get(place) {
            Some(Some(reassembly)) => (reassembly.blast == blast).then_some(()),
            _ => self.begin(now, blast, header.round, place),
        }
    }

    /// Begins a blast at its first packet. Blasts do not overlap, so all together must not be more than what was
    /// granted.
    fn begin(&mut self, now: Instant, blast: BlastExtent, round: u16, place: usize) -> Option<()> {
        let claimed = self.claimed + u64::from(blast.length);
        let scattered = matches!(self.grant, Grant::Anywhere(..));
        // The blast lies between `delivered` and the limit, so the difference is not negative.
        if !scattered && claimed > self.limit() - self.delivered {
            return None;
        }
        self.highest = self.highest.max(blast.end());
        if self.reassemblies.len() <= place {
            self.reassemblies.resize_with(place + 1, || None);
        }
        self.reassemblies[place] = Some(BlastReassembly::new(
            now,
            blast,
            round,
            blast.packets(self.options.packet),
        ));
        (self.claimed, self.open) = (claimed, self.open + 1);
        Some(())
    }

    fn insert(&mut self, now: Instant, header: &BlastHeader, place: usize) -> BlastArrival {
        let strategy = self.options.strategy;
        let Some(reassembly) = self.reassemblies[place].as_mut() else {
            return BlastArrival::Nothing;
        };
        let index = u32::from(header.index);
        let older = is_before(header.round, reassembly.round);
        let newer = !older && header.round != reassembly.round;
        let forgets = matches!(strategy, BlastStrategy::Full | BlastStrategy::FullNak);
        if older && forgets && !reassembly.complete {
            // The packet is of a transmission that was given up.
            self.counters.duplicates += 1;
            return BlastArrival::Nothing;
        }
        if header.round == reassembly.round && reassembly.bitmap.count() > 0 {
            self.gap = Some(gap(self.gap, now - reassembly.last_received));
        }
        if newer {
            reassembly.round = header.round;
            if forgets && !reassembly.complete {
                reassembly.bitmap.cut(0);
                reassembly.ack_requested = None;
            }
        }
        reassembly.note_packet(now);
        self.last_received = now;
        if header.has(ACK_REQUEST) {
            reassembly.ack_requested = Some(header.round);
            reassembly.check = header.check;
        }
        let new = reassembly.bitmap.put(index);
        self.cursor = (header.blast, index + 1);
        let (position, _) = reassembly.blast.span(index, self.options.packet);
        let whole =
            reassembly.bitmap.all() && reassembly.ack_requested.is_some() && !reassembly.complete;
        let check = (whole && self.options.checked).then_some(Check {
            blast: reassembly.blast,
            wanted: reassembly.check,
        });
        if whole {
            reassembly.complete = true;
            reassembly.unchecked = check.is_some();
            self.open -= 1;
        }
        if new {
            self.counters.packets += 1
        } else {
            self.counters.duplicates += 1
        }
        self.answer(header, place, whole);
        self.deliver();
        if new || check.is_some() {
            BlastArrival::Place { position, check }
        } else {
            BlastArrival::Nothing
        }
    }

    /// Delivers complete blasts to the application, in order.
    fn deliver(&mut self) {
        while let Some(Some(first)) = self.reassemblies.front() {
            let length = u64::from(first.blast.length);
            let follows =
                first.blast.start == self.delivered || matches!(self.grant, Grant::Anywhere(..));
            if !follows {
                // The sender has left out a part of the stream, or has sent it in two blasts.
                self.counters.violations += 1;
                self.open -= usize::from(!first.complete);
                self.claimed -= length;
                self.reassemblies[0] = None;
                return;
            }
            if !first.complete || first.unchecked {
                return;
            }
            self.claimed -= length;
            self.delivered = first.blast.end();
            self.ended |= first.blast.last;
            self.base = self.base.wrapping_add(1);
            self.reassemblies.pop_front();
        }
    }

    /// Takes the driver's verdict on a blast that it had to check; a wrong blast has to be sent again as a whole.
    pub fn checked(&mut self, number: u32, right: bool) {
        let place = number.wrapping_sub(self.base) as usize;
        let Some(Some(reassembly)) = self.reassemblies.get_mut(place) else {
            return;
        };
        if !core::mem::take(&mut reassembly.unchecked) {
            return;
        }
        let round = reassembly.ack_requested.unwrap_or(reassembly.round);
        if right {
            self.push(BlastPendingAnswer {
                number,
                round,
                kind: AnswerKind::Complete,
            });
            self.deliver();
        } else {
            reassembly.complete = false;
            self.open += 1;
            reassembly.ack_requested = None;
            reassembly.bitmap.cut(0);
            self.counters.failed_checks += 1;
            self.push(BlastPendingAnswer {
                number,
                round,
                kind: AnswerKind::Missing,
            });
        }
    }

    // --- what leaves ---

    /// The next answer: its header, and the body behind it.
    pub fn poll(&mut self, now: Instant) -> Option<(BlastHeader, Vec<u8>)> {
        self.handle_timeouts(now);
        while let Some(owed) = self.answers.pop_front() {
            if let Some(answer) = self.encode_answer(owed) {
                self.advertised = self.limit();
                self.send_limit = false;
                return Some(answer);
            }
        }
        if core::mem::take(&mut self.send_limit) {
            self.advertised = self.limit();
            return Some((
                BlastHeader {
                    flags: LIMIT,
                    ..self.header()
                },
                Vec::new(),
            ));
        }
        None
    }

    /// How long the receiver waits for more before it reports missing packets by itself, if it does. The gap between
    /// two packets of a round sets the least wait; before a gap was measured, nothing is reported.
    fn nak_delay(&self) -> Option<Duration> {
        let nak_delay = self
            .options
            .nak_delay
            .filter(|_| self.options.strategy != BlastStrategy::Full && self.open > 0)?;
        self.gap
            .map(|gap| Duration(nak_delay.0.max(gap.0.saturating_mul(GAPS))))
    }

    /// Reports missing packets of incomplete blasts of which nothing more has come: the request may be lost.
    fn handle_timeouts(&mut self, now: Instant) {
        let Some(nak_delay) = self.nak_delay() else {
            return;
        };
        for reassembly in self
            .reassemblies
            .iter_mut()
            .flatten()
            .filter(|reassembly| !reassembly.complete)
        {
            if reassembly.report_due(nak_delay) <= now && self.answers.len() < ANSWERS {
                (reassembly.reported_at, reassembly.reports) = (now, reassembly.reports + 1);
                let (number, round) = (reassembly.blast.number, reassembly.round);
                self.answers.push_back(BlastPendingAnswer {
                    number,
                    round,
                    kind: AnswerKind::Unsolicited,
                });
                self.counters.unsolicited_naks += 1;
            }
        }
    }

    /// When to poll next: an answer waits, or missing packets are to be reported.
    #[must_use]
    pub fn deadline(&self, now: Instant) -> Option<Instant> {
        if !self.answers.is_empty() || self.send_limit {
            return Some(now);
        }
        let nak_delay = self.nak_delay()?;
        let open = self
            .reassemblies
            .iter()
            .flatten()
            .filter(|reassembly| !reassembly.complete);
        open.map(|reassembly| reassembly.report_due(nak_delay))
            .min()
    }

    /// Tells the machine that the driver was suspended, so that the silence until now does not count as the sender's.
    pub fn resume(&mut self, now: Instant) {
        self.last_received = now;
    }

    /// When the sender will have been silent for too long in the middle of a blast.
    #[must_use]
    pub fn gives_up_at(&self) -> Option<Instant> {
        (self.open > 0).then(|| self.last_received + self.options.patience)
    }
}

/// The longest recent time between two packets: it grows at once and shrinks slowly. Packets that came at the same
/// instant had waited for the driver.
fn gap(before: Option<Duration>, between: Duration) -> Duration {
    let before = before.unwrap_or_default().0;
    let less = if between == Duration::ZERO {
        before
    } else {
        before - before / 16 + between.0 / 16
    };
    Duration(between.0.max(less))
}

#[cfg(test)]
impl BlastReceiver {
    /// Sets the state as if `number` blasts had arrived before, up to a position of the stream.
    pub(super) const fn start_at(&mut self, number: u32, position: u64) {
        self.base = number;
        (self.delivered, self.consumed) = (position, position);
        self.advertised = self.limit();
    }

    /// Checks the invariants.
    pub(super) fn check(&self) {
        assert!(
            self.reassemblies.len() <= self.options.flight as usize
                && self.answers.len() <= ANSWERS
        );
        assert!(self.consumed <= self.delivered && self.delivered <= self.limit());
        let reassemblies = || self.reassemblies.iter().flatten();
        assert_eq!(
            reassemblies()
                .filter(|reassembly| !reassembly.complete)
                .count(),
            self.open
        );
        assert_eq!(
            reassemblies()
                .map(|reassembly| u64::from(reassembly.blast.length))
                .sum::<u64>(),
            self.claimed
        );
        assert!(self.claimed <= self.limit() - self.delivered);
        assert!(
            self.reassemblies.back().is_none_or(Option::is_some) || self.reassemblies.len() == 1
        );
    }
}
