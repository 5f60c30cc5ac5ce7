//! How a part's senders spent their time, as their transports report it: at every moment a sender is in one state. Time in which its data
//! occupies a full link is attributed to no state. In calls both sides send, so the states of both are added up.
//!
//! A sender that is held back while its own data is on the narrowest link loses nothing by it: only what it did not use can be
//! explained by a sender's states, and all of them together explain no more than that.

use crate::findings::measured::measurement::FindingMeasurement;
use crate::findings::measured::part::{MeasuredPart, PartWorkload, side_of};
use stackline_core::procedure::PairSide;
use stackline_core::run_record::{RunRecord, SenderLimitTimes, TransportRecord};

/// How a part's senders spent their time, as shares (0 to 1) of the measured time; for calls, of their response times.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PartTimeShares {
    /// The time in each state, by side that sends.
    sides: Vec<(PairSide, States)>,
    /// The time in each state, of all senders together.
    pub(crate) states: States,
    /// The time that its own data took on the fullest link, or its processors took if that is longer.
    pub(crate) used: f64,
    /// The time of outages: a link on its path carried nothing.
    down: f64,
    /// The time that received data lay unread and held the sender up: while its window was closed, or after everything had arrived.
    pub(crate) unread: f64,
    /// Whether both sides send and wait for each other (calls or turns).
    calls: bool,
    /// Whether the states are estimated from a kernel's counters, and not reported by the transport.
    pub(crate) is_estimated: bool,
}

/// Confidence in a state that was estimated.
const ESTIMATED: f64 = 0.75;

/// What kept the senders from sending more: the time in each state, as a share of the measured time (in seconds while records are added).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct States {
    /// Nothing to send: the application handed over no more data, or all of it was in flight.
    pub(crate) application: f64,
    /// The window that the receiver offers was closed.
    pub(crate) receive_window: f64,
    /// The send buffer was full, all of its data in flight.
    pub(crate) send_buffer: f64,
    /// The congestion window was full and still in slow start.
    pub(crate) slow_start: f64,
    /// The congestion window was full, after slow start.
    pub(crate) congestion_window: f64,
    /// Lost data was being retransmitted.
    pub(crate) recovery: f64,
    /// The sender waited for its retransmission timer.
    pub(crate) timeout: f64,
    /// Nagle's algorithm held back less than a segment.
    pub(crate) nagle: f64,
}

impl PartTimeShares {
    /// The shares of a part; `None` if it measures connections alone or its transport does not report states. `processors` is the share of
    /// the time of the busiest processor, `unread` that in which received data lay unread, `at_end` the part of it after all had arrived.
    pub(crate) fn from_measurement(
        measurement: &FindingMeasurement<'_>,
        part: &MeasuredPart<'_>,
        processors: f64,
        [unread, at_end]: [f64; 2],
    ) -> Option<Self> {
        let sides = match part.work {
            PartWorkload::Bulk(side) => vec![side],
            PartWorkload::Calls | PartWorkload::Turns => {
                vec![PairSide::Initiator, PairSide::Responder]
            }
            PartWorkload::Connects => return None,
        };
        // Transports count the time of a connection once, however many pairs share it.
        let transports_s = part.basis_s() * part.connections_per_pair();
        let mut all = States::default();
        let mut each = Vec::new();
        for side in sides {
            let mut states = States::default();
            for record in &part.records {
                states.add(record, side)?;
                all.add(record, side)?;
            }
            each.push((side, states.over(transports_s)));
        }
        if matches!(part.work, PartWorkload::Bulk(_)) {
            each.iter_mut()
                .for_each(|(_, states)| states.rest_is_not_written());
            all.rest_is_not_written();
        }
        let used = measurement.own_use(part).max(processors);
        let calls = part.work.is_answered();
        let states = all.over(transports_s);
        let unread = unread.min(states.receive_window + at_end).clamp(0.0, 1.0);
        Some(Self {
            sides: each,
            states,
            used,
            down: 0.0,
            unread,
            calls,
            is_estimated: false,
        })
    }

    /// The shares of calls or turns whose states were estimated from a kernel's counters.
    pub(crate) fn estimated(sides: Vec<(PairSide, States)>, used: f64) -> Self {
        let mut states = States::default();
        for (_, of_side) in &sides {
            states.receive_window += of_side.receive_window;
            states.send_buffer += of_side.send_buffer;
            states.slow_start += of_side.slow_start;
            states.recovery += of_side.recovery;
        }
        Self {
            sides,
            states,
            used,
            down: 0.0,
            unread: 0.0,
            calls: true,
            is_estimated: true,
        }
    }

    /// The confidence of a finding about a state: `reported` where the transport reports its states, less where they are estimated.
    pub(crate) fn confidence(&self, reported: f64) -> f64 {
        if self.is_estimated {
            ESTIMATED
        } else {
            reported
        }
    }

    /// Removes the time of outages (share `down`) from the states: senders waited for the link then.
    pub(crate) fn without_outages(mut self, down: f64) -> Self {
        self.down = down;
        self.states.take_outage(down);
        self.sides
            .iter_mut()
            .for_each(|(_, states)| states.take_outage(down));
        self
    }

    /// The side that spent most time in a state, and the share of the time that this explains on both sides: those of calls and turns
    /// take turns, so their times add up.
    pub(crate) fn most(&self, state: fn(&States) -> f64) -> Option<StateShare> {
        let (side, most) = self
            .sides
            .iter()
            .max_by(|a, b| state(&a.1).total_cmp(&state(&b.1)))?;
        let whole: f64 = self.sides.iter().map(|(_, states)| state(states)).sum();
        Some(StateShare {
            side: *side,
            is_of_both: whole - state(most) >= SHARED * whole,
            share: self.explained(whole.min(1.0)),
        })
    }

    /// The share of the time that losses explain: retransmissions, timeouts, and the window that a loss left small.
    pub(crate) fn lost(&self) -> f64 {
        if self.is_estimated {
            return self.states.recovery;
        }
        let at_once = self.explained(self.states.recovery + self.states.timeout);
        let left = (self.idle() - self.explained(self.states.waiting())).max(0.0);
        at_once + self.states.congestion_window.min(left)
    }

    /// The share of the time that a state explains, where its sender had data to send: all such states together explain no more than the
    /// time in which senders may have been held back.
    pub(crate) fn explained(&self, state: f64) -> f64 {
        // Estimates already leave out the time in which data was on a link.
        if self.is_estimated {
            return state;
        }
        let (idle, all) = (self.idle(), self.states.waiting());
        if all > idle {
            state * idle / all
        } else {
            state
        }
    }

    /// How much of the time that an application was away from its operations (`share`) held its sender up.
    pub(crate) fn away(&self, share: f64) -> f64 {
        share
            .min(self.states.application)
            .min((1.0 - self.used).max(0.0))
    }

    /// The share of the time in which senders may have been held back without need. For a transfer it is all the time that its data does
    /// not use. For calls most of the rest is propagation and service, so only time in which there was data to send counts.
    fn idle(&self) -> f64 {
        let whole = if self.calls {
            (self.states.waiting() + self.states.congestion_window).min(1.0)
        } else {
            1.0
        };
        (whole - self.used - self.unread - self.down).max(0.0)
    }
}

/// The time of both sides in one state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StateShare {
    /// The side that has most of it.
    pub(crate) side: PairSide,
    /// Whether the other side has much of it too.
    pub(crate) is_of_both: bool,
    /// The share of the part's time that it explains, 0 to 1.
    pub(crate) share: f64,
}

/// From this share of the sides' time in a state on, a side is named beside the other.
const SHARED: f64 = 0.2;

impl StateShare {
    /// The hosts that have it, in words: `a`, `a and b`.
    pub(crate) fn hosts(&self, part: &MeasuredPart<'_>) -> String {
        match self.is_of_both {
            true => format!(
                "{} and {}",
                part.host(self.side),
                part.host(self.side.other())
            ),
            false => part.host(self.side).to_owned(),
        }
    }
}

impl States {
    /// Adds the seconds that one side of a run spent in each state; `None` if its transport does not report them.
    fn add(&mut self, record: &RunRecord, side: PairSide) -> Option<()> {
        let (start, stop) = side_of(record, side).transport?;
        let spent: SenderLimitTimes = stop.spent?.since(start.spent?);
        let grew = |get: fn(&TransportRecord) -> Option<f64>| Some(get(&stop)? - get(&start)?);
        let busy = grew(|transport| transport.busy_s)?;
        let elapsed = record.elapsed_ns as f64 / 1e9;
        self.application += spent.application_s + (elapsed - busy).max(0.0);
        self.receive_window += grew(|transport| transport.receive_window_limited_s)?;
        self.send_buffer += grew(|transport| transport.send_buffer_limited_s)?;
        self.slow_start += spent.slow_start_s;
        self.congestion_window += spent.congestion_window_s;
        self.recovery += spent.recovery_s;
        self.timeout += spent.timeout_s;
        self.nagle += spent.nagle_s;
        Some(())
    }

    /// Counts time in which less than a segment waited as the application's: in a transfer it had more to write.
    fn rest_is_not_written(&mut self) {
        self.application += self.nagle;
        self.nagle = 0.0;
    }

    /// The seconds in each state as shares of `seconds`.
    fn over(self, seconds: f64) -> Self {
        let share = |spent: f64| (spent / seconds).clamp(0.0, 1.0);
        Self {
            application: share(self.application),
            receive_window: share(self.receive_window),
            send_buffer: share(self.send_buffer),
            slow_start: share(self.slow_start),
            congestion_window: share(self.congestion_window),
            recovery: share(self.recovery),
            timeout: share(self.timeout),
            nagle: share(self.nagle),
        }
    }

    /// Subtracts the share of an outage from the states in which a sender spends it, likely ones first.
    fn take_outage(&mut self, mut down: f64) {
        let states = [
            &mut self.timeout,
            &mut self.recovery,
            &mut self.congestion_window,
            &mut self.send_buffer,
            &mut self.receive_window,
            &mut self.slow_start,
        ];
        for state in states {
            let taken = down.min(*state);
            (*state, down) = (*state - taken, down - taken);
        }
    }

    /// The time in all states in which a sender has data and may not send it, except that of the congestion window after slow start.
    pub(crate) fn waiting(&self) -> f64 {
        self.receive_window
            + self.send_buffer
            + self.slow_start
            + self.recovery
            + self.timeout
            + self.nagle
    }
}
