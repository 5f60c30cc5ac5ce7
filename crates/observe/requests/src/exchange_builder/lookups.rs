//! DNS questions and their answers (lookups): what a host asks a resolver before it opens a connection.

use super::*;
use std::collections::BTreeSet;

/// A DNS question that is not answered yet.
#[derive(Debug)]
pub(super) struct Lookup {
    pub(super) exchange: Exchange,
    /// The ID of the DNS message.
    id: u16,
    /// The host that asks, by its number; `None` if it is not observed.
    host: Option<usize>,
    /// Whether it already counts as part of the lookup of a connection, although nobody answered it.
    is_taken: bool,
}

/// An answered DNS question to which no connection belongs yet.
#[derive(Debug)]
pub(super) struct AnsweredLookup {
    /// The host that asked, by its number.
    host: usize,
    /// When the question was asked, ns.
    begin_ns: u64,
    /// When the answer was at the client, ns.
    end_ns: u64,
    domain: String,
}

/// A resolver gives a question up, or asks another server, within this, ns (the largest `timeout` times `attempts` of
/// resolv.conf(5)).
const GIVEN_UP_NS: u64 = 30_000_000_000;

impl Builder {
    /// Takes a UDP datagram at a host's door; `data`: its captured payload.
    pub fn datagram(
        &mut self,
        host: usize,
        door: PacketPassage,
        at_ns: u64,
        datagram: &DissectedDatagram,
        data: &[u8],
    ) -> OfDatagram {
        let (from, to) = datagram.ends;
        let is_dns = [from, to].iter().any(|end| DNS_PORTS.contains(&end.port()));
        if !is_dns {
            return self.quic_datagram(host, door, at_ns, datagram, data);
        }
        match dns::read_message(data) {
            Ok(message) if message.response => self.answer(host, door, at_ns, datagram, &message),
            Ok(message) => self.question(host, door, at_ns, datagram, &message),
            Err(dns::DnsReadError::Pointers) => {
                self.unknown.left_out.add(Bound::Pointers, 1);
                return OfDatagram::Unreadable;
            }
            Err(dns::DnsReadError::Foreign) => return OfDatagram::Unreadable,
        }
        OfDatagram::Read
    }

    /// Takes a DNS question.
    fn question(
        &mut self,
        host: usize,
        door: PacketPassage,
        at_ns: u64,
        datagram: &DissectedDatagram,
        message: &dns::DnsMessage,
    ) {
        let (id, name) = (message.id, message.name());
        let (from, to) = datagram.ends;
        let is_loop = self.is_own(host, from.ip()) && self.is_own(host, to.ip());
        let is_between = door == PacketPassage::Between;
        if is_between && self.is_seen_elsewhere(host, id, datagram.ends) {
            return;
        }
        // A question that is seen between its ends counts as seen at the client's door.
        let is_of_client = is_between || door == PacketPassage::Leaves;
        if self.is_asked_again(id, from, is_of_client && !is_loop, at_ns) {
            return;
        }
        if self.lookups.len() >= MOST_LOOKUPS
            && let Some(mut oldest) = self.lookups.pop_front()
        {
            oldest.exchange.void = Some(TOO_MANY_LOOKUPS);
            self.done.push(oldest.exchange);
            self.unknown.left_out.add(Bound::Lookups, 1);
        }
        let here = Some((at_ns, at_ns));
        let (client_host, server_host) = (
            self.host_of(host, from.ip(), door == PacketPassage::Leaves),
            self.host_of(host, to.ip(), door == PacketPassage::Arrives),
        );
        let client = ExchangeEnd {
            host: client_host,
            address: from,
        };
        let server = ExchangeEnd {
            host: server_host,
            address: to,
        };
        let request = ExchangeMessage {
            end: datagram.bytes,
            left: here.filter(|_| is_of_client || is_loop),
            arrived: here.filter(|_| !is_of_client || is_loop),
            ..ExchangeMessage::default()
        };
        let mut exchange = lookup_exchange(self.next_flow, name, [client, server], request);
        exchange.seen_at = is_between.then_some(host);
        self.next_flow = self.next_flow.saturating_add(1);
        self.lookups.push_back(Lookup {
            exchange,
            id,
            host: client_host,
            is_taken: false,
        });
    }

    /// Whether a message that passes `host` on its way between others is seen at another host too: at one of its ends, or on the way before.
    fn is_seen_elsewhere(&self, host: usize, id: u16, ends: (SocketAddr, SocketAddr)) -> bool {
        let has_capture = |end: SocketAddr| self.host_of(host, end.ip(), false).is_some();
        let is_of_other = |known: &Lookup| {
            let client = known.exchange.client.address;
            known.id == id
                && (client == ends.0 || client == ends.1)
                && known.exchange.seen_at != Some(host)
        };
        has_capture(ends.0) || has_capture(ends.1) || self.lookups.iter().any(is_of_other)
    }

    /// Whether the question is known already: then it is asked again, or it arrives at the server.
    fn is_asked_again(&mut self, id: u16, from: SocketAddr, leaves: bool, at_ns: u64) -> bool {
        let known = self
            .lookups
            .iter_mut()
            .find(|known| known.id == id && known.exchange.client.address == from);
        let Some(known) = known else {
            return false;
        };
        let request = &mut known.exchange.request;
        if leaves && request.left.is_some() {
            request.again += 1;
            request.again_ns = at_ns.saturating_sub(request.left.map_or(at_ns, |(first, _)| first));
        } else {
            request.arrived = Some((at_ns, at_ns));
        }
        true
    }

    /// Takes a DNS answer; the lookup is finished once it is at the client.
    fn answer(
        &mut self,
        host: usize,
        door: PacketPassage,
        at_ns: u64,
        datagram: &DissectedDatagram,
        message: &dns::DnsMessage,
    ) {
        let id = message.id;
        let (from, to) = datagram.ends;
        let is_loop = self.is_own(host, from.ip()) && self.is_own(host, to.ip());
        if door == PacketPassage::Between && self.is_seen_elsewhere(host, id, datagram.ends) {
            return;
        }
        let Some(at) = self
            .lookups
            .iter()
            .position(|known| known.id == id && known.exchange.client.address == to)
        else {
            return;
        };
        self.has_own_resolver |= from.ip().is_loopback();
        let known = &mut self.lookups[at];
        let response = known
            .exchange
            .response
            .get_or_insert_with(|| ExchangeMessage {
                end: datagram.bytes,
                ..ExchangeMessage::default()
            });
        let is_leaving = door == PacketPassage::Leaves;
        if is_leaving || is_loop {
            response.left = Some((at_ns, at_ns));
        }
        let at_client = !is_leaving || is_loop || known.exchange.client.host.is_none();
        if !at_client {
            return;
        }
        response.arrived = Some((at_ns, at_ns));
        known.exchange.status = message.name();
        let Some(Lookup { exchange, host, .. }) = self.lookups.remove(at) else {
            return;
        };
        if let Some((host, begin)) = host.zip(exchange.begin_ns()) {
            self.answered
                .retain(|lookup| at_ns.saturating_sub(lookup.end_ns) <= GIVEN_UP_NS);
            if self.answered.len() >= MOST_ANSWERED {
                self.answered.pop_front();
                self.unknown.left_out.add(Bound::Answered, 1);
            }
            self.answered.push_back(AnsweredLookup {
                host,
                begin_ns: begin,
                end_ns: at_ns,
                domain: domain(&exchange),
            });
        }
        self.done.push(exchange);
    }

    /// The time of the lookups that a host made right before it opens a connection: from the first question to the last answer, ns.
    /// Negative answers belong to it (a search list makes them), and so do unanswered questions for one of the same names.
    pub(super) fn take_lookup(&mut self, host: usize, at_ns: u64) -> Option<(u64, u64)> {
        let mut last = None;
        let mut since = at_ns;
        let mut names: BTreeSet<String> = BTreeSet::new();
        loop {
            let is_before = |lookup: &AnsweredLookup| {
                lookup.host == host
                    && lookup.begin_ns < at_ns
                    && since.saturating_sub(lookup.end_ns) <= LOOKUP_NS
            };
            if let Some(at) = self.answered.iter().rposition(is_before)
                && let Some(lookup) = self.answered.remove(at)
            {
                last = Some(last.map_or(lookup.end_ns, |last: u64| last.max(lookup.end_ns)));
                since = since.min(lookup.begin_ns);
                names.insert(lookup.domain);
                continue;
            }
            let mut earlier = None;
            for lookup in &mut self.lookups {
                let begin = lookup.exchange.begin_ns().filter(|begin| {
                    let is_near = *begin < since && since - *begin <= GIVEN_UP_NS;
                    is_near && lookup.host == Some(host) && !lookup.is_taken
                });
                if let Some(begin) = begin.filter(|_| names.contains(&domain(&lookup.exchange))) {
                    lookup.is_taken = true;
                    earlier = Some(earlier.map_or(begin, |earlier: u64| earlier.min(begin)));
                }
            }
            let Some(earlier) = earlier else { break };
            since = earlier;
        }
        last.map(|last| (since, last))
    }
}

/// The domain name of a question in lower case, without the type of the record.
fn domain(exchange: &Exchange) -> String {
    let name = exchange.name.kept();
    name.rsplit(' ')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase()
}

/// A DNS question as an exchange without an answer yet.
fn lookup_exchange(
    flow: u32,
    name: RedactedName,
    ends: [ExchangeEnd; 2],
    request: ExchangeMessage,
) -> Exchange {
    let [client, server] = ends;
    Exchange {
        flow,
        number: 0,
        kind: ExchangeKind::Call,
        protocol: "DNS",
        exact: true,
        name,
        status: RedactedName::default(),
        context: None,
        client,
        server,
        seen_at: None,
        reversed: false,
        request,
        response: None,
        turns: Vec::new(),
        parts: 0,
        lookup: None,
        connect: None,
        connect_again: 0,
        handshake: None,
        round_trip_ns: None,
        void: None,
        is_unopened: false,
        gave_up: None,
    }
}
