//! Programs of hosts on a network of IMPs: senders that keep so many messages under way, hosts that discard, background (BBN 2499,
//! 2.2.1). Sums are of a time in which nothing begins any more that counts.

use super::{ImpHostNotice, ImpSubnet, ImpSubnetPlan};
use rand_core::Rng as _;
use stackline_core::random::{Generator, Seed};
use stackline_core::time::{Duration, Instant};
use stackline_proto::papers::imp::packet::FULL_MESSAGE_BITS;
use stackline_proto::papers::imp::{ImpDeliveryFailure, ImpHostAddress, ImpMessage};
use std::collections::BTreeMap;

/// How long a host waits after a message of its failed.
const AFTER_FAILURE: Duration = Duration(500_000_000);

/// Who sends to whom.
#[derive(Clone, Copy, Debug)]
pub struct ImpTrafficSender {
    /// The host that sends; it has no other sender.
    pub from: ImpHostAddress,
    /// The host that gets it.
    pub to: ImpHostAddress,
    /// Of each message, bits.
    pub bits: u32,
    /// When it begins.
    pub begins: Instant,
    /// How it goes on.
    pub pace: ImpSenderPace,
}

/// When a sender sends.
#[derive(Clone, Copy, Debug)]
pub enum ImpSenderPace {
    /// As long as fewer than so many messages are not answered.
    InFlight(u32),
    /// At random moments, so far apart on average; only where its interface is free.
    Random(Duration),
}

impl ImpTrafficSender {
    /// One that sends full messages, so many under way.
    #[must_use]
    pub const fn full(from: ImpHostAddress, to: ImpHostAddress, in_flight: u32) -> Self {
        Self {
            from,
            to,
            bits: FULL_MESSAGE_BITS,
            begins: Instant(0),
            pace: ImpSenderPace::InFlight(in_flight),
        }
    }
}

/// What came of a sender.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImpSenderResult {
    /// Messages delivered within the time that counts, and their bits.
    pub delivered: (u64, u64),
    /// All that were offered, answered, and failed, by why.
    pub offered: u64,
    /// See `offered`.
    pub answered: u64,
    /// See `offered`.
    pub failed: BTreeMap<ImpDeliveryFailure, u64>,
    /// Messages that came twice.
    pub twice: u64,
    /// Sum of times from offer to answer, of those that were answered within the time that counts, s, and how many.
    pub round_trips: (f64, u64),
}

impl ImpSenderResult {
    /// bit/s delivered in a time.
    #[must_use]
    pub fn rate(&self, of: Duration) -> f64 {
        self.delivered.1 as f64 / of.seconds()
    }
}

#[derive(Debug)]
struct ImpSenderState {
    sender: ImpTrafficSender,
    next: u64,
    /// A message is offered and not accepted.
    is_offering: bool,
    /// After a failure it waits.
    not_before: Instant,
    unanswered: BTreeMap<u64, Instant>,
    /// Every message below has come, and single ones above.
    came: std::collections::BTreeSet<u64>,
    generator: Generator,
    /// When one that sends at random sends next.
    next_random: Instant,
    result: ImpSenderResult,
}

/// A run: a network and its senders.
#[derive(Debug)]
pub struct ImpTrafficRun {
    /// The network.
    pub network: ImpSubnet,
    states: Vec<ImpSenderState>,
    by_host: BTreeMap<ImpHostAddress, usize>,
    counts: (Instant, Instant),
}

impl ImpTrafficRun {
    /// At rest: nothing has been sent.
    #[must_use]
    pub fn new(plan: &ImpSubnetPlan, senders: &[ImpTrafficSender], seed: Seed) -> Self {
        let mut network = ImpSubnet::new(plan, seed.child("lines"));
        for (number, sender) in (0..).zip(senders) {
            network.timer(sender.begins, number);
        }
        let state = |(number, sender): (u64, &ImpTrafficSender)| ImpSenderState {
            sender: *sender,
            next: 0,
            is_offering: false,
            not_before: Instant(0),
            unanswered: BTreeMap::new(),
            came: std::collections::BTreeSet::new(),
            generator: seed.child("senders").index(number).generator(),
            next_random: sender.begins,
            result: ImpSenderResult::default(),
        };
        let by_host = senders
            .iter()
            .enumerate()
            .map(|(number, sender)| (sender.from, number))
            .collect();
        let states = (0..).zip(senders).map(state).collect();
        Self {
            network,
            states,
            by_host,
            counts: (Instant(0), Instant(u64::MAX)),
        }
    }

    /// What came of each sender in the time `counts`, after the run went on until its end.
    pub fn run(&mut self, counts: (Instant, Instant)) -> Vec<ImpSenderResult> {
        self.counts = counts;
        self.until(counts.1);
        self.states
            .iter()
            .map(|state| state.result.clone())
            .collect()
    }

    /// Goes on until a moment.
    pub fn until(&mut self, until: Instant) {
        while let Some((now, host, news)) = self.network.poll(until) {
            self.learns(now, host, news);
        }
    }

    /// What came of a sender so far.
    #[must_use]
    pub fn result(&self, sender: usize) -> &ImpSenderResult {
        &self.states[sender].result
    }

    /// Messages of a sender that were not answered.
    #[must_use]
    pub fn unanswered(&self, sender: usize) -> usize {
        self.states[sender].unanswered.len()
    }

    /// No sender begins another message.
    pub fn stop(&mut self) {
        self.by_host.clear();
        for state in &mut self.states {
            state.sender.pace = ImpSenderPace::InFlight(0);
        }
    }

    fn learns(&mut self, now: Instant, host: ImpHostAddress, news: ImpHostNotice) {
        let is_counted = self.counts.0 < now && now <= self.counts.1;
        match news {
            ImpHostNotice::Timer(number) => self.timer(now, number as usize),
            ImpHostNotice::Accepted(message) => self.of(message, |state| state.is_offering = false),
            ImpHostNotice::Delivered(message) => self.of(message, |state| {
                state.result.twice += u64::from(!state.came.insert(message.id));
                if is_counted {
                    state.result.delivered.0 += 1;
                    state.result.delivered.1 += u64::from(message.bits);
                }
                // Only so many can be under way: older ones do not come any more.
                if state.came.len() > 4096 {
                    state.came.pop_first();
                }
            }),
            ImpHostNotice::Answered(message) => self.of(message, |state| {
                state.result.answered += 1;
                if let Some(since) = state.unanswered.remove(&message.id)
                    && is_counted
                {
                    state.result.round_trips.0 += now.since(since).seconds();
                    state.result.round_trips.1 += 1;
                }
            }),
            ImpHostNotice::Failed(message, why) => {
                self.of(message, |state| {
                    *state.result.failed.entry(why).or_default() += 1;
                    state.unanswered.remove(&message.id);
                    // What a dead host's IMP says has taken its time.
                    state.not_before = if why == ImpDeliveryFailure::DeadHost {
                        now
                    } else {
                        now + AFTER_FAILURE
                    };
                });
                if why != ImpDeliveryFailure::DeadHost {
                    self.network
                        .timer(now + AFTER_FAILURE, (message.id >> 40) as u32);
                }
            }
        }
        if let Some(number) = self.by_host.get(&host).copied() {
            self.offer(now, number);
        }
    }

    fn of(&mut self, message: ImpMessage, change: impl FnOnce(&mut ImpSenderState)) {
        // Who sent it, even where it sends no more.
        if let Some(state) = self.states.get_mut((message.id >> 40) as usize) {
            change(state);
        }
    }

    fn timer(&mut self, now: Instant, number: usize) {
        let Some(state) = self.states.get_mut(number) else {
            return;
        };
        if let ImpSenderPace::Random(mean) = state.sender.pace
            && now >= state.next_random
        {
            let unit = (state.generator.next_u64() >> 11) as f64 / 9_007_199_254_740_992.0;
            let gap = Duration::from_seconds(-mean.seconds() * (1.0 - unit).ln());
            state.next_random = now + gap;
            self.network.timer(now + gap, number as u32);
            if !state.is_offering {
                self.send(now, number);
            }
            return;
        }
        self.offer(now, number);
    }

    /// Offers messages while fewer than wanted are under way.
    fn offer(&mut self, now: Instant, number: usize) {
        let Some(state) = self.states.get(number) else {
            return;
        };
        if let ImpSenderPace::InFlight(most) = state.sender.pace
            && !state.is_offering
            && state.unanswered.len() < most as usize
            && now >= state.sender.begins.max(state.not_before)
        {
            self.send(now, number);
        }
    }

    fn send(&mut self, now: Instant, number: usize) {
        let state = &mut self.states[number];
        let id = (number as u64) << 40 | state.next;
        let ImpTrafficSender { from, to, bits, .. } = state.sender;
        state.next += 1;
        state.is_offering = true;
        state.result.offered += 1;
        state.unanswered.insert(id, now);
        self.network.offer(now, ImpMessage { from, to, bits, id });
    }
}
