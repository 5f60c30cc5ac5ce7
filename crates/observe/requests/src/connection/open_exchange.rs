//! The open exchanges of a connection and what was said in them so far. A request that takes several round trips consists of rounds:
//! exchanges of the parser that belong together.

use super::*;

/// The most rounds of one request; a further round becomes a request of its own.
const MOST_ROUNDS: usize = 16;
/// The parser's reason for exchanges that the server skipped because an earlier one failed: that error answers them too.
const SKIPPED: &str = "the server skipped it";

/// Where the request and the response of a round begin and end, by stream offset and indexed by [`ExchangeRole`]; `None` if not seen
/// yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RequestRound {
    pub(super) begins: [Option<u64>; 2],
    pub(super) ends: [Option<u64>; 2],
}

/// An exchange that is not reported yet.
#[derive(Debug)]
pub(super) struct OpenRequestExchange {
    pub(super) kind: ExchangeKind,
    /// The direction of its requests.
    pub(super) asks: EventStreamDirection,
    pub(super) first: RequestRound,
    /// Further rounds, each with the number of its exchange.
    pub(super) later: Vec<(u64, RequestRound)>,
    pub(super) name: RedactedName,
    pub(super) status: RedactedName,
    /// How many parts of a streamed response were seen.
    pub(super) parts: u64,
    /// The distributed-trace context that its request carries.
    pub(super) context: Option<Traceparent>,
    /// Why nothing more will be known of it.
    pub(super) void: Option<&'static str>,
    /// When it began, ns.
    begun_ns: u64,
    /// When its latest message ended, ns.
    pub(super) over_ns: u64,
}

impl OpenRequestExchange {
    pub(super) fn new(kind: ExchangeKind, asks: EventStreamDirection, at_ns: u64) -> Self {
        Self {
            kind,
            asks,
            first: RequestRound::default(),
            later: Vec::new(),
            name: RedactedName::default(),
            status: RedactedName::default(),
            parts: 0,
            context: None,
            void: None,
            begun_ns: at_ns,
            over_ns: at_ns,
        }
    }

    /// The last round so far.
    pub(super) fn last(&self) -> RequestRound {
        self.later.last().map_or(self.first, |(_, round)| *round)
    }

    /// Whether nothing more is expected to be said in it.
    pub(super) fn is_whole(&self) -> bool {
        self.last().ends[1].is_some()
            || self.void.is_some()
            || (self.kind == ExchangeKind::OneWay && self.first.ends[0].is_some())
    }

    /// Sets the status. If several rounds have one, a failure counts; else the last status that says more than "OK".
    fn set_status(&mut self, status: RedactedName) {
        let has_failed = self.status.kept().starts_with("ERROR");
        let says_nothing = status.kept() == "OK" && !self.status.is_empty();
        if self.later.is_empty() || !(has_failed || says_nothing) {
            self.status = status;
        }
    }
}

/// The open exchanges of one connection, by the number of their first round.
#[derive(Debug, Default)]
pub(super) struct OpenRequestExchanges {
    open: BTreeMap<u64, OpenRequestExchange>,
    /// For each later round, the number of the first round of its request.
    rounds: BTreeMap<u64, u64>,
}

impl OpenRequestExchanges {
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&u64, &OpenRequestExchange)> {
        self.open.iter()
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &OpenRequestExchange> {
        self.open.values()
    }

    /// Whether one with a lower number is open: it was asked for before.
    pub(super) fn has_earlier(&self, exchange: u64) -> bool {
        self.open
            .keys()
            .next()
            .is_some_and(|first| *first < exchange)
    }

    pub(super) fn contains(&self, exchange: u64) -> bool {
        self.open.contains_key(&exchange) || self.rounds.contains_key(&exchange)
    }

    /// Makes the oldest exchange void for a reason; returns its number.
    pub(super) fn void_oldest(&mut self, why: &'static str) -> Option<u64> {
        let mut oldest = self.open.first_entry()?;
        oldest.get_mut().void = Some(why);
        Some(*oldest.key())
    }

    pub(super) fn remove(&mut self, exchange: u64) -> Option<OpenRequestExchange> {
        let open = self.open.remove(&exchange)?;
        for (round, _) in &open.later {
            self.rounds.remove(round);
        }
        Some(open)
    }

    /// A message begins at stream offset `at`.
    pub(super) fn begin(
        &mut self,
        exchange: u64,
        role: ExchangeRole,
        at: u64,
        new: impl FnOnce() -> OpenRequestExchange,
    ) {
        if !self.rounds.contains_key(&exchange) {
            self.open.entry(exchange).or_insert_with(new);
        }
        if let Some(round) = self.round(exchange) {
            round.begins[role as usize].get_or_insert(at);
        }
    }

    /// A message ends at stream offset `at`.
    pub(super) fn end(&mut self, exchange: u64, role: ExchangeRole, at: u64, at_ns: u64) {
        if let Some(round) = self.round(exchange) {
            round.ends[role as usize] = Some(at);
        }
        self.change(exchange, |open| open.over_ns = at_ns);
    }

    /// Nothing more is known of an exchange, for reason `why`. A later round that the server skipped after a failure of the same
    /// request keeps that failure as its answer.
    pub(super) fn void(&mut self, exchange: u64, why: &'static str, at_ns: u64) {
        let is_round = self.rounds.contains_key(&exchange);
        self.change(exchange, |open| {
            if !(is_round && why == SKIPPED) {
                open.void = Some(why);
            }
            open.over_ns = at_ns;
        });
    }

    pub(super) fn name(&mut self, exchange: u64, role: ExchangeRole, name: RedactedName) {
        self.change(exchange, |open| match role {
            ExchangeRole::Request => open.name = name,
            ExchangeRole::Response => open.set_status(name),
        });
    }

    /// Changes the request that an exchange belongs to, if it is still open.
    pub(super) fn change(&mut self, exchange: u64, change: impl FnOnce(&mut OpenRequestExchange)) {
        let first = self.rounds.get(&exchange).copied().unwrap_or(exchange);
        if let Some(open) = self.open.get_mut(&first) {
            change(open);
        }
    }

    /// Makes `exchange` a later round of the request of `of`, unless the client did something else for long in between or that
    /// request is not open any more.
    pub(super) fn join(&mut self, exchange: u64, of: u64) {
        let first = self.rounds.get(&of).copied().unwrap_or(of);
        let Some(before) = self.open.get(&first) else {
            return;
        };
        let is_near =
            |open: &OpenRequestExchange| open.begun_ns.saturating_sub(before.over_ns) < SETTLES_NS;
        let has_room = before.later.len() + 1 < MOST_ROUNDS && first != exchange;
        if !(has_room && self.open.get(&exchange).is_some_and(is_near)) {
            return;
        }
        if let Some(later) = self.open.remove(&exchange)
            && let Some(before) = self.open.get_mut(&first)
        {
            before.later.push((exchange, later.first));
            before.over_ns = before.over_ns.max(later.over_ns);
            before.void = before.void.filter(|why| *why != SKIPPED).or(later.void);
            if !later.name.is_empty() {
                before.name = later.name;
            }
            self.rounds.insert(exchange, first);
        }
    }

    /// The round with that exchange number.
    fn round(&mut self, exchange: u64) -> Option<&mut RequestRound> {
        let Some(first) = self.rounds.get(&exchange) else {
            return self.open.get_mut(&exchange).map(|open| &mut open.first);
        };
        let later = &mut self.open.get_mut(first)?.later;
        later
            .iter_mut()
            .find(|(number, _)| *number == exchange)
            .map(|(_, round)| round)
    }
}
