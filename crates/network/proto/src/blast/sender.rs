//! The sending machine of one direction: cuts its stream into blasts, sends them in rounds, and sends again what an
//! answer reports as missing, or what was not answered (Zwaenepoel 1985, sections 2 and 3.2).
//!
//! It holds no data: its output names the bytes of the stream that the carrier is to send. It never sends beyond the
//! receiver's grant.

use super::ack_requests::{AckRequest, AckRequests};
use super::answer_timeout::{BlastSenderWait, MOST_DOUBLED, RttEstimator};
use super::bitmap::Bitmap;
use super::in_flight::{BlastInFlight, Unsent};
use super::options::{BlastExtent, BlastOptions, BlastPacing, BlastStrategy};
use super::packet_run::{BlastPacketRun, BlastSendReason};
use super::rate::{Answered, Rate};
use super::wire::{BlastHeader, BlastPacketKind, COMPLETE, LIMIT, UNSOLICITED, is_before};
use alloc::collections::VecDeque;
use stackline_core::time::{Duration, Instant};

/// Round trips shorter than this belong to a local network, where nothing is paced by default.
const LOCAL: Duration = Duration(2_000_000);
/// The most bytes sent before a round trip was measured, where pacing depends on it.
const FIRST: u64 = 64 << 10;
/// With full retransmission the interval is doubled once at most.
const FULL_DOUBLED: u32 = 1;
/// A blocked sender probes after so long, then after twice as long, up to the longest.
const PROBE: Duration = Duration(5_000_000);
const PROBE_LONGEST: Duration = Duration(500_000_000);

/// Counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlastSenderCounters {
    /// Data packets sent, repeated ones included.
    pub packets: u64,
    /// Data packets that were sent again.
    pub repeated: u64,
    /// Bytes of data in the repeated packets.
    pub repeated_bytes: u64,
    /// Requests that were not answered in time.
    pub timeouts: u64,
    /// Answers that reported missing packets.
    pub refusals: u64,
    /// Bytes of the stream up to which everything has arrived.
    pub acknowledged: u64,
}

/// The sending machine.
#[derive(Clone, Debug)]
pub struct BlastSender {
    options: BlastOptions,
    connection: u32,
    in_flight: VecDeque<BlastInFlight>,
    /// The number of the first blast in flight.
    base: u32,
    /// Stream positions: end of the data written, end of the data cut into blasts, limit granted by the receiver.
    end: u64,
    cut: u64,
    limit: u64,
    /// An empty blast, or the last one, is to be sent.
    empty: bool,
    finish: bool,
    finished: bool,
    /// The numbers of blasts with packets to send, in the order of the stream.
    ready: VecDeque<u32>,
    ack_requests: AckRequests,
    rtt: RttEstimator,
    rate: Option<Rate>,
    /// When a blocked sender probes next, and its last wait.
    probe: Option<(Instant, Duration)>,
    probing: bool,
    /// Since when the peer has left a request unanswered, and since when no request is open because unanswered packets
    /// wait to be sent again.
    unanswered_since: Option<Instant>,
    resending_since: Option<Instant>,
    /// Bytes that have arrived, in any order.
    arrived: u64,
    counters: BlastSenderCounters,
}

impl BlastSender {
    /// A sender whose receiver has granted `limit` bytes.
    #[must_use]
    pub fn new(options: &BlastOptions, connection: u32, limit: u64) -> Self {
        let options = options.fitted();
        let rate = match options.pacing {
            BlastPacing::Ceiling(rate) => Some(Rate::new(options.packet, Some(rate), None)),
            BlastPacing::Off | BlastPacing::Auto => None,
        };
        Self {
            options,
            connection,
            in_flight: VecDeque::new(),
            base: 0,
            end: 0,
            cut: 0,
            limit,
            empty: false,
            finish: false,
            finished: false,
            ready: VecDeque::new(),
            ack_requests: AckRequests::default(),
            rtt: RttEstimator::new(options.interval),
            rate,
            probe: None,
            probing: false,
            unanswered_since: None,
            resending_since: None,
            arrived: 0,
            counters: BlastSenderCounters::default(),
        }
    }

    /// Starts again with the negotiated options; data already written stays.
    pub(super) fn agree(&mut self, options: &BlastOptions, connection: u32, limit: u64) {
        let Self {
            end, empty, finish, ..
        } = *self;
        *self = Self {
            end,
            empty,
            finish,
            ..Self::new(options, connection, limit)
        };
    }

    // --- the application's side ---

    /// Writes the next `bytes` of the stream; zero bytes are an empty blast, which arrives like any other.
    pub fn send(&mut self, bytes: u64) {
        self.end = self.end.saturating_add(bytes);
        self.empty |= bytes == 0;
    }

    /// Ends the stream; the receiver learns of it as reliably as of data.
    pub fn finish(&mut self) {
        self.finish = true;
    }

    /// The next data lies at `position`, and everything up to `limit` is granted: for data that does not continue the
    /// last ([`crate::ikp`]). The receiver has everything before.
    pub fn seek(&mut self, position: u64, limit: u64) {
        // Answers to the blasts that are dropped here must find none.
        self.base = self.base.wrapping_add(self.in_flight.len() as u32);
        self.in_flight.clear();
        self.ready.clear();
        self.ack_requests.clear();
        (self.cut, self.end, self.limit) = (position, position, limit);
        (
            self.unanswered_since,
            self.resending_since,
            self.probe,
            self.probing,
        ) = (None, None, None, false);
    }

    /// The stream position up to which everything has arrived.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.in_flight
            .front()
            .map_or(self.cut, |first| first.blast.start)
    }

    /// Bytes written and not yet cut into blasts.
    #[must_use]
    pub const fn waiting(&self) -> u64 {
        self.end - self.cut
    }

    /// Whether all data written has arrived.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.in_flight.is_empty()
            && self.cut == self.end
            && !self.empty
            && (!self.finish || self.finished)
    }

    /// Its counters.
    #[must_use]
    pub fn counters(&self) -> BlastSenderCounters {
        BlastSenderCounters {
            acknowledged: self.acknowledged(),
            ..self.counters
        }
    }

    /// Its estimate of round trips.
    #[must_use]
    pub const fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    /// The rate it paces at, in bit/s.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        self.rate.as_ref().map(Rate::rate)
    }

    /// A round trip measured elsewhere: when the connection was opened.
    pub fn sample(&mut self, rtt: Duration) {
        self.rtt.sample(rtt);
        self.update_pacing();
    }

    fn update_pacing(&mut self) {
        if self.rtt.minimum().is_some_and(|rtt| rtt > LOCAL) {
            self.enable_pacing();
        }
    }

    /// The peer is not near, or the path loses: packets are paced where that is left to the sender.
    pub fn enable_pacing(&mut self) {
        if self.rate.is_none() && self.options.pacing == BlastPacing::Auto {
            let set_up = self.rtt.smoothed();
            self.rate = Some(Rate::new(self.options.packet, None, set_up));
        }
    }

    // --- what arrives ---

    /// Handles an answer, with the body behind its header. Invalid answers are dropped.
    pub fn handle(&mut self, now: Instant, answer: &BlastHeader, body: &[u8]) {
        if answer.kind != BlastPacketKind::Answer || answer.connection != self.connection {
            return;
        }
        self.raise_limit(answer.start);
        if !answer.has(LIMIT) {
            self.answered(now, answer, body);
        }
        self.unanswered_since = self.ack_request_due().map(|_| now);
        self.resending_since = None;
    }

    fn answered(&mut self, now: Instant, answer: &BlastHeader, body: &[u8]) {
        // A blast before the first in flight wraps to a place that does not exist.
        let place = answer.blast.wrapping_sub(self.base) as usize;
        let Some(in_flight) = self
            .in_flight
            .get_mut(place)
            .filter(|in_flight| !in_flight.complete)
        else {
            return;
        };
        // An answer to a round that was never sent is invalid.
        if is_before(in_flight.round, answer.round) {
            return;
        }
        let nak_delay = answer.has(UNSOLICITED);
        // The NAK was sent before the last request can have arrived.
        if nak_delay
            && in_flight
                .ack_requested_at
                .zip(self.rtt.minimum())
                .is_some_and(|((at, _), rtt)| now < at + rtt)
        {
            return;
        }
        let asked = in_flight
            .ack_requested_at
            .filter(|_| answer.round == in_flight.round && !nak_delay);
        let packets = in_flight.packets;
        let lost = if answer.has(COMPLETE) {
            self.complete(place);
            0
        } else {
            self.handle_nak(place, answer, body)
        };
        if let Some(asked) = asked {
            self.measure(now, asked.0, asked.1, packets, lost);
        }
    }

    /// The peer has closed the connection when everything before that position had arrived, perhaps the end of the stream as
    /// well: where that is all there was, nothing is left to do, whether it was answered or not.
    pub(super) fn closed(&mut self, position: u64, ended: bool) {
        if self.cut != self.end || position < self.end || self.empty || (self.finish && !ended) {
            return;
        }
        self.base = self.base.wrapping_add(self.in_flight.len() as u32);
        self.in_flight.clear();
        self.finished = self.finish;
    }

    fn raise_limit(&mut self, limit: u64) {
        if limit > self.limit {
            self.limit = limit;
            self.probe = None;
            self.probing = false;
        }
    }

    fn measure(
        &mut self,
        now: Instant,
        ack_requested_at: Instant,
        order: u64,
        packets: u32,
        lost: u32,
    ) {
        self.rtt.sample(now.since(ack_requested_at));
        self.ack_requests.answered(order);
        self.update_pacing();
        let delivered = self.arrived;
        if let Some(rate) = &mut self.rate {
            rate.answered(
                now,
                Answered {
                    sent: ack_requested_at,
                    delivered,
                    packets,
                    lost,
                },
            );
        }
    }

    fn complete(&mut self, place: usize) {
        let in_flight = &mut self.in_flight[place];
        in_flight.complete = true;
        in_flight.unsent = Unsent::Nothing;
        // What earlier answers reported is counted already.
        let before = u64::from(in_flight.arrived) * u64::from(self.options.packet);
        self.arrived += u64::from(in_flight.blast.length).saturating_sub(before);
        while let Some(first) = self.in_flight.front().filter(|first| first.complete) {
            self.finished |= first.blast.last;
            self.in_flight.pop_front();
            self.base = self.base.wrapping_add(1);
        }
    }

    /// Something is missing: sends it as a new round. Returns the number of packets reported as lost.
    fn handle_nak(&mut self, place: usize, answer: &BlastHeader, body: &[u8]) -> u32 {
        let options = self.options;
        let in_flight = &mut self.in_flight[place];
        let stale = is_before(answer.round, in_flight.valid_from);
        let total = in_flight.blast.packets(options.packet);
        let first = u32::from(answer.index);
        // A repetition that has not left yet is replaced by the newer information; any other round is sent first.
        let awaits_answer = !matches!(in_flight.unsent, Unsent::Nothing);
        if stale || first >= total || (awaits_answer && answer.round == in_flight.round) {
            return 0;
        }
        let forgets = matches!(
            options.strategy,
            BlastStrategy::Full | BlastStrategy::FullNak
        );
        let (unsent, packets) = match options.strategy {
            BlastStrategy::Full | BlastStrategy::FullNak => (Unsent::From(0), total),
            BlastStrategy::Partial => (Unsent::From(first), total - first),
            BlastStrategy::Selective => {
                let missing = Bitmap::from_answer(first, body, total);
                let Some(first) = missing.next(0, true) else {
                    return 0;
                };
                let count = missing.count();
                (Unsent::Selected(missing, first), count)
            }
        };
        if awaits_answer {
            (in_flight.unsent, in_flight.packets, in_flight.reason) =
                (unsent, packets, BlastSendReason::Missing);
        } else {
            in_flight.begin(unsent, packets, BlastSendReason::Missing);
        }
        in_flight.valid_from = in_flight.round;
        let arrived = if forgets { 0 } else { total - packets };
        if arrived > in_flight.arrived {
            self.arrived += u64::from(arrived - in_flight.arrived) * u64::from(options.packet);
            in_flight.arrived = arrived;
        }
        if !awaits_answer {
            self.enqueue(answer.blast);
        }
        self.counters.refusals += 1;
        // From the network: it may be any number, but something is missing.
        answer.check.clamp(1, total)
    }

    // --- what leaves ---

    /// The next packets to send, at most `most` of them.
    pub fn poll(&mut self, now: Instant, most: u32) -> Option<BlastPacketRun> {
        self.handle_timeouts(now);
        let allowed = self.allowed(now)?.min(most.max(1));
        let place = self.next_ready()?;
        let in_flight = &mut self.in_flight[place];
        let total = in_flight.blast.packets(self.options.packet);
        let again = in_flight.round > 0;
        let run = in_flight.take(allowed, total, self.connection, self.options.packet);
        let rest = matches!(in_flight.unsent, Unsent::Nothing);
        if rest {
            self.ready.pop_front();
            self.request_ack(place, now);
        }
        self.count(now, &run, again);
        Some(run)
    }

    /// How many packets the pace allows now; `None` for none.
    fn allowed(&mut self, now: Instant) -> Option<u32> {
        let Some(rate) = &mut self.rate else {
            return Some(u32::MAX);
        };
        let bytes = rate.may_send(now).ok()?;
        Some(
            u32::try_from(bytes / u64::from(self.options.packet))
                .unwrap_or(u32::MAX)
                .max(1),
        )
    }

    fn count(&mut self, now: Instant, run: &BlastPacketRun, again: bool) {
        let (last, length) = run.span(run.count - 1);
        let bytes = last + u64::from(length) - run.span(0).0;
        if let Some(rate) = &mut self.rate {
            rate.sent(now, bytes);
        }
        self.counters.packets += u64::from(run.count);
        if again {
            self.counters.repeated += u64::from(run.count);
            self.counters.repeated_bytes += bytes;
        }
    }

    /// The index of the blast that is served next: one with packets to send again, or a new one.
    fn next_ready(&mut self) -> Option<usize> {
        while let Some(number) = self.ready.front() {
            let place = number.wrapping_sub(self.base) as usize;
            if self
                .in_flight
                .get(place)
                .is_some_and(|in_flight| !matches!(in_flight.unsent, Unsent::Nothing))
            {
                return Some(place);
            }
            self.ready.pop_front();
        }
        let blast = self.next_blast()?;
        let packets = blast.packets(self.options.packet);
        self.in_flight.push_back(BlastInFlight::new(blast, packets));
        self.ready.push_back(blast.number);
        Some(self.in_flight.len() - 1)
    }

    /// Cuts the next blast, where there is something to cut and it may leave.
    fn next_blast(&mut self) -> Option<BlastExtent> {
        let bytes = self.next_length()?;
        let number = self.base.wrapping_add(self.in_flight.len() as u32);
        let blast = BlastExtent {
            number,
            start: self.cut,
            length: bytes,
            last: bytes == 0 && !self.empty,
        };
        if bytes == 0 {
            // A requested empty blast comes before the end.
            self.finished |= !self.empty;
            self.empty = false;
        }
        self.cut = blast.end();
        Some(blast)
    }

    /// Bytes of the blast that may be cut now.
    fn next_length(&self) -> Option<u32> {
        if self.in_flight.len() >= self.options.flight as usize {
            return None;
        }
        if self.waiting() == 0 {
            return (self.empty || (self.finish && !self.finished)).then_some(0);
        }
        let wanted = self.next_wanted()?;
        let granted = self.limit.saturating_sub(self.cut);
        // A blast that is cut short because the receiver has little room now would make many small ones.
        let enough = granted >= wanted || (self.in_flight.is_empty() && granted > 0);
        enough.then_some(wanted.min(granted) as u32)
    }

    /// The bytes of the next blast if the receiver grants them; `None` while a round trip has to be measured first.
    fn next_wanted(&self) -> Option<u64> {
        let unknown = self.options.pacing == BlastPacing::Auto && self.rtt.minimum().is_none();
        let most = match &self.rate {
            Some(rate) => rate.blast(self.options.flight),
            None if unknown && !self.in_flight.is_empty() => return None,
            None if unknown => FIRST,
            None => u64::MAX,
        };
        Some(self.waiting().min(u64::from(self.options.size)).min(most))
    }

    /// Whether all data that may leave is in flight, and the next blast waits only for the receiver's grant. Called
    /// after [`BlastSender::poll`] has yielded nothing.
    #[must_use]
    pub fn waits_for_grant(&self) -> bool {
        let may = self.in_flight.len() < self.options.flight as usize && self.ready.is_empty();
        may && self.waiting() > 0 && self.next_wanted().is_some() && self.next_length().is_none()
    }

    /// Bytes beyond those acknowledged that the receiver has granted.
    #[must_use]
    pub fn window(&self) -> u64 {
        self.limit.saturating_sub(self.acknowledged())
    }

    /// Bytes cut into blasts that have not arrived, as far as known.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.cut
            .saturating_sub(self.arrived.max(self.acknowledged()))
    }

    /// Whether only the receiver's grant keeps the sender from sending.
    fn is_blocked(&self) -> bool {
        self.in_flight.is_empty() && self.end > self.cut && self.limit <= self.cut
    }

    /// A probe of the receiver's limit, when one is due.
    pub fn poll_probe(&mut self, now: Instant) -> Option<BlastHeader> {
        if !self.is_blocked() {
            self.probe = None;
            return None;
        }
        match self.probe {
            None => {
                self.probe = Some((now + PROBE, PROBE));
                None
            }
            Some((at, waited)) if at <= now => {
                let next = Duration((2 * waited.0).min(PROBE_LONGEST.0));
                self.probe = Some((now + next, next));
                self.probing = true;
                self.unanswered_since.get_or_insert(now);
                Some(BlastHeader {
                    start: self.cut,
                    ..BlastHeader::new(BlastPacketKind::Probe, self.connection)
                })
            }
            Some(_) => None,
        }
    }

    /// Notes that a whole round has been sent, whose last packet requests an answer.
    fn request_ack(&mut self, place: usize, now: Instant) {
        if self.ack_request_due().is_none() {
            // Time without an open request does not count as the peer's silence.
            let silent = self
                .resending_since
                .take()
                .zip(self.unanswered_since)
                .map_or(Duration::ZERO, |(until, since)| until - since);
            self.unanswered_since = Some(Instant(now.0.saturating_sub(silent.0)));
        }
        let in_flight = &mut self.in_flight[place];
        let order = self
            .ack_requests
            .ask(in_flight.blast.number, in_flight.round, now);
        in_flight.ack_requested_at = Some((now, order));
        let (in_flight, base) = (&self.in_flight, self.base);
        self.ack_requests
            .prune(in_flight.len(), |request| is_open(in_flight, base, request));
    }

    /// Handles all requests whose answer is overdue.
    fn handle_timeouts(&mut self, now: Instant) {
        while let Some((at, wait)) = self.ack_request_due() {
            if at > now {
                return;
            }
            let Some(request) = self.ack_requests.pop() else {
                return;
            };
            self.unanswered(now, request, wait);
        }
    }

    fn unanswered(&mut self, now: Instant, request: AckRequest, wait: BlastSenderWait) {
        if wait == BlastSenderWait::Timeout {
            // A receiver that never sends NAKs is silent whenever something is missing, so silence alone must not
            // double the wait again and again.
            let silent = self.options.strategy == BlastStrategy::Full;
            self.rtt
                .back_off(if silent { FULL_DOUBLED } else { MOST_DOUBLED });
            if let Some(rate) = &mut self.rate {
                rate.silent(now);
            }
        }
        self.counters.timeouts += 1;
        let reason = if wait == BlastSenderWait::Overtaken {
            BlastSendReason::Overtaken
        } else {
            BlastSendReason::Timeout
        };
        let place = request.number.wrapping_sub(self.base) as usize;
        // The request was found open just now, so its blast is in flight.
        let in_flight = &mut self.in_flight[place];
        match self.options.strategy {
            BlastStrategy::Full | BlastStrategy::FullNak => {
                let packets = in_flight.blast.packets(self.options.packet);
                in_flight.begin(Unsent::From(0), packets, reason);
                in_flight.valid_from = in_flight.round;
            }
            BlastStrategy::Partial | BlastStrategy::Selective => {
                // The last packet alone asks again: the answer names what else is missing.
                let mut last = Bitmap::none(in_flight.blast.packets(self.options.packet));
                last.put(in_flight.last_packet);
                in_flight.begin(Unsent::Selected(last, in_flight.last_packet), 1, reason);
            }
        }
        self.enqueue(request.number);
        if self.ack_request_due().is_none() {
            self.resending_since.get_or_insert(now);
        }
    }

    /// Puts a blast on the list of blasts to serve, in the order of the stream.
    fn enqueue(&mut self, number: u32) {
        // Numbers wrap: their order is that of their distance from the first blast in flight.
        let ahead = |number: u32| number.wrapping_sub(self.base) as i32;
        let place = self
            .ready
            .partition_point(|other| ahead(*other) < ahead(number));
        self.ready.insert(place, number);
    }

    /// When the first open request is due; requests that are no longer open are removed.
    fn ack_request_due(&mut self) -> Option<(Instant, BlastSenderWait)> {
        let (in_flight, base) = (&self.in_flight, self.base);
        self.ack_requests
            .due(&self.rtt, |request| is_open(in_flight, base, request))
    }

    /// When to poll next, and why. Called after [`BlastSender::poll`] has yielded nothing.
    pub fn deadline(&mut self, now: Instant) -> Option<(Instant, BlastSenderWait)> {
        let unsent = !self.ready.is_empty() || self.next_length().is_some();
        let send = unsent.then(|| match self.rate.as_mut().map(|rate| rate.may_send(now)) {
            // Never now: a rounding error of the pace would repeat this instant without end.
            Some(Err(at)) => (at.max(now + Duration(1)), BlastSenderWait::Pace),
            _ => (now, BlastSenderWait::Ready),
        });
        let request = self.ack_request_due();
        let probe = self
            .is_blocked()
            .then(|| (self.probe.map_or(now, |(at, _)| at), BlastSenderWait::Probe));
        let give_up = self.gives_up_at().map(|at| (at, BlastSenderWait::Patience));
        [send, request, probe, give_up]
            .into_iter()
            .flatten()
            .min_by_key(|(at, _)| *at)
    }

    /// The driver was away: silence so far is not the receiver's.
    pub fn resume(&mut self, now: Instant) {
        self.unanswered_since = self.unanswered_since.map(|_| now);
    }

    /// When the peer will have been silent for longer than the patience.
    pub fn gives_up_at(&mut self) -> Option<Instant> {
        let awaits_answer = self.ack_request_due().is_some() || self.probing;
        self.unanswered_since
            .filter(|_| awaits_answer)
            .map(|since| since + self.options.patience)
    }
}

/// Whether a request is still open, given the blasts in flight, of which the first has number `base`.
fn is_open(in_flight: &VecDeque<BlastInFlight>, base: u32, request: &AckRequest) -> bool {
    let place = request.number.wrapping_sub(base) as usize;
    in_flight
        .get(place)
        .is_some_and(|in_flight| in_flight.awaits_answer(request.round))
}

#[cfg(test)]
impl BlastSender {
    /// Sets the state as if `number` blasts had been sent before, up to a position of the stream.
    pub(super) fn start_at(&mut self, number: u32, position: u64) {
        self.base = number;
        (self.end, self.cut) = (self.end + position, position);
        self.limit = self.limit.saturating_add(position);
    }

    /// Position up to which the stream has been cut into blasts.
    pub(super) const fn cut(&self) -> u64 {
        self.cut
    }

    /// Checks the invariants.
    pub(super) fn check(&self) {
        assert!(self.cut <= self.end && self.cut <= self.limit);
        assert!(self.in_flight.len() <= self.options.flight as usize);
        self.ack_requests
            .check(self.in_flight.len().max(self.options.flight as usize));
        assert!(self.ready.len() <= 2 * self.options.flight as usize);
        for (place, in_flight) in self.in_flight.iter().enumerate() {
            assert_eq!(in_flight.blast.number, self.base.wrapping_add(place as u32));
            assert!(in_flight.arrived < in_flight.blast.packets(self.options.packet));
        }
        let pairs = self.in_flight.iter().zip(self.in_flight.iter().skip(1));
        assert!(
            pairs
                .into_iter()
                .all(|(one, next)| one.blast.end() == next.blast.start)
        );
    }
}
