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

/// The account of an exchange; `None` where its beginning or its end is not known.
#[must_use]
pub fn account_time(exchange: &Exchange) -> Option<ExchangePhaseTimes> {
    let (begin, end) = (exchange.begin_ns()?, exchange.end_ns()?);
    let nothing = ExchangeMessage::default();
    let response = exchange
        .response
        .as_ref()
        .or(exchange.gave_up.map(|_| &nothing))?;
    let request = &exchange.request;
    let last = |pair: Option<(u64, u64)>| pair.map(|(_, last)| last);
    let first = |pair: Option<(u64, u64)>| pair.map(|(first, _)| first);
    // One that was given up is at the server until then; of an answer that was cut off the rest is waited for.
    let answered = first(response.left)
        .or(first(response.arrived))
        .or(exchange.gave_up);
    let is_cut = exchange.gave_up.is_some() && answered != exchange.gave_up;
    let sent = exchange.gave_up.filter(|_| is_cut).or(last(response.left));
    // Each part ends here.
    let ends: [Option<u64>; ExchangePhase::ALL.len()] = [
        last(exchange.lookup),
        last(exchange.connect),
        last(exchange.handshake),
        exchange.asked_ns(),
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
    ];
    let (one_clock, asked) = (is_of_one_clock(exchange), exchange.asked_ns());
    let (mut at, before_request) = (begin, ExchangePhase::Client as usize);
    let mut account: ExchangePhaseTimes = [None; ExchangePhase::ALL.len()];
    for (number, (part, part_end)) in account.iter_mut().zip(ends).enumerate() {
        if let Some(part_end) = part_end {
            // On one clock a part that began before the one before it ended belongs to that: data in a SYN (RFC 7413), an answer that
            // begins while the request still leaves.
            let part_end = match (one_clock, asked) {
                (false, _) => part_end,
                (true, Some(asked)) if number < before_request => {
                    part_end.clamp(at, end.max(at)).min(asked.max(at))
                }
                (true, _) => part_end.clamp(at, end.max(at)),
            };
            *part = Some(between(at, part_end));
            at = part_end;
        }
    }
    // What remains behind the last point that is known.
    if at != end {
        account[ExchangePhase::ALL.len() - 1] = Some(
            account[ExchangePhase::ALL.len() - 1]
                .unwrap_or(0)
                .saturating_add(between(at, end)),
        );
    }
    Some(account)
}
