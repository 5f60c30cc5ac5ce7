//! Where a part's time went by its senders' own account: every moment of theirs is in one state, and what a full link takes is no
//! state's. Of calls both sides send, so both are added up.
//!
//! A sender that is held back while its own data is on the narrowest link loses nothing by it: only what it did not use can be
//! explained by a sender's states, and all of them together explain no more than that.

use crate::findings::measured::measurement::FindingMeasurement;
use crate::findings::measured::part::{MeasuredPart, PartWorkload, side_of};
use stackline_core::procedure::PairSide;
use stackline_core::run_record::{RunRecord, SenderLimitTimes, TransportRecord};

/// Shares of the measured time, 0 to 1; of calls, of their response times.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PartTimeShares {
    /// The states of each side that sends.
    sides: Vec<(PairSide, States)>,
    /// Those of all of them together.
    pub(crate) states: States,
    /// What its own data took of the narrowest link, and its processors where these take longer.
    pub(crate) used: f64,
    /// How long a link of its way carried nothing.
    down: f64,
    /// How long what had arrived lay unread to the sender's loss: while its window was closed, or after everything had arrived.
    pub(crate) unread: f64,
    /// Whether it is of calls.
    calls: bool,
    /// Worked out from what a kernel counts, and not reported state by state.
    pub(crate) is_estimated: bool,
}

/// How sure a state is that was worked out.
const ESTIMATED: f64 = 0.75;

/// What kept the senders from sending more.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct States {
    /// Nothing to send, or everything handed over was on its way.
    pub(crate) application: f64,
    pub(crate) receive_window: f64,
    pub(crate) send_buffer: f64,
    pub(crate) slow_start: f64,
    pub(crate) congestion_window: f64,
    pub(crate) recovery: f64,
    pub(crate) timeout: f64,
    pub(crate) nagle: f64,
}

impl PartTimeShares {
    /// Of a part; `None` where its transport does not report its states, or no network is modelled.
    /// `unread` is how long what had arrived lay unread, and of it how long after everything had.
    pub(crate) fn of(
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
        let mut all = States::default();
        let mut each = Vec::new();
        for side in sides {
            let mut states = States::default();
            for record in &part.records {
                states.add(record, side)?;
                all.add(record, side)?;
            }
            each.push((side, states.over(part.basis_s())));
        }
        if matches!(part.work, PartWorkload::Bulk(_)) {
            each.iter_mut()
                .for_each(|(_, states)| states.rest_is_not_written());
            all.rest_is_not_written();
        }
        let used = measurement.own_use(part).max(processors);
        let calls = part.work.is_answered();
        let states = all.over(part.basis_s());
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

    /// Of calls, as far as a kernel's counts say it, each side's states.
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

    /// How sure a state is that takes much of the time.
    pub(crate) fn confidence(&self, reported: f64) -> f64 {
        if self.is_estimated {
            ESTIMATED
        } else {
            reported
        }
    }

    /// Without the time in which a link carried nothing: what its senders waited for then is that.
    pub(crate) fn without_outages(mut self, down: f64) -> Self {
        self.down = down;
        self.states.take_outage(down);
        self.sides
            .iter_mut()
            .for_each(|(_, states)| states.take_outage(down));
        self
    }

    /// The sender that is most in a state, and how much of the time this explains.
    pub(crate) fn most(&self, state: fn(&States) -> f64) -> Option<(PairSide, f64)> {
        let most = self
            .sides
            .iter()
            .max_by(|a, b| state(&a.1).total_cmp(&state(&b.1)));
        most.map(|(side, states)| (*side, self.explained(state(states))))
    }

    /// How much of the time losses explain: what is sent again, timers, and the window that a loss left small.
    pub(crate) fn lost(&self) -> f64 {
        if self.is_estimated {
            return self.states.recovery;
        }
        let at_once = self.explained(self.states.recovery + self.states.timeout);
        let left = (self.idle() - self.explained(self.states.waiting())).max(0.0);
        at_once + self.states.congestion_window.min(left)
    }

    /// How much of the time a state explains, in which there was data to send.
    pub(crate) fn explained(&self, state: f64) -> f64 {
        // What is on a link was taken out before.
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

    /// How much of the time may be the application's of what it was away.
    pub(crate) fn away(&self, share: f64) -> f64 {
        share
            .min(self.states.application)
            .min((1.0 - self.used).max(0.0))
    }

    /// The time that senders may have been held back in vain: of a transfer all that its data does not use. Of calls most of the
    /// rest is way and service, so only the time counts in which there was data to send.
    fn idle(&self) -> f64 {
        let whole = if self.calls {
            (self.states.waiting() + self.states.congestion_window).min(1.0)
        } else {
            1.0
        };
        (whole - self.used - self.unread - self.down).max(0.0)
    }
}

impl States {
    /// One side of a run, s.
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

    /// Time in which less than a segment waited counts as the application's: it had more to write.
    fn rest_is_not_written(&mut self) {
        self.application += self.nagle;
        self.nagle = 0.0;
    }

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

    /// Takes the time of an outage from the states that a sender spends it in.
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

    /// All states in which a sender has data and may not send it.
    pub(crate) fn waiting(&self) -> f64 {
        self.receive_window
            + self.send_buffer
            + self.slow_start
            + self.recovery
            + self.timeout
            + self.nagle
    }
}
