//! The sending machine of one direction: cuts its stream into blasts, sends them in rounds, and sends again what an answer,
//! or the lack of one, says is missing (Zwaenepoel 1985, sections 2 and 3.2).
//!
//! It never sees data: what it yields says which bytes of the stream the carrier is to send. It never sends beyond what the
//! receiver has granted.

use super::flying::{Flying, Work};
use super::interval::{MOST_DOUBLED, Patience};
use super::marks::Marks;
use super::options::{Blast, Options, Pacing, Strategy};
use super::questions::{Question, Questions};
use super::rate::{Answered, Rate};
use super::wire::{ASK, COMPLETE, FIN, HUSH, Header, Kind, LIMIT, is_before};
use alloc::collections::VecDeque;
use stackline_core::time::{Duration, Instant};

/// Round trips shorter than this are a local network's: nothing is paced there unless asked for.
const LOCAL: Duration = Duration(2_000_000);
/// Most bytes that leave before anything is known of the path, where the pace depends on it.
const FIRST: u64 = 64 << 10;
/// With full retransmission the interval is doubled once at most.
const FULL_DOUBLED: u32 = 1;
/// A sender that may not go on asks again after so long, then after twice as long, up to the longest.
const PROBE: Duration = Duration(5_000_000);
const PROBE_LONGEST: Duration = Duration(500_000_000);

/// Consecutive packets of one blast, all full but the last of the blast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Which connection.
    pub connection: u32,
    /// The blast they belong to.
    pub blast: Blast,
    /// Which transmission of it.
    pub round: u16,
    /// Index of the first packet.
    pub first: u32,
    /// How many packets.
    pub count: u32,
    /// Whether the last of them asks for an answer.
    pub asks: bool,
    /// Bytes of a full packet.
    pub packet: u32,
    /// Why they leave.
    pub why: Why,
}

/// Why packets leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// For the first time.
    New,
    /// The receiver says what is missing.
    Missing,
    /// A question was not answered in time.
    Timeout,
    /// A later question was answered, this one was not.
    Overtaken,
}

impl Why {
    /// Its word in events.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Missing => "nak",
            Self::Timeout => "timeout",
            Self::Overtaken => "overtaken",
        }
    }
}

impl Run {
    /// The header of its `n`th packet; `check` goes with the one that asks.
    #[must_use]
    #[inline]
    pub fn header(&self, n: u32, check: u32) -> Header {
        let asks = self.asks && n + 1 == self.count;
        let flags = if asks { ASK } else { 0 } | if self.blast.last { FIN } else { 0 };
        Header {
            kind: Kind::Data,
            flags,
            round: self.round,
            connection: self.connection,
            blast: self.blast.number,
            length: self.blast.length,
            start: self.blast.start,
            index: (self.first + n) as u16,
            check: if asks { check } else { 0 },
        }
    }

    /// Stream position and bytes of its `n`th packet.
    #[must_use]
    #[inline]
    pub fn span(&self, n: u32) -> (u64, u32) {
        self.blast.span(self.first + n, self.packet)
    }
}

/// Why a sender wants to be asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// There is something to send.
    Ready,
    /// The pace allows the next packet.
    Pace,
    /// A question has not been answered.
    Timeout,
    /// A later question was answered, an earlier one was not.
    Overtaken,
    /// The receiver has no buffer; it is asked whether it has one now.
    Probe,
    /// The peer has been silent for too long.
    Patience,
}

/// What a sender has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Data packets sent, repeated ones included.
    pub packets: u64,
    /// Data packets that were sent again.
    pub repeated: u64,
    /// Bytes of data in them.
    pub repeated_bytes: u64,
    /// Questions that were not answered in time.
    pub timeouts: u64,
    /// Answers that named something missing.
    pub refusals: u64,
    /// Bytes known to have arrived.
    pub acknowledged: u64,
}

/// The sending machine.
#[derive(Clone, Debug)]
pub struct Sender {
    options: Options,
    connection: u32,
    flying: VecDeque<Flying>,
    /// Number of the first blast flying.
    base: u32,
    /// Stream positions: handed over by the application, cut into blasts, granted by the receiver.
    end: u64,
    cut: u64,
    limit: u64,
    /// An empty blast, or the last one, is wanted.
    empty: bool,
    finish: bool,
    finished: bool,
    /// Blasts with work, in the order they are to be served.
    ready: VecDeque<u32>,
    questions: Questions,
    patience: Patience,
    rate: Option<Rate>,
    /// When a blocked sender asks again, and how long it waited last.
    probe: Option<(Instant, Duration)>,
    probing: bool,
    /// Since when the peer has owed an answer, and since when nothing is asked, as what it has not answered is sent again.
    owed: Option<Instant>,
    unasked: Option<Instant>,
    /// Bytes known to have arrived, in whatever order.
    arrived: u64,
    seen: Sent,
}

impl Sender {
    /// A sender whose receiver has granted `limit` bytes.
    #[must_use]
    pub fn new(options: &Options, connection: u32, limit: u64) -> Self {
        let options = options.fitted();
        let rate = match options.pacing {
            Pacing::Ceiling(rate) => Some(Rate::new(options.packet, Some(rate))),
            Pacing::Off | Pacing::Auto => None,
        };
        Self {
            options,
            connection,
            flying: VecDeque::new(),
            base: 0,
            end: 0,
            cut: 0,
            limit,
            empty: false,
            finish: false,
            finished: false,
            ready: VecDeque::new(),
            questions: Questions::default(),
            patience: Patience::new(options.interval),
            rate,
            probe: None,
            probing: false,
            owed: None,
            unasked: None,
            arrived: 0,
            seen: Sent::default(),
        }
    }

    /// Begins anew as both ends agreed; what the application has handed over stays.
    pub(super) fn agree(&mut self, options: &Options, connection: u32, limit: u64) {
        let Self { end, empty, finish, .. } = *self;
        *self = Self { end, empty, finish, ..Self::new(options, connection, limit) };
    }

    // --- the application's side ---

    /// Hands over the next `bytes` of the stream; none at all is an empty blast, which arrives like any other.
    pub fn send(&mut self, bytes: u64) {
        self.end = self.end.saturating_add(bytes);
        self.empty |= bytes == 0;
    }

    /// Nothing more comes: the receiver is told, as reliably as of anything else.
    pub fn finish(&mut self) {
        self.finish = true;
    }

    /// What is handed over next lies at `position`, and all up to `limit` is granted: for data that does not go on where it
    /// ended ([`crate::ikp`]). The receiver is known to have everything before.
    pub fn seek(&mut self, position: u64, limit: u64) {
        self.base = self.base.wrapping_add(self.flying.len() as u32);
        self.flying.clear();
        self.ready.clear();
        self.questions.clear();
        (self.cut, self.end, self.limit) = (position, position, limit);
        (self.owed, self.unasked, self.probe, self.probing) = (None, None, None, false);
    }

    /// Bytes up to which everything has arrived.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.flying.front().map_or(self.cut, |first| first.blast.start)
    }

    /// Bytes handed over that have not been cut into blasts yet.
    #[must_use]
    pub const fn waiting(&self) -> u64 {
        self.end - self.cut
    }

    /// Whether everything handed over has arrived.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.flying.is_empty() && self.cut == self.end && !self.empty && (!self.finish || self.finished)
    }

    /// What it has seen.
    #[must_use]
    pub fn seen(&self) -> Sent {
        Sent { acknowledged: self.acknowledged(), ..self.seen }
    }

    /// Its estimate of round trips.
    #[must_use]
    pub const fn patience(&self) -> &Patience {
        &self.patience
    }

    /// The rate it paces at, in bit/s.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        self.rate.as_ref().map(Rate::rate)
    }

    /// A round trip measured elsewhere: when the connection was opened.
    pub fn sample(&mut self, rtt: Duration) {
        self.patience.sample(rtt);
        self.consider_pacing();
    }

    fn consider_pacing(&mut self) {
        if self.patience.minimum().is_some_and(|rtt| rtt > LOCAL) {
            self.seems_far();
        }
    }

    /// The peer is not near, or the path loses: packets are paced where that is left to the sender.
    pub fn seems_far(&mut self) {
        if self.rate.is_none() && self.options.pacing == Pacing::Auto {
            self.rate = Some(Rate::new(self.options.packet, None));
        }
    }

    // --- what arrives ---

    /// An answer has arrived, with what follows its header. Anything that makes no sense is dropped.
    pub fn handle(&mut self, now: Instant, answer: &Header, body: &[u8]) {
        if answer.kind != Kind::Answer || answer.connection != self.connection {
            return;
        }
        self.raise_limit(answer.start);
        if !answer.has(LIMIT) {
            self.answered(now, answer, body);
        }
        self.owed = self.question_due().map(|_| now);
        self.unasked = None;
    }

    fn answered(&mut self, now: Instant, answer: &Header, body: &[u8]) {
        let place = answer.blast.wrapping_sub(self.base) as usize;
        let Some(flying) = self.flying.get_mut(place).filter(|flying| !flying.complete) else { return };
        // A round that was never sent is answered by nobody.
        if is_before(flying.round, answer.round) {
            return;
        }
        let hush = answer.has(HUSH);
        // Said before the last question can have arrived.
        if hush && flying.asked_at.zip(self.patience.minimum()).is_some_and(|((at, _), rtt)| now < at + rtt) {
            return;
        }
        let asked = flying.asked_at.filter(|_| answer.round == flying.round && !hush);
        let packets = flying.packets;
        let lost = if answer.has(COMPLETE) {
            self.complete(place);
            0
        } else {
            self.refused(place, answer, body)
        };
        if let Some(asked) = asked {
            self.measure(now, asked, packets, lost);
        }
    }

    /// The peer has closed the connection when everything before that position had arrived, perhaps the end of the stream as
    /// well: where that is all there was, nothing is left to do, whether it was answered or not.
    pub(super) fn closed(&mut self, position: u64, ended: bool) {
        if self.cut != self.end || position < self.end || self.empty || (self.finish && !ended) {
            return;
        }
        self.base = self.base.wrapping_add(self.flying.len() as u32);
        self.flying.clear();
        self.finished = self.finish;
    }

    fn raise_limit(&mut self, limit: u64) {
        if limit > self.limit {
            self.limit = limit;
            self.probe = None;
            self.probing = false;
        }
    }

    fn measure(&mut self, now: Instant, (asked_at, order): (Instant, u64), packets: u32, lost: u32) {
        self.patience.sample(now.since(asked_at));
        self.questions.answered(order);
        self.consider_pacing();
        let delivered = self.arrived;
        if let Some(rate) = &mut self.rate {
            rate.answered(now, Answered { sent: asked_at, delivered, packets, lost });
        }
    }

    fn complete(&mut self, place: usize) {
        let flying = &mut self.flying[place];
        flying.complete = true;
        flying.work = Work::Done;
        let before = u64::from(flying.arrived) * u64::from(self.options.packet);
        self.arrived += u64::from(flying.blast.length).saturating_sub(before);
        while let Some(first) = self.flying.front().filter(|first| first.complete) {
            self.finished |= first.blast.last;
            self.flying.pop_front();
            self.base = self.base.wrapping_add(1);
        }
    }

    /// Something is missing: sends it as a new round. How many packets it says are lost.
    fn refused(&mut self, place: usize, answer: &Header, body: &[u8]) -> u32 {
        let options = self.options;
        let flying = &mut self.flying[place];
        let stale = is_before(answer.round, flying.news_from);
        let total = flying.blast.packets(options.packet);
        let first = u32::from(answer.index);
        // A repetition that has not left yet gives way to what is known now; any other round is sent first.
        let waits = !matches!(flying.work, Work::Done);
        if stale || first >= total || (waits && answer.round == flying.round) {
            return 0;
        }
        let forgets = matches!(options.strategy, Strategy::Full | Strategy::FullNak);
        let (work, packets) = match options.strategy {
            Strategy::Full | Strategy::FullNak => (Work::From(0), total),
            Strategy::Partial => (Work::From(first), total - first),
            Strategy::Selective => {
                let missing = Marks::told(first, body, total);
                let Some(first) = missing.next(0, true) else { return 0 };
                let count = missing.count();
                (Work::Those(missing, first), count)
            }
        };
        if waits {
            (flying.work, flying.packets, flying.why) = (work, packets, Why::Missing);
        } else {
            flying.begin(work, packets, Why::Missing);
        }
        flying.news_from = flying.round;
        let arrived = if forgets { 0 } else { total - packets };
        if arrived > flying.arrived {
            self.arrived += u64::from(arrived - flying.arrived) * u64::from(options.packet);
            flying.arrived = arrived;
        }
        if !waits {
            self.enqueue(answer.blast);
        }
        self.seen.refusals += 1;
        answer.check.clamp(1, total)
    }

    // --- what leaves ---

    /// The next packets to send, at most `most` of them.
    pub fn poll(&mut self, now: Instant, most: u32) -> Option<Run> {
        self.ring(now);
        let allowed = self.allowed(now)?.min(most.max(1));
        let place = self.next_ready()?;
        let flying = &mut self.flying[place];
        let total = flying.blast.packets(self.options.packet);
        let again = flying.round > 0;
        let run = flying.take(allowed, total, self.connection, self.options.packet);
        let rest = matches!(flying.work, Work::Done);
        if rest {
            self.ready.pop_front();
            self.ask(place, now);
        }
        self.count(now, &run, again);
        Some(run)
    }

    /// How many packets the pace allows; `None` for none.
    fn allowed(&mut self, now: Instant) -> Option<u32> {
        let Some(rate) = &mut self.rate else { return Some(u32::MAX) };
        let bytes = rate.may_send(now).ok()?;
        Some(u32::try_from(bytes / u64::from(self.options.packet)).unwrap_or(u32::MAX).max(1))
    }

    fn count(&mut self, now: Instant, run: &Run, again: bool) {
        let (last, length) = run.span(run.count - 1);
        let bytes = last + u64::from(length) - run.span(0).0;
        if let Some(rate) = &mut self.rate {
            rate.sent(now, bytes);
        }
        self.seen.packets += u64::from(run.count);
        if again {
            self.seen.repeated += u64::from(run.count);
            self.seen.repeated_bytes += bytes;
        }
    }

    /// The place of the blast that is served next: one that has work, or a new one.
    fn next_ready(&mut self) -> Option<usize> {
        while let Some(number) = self.ready.front() {
            let place = number.wrapping_sub(self.base) as usize;
            if self.flying.get(place).is_some_and(|flying| !matches!(flying.work, Work::Done)) {
                return Some(place);
            }
            self.ready.pop_front();
        }
        let blast = self.next_blast()?;
        let packets = blast.packets(self.options.packet);
        self.flying.push_back(Flying::new(blast, packets));
        self.ready.push_back(blast.number);
        Some(self.flying.len() - 1)
    }

    /// Cuts the next blast, where there is something to cut and it may leave.
    fn next_blast(&mut self) -> Option<Blast> {
        let bytes = self.next_length()?;
        let number = self.base.wrapping_add(self.flying.len() as u32);
        let blast = Blast { number, start: self.cut, length: bytes, last: bytes == 0 && !self.empty };
        if bytes == 0 {
            // An empty blast that was wanted comes before the end.
            self.finished |= !self.empty;
            self.empty = false;
        }
        self.cut = blast.end();
        Some(blast)
    }

    /// Bytes of the blast that may be cut now.
    fn next_length(&self) -> Option<u32> {
        if self.flying.len() >= self.options.flight as usize {
            return None;
        }
        if self.waiting() == 0 {
            return (self.empty || (self.finish && !self.finished)).then_some(0);
        }
        let wanted = self.next_wanted()?;
        let granted = self.limit.saturating_sub(self.cut);
        // A blast that is cut short because the receiver has little room now would make many small ones.
        let enough = granted >= wanted || (self.flying.is_empty() && granted > 0);
        enough.then_some(wanted.min(granted) as u32)
    }

    /// Bytes of the next blast if the receiver grants them.
    fn next_wanted(&self) -> Option<u64> {
        let unknown = self.options.pacing == Pacing::Auto && self.patience.minimum().is_none();
        let most = match &self.rate {
            Some(rate) => rate.blast(self.options.flight),
            None if unknown && !self.flying.is_empty() => return None,
            None if unknown => FIRST,
            None => u64::MAX,
        };
        Some(self.waiting().min(u64::from(self.options.size)).min(most))
    }

    /// Whether everything that may leave is on its way, and the next blast waits for nothing but the receiver's grant. Asked
    /// after [`Sender::poll`] has yielded nothing.
    #[must_use]
    pub fn waits_for_grant(&self) -> bool {
        let may = self.flying.len() < self.options.flight as usize && self.ready.is_empty();
        may && self.waiting() > 0 && self.next_wanted().is_some() && self.next_length().is_none()
    }

    /// Bytes beyond those acknowledged that the receiver has granted.
    #[must_use]
    pub fn window(&self) -> u64 {
        self.limit.saturating_sub(self.acknowledged())
    }

    /// Bytes cut into blasts that are not known to have arrived.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.cut.saturating_sub(self.arrived.max(self.acknowledged()))
    }

    /// Whether only the receiver's buffer keeps it from sending.
    fn is_blocked(&self) -> bool {
        self.flying.is_empty() && self.end > self.cut && self.limit <= self.cut
    }

    /// A question whether it may go on, where one is due.
    pub fn poll_probe(&mut self, now: Instant) -> Option<Header> {
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
                self.owed.get_or_insert(now);
                Some(Header { start: self.cut, ..Header::new(Kind::Probe, self.connection) })
            }
            Some(_) => None,
        }
    }

    /// The round of that blast is sent and its last packet asks.
    fn ask(&mut self, place: usize, now: Instant) {
        if self.question_due().is_none() {
            // Time in which it was not asked is not the peer's silence.
            let silent = self.unasked.take().zip(self.owed).map_or(Duration::ZERO, |(until, since)| until - since);
            self.owed = Some(Instant(now.0.saturating_sub(silent.0)));
        }
        let flying = &mut self.flying[place];
        let order = self.questions.ask(flying.blast.number, flying.round, now);
        flying.asked_at = Some((now, order));
        let (flying, base) = (&self.flying, self.base);
        self.questions.thin(flying.len(), |question| is_open(flying, base, question));
    }

    /// Does what is due.
    fn ring(&mut self, now: Instant) {
        while let Some((at, wait)) = self.question_due() {
            if at > now {
                return;
            }
            let Some(question) = self.questions.pop() else { return };
            self.unanswered(now, question, wait);
        }
    }

    fn unanswered(&mut self, now: Instant, question: Question, wait: Wait) {
        if wait == Wait::Timeout {
            // A receiver that never refuses is silent whenever something is missing: that alone is no reason to wait longer
            // and longer.
            let silent = self.options.strategy == Strategy::Full;
            self.patience.double(if silent { FULL_DOUBLED } else { MOST_DOUBLED });
            if let Some(rate) = &mut self.rate {
                rate.silent(now);
            }
        }
        self.seen.timeouts += 1;
        let why = if wait == Wait::Overtaken { Why::Overtaken } else { Why::Timeout };
        let place = question.number.wrapping_sub(self.base) as usize;
        let flying = &mut self.flying[place];
        match self.options.strategy {
            Strategy::Full | Strategy::FullNak => {
                let packets = flying.blast.packets(self.options.packet);
                flying.begin(Work::From(0), packets, why);
                flying.news_from = flying.round;
            }
            Strategy::Partial | Strategy::Selective => {
                let mut last = Marks::none(flying.blast.packets(self.options.packet));
                last.put(flying.asked);
                flying.begin(Work::Those(last, flying.asked), 1, why);
            }
        }
        self.enqueue(question.number);
        if self.question_due().is_none() {
            self.unasked.get_or_insert(now);
        }
    }

    /// A blast is to be served: those that come first in the stream go first.
    fn enqueue(&mut self, number: u32) {
        let ahead = |number: u32| number.wrapping_sub(self.base) as i32;
        let place = self.ready.partition_point(|other| ahead(*other) < ahead(number));
        self.ready.insert(place, number);
    }

    /// When the first question that is still open is due; questions that are not open any more go.
    fn question_due(&mut self) -> Option<(Instant, Wait)> {
        let (flying, base) = (&self.flying, self.base);
        self.questions.due(&self.patience, |question| is_open(flying, base, question))
    }

    /// When it wants to be asked again, and why. Asked after [`Sender::poll`] has yielded nothing.
    pub fn deadline(&mut self, now: Instant) -> Option<(Instant, Wait)> {
        let work = !self.ready.is_empty() || self.next_length().is_some();
        let send = work.then(|| match self.rate.as_mut().map(|rate| rate.may_send(now)) {
            // Never now: a pace that is off by less than what a number holds would be asked for ever.
            Some(Err(at)) => (at.max(now + Duration(1)), Wait::Pace),
            _ => (now, Wait::Ready),
        });
        let question = self.question_due();
        let probe = self.is_blocked().then(|| (self.probe.map_or(now, |(at, _)| at), Wait::Probe));
        let give_up = self.gives_up_at().map(|at| (at, Wait::Patience));
        [send, question, probe, give_up].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    /// Nobody has listened until now: the silence so far is not the receiver's.
    pub fn attend(&mut self, now: Instant) {
        self.owed = self.owed.map(|_| now);
    }

    /// When the peer will have been silent for too long.
    pub fn gives_up_at(&mut self) -> Option<Instant> {
        let waits = self.question_due().is_some() || self.probing;
        self.owed.filter(|_| waits).map(|since| since + self.options.patience)
    }
}

/// Whether an answer to a question is still waited for, where these blasts fly, the first one with number `base`.
fn is_open(flying: &VecDeque<Flying>, base: u32, question: &Question) -> bool {
    let place = question.number.wrapping_sub(base) as usize;
    flying.get(place).is_some_and(|flying| flying.waits(question.round))
}

#[cfg(test)]
impl Sender {
    /// As if so many blasts had gone before, up to a position of the stream.
    pub(super) fn start_at(&mut self, number: u32, position: u64) {
        self.base = number;
        (self.end, self.cut) = (self.end + position, position);
        self.limit = self.limit.saturating_add(position);
    }

    /// Position up to which the stream has been cut into blasts.
    pub(super) const fn cut(&self) -> u64 {
        self.cut
    }

    /// What holds at any moment.
    pub(super) fn check(&self) {
        assert!(self.cut <= self.end && self.cut <= self.limit);
        assert!(self.flying.len() <= self.options.flight as usize);
        self.questions.check(self.flying.len().max(self.options.flight as usize));
        assert!(self.ready.len() <= 2 * self.options.flight as usize);
        for (place, flying) in self.flying.iter().enumerate() {
            assert_eq!(flying.blast.number, self.base.wrapping_add(place as u32));
            assert!(flying.arrived < flying.blast.packets(self.options.packet));
        }
        let pairs = self.flying.iter().zip(self.flying.iter().skip(1));
        assert!(pairs.into_iter().all(|(one, next)| one.blast.end() == next.blast.start));
    }
}
