//! Requests whose answers repeat what tells them apart: a number, a subject, a channel. They are answered in any order. So many of them
//! are known; of one beyond, no answer is.

use super::records::RecordParser;
use super::{DissectorEvent, ExchangeKind, ExchangeRole, MOST_WAITING, RedactedName, TOO_MANY};
use crate::left_out::Bound;
use std::collections::BTreeMap;

/// Why nothing is known of a request whose number another one has.
const AGAIN: &str = "another request has the same number";

/// Those of one connection: by what their answers repeat, each with what is remembered of it.
#[derive(Debug)]
pub(super) struct CorrelatedExchanges<K, V> {
    waiting: BTreeMap<K, CorrelatedExchange<V>>,
    /// The one whose request is not whole.
    open_request: Option<u64>,
    /// The one in which the server says something that answers nothing, and which is not whole.
    open_notice: Option<u64>,
}

#[derive(Debug)]
struct CorrelatedExchange<V> {
    exchange: u64,
    is_answered: bool,
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
    /// The request of an exchange has begun.
    pub(super) const fn begin_request(&mut self, exchange: u64) {
        self.open_request = Some(exchange);
    }

    /// It is whole, and nothing answers it.
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

    /// It is whole, and its answer will repeat the key.
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

    /// The server has begun to say something that answers nothing.
    pub(super) const fn begin_notice(&mut self, exchange: u64) {
        self.open_notice = Some(exchange);
    }

    /// That is whole, if it is what goes on.
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

    /// What is remembered of the request that waits for that key.
    pub(super) fn remembered(&self, key: &K) -> Option<&V> {
        self.waiting.get(key).map(|waiting| &waiting.remembered)
    }

    /// Keys from one to another that answers are waited for with, in their order.
    pub(super) fn keys_between(&self, first: K, last: K) -> Vec<K> {
        if first > last {
            return Vec::new();
        }
        let between = self.waiting.range(first..=last);
        between.map(|(key, _)| key.clone()).collect()
    }

    /// The answer of that key begins; whether anything waits for it.
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

    /// The answer of that key is whole with a record.
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

    /// Of none of them anything more can be known.
    pub(super) fn lose(&mut self, why: &'static str, found: &mut Vec<DissectorEvent>) {
        let waiting = std::mem::take(&mut self.waiting).into_values();
        let lost = waiting
            .map(|waiting| waiting.exchange)
            .chain(self.open_request.take())
            .chain(self.open_notice.take());
        found.extend(lost.map(|exchange| DissectorEvent::Void { exchange, why }));
    }
}
