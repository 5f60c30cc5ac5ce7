//! The receiving half of a connection: the stream in order, ranges behind gaps, and when to acknowledge, as in Linux:
//! the first segments at once, then every second full segment or after a delay; behind gaps at once but not too often.

use super::buffers::TcpReceiveBuffers;
use super::options::TcpOptions;
use super::sequence_numbers::{TcpSequenceOrigin, TcpStreamRange};
use super::window::Tuning;
use alloc::collections::VecDeque;
use stackline_core::time::{Duration, Instant};

/// Segments that are acknowledged at once at the beginning and after a pause.
// `TCP_MAX_QUICKACKS` of Linux.
const QUICK: u32 = 16;
/// Acknowledgements of arrivals behind a gap that are sent one by one before they are combined.
// A sender takes three duplicates for a loss: combining earlier would delay its repair.
const SINGLE: u32 = 3;
/// The most arrivals behind a gap that one acknowledgement combines.
// `tcp_comp_sack_nr` of Linux.
const GATHERED: u32 = 44;
/// The longest time that such acknowledgements wait to be combined, in ns.
// `tcp_comp_sack_delay_ns` of Linux.
const GATHER: u64 = 1_000_000;
/// The assumed segment size before any segment has arrived.
const LEAST_SEGMENT: u32 = 536;
/// Ranges that are remembered for selective acknowledgements.
// As many as an option without timestamps holds.
const RECENT: usize = 4;
/// The most ranges behind gaps that are kept; data that would make another one is dropped, as if memory were short.
const MOST_RANGES: usize = 4096;

/// The timing of the sender, as far as it is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rhythm {
    /// The round trip time, once measured.
    pub(super) rtt: Option<Duration>,
    /// A pause without data after which quick acknowledgements begin again.
    pub(super) pause: Duration,
}

/// The receiving half of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct TcpReceiver {
    pub(super) origin: TcpSequenceOrigin,
    /// The next place expected.
    pub(super) next: u64,
    /// The position of the peer's FIN, once received.
    pub(super) fin: Option<u64>,
    /// The application has taken everything before this place.
    pub(super) taken: u64,
    /// Ranges that have arrived behind gaps, ascending.
    beyond: VecDeque<TcpStreamRange>,
    /// Bytes in `beyond`.
    beyond_bytes: u64,
    /// The ranges that changed last, the newest first, for selective acknowledgements.
    recent: [TcpStreamRange; RECENT],
    /// Data that came twice since the last acknowledgement, which reports it (RFC 2883).
    duplicate: Option<TcpStreamRange>,
    /// The next expected place when the last acknowledgement was sent.
    pub(super) acknowledged: u64,
    /// The window that the last acknowledgement offered, in bytes.
    pub(super) offered: u64,
    /// The bits by which the own window field is shifted.
    pub(super) scale: u8,
    pub(super) tuning: Tuning,
    /// The packet buffers in which arrived data is kept, if memory is not counted in bytes.
    pub(super) buffers: Option<TcpReceiveBuffers>,
    /// The size of a full segment, as learnt from arrivals.
    segment: u32,
    /// The largest possible segment.
    largest: u32,
    /// How long an acknowledgement may be delayed.
    patience: Duration,
    /// The period and the phase of the timer at whose ticks delayed acknowledgements leave; period zero: no such timer.
    tick: (Duration, Duration),
    /// Whether ranges behind gaps are reported, several by one acknowledgement. Otherwise each arrival behind a gap is
    /// answered at once, with an unchanged window.
    pub(super) gathers: bool,
    /// Whether quick acknowledgements are used at all.
    hastens: bool,
    /// Windows are offered however small they are.
    silly: bool,
    /// The number of further acknowledgements that are sent at once.
    quick: u32,
    /// The application answers data with data, so acknowledgements travel with its data.
    interactive: bool,
    /// When data last arrived.
    last_data: Option<Instant>,
    /// An acknowledgement has to be sent at once.
    pub(super) now: bool,
    /// When a delayed acknowledgement is due.
    pub(super) delayed: Option<Instant>,
    /// A segment that was not full has arrived and is not acknowledged.
    small: bool,
    /// Arrivals behind the present gap that were acknowledged one by one.
    single: u32,
    /// The place of that gap.
    single_at: u64,
    /// Arrivals behind gaps since the last acknowledgement.
    gathered: u32,
    /// When the combined acknowledgement is due.
    pub(super) gathering: Option<Instant>,
    /// The peer's time to be echoed.
    pub(super) echo: u32,
    /// Bytes that have arrived in order.
    pub(super) bytes: u64,
}

impl TcpReceiver {
    pub(super) fn new(
        origin: TcpSequenceOrigin,
        tuning: Tuning,
        scale: u8,
        segment: u32,
        options: &TcpOptions,
    ) -> Self {
        Self {
            origin,
            next: 1,
            taken: 1,
            recent: [TcpStreamRange::default(); RECENT],
            acknowledged: 1,
            scale,
            tuning,
            buffers: options
                .packet_buffers
                .map(|plan| TcpReceiveBuffers::new(plan, segment)),
            segment: segment.min(LEAST_SEGMENT),
            largest: segment,
            patience: if options.ack_tick > Duration::ZERO {
                options.ack_tick
            } else {
                options.delayed_ack
            },
            tick: (options.ack_tick, options.timer_phase),
            gathers: true,
            hastens: options.quickack,
            silly: options.silly_windows,
            ..Self::default()
        }
    }

    /// Bytes that the application can take.
    pub(super) fn waiting(&self) -> u64 {
        self.next.min(self.fin.unwrap_or(u64::MAX)) - self.taken
    }

    /// Whether everything up to the peer's FIN has arrived.
    pub(super) fn ended(&self) -> bool {
        self.fin.is_some_and(|fin| self.next > fin)
    }

    /// The place at which the offered window ends.
    pub(super) const fn edge(&self) -> u64 {
        self.acknowledged + self.offered
    }

    /// Whether a packet buffer is free for data of that range; the data is put into it. Always true when memory is
    /// counted in bytes.
    pub(super) fn keeps(&mut self, data: TcpStreamRange) -> bool {
        let next = self.next;
        self.buffers
            .as_mut()
            .is_none_or(|buffers| buffers.keep(data, next))
    }

    /// Takes a segment that covers a range inside the window; `fin` if its last place is a FIN.
    pub(super) fn arrives(
        &mut self,
        now: Instant,
        range: TcpStreamRange,
        fin: bool,
        rhythm: &Rhythm,
    ) {
        if range.end <= self.next {
            self.quick = self.quick.max(QUICK);
            self.came_again(range);
            return;
        }
        if fin && self.fin.is_none() && self.beyond.back().is_none_or(|last| last.end < range.end) {
            self.fin = Some(range.end - 1);
        }
        self.count(now, range.len() as u32, rhythm.pause);
        let expected = range.start <= self.next;
        if expected {
            self.next = range.end;
            self.close_gaps();
        } else if self.keep(range) && self.gathers {
            self.tuning.gap(self.beyond_bytes);
        }
        if (expected || self.gathers) && self.tuning.arrived(self.largest) {
            // The sender should soon learn of the larger window.
            self.quick |= 1;
        }
        // Place 0 is the SYN.
        self.bytes = self.next.min(self.fin.unwrap_or(u64::MAX)) - 1;
        self.decide(now, fin, rhythm.rtt);
    }

    /// Answers a segment outside the window at once, and reports data that had arrived before.
    pub(super) fn came_again(&mut self, range: TcpStreamRange) {
        self.now = true;
        if self.gathers && range.len() > 0 && range.end <= self.next {
            self.duplicate = Some(range);
        }
    }

    /// Acknowledges the next two segments with data at once: the sender is to slow down, or has done so.
    pub(super) fn hurry(&mut self) {
        (self.quick, self.interactive) = (self.quick.max(2), false);
    }

    /// Learns the size of segments and the rhythm of the sender.
    fn count(&mut self, now: Instant, bytes: u32, pause: Duration) {
        if bytes >= self.segment {
            self.segment = bytes.min(self.largest);
        } else {
            self.small = true;
        }
        let paused = self.last_data.is_none_or(|last| now.since(last) > pause);
        if paused {
            self.quick = QUICK;
        }
        self.last_data = Some(now);
    }

    /// Moves ranges that are no longer behind a gap into the stream.
    fn close_gaps(&mut self) {
        while let Some(&first) = self.beyond.front() {
            if first.start > self.next {
                break;
            }
            self.next = self.next.max(first.end);
            self.beyond_bytes -= first.len();
            self.beyond.pop_front();
            // RFC 5681, 4.2: a gap was filled.
            self.now = true;
        }
    }

    /// Keeps a range that arrived behind a gap. Returns false if there are too many ranges.
    fn keep(&mut self, mut range: TcpStreamRange) -> bool {
        let first = self.beyond.partition_point(|kept| kept.end < range.start);
        let holds = |kept: &TcpStreamRange| kept.start <= range.start && range.end <= kept.end;
        if self.gathers && self.beyond.get(first).is_some_and(holds) {
            self.duplicate = Some(range);
        }
        let mut behind = first;
        while let Some(kept) = self.beyond.get(behind)
            && kept.start <= range.end
        {
            range = TcpStreamRange {
                start: range.start.min(kept.start),
                end: range.end.max(kept.end),
            };
            self.beyond_bytes -= kept.len();
            behind += 1;
        }
        match behind - first {
            0 if self.beyond.len() >= MOST_RANGES => return false,
            0 => self.beyond.insert(first, range),
            joined => {
                self.beyond[first] = range;
                if joined > 1 {
                    self.beyond.drain(first + 1..behind);
                }
            }
        }
        self.beyond_bytes += range.len();
        // RFC 2018: ranges beyond the room of the next acknowledgement would never be reported.
        self.now |= self.note_recent(range) && self.gathering.is_some();
        true
    }

    /// Remembers the newest range, which is reported first (RFC 2018). Returns whether an older range was forgotten.
    fn note_recent(&mut self, range: TcpStreamRange) -> bool {
        let inside = |old: &TcpStreamRange| old.start >= range.start && old.end <= range.end;
        let mut kept = [TcpStreamRange::default(); RECENT];
        kept[0] = range;
        let expected = self.next;
        let others = self
            .recent
            .iter()
            .filter(|old| old.len() > 0 && old.end > expected && !inside(old));
        let mut places = kept[1..].iter_mut();
        let mut full = false;
        for old in others {
            match places.next() {
                Some(place) => *place = *old,
                None => full = true,
            }
        }
        self.recent = kept;
        full
    }

    /// The ranges to report: data that came twice, once, then those behind gaps, the newest first.
    pub(super) fn blocks(&mut self) -> impl Iterator<Item = TcpStreamRange> + '_ {
        let (gaps, next) = (!self.beyond.is_empty(), self.next);
        let behind = self.recent.iter().copied();
        self.duplicate
            .take()
            .into_iter()
            .chain(behind.filter(move |range| gaps && range.len() > 0 && range.start > next))
    }

    /// The time to the next tick, where acknowledgements leave at ticks.
    fn until_tick(&self, now: Instant) -> Option<Duration> {
        let (tick, phase) = (self.tick.0.0, self.tick.1.0);
        let since = now.0.wrapping_sub(phase).checked_rem(tick)?;
        Some(Duration(tick - since))
    }

    /// Decides when to acknowledge what has just arrived.
    fn decide(&mut self, now: Instant, fin: bool, rtt: Option<Duration>) {
        // While the application does not read, the window does not move; it is advertised when that happens.
        let two = self.next - self.acknowledged > u64::from(self.segment)
            && self.window() >= self.offered;
        self.now |= two
            || fin
            || (self.hastens && self.quick > 0 && !self.interactive)
            || self.patience == Duration::ZERO;
        if self.now {
            return;
        }
        if self.beyond.is_empty() {
            let at = now + self.until_tick(now).unwrap_or(self.patience);
            self.delayed = Some(self.delayed.map_or(at, |other| other.min(at)));
            return;
        }
        if self.single_at != self.next {
            (self.single_at, self.single) = (self.next, 0);
        }
        if !self.gathers || self.single < SINGLE || self.gathered >= GATHERED {
            self.single += 1;
            self.now = true;
            return;
        }
        self.gathered += 1;
        if self.gathering.is_none() {
            // Linux waits a twentieth of a round trip.
            let wait = rtt.map_or(GATHER, |rtt| (rtt.0 / 20).min(GATHER));
            self.gathering = Some(now + Duration(wait));
        }
    }

    /// The window that would be advertised now.
    pub(super) fn window(&self) -> u64 {
        let held = match &self.buffers {
            Some(buffers) => self.tuning.clamp.saturating_sub(buffers.window()),
            None => self.waiting() + self.beyond_bytes,
        };
        self.tuning.offer(held, self.largest, self.silly)
    }

    /// Whether the advertised window is zero.
    pub(super) fn offers_nothing(&self) -> bool {
        self.offered == 0 && self.waiting() > 0
    }

    /// Notes that an acknowledgement is sent, alone or with data. Returns its window field.
    pub(super) fn advertise(&mut self, scaled: bool) -> u16 {
        let scale = if scaled { self.scale } else { 0 };
        // An offered window is never reduced.
        let least = self.edge().saturating_sub(self.next);
        let largest = 65_535_u64 << scale;
        // Rounded up: rounded down it could be a reduction.
        let window = self.window().max(least).div_ceil(1 << scale).min(65_535);
        self.offered = (window << scale).min(largest);
        self.acknowledged = self.next;
        self.quick = self.quick.saturating_sub(1);
        (self.now, self.delayed, self.small) = (false, None, false);
        (self.gathering, self.gathered) = (None, 0);
        window as u16
    }

    /// Notes that data is sent soon after data came: the connection is interactive.
    pub(super) fn answers(&mut self, now: Instant) {
        self.interactive |= self
            .last_data
            .is_some_and(|last| now.since(last) < self.patience);
    }

    /// Gives the application at most `most` bytes. Returns how many; the window may have to be advertised.
    pub(super) fn take(&mut self, now: Instant, most: u64) -> u64 {
        let n = most.min(self.waiting());
        if n == 0 {
            return 0;
        }
        self.taken += n;
        if let Some(buffers) = &mut self.buffers {
            buffers.read(self.taken);
        }
        self.tuning
            .took(now, self.taken, self.waiting(), self.beyond_bytes);
        let owed = self.delayed.is_some();
        let drained = self.waiting() == 0;
        self.now |= owed
            && (self.next - self.acknowledged > u64::from(self.segment)
                || (self.hastens && self.small && drained && !self.interactive));
        let left = self.edge().saturating_sub(self.next);
        if self.silly && !self.ended() && self.window() > left {
            self.now = true;
        }
        // `tcp_cleanup_rbuf` of Linux: a window that has doubled is worth a segment of its own.
        if !self.now && !self.ended() && left * 2 <= self.tuning.clamp {
            let window = self.window();
            self.now = window > 0 && window >= left * 2;
        }
        n
    }

    /// Handles the deadline of a delayed acknowledgement.
    pub(super) fn handle_timer(&mut self, now: Instant) {
        let due = |moment: Option<Instant>| moment.is_some_and(|moment| moment <= now);
        self.now |= due(self.delayed) || due(self.gathering);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver() -> TcpReceiver {
        with(&TcpOptions {
            delayed_ack: Duration(40),
            ..TcpOptions::default()
        })
    }

    fn with(options: &TcpOptions) -> TcpReceiver {
        let mut receiver = TcpReceiver::new(
            TcpSequenceOrigin(7),
            Tuning::new(None, 1000),
            7,
            1000,
            options,
        );
        receiver.advertise(true);
        receiver
    }

    fn arrives(receiver: &mut TcpReceiver, start: u64, end: u64) -> bool {
        let rhythm = Rhythm {
            rtt: None,
            pause: Duration(200),
        };
        receiver.arrives(
            Instant(0),
            TcpStreamRange {
                start: 1 + start * 1000,
                end: 1 + end * 1000,
            },
            false,
            &rhythm,
        );
        receiver.take(Instant(0), u64::MAX);
        let now = receiver.now;
        if now {
            receiver.advertise(true);
        }
        now
    }

    #[test]
    fn a_delayed_acknowledgement_leaves_at_a_tick_of_a_timer_that_runs_anyhow() {
        let options = TcpOptions {
            quickack: false,
            ack_tick: Duration(200),
            timer_phase: Duration(50),
            ..TcpOptions::default()
        };
        let rhythm = Rhythm {
            rtt: None,
            pause: Duration(200),
        };
        for (came, leaves) in [(51, 250), (249, 250), (250, 450)] {
            let mut receiver = with(&options);
            receiver.arrives(
                Instant(came),
                TcpStreamRange {
                    start: 1,
                    end: 1001,
                },
                false,
                &rhythm,
            );
            assert_eq!(
                (receiver.now, receiver.delayed),
                (false, Some(Instant(leaves))),
                "{came}"
            );
        }
    }

    #[test]
    fn first_at_once_then_every_second() {
        let mut receiver = receiver();
        let acks: alloc::vec::Vec<bool> =
            (0..22).map(|n| arrives(&mut receiver, n, n + 1)).collect();
        assert!(acks[..16].iter().all(|ack| *ack));
        assert_eq!(acks[16..], [false, true, false, true, false, true]);
    }

    #[test]
    fn without_haste_every_second_from_the_first() {
        let mut receiver = with(&TcpOptions {
            quickack: false,
            delayed_ack: Duration(40),
            ..TcpOptions::default()
        });
        // A segment is full when one of its size or more came before.
        let acks: alloc::vec::Vec<bool> =
            (0..6).map(|n| arrives(&mut receiver, n, n + 1)).collect();
        assert_eq!(acks, [false, true, false, true, false, true]);
        assert!(!arrives(&mut receiver, 6, 7));
        receiver.handle_timer(Instant(40));
        assert!(receiver.now);
    }

    #[test]
    fn ranges_behind_a_gap_join_and_the_newest_is_reported_first() {
        let mut receiver = receiver();
        for n in [2, 6, 4, 3] {
            arrives(&mut receiver, n, n + 1);
        }
        let blocks: alloc::vec::Vec<_> = receiver
            .blocks()
            .map(|block| (block.start, block.end))
            .collect();
        assert_eq!(blocks, [(2001, 5001), (6001, 7001)]);
        assert_eq!(receiver.beyond_bytes, 4000);
        assert!(arrives(&mut receiver, 0, 2));
        assert_eq!((receiver.next, receiver.taken), (5001, 5001));
        assert_eq!(receiver.blocks().count(), 1);
    }

    #[test]
    fn acknowledgements_of_a_gap_are_gathered_after_the_third() {
        let mut receiver = receiver();
        receiver.quick = 0;
        receiver.last_data = Some(Instant(0));
        let acks: alloc::vec::Vec<bool> =
            (1..7).map(|n| arrives(&mut receiver, n, n + 1)).collect();
        assert_eq!(acks, [true, true, true, false, false, false]);
        assert!(receiver.gathering.is_some());
    }
}
