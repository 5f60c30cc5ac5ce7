//! Splits the time of an exchange into phases (set-up, request, server, response) that add up to it. A phase whose ends are not
//! known is absent, and its time belongs to the phase around it. A phase is negative only where two clocks or sources disagree; it
//! is left so, to show the disagreement.

use crate::exchange::{Exchange, ExchangeMessage};

/// A phase of an exchange, in order of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExchangePhase {
    /// The server's address is looked up (DNS).
    Lookup,
    /// The connection is set up.
    Connect,
    /// TLS or a session is set up.
    Handshake,
    /// The client does something else between set-up and request, or between two round trips.
    Client,
    /// The request is written and has not left the client's host completely.
    Hold,
    /// The request is on its way.
    There,
    /// The request has arrived and the server has not read it.
    Unread,
    /// The server has the request and has not begun to answer.
    Work,
    /// The answer has begun to leave and has not left completely.
    Sending,
    /// The end of the answer is on its way.
    Back,
    /// The answer has arrived and the client has not read it.
    ClientUnread,
}

impl ExchangePhase {
    /// All phases, in order of time.
    pub const ALL: [Self; 11] = [
        Self::Lookup,
        Self::Connect,
        Self::Handshake,
        Self::Client,
        Self::Hold,
        Self::There,
        Self::Unread,
        Self::Work,
        Self::Sending,
        Self::Back,
        Self::ClientUnread,
    ];
}

/// The duration of each phase, ns, in the order of [`ExchangePhase::ALL`]; `None` if its ends are not known.
pub type ExchangePhaseTimes = [Option<i64>; ExchangePhase::ALL.len()];

/// The signed time from one moment to another, ns. A longer time than fits, which clocks of captures may produce, is clamped.
fn between(from: u64, to: u64) -> i64 {
    let far = i64::try_from(from.abs_diff(to)).unwrap_or(i64::MAX);
    if to < from { -far } else { far }
}

/// Whether all times of an exchange are of one host's clock.
fn is_of_one_clock(exchange: &Exchange) -> bool {
    match (exchange.client.host, exchange.server.host) {
        (Some(client), Some(server)) => client == server,
        _ => true,
    }
}

/// The phases of an exchange; `None` if its beginning or its end is not known. The phases of several round trips are summed.
#[must_use]
pub fn account_time(exchange: &Exchange) -> Option<ExchangePhaseTimes> {
    let (begin, end) = (exchange.begin_ns()?, exchange.end_ns()?);
    let nothing = ExchangeMessage::default();
    exchange
        .response
        .as_ref()
        .or(exchange.gave_up.map(|_| &nothing))?;
    let last = |pair: Option<(u64, u64)>| pair.map(|(_, last)| last);
    let mut account = PhaseAccount {
        at: begin,
        end,
        // If the client gave up, nothing that arrives later is part of its time, whichever clock measured it.
        is_bounded: is_of_one_clock(exchange) || exchange.gave_up.is_some(),
        phases: [None; ExchangePhase::ALL.len()],
    };
    let set_up = [exchange.lookup, exchange.connect, exchange.handshake].map(last);
    account.add(ExchangePhase::Lookup, &set_up, exchange.request.handed_ns());
    for (number, (request, response)) in exchange.rounds().enumerate() {
        let is_last = number == exchange.turns.len();
        let gave_up = exchange.gave_up.filter(|_| is_last);
        // If only the server is observed, a round trip lies between its answer and the client's next message.
        if number > 0 && exchange.client.host.is_none() {
            account.add_round_trip(exchange.round_trip_ns, request.handed_ns());
        }
        account.add(
            ExchangePhase::Client,
            &round_ends(request, response.unwrap_or(&nothing), gave_up),
            request.handed_ns(),
        );
    }
    Some(account.finish())
}

/// When each phase of a round ends, ns, from [`ExchangePhase::Client`] on.
fn round_ends(
    request: &ExchangeMessage,
    response: &ExchangeMessage,
    gave_up: Option<u64>,
) -> [Option<u64>; 8] {
    let last = |pair: Option<(u64, u64)>| pair.map(|(_, last)| last);
    let first = |pair: Option<(u64, u64)>| pair.map(|(first, _)| first);
    // A request that was given up counts as being at the server until then; if an answer was cut off, its rest is waited for until
    // then.
    let answered = first(response.left).or(first(response.arrived)).or(gave_up);
    let is_cut = gave_up.is_some() && answered != gave_up;
    let sent = gave_up.filter(|_| is_cut).or(last(response.left));
    [
        request.handed_ns(),
        last(request.left),
        last(request.arrived),
        // If the request is read only after the answer began, the server did not need all of it: that is no wait.
        request
            .read
            .filter(|read| answered.is_none_or(|answered| *read <= answered)),
        answered,
        sent,
        last(response.arrived),
        response.read,
    ]
}

/// Phases that are being computed.
struct PhaseAccount {
    /// The time up to which phases are assigned, ns.
    at: u64,
    /// When the exchange ended, ns.
    end: u64,
    /// Whether every phase is kept between the end of the one before it and the end of the exchange.
    is_bounded: bool,
    phases: ExchangePhaseTimes,
}

impl PhaseAccount {
    /// Adds the phases from `from` on, which end at `ends`. `asked`: when the request was handed over; phases before the request end
    /// by then.
    fn add(&mut self, from: ExchangePhase, ends: &[Option<u64>], asked: Option<u64>) {
        let before_request = ExchangePhase::Client as usize;
        let parts = self.phases.iter_mut().enumerate().skip(from as usize);
        for ((number, part), part_end) in parts.zip(ends) {
            let Some(part_end) = *part_end else { continue };
            // On one clock, a phase that began before the previous one ended belongs to that one: data in a SYN (RFC 7413), or an
            // answer that begins while the request is still leaving.
            let part_end = match (self.is_bounded, asked) {
                (false, _) => part_end,
                (true, Some(asked)) if number < before_request => part_end
                    .clamp(self.at, self.end.max(self.at))
                    .min(asked.max(self.at)),
                (true, _) => part_end.clamp(self.at, self.end.max(self.at)),
            };
            *part = Some(part.unwrap_or(0).saturating_add(between(self.at, part_end)));
            self.at = part_end;
        }
    }

    /// Adds a round trip to the time on the way, but not beyond `until`.
    fn add_round_trip(&mut self, round_trip_ns: Option<u64>, until: Option<u64>) {
        let Some((trip, until)) = round_trip_ns.zip(until) else {
            return;
        };
        let there = until.min(self.at.saturating_add(trip)).max(self.at);
        let part = &mut self.phases[ExchangePhase::There as usize];
        *part = Some(part.unwrap_or(0).saturating_add(between(self.at, there)));
        self.at = there;
    }

    /// Assigns the time after the last known point to the last phase.
    fn finish(mut self) -> ExchangePhaseTimes {
        if self.at != self.end {
            let rest = between(self.at, self.end);
            let part = &mut self.phases[ExchangePhase::ALL.len() - 1];
            *part = Some(part.unwrap_or(0).saturating_add(rest));
        }
        self.phases
    }
}
