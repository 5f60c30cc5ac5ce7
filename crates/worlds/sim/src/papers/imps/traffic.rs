//! Traffic between hosts on a network of IMPs (BBN 2499, 2.2.1): senders that keep a number of messages in flight, or send at random
//! times. Receivers discard what they get. A message id holds its sender's number in the bits from 40 up.

use super::{ImpHostNotice, ImpSubnet, ImpSubnetPlan};
use rand_core::Rng as _;
use stackline_core::random::{Generator, Seed};
use stackline_core::time::{Duration, Instant};
use stackline_proto::papers::imp::packet::FULL_MESSAGE_BITS;
use stackline_proto::papers::imp::{ImpDeliveryFailure, ImpHostAddress, ImpMessage};
use std::collections::BTreeMap;

/// How long a sender waits after one of its messages has failed.
const AFTER_FAILURE: Duration = Duration(500_000_000);

/// A sender: which host sends what to which host.
#[derive(Clone, Copy, Debug)]
pub struct ImpTrafficSender {
    /// The host that sends; it has no other sender.
    pub from: ImpHostAddress,
    /// The host that receives the messages.
    pub to: ImpHostAddress,
    /// The size of each message, bits.
    pub bits: u32,
    /// When it begins.
    pub begins: Instant,
    /// What decides when it sends the next message.
    pub pace: ImpSenderPace,
}

/// When a sender sends.
#[derive(Clone, Copy, Debug)]
pub enum ImpSenderPace {
    /// Whenever fewer than this many messages are unanswered.
    InFlight(u32),
    /// At exponentially distributed intervals with this mean; a message is skipped while the interface is not free.
    Random(Duration),
}

impl ImpTrafficSender {
    /// A sender of full messages from time 0 that keeps `in_flight` of them unanswered.
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

/// The results of a sender.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ImpSenderResult {
    /// Messages delivered in the measured interval, and their bits.
    pub delivered: (u64, u64),
    /// All messages that were offered.
    pub offered: u64,
    /// All messages that were answered.
    pub answered: u64,
    /// All messages that failed, by reason.
    pub failed: BTreeMap<ImpDeliveryFailure, u64>,
    /// Messages that were delivered a second time.
    pub twice: u64,
    /// Of the messages answered in the measured interval: the sum of times from offer to answer (s), and their number.
    pub round_trips: (f64, u64),
}

impl ImpSenderResult {
    /// The delivered rate in bit/s, where `of` is the length of the measured interval.
    #[must_use]
    pub fn rate(&self, of: Duration) -> f64 {
        self.delivered.1 as f64 / of.seconds()
    }
}

/// A sender at work.
#[derive(Debug)]
struct ImpSenderState {
    sender: ImpTrafficSender,
    /// The number of its next message, from 0.
    next: u64,
    /// A message was offered that the IMP has not accepted yet.
    is_offering: bool,
    /// It offers nothing before this time, as it waits after a failure.
    not_before: Instant,
    /// When each unanswered message was offered, by id.
    unanswered: BTreeMap<u64, Instant>,
    /// Ids of the messages that were delivered; only the latest 4096 are kept.
    came: std::collections::BTreeSet<u64>,
    generator: Generator,
    /// When a random sender sends next.
    next_random: Instant,
    result: ImpSenderResult,
}

/// A network of IMPs with its senders.
#[derive(Debug)]
pub struct ImpTrafficRun {
    /// The network.
    pub network: ImpSubnet,
    hosts: ImpTrafficHosts,
}

/// The hosts' programs: what all senders do.
#[derive(Debug)]
struct ImpTrafficHosts {
    states: Vec<ImpSenderState>,
    /// The sender of each host.
    by_host: BTreeMap<ImpHostAddress, usize>,
    /// The measured interval.
    counts: (Instant, Instant),
}

impl ImpTrafficRun {
    /// A run in which nothing has been sent yet.
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
            hosts: ImpTrafficHosts {
                states,
                by_host,
                counts: (Instant(0), Instant(u64::MAX)),
            },
        }
    }

    /// Runs until the end of the measured interval `counts` and returns each sender's results.
    pub fn run(&mut self, counts: (Instant, Instant)) -> Vec<ImpSenderResult> {
        self.hosts.counts = counts;
        self.until(counts.1);
        self.hosts
            .states
            .iter()
            .map(|state| state.result.clone())
            .collect()
    }

    /// Runs until `until`.
    pub fn until(&mut self, until: Instant) {
        let Self { network, hosts } = self;
        network.run(until, |network, now, host, news| {
            hosts.learns(network, now, host, news);
        });
    }

    /// The results of a sender so far.
    #[must_use]
    pub fn result(&self, sender: usize) -> &ImpSenderResult {
        &self.hosts.states[sender].result
    }

    /// The number of a sender's unanswered messages.
    #[must_use]
    pub fn unanswered(&self, sender: usize) -> usize {
        self.hosts.states[sender].unanswered.len()
    }

    /// Stops all senders: none offers another message.
    pub fn stop(&mut self) {
        self.hosts.by_host.clear();
        for state in &mut self.hosts.states {
            state.sender.pace = ImpSenderPace::InFlight(0);
        }
    }
}

impl ImpTrafficHosts {
    fn learns(
        &mut self,
        network: &mut ImpSubnet,
        now: Instant,
        host: ImpHostAddress,
        news: ImpHostNotice,
    ) {
        let is_counted = self.counts.0 < now && now <= self.counts.1;
        match news {
            ImpHostNotice::Timer(number) => self.timer(network, now, number as usize),
            ImpHostNotice::Accepted(message) => {
                self.change_sender(message, |state| state.is_offering = false)
            }
            ImpHostNotice::Delivered(message) => self.change_sender(message, |state| {
                state.result.twice += u64::from(!state.came.insert(message.id));
                if is_counted {
                    state.result.delivered.0 += 1;
                    state.result.delivered.1 += u64::from(message.bits);
                }
                // Far fewer messages can be under way at once, so older ones cannot be delivered again.
                if state.came.len() > 4096 {
                    state.came.pop_first();
                }
            }),
            ImpHostNotice::Answered(message) => self.change_sender(message, |state| {
                state.result.answered += 1;
                if let Some(since) = state.unanswered.remove(&message.id)
                    && is_counted
                {
                    state.result.round_trips.0 += now.since(since).seconds();
                    state.result.round_trips.1 += 1;
                }
            }),
            ImpHostNotice::Failed(message, why) => {
                self.change_sender(message, |state| {
                    *state.result.failed.entry(why).or_default() += 1;
                    state.unanswered.remove(&message.id);
                    // No extra wait: the report of a dead host has itself taken long enough.
                    state.not_before = if why == ImpDeliveryFailure::DeadHost {
                        now
                    } else {
                        now + AFTER_FAILURE
                    };
                });
                if why != ImpDeliveryFailure::DeadHost {
                    network.timer(now + AFTER_FAILURE, (message.id >> 40) as u32);
                }
            }
        }
        if let Some(number) = self.by_host.get(&host).copied() {
            self.offer(network, now, number);
        }
    }

    fn change_sender(&mut self, message: ImpMessage, change: impl FnOnce(&mut ImpSenderState)) {
        // The id names the sender, even after `stop` has cleared `by_host`.
        if let Some(state) = self.states.get_mut((message.id >> 40) as usize) {
            change(state);
        }
    }

    fn timer(&mut self, network: &mut ImpSubnet, now: Instant, number: usize) {
        let Some(state) = self.states.get_mut(number) else {
            return;
        };
        if let ImpSenderPace::Random(mean) = state.sender.pace
            && now >= state.next_random
        {
            let unit = (state.generator.next_u64() >> 11) as f64 / 9_007_199_254_740_992.0;
            let gap = Duration::from_seconds(-mean.seconds() * (1.0 - unit).ln());
            state.next_random = now + gap;
            network.timer(now + gap, number as u32);
            if !state.is_offering {
                self.send(network, now, number);
            }
            return;
        }
        self.offer(network, now, number);
    }

    /// Offers a message if fewer are in flight than the sender's pace wants.
    fn offer(&mut self, network: &mut ImpSubnet, now: Instant, number: usize) {
        let Some(state) = self.states.get(number) else {
            return;
        };
        if let ImpSenderPace::InFlight(most) = state.sender.pace
            && !state.is_offering
            && state.unanswered.len() < most as usize
            && now >= state.sender.begins.max(state.not_before)
        {
            self.send(network, now, number);
        }
    }

    fn send(&mut self, network: &mut ImpSubnet, now: Instant, number: usize) {
        let state = &mut self.states[number];
        let id = (number as u64) << 40 | state.next;
        let ImpTrafficSender { from, to, bits, .. } = state.sender;
        state.next += 1;
        state.is_offering = true;
        state.result.offered += 1;
        state.unanswered.insert(id, now);
        network.offer(now, ImpMessage { from, to, bits, id });
    }
}
