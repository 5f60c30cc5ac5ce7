//! Where an exchange's time went, as parts that add up to it: set-up, request, server, response. A part whose ends are not known is
//! absent, and its time belongs to the part around it; nothing is below zero but where two clocks or sources disagree, which shows.

use crate::exchange::{Exchange, ExchangeMessage};

/// A part of an exchange's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExchangePhase {
    /// The server's address is asked for.
    Lookup,
    /// The connection is set up.
    Connect,
    /// Security is, or a session.
    Handshake,
    /// Between set-up and request the client does something else.
    Client,
    /// The request is written and has not left whole.
    Hold,
    /// It is on its way.
    There,
    /// It lies at the server and nobody reads it.
    Unread,
    /// The server has it and has not begun to answer.
    Work,
    /// The answer has begun to leave and is not gone.
    Sending,
    /// Its end is on its way.
    Back,
    /// It lies at the client and nobody reads it.
    ClientUnread,
}

impl ExchangePhase {
    /// All of them, in their order in time.
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

/// The time of each part, ns, in the order of [`ExchangePhase::ALL`]; `None`: its ends are not known.
pub type ExchangePhaseTimes = [Option<i64>; ExchangePhase::ALL.len()];

/// From one moment to another, ns; what is longer than a number holds, which clocks of captures may say, is the longest.
fn between(from: u64, to: u64) -> i64 {
    let far = i64::try_from(from.abs_diff(to)).unwrap_or(i64::MAX);
    if to < from { -far } else { far }
}

/// Whether all its moments are of one host's clock.
fn is_of_one_clock(exchange: &Exchange) -> bool {
    match (exchange.client.host, exchange.server.host) {
        (Some(client), Some(server)) => client == server,
        _ => true,
    }
}

/// The account of an exchange; `None` where its beginning or its end is not known. Parts of several round trips add up.
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
        // What arrives after the client has given up is no part of its time, by whatever clock.
        is_bounded: is_of_one_clock(exchange) || exchange.gave_up.is_some(),
        phases: [None; ExchangePhase::ALL.len()],
    };
    let set_up = [exchange.lookup, exchange.connect, exchange.handshake].map(last);
    account.add(ExchangePhase::Lookup, &set_up, exchange.request.handed_ns());
    for (number, (request, response)) in exchange.rounds().enumerate() {
        let is_last = number == exchange.turns.len();
        let gave_up = exchange.gave_up.filter(|_| is_last);
        // From the server's side alone the way back and there lies between its answer and what comes next.
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

/// Where the parts of a round end, from [`ExchangePhase::Client`] on.
fn round_ends(
    request: &ExchangeMessage,
    response: &ExchangeMessage,
    gave_up: Option<u64>,
) -> [Option<u64>; 8] {
    let last = |pair: Option<(u64, u64)>| pair.map(|(_, last)| last);
    let first = |pair: Option<(u64, u64)>| pair.map(|(first, _)| first);
    // One that was given up is at the server until then; of an answer that was cut off the rest is waited for.
    let answered = first(response.left).or(first(response.arrived)).or(gave_up);
    let is_cut = gave_up.is_some() && answered != gave_up;
    let sent = gave_up.filter(|_| is_cut).or(last(response.left));
    [
        request.handed_ns(),
        last(request.left),
        last(request.arrived),
        // What is read after the answer began is no wait: the server does not need all of it.
        request
            .read
            .filter(|read| answered.is_none_or(|answered| *read <= answered)),
        answered,
        sent,
        last(response.arrived),
        response.read,
    ]
}

/// An account that goes on: up to where it is made.
struct PhaseAccount {
    at: u64,
    end: u64,
    /// Whether no part can begin before the one before it ended, nor end behind the whole.
    is_bounded: bool,
    phases: ExchangePhaseTimes,
}

impl PhaseAccount {
    /// Parts from that one on, each of which ends there; before `asked` nothing of the request happened.
    fn add(&mut self, from: ExchangePhase, ends: &[Option<u64>], asked: Option<u64>) {
        let before_request = ExchangePhase::Client as usize;
        let parts = self.phases.iter_mut().enumerate().skip(from as usize);
        for ((number, part), part_end) in parts.zip(ends) {
            let Some(part_end) = *part_end else { continue };
            // On one clock a part that began before the one before it ended belongs to that: data in a SYN (RFC 7413), an answer that
            // begins while the request still leaves.
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

    /// A round trip, or what there is of it before that moment.
    fn add_round_trip(&mut self, round_trip_ns: Option<u64>, until: Option<u64>) {
        let Some((trip, until)) = round_trip_ns.zip(until) else {
            return;
        };
        let there = until.min(self.at.saturating_add(trip)).max(self.at);
        let part = &mut self.phases[ExchangePhase::There as usize];
        *part = Some(part.unwrap_or(0).saturating_add(between(self.at, there)));
        self.at = there;
    }

    /// What remains behind the last point that is known is the last part's.
    fn finish(mut self) -> ExchangePhaseTimes {
        if self.at != self.end {
            let rest = between(self.at, self.end);
            let part = &mut self.phases[ExchangePhase::ALL.len() - 1];
            *part = Some(part.unwrap_or(0).saturating_add(rest));
        }
        self.phases
    }
}
