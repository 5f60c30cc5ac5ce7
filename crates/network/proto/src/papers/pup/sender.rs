//! The outgoing byte stream of a PUP connection: sends data and marks as far as the peer allows, asks for answers (Acks), and sends again
//! after a timeout. A *question* is a packet that asks for an answer (AData, AMark).

use super::options::PupOptions;
use super::packet::PupPacketKind;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use stackline_core::time::{Duration, Instant};

/// Bytes in the data of an Ack: the largest packet, packets and bytes that may be outstanding, 2 bytes each.
pub(super) const ANSWER: usize = 6;

/// A packet to be sent.
pub(super) struct PupOutgoing {
    pub(super) kind: PupPacketKind,
    pub(super) id: u32,
    pub(super) data: Vec<u8>,
}

/// A question that is not answered yet.
#[derive(Clone, Copy, Debug)]
struct PupPendingProbe {
    /// The number after the last byte that it asks about.
    upto: u32,
    /// When it was sent.
    at: Instant,
    /// Whether no timeout preceded it, so that its answer measures the round trip.
    is_first: bool,
}

/// The outgoing stream of one end.
#[derive(Debug, Default)]
pub(super) struct PupSender {
    options: PupOptions,
    /// Unacknowledged and unsent bytes, the first of which has the number `acked`.
    bytes: VecDeque<u8>,
    /// The numbers of the bytes that are marks.
    marks: VecDeque<u32>,
    /// The number of the first unacknowledged byte.
    acked: u32,
    /// The number of the next byte to be sent.
    next: u32,
    /// The number after the last byte that was ever sent.
    highest: u32,
    /// The most data bytes in a packet that the peer accepts.
    packet: u16,
    /// The number of the first byte that may not be sent yet.
    limit: u32,
    /// Packets that may still be sent.
    pups: u16,
    /// Bytes sent since the last question.
    unasked: u32,
    /// Bytes that the last answer allowed.
    allowed: u32,
    /// The question that is not answered yet.
    asked: Option<PupPendingProbe>,
    /// A later question, sent when the allocation was used up.
    asked_behind: Option<PupPendingProbe>,
    /// A question without data is due.
    probes: bool,
    /// When the stream asks again.
    timer: Option<Instant>,
    /// Timeouts in a row.
    timeouts: u32,
    /// Smoothed round trip and its mean deviation, ns.
    round_trip: Option<(u64, u64)>,
}

impl PupSender {
    pub(super) fn new(options: PupOptions, first: u32) -> Self {
        let packet = options.packet;
        Self {
            options,
            acked: first,
            next: first,
            highest: first,
            packet,
            limit: first.wrapping_add(u32::from(packet)),
            pups: 1,
            allowed: u32::from(packet),
            ..Self::default()
        }
    }

    /// Takes as many bytes as there is room for. Returns how many.
    pub(super) fn send(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.room());
        self.bytes.extend(&bytes[..count]);
        count
    }

    /// Adds a mark after all bytes so far.
    pub(super) fn mark(&mut self, kind: u8) {
        self.marks
            .push_back(self.acked.wrapping_add(self.bytes.len() as u32));
        self.bytes.push_back(kind);
    }

    /// The number of marks that are not acknowledged.
    pub(super) fn marks(&self) -> usize {
        self.marks.len()
    }

    /// Free bytes of the send buffer.
    pub(super) fn room(&self) -> usize {
        self.options.send_buffer.saturating_sub(self.bytes.len())
    }

    /// Whether everything is acknowledged.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether it has asked as often as the options permit, without an answer.
    pub(super) const fn is_given_up(&self) -> bool {
        self.timeouts > self.options.tries
    }

    /// Sends a question without data, to see whether the peer is there.
    pub(super) const fn probe(&mut self) {
        if self.asked.is_none() {
            self.probes = true;
        }
    }

    /// Bytes after `next`, which are to be sent.
    fn unsent(&self) -> u32 {
        (self.bytes.len() as u32).saturating_sub(self.next.wrapping_sub(self.acked))
    }

    /// Bytes that the peer allows to be sent now.
    const fn may(&self) -> u32 {
        let left = self.limit.wrapping_sub(self.next);
        // An answer may allow less than the one before: the limit then lies behind `next`.
        if (left as i32) < 0 || self.pups == 0 {
            0
        } else {
            left
        }
    }

    /// The next packet, if one may be sent.
    pub(super) fn poll(&mut self, now: Instant) -> Option<PupOutgoing> {
        if self.timer.is_some_and(|timer| now >= timer) {
            self.timed_out();
            if self.is_given_up() {
                return None;
            }
        }
        let is_mark = self.unsent() > 0 && self.marks.iter().any(|mark| *mark == self.next);
        let count = if is_mark { 1 } else { self.plain() }.min(self.may());
        if count == 0 {
            if self.asked.is_none() && self.timer.is_none() {
                // Ask about bytes in flight that no question covers. Bytes that are not allowed yet wait for an answer; the timer
                // asks for it in case it is lost.
                self.probes |= self.next != self.acked;
                self.timer = (self.unsent() > 0)
                    .then(|| now + self.timeout().max(PupOptions::FIRST_TIMEOUT));
            }
            return core::mem::take(&mut self.probes)
                .then(|| self.piece(now, PupPacketKind::AData, 0));
        }
        self.probes = false;
        self.unasked += count;
        let (is_last, exhausts) = (
            count == self.unsent(),
            count == self.may() || self.pups == 1,
        );
        // Ask after half of the allocation, so that the answer comes before it is used up; and with its last packet, if it is more than a
        // packet, so that the rest is freed.
        let again = exhausts && self.allowed > u32::from(self.packet);
        let asks = again
            || (self.asked.is_none() && (exhausts || is_last || 2 * self.unasked >= self.allowed));
        let kind = match (is_mark, asks) {
            (true, true) => PupPacketKind::AMark,
            (true, false) => PupPacketKind::Mark,
            (false, true) => PupPacketKind::AData,
            (false, false) => PupPacketKind::Data,
        };
        Some(self.piece(now, kind, count))
    }

    /// Bytes of the next data packet, which ends before the next mark.
    fn plain(&self) -> u32 {
        let to_mark = self
            .marks
            .iter()
            .map(|mark| mark.wrapping_sub(self.next))
            .filter(|at| (*at as i32) >= 0)
            .min();
        self.unsent()
            .min(u32::from(self.packet))
            .min(to_mark.unwrap_or(u32::MAX))
    }

    /// The packet with the next `count` bytes; a question also sets the timer.
    fn piece(&mut self, now: Instant, kind: PupPacketKind, count: u32) -> PupOutgoing {
        let (id, from) = (self.next, self.next.wrapping_sub(self.acked) as usize);
        let data = self
            .bytes
            .range(from..from + count as usize)
            .copied()
            .collect();
        self.next = id.wrapping_add(count);
        if (self.next.wrapping_sub(self.highest) as i32) > 0 {
            self.highest = self.next;
        }
        self.pups = self.pups.saturating_sub(u16::from(count > 0));
        if matches!(kind, PupPacketKind::AData | PupPacketKind::AMark) {
            self.unasked = 0;
            let asked = Some(PupPendingProbe {
                upto: self.next,
                at: now,
                is_first: self.timeouts == 0,
            });
            if self.asked.is_some() {
                self.asked_behind = asked;
            } else {
                (self.asked, self.timer) = (asked, Some(now + self.timeout()));
            }
        }
        PupOutgoing { kind, id, data }
    }

    /// No answer came in time: goes back to the first unacknowledged bytes, which ask again.
    fn timed_out(&mut self) {
        self.timeouts += 1;
        (self.timer, self.asked, self.asked_behind) = (None, None, None);
        self.unasked = 0;
        if self.next != self.acked {
            self.next = self.acked;
            // Only one packet is sent; its answer shows what else is missing.
            self.pups = 1;
        } else {
            self.probes = true;
        }
    }

    /// Handles an answer: `wanted` is the next byte that the peer wants, `data` what it allows.
    pub(super) fn answered(&mut self, now: Instant, wanted: u32, data: &[u8]) {
        let ahead = wanted.wrapping_sub(self.acked);
        // Ignore answers that acknowledge fewer bytes than known (old ones) or more than were sent (invalid ones).
        if ahead > self.highest.wrapping_sub(self.acked) || data.len() < ANSWER {
            return;
        }
        self.bytes.drain(..ahead as usize);
        self.acked = wanted;
        while self
            .marks
            .front()
            .is_some_and(|mark| (mark.wrapping_sub(wanted) as i32) < 0)
        {
            self.marks.pop_front();
        }
        let missing = self
            .asked
            .map_or(0, |asked| asked.upto.wrapping_sub(wanted) as i32);
        // A repeated answer does not answer the question: the bytes that it wants may be in flight. Its allocation counts.
        if ahead > 0 || missing <= 0 {
            if let Some(asked) = self.asked.take().filter(|asked| asked.is_first) {
                self.measured(now.since(asked.at));
            }
            let behind = self.asked_behind.take();
            if missing > 0 {
                self.next = wanted;
            } else {
                self.asked = behind.filter(|asked| (asked.upto.wrapping_sub(wanted) as i32) > 0);
            }
            (self.timeouts, self.unasked) = (0, 0);
            self.timer = self.asked.map(|asked| asked.at + self.timeout());
        }
        if (self.next.wrapping_sub(wanted) as i32) < 0 {
            self.next = wanted;
        }
        self.allow(wanted, data);
    }

    /// Takes over the allocation in an answer: the packet size, packets and bytes from `wanted` on.
    fn allow(&mut self, wanted: u32, data: &[u8]) {
        let [a, b, c, d, e, f] = *data.first_chunk::<ANSWER>().unwrap_or(&[0; ANSWER]);
        self.packet = u16::from_be_bytes([a, b]).clamp(1, self.options.packet);
        let outstanding = self
            .next
            .wrapping_sub(wanted)
            .div_ceil(u32::from(self.packet));
        self.pups =
            u16::from_be_bytes([c, d]).saturating_sub(outstanding.min(u32::from(u16::MAX)) as u16);
        self.allowed = u32::from(u16::from_be_bytes([e, f]));
        self.limit = wanted.wrapping_add(self.allowed);
        if self.asked.is_none() {
            // The timer was waiting for an allocation, which has come.
            self.timer = None;
        }
    }

    /// Updates the smoothed round trip and its deviation with a sample.
    fn measured(&mut self, sample: Duration) {
        let sample = sample.0;
        self.round_trip = Some(match self.round_trip {
            None => (sample, sample / 2),
            Some((mean, deviation)) => (
                (7 * mean + sample) / 8,
                (3 * deviation + mean.abs_diff(sample)) / 4,
            ),
        });
    }

    /// How long to wait for an answer before asking again.
    fn timeout(&self) -> Duration {
        if let Some(fixed) = self.options.fixed_timeout {
            return fixed;
        }
        let usual = match self.round_trip {
            Some((mean, deviation)) => mean + 4 * deviation,
            None => PupOptions::FIRST_TIMEOUT.0,
        };
        let usual = usual.max(PupOptions::LEAST_TIMEOUT.0) << self.timeouts.min(6);
        Duration(usual.min(PupOptions::LONGEST_TIMEOUT.0))
    }

    pub(super) const fn deadline(&self) -> Option<Instant> {
        self.timer
    }
}
