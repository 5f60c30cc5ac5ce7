//! Matches requests and answers by a key that the answer repeats (a number, a subject, a channel), in any order. At most [`MOST_WAITING`]
//! requests wait; a request beyond that gets no answer.

use super::records::RecordParser;
use super::{DissectorEvent, ExchangeKind, ExchangeRole, MOST_WAITING, RedactedName, TOO_MANY};
use crate::left_out::Bound;
use std::collections::BTreeMap;

/// The reason of the void for a request whose key a newer request uses too.
const AGAIN: &str = "another request has the same number";

/// The exchanges of one connection that wait for an answer, by the key that the answer repeats.
#[derive(Debug)]
pub(super) struct CorrelatedExchanges<K, V> {
    /// The exchanges whose request is complete.
    waiting: BTreeMap<K, CorrelatedExchange<V>>,
    /// The exchange whose request has begun and is not complete.
    open_request: Option<u64>,
    /// The exchange of a server's message that answers no request, begun and not complete.
    open_notice: Option<u64>,
}

/// A request that waits for its answer.
#[derive(Debug)]
struct CorrelatedExchange<V> {
    exchange: u64,
    /// Whether its answer has begun.
    is_answered: bool,
    /// What the dissector keeps of the request to read the answer.
    remembered: V,
}

impl<K, V> Default for CorrelatedExchanges<K, V> {
    fn default() -> Self {
        Self {
            waiting: BTreeMap::new(),
            open_request: None,
            open_notice: None,
        }
    }
}

impl<K: Ord + Clone, V> CorrelatedExchanges<K, V> {
    /// Notes that the request of an exchange has begun.
    pub(super) const fn begin_request(&mut self, exchange: u64) {
        self.open_request = Some(exchange);
    }

    /// Completes the open request as one without an answer; returns its exchange.
    pub(super) fn finish_unanswered(
        &mut self,
        name: RedactedName,
        end: u64,
        found: &mut Vec<DissectorEvent>,
    ) -> Option<u64> {
        let exchange = self.open_request.take()?;
        let role = ExchangeRole::Request;
        found.push(DissectorEvent::named(exchange, role, name));
        found.push(DissectorEvent::ends(exchange, role, end));
        Some(exchange)
    }

    /// Completes the open request; its answer will repeat `key`.
    pub(super) fn finish_request(
        &mut self,
        key: K,
        remembered: V,
        name: RedactedName,
        end: u64,
        found: &mut Vec<DissectorEvent>,
    ) {
        let Some(exchange) = self.finish_unanswered(name, end, found) else {
            return;
        };
        if self.waiting.len() >= MOST_WAITING && !self.waiting.contains_key(&key) {
            let why = TOO_MANY;
            found.push(DissectorEvent::Void { exchange, why });
            return found.push(DissectorEvent::LeftOut(Bound::Waiting, 1));
        }
        let waiting = CorrelatedExchange {
            exchange,
            is_answered: false,
            remembered,
        };
        if let Some(before) = self.waiting.insert(key, waiting) {
            let (exchange, why) = (before.exchange, AGAIN);
            found.push(DissectorEvent::Void { exchange, why });
        }
    }

    /// Notes that the server began a message that answers no request.
    pub(super) const fn begin_notice(&mut self, exchange: u64) {
        self.open_notice = Some(exchange);
    }

    /// Completes the open message of the server; returns false if there is none.
    pub(super) fn finish_notice(
        &mut self,
        name: RedactedName,
        end: u64,
        found: &mut Vec<DissectorEvent>,
    ) -> bool {
        let Some(exchange) = self.open_notice.take() else {
            return false;
        };
        let role = ExchangeRole::Response;
        found.push(DissectorEvent::named(exchange, role, name));
        found.push(DissectorEvent::ends(exchange, role, end));
        true
    }

    /// What is remembered of the request that waits with this key.
    pub(super) fn remembered(&self, key: &K) -> Option<&V> {
        self.waiting.get(key).map(|waiting| &waiting.remembered)
    }

    /// The keys from `first` to `last` (inclusive) of waiting requests, in order.
    pub(super) fn keys_between(&self, first: K, last: K) -> Vec<K> {
        if first > last {
            return Vec::new();
        }
        let between = self.waiting.range(first..=last);
        between.map(|(key, _)| key.clone()).collect()
    }

    /// Begins the answer with this key at an offset, if it has not begun; returns whether a request waits for it.
    pub(super) fn answers(&mut self, key: &K, at: u64, found: &mut Vec<DissectorEvent>) -> bool {
        let Some(waiting) = self.waiting.get_mut(key) else {
            return false;
        };
        if !std::mem::replace(&mut waiting.is_answered, true) {
            let (role, kind) = (ExchangeRole::Response, ExchangeKind::Call);
            found.push(DissectorEvent::begins(waiting.exchange, role, kind, at));
        }
        true
    }

    /// Completes the answer with this key at the end of a record; returns whether a request waited for it.
    pub(super) fn answered(
        &mut self,
        key: &K,
        status: RedactedName,
        record: &RecordParser,
        found: &mut Vec<DissectorEvent>,
    ) -> bool {
        let is_known = self.answers(key, record.at(), found);
        if let Some(waiting) = self.waiting.remove(key) {
            let (exchange, role) = (waiting.exchange, ExchangeRole::Response);
            found.push(DissectorEvent::named(exchange, role, status));
            found.push(DissectorEvent::ends(exchange, role, record.end()));
        }
        is_known
    }

    /// Voids all exchanges: nothing more can be known of them.
    pub(super) fn lose(&mut self, why: &'static str, found: &mut Vec<DissectorEvent>) {
        let waiting = std::mem::take(&mut self.waiting).into_values();
        let lost = waiting
            .map(|waiting| waiting.exchange)
            .chain(self.open_request.take())
            .chain(self.open_notice.take());
        found.extend(lost.map(|exchange| DissectorEvent::Void { exchange, why }));
    }
}
