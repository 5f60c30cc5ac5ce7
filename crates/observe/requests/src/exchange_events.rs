//! An exchange as events: points on the lifeline of its unit, as programs of our own emit them, and what is said of it beside
//! (`REQUEST`, `REQUEST_TIME`, `REQUEST_NETWORK`, `REQUEST_WORK`). It decides nothing.

use crate::exchange::ExchangeKind;
use crate::exchange::{Exchange, ExchangeEnd, ExchangeMessage};
use crate::time_account::account_time;
use stackline_events::catalogue::rows::{
    NetSeen, RequestNetwork, RequestProcess, RequestSeen, RequestStall, RequestTime, RequestTrace,
    RequestWork,
};
use stackline_events::unit_ids::{self, EventStreamDirection};
use stackline_events::{EventEmitter, EventValue};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Takes an event: host, keyword, moment, data.
pub type RequestEventSink<'e> = EventEmitter<'e>;

/// What the server's thread did between the request and the answer, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerThreadWork {
    /// The thread.
    pub thread: u32,
    /// It computed.
    pub cpu_ns: u64,
    /// It could have, and had no core.
    pub runnable_ns: u64,
    /// It waited for a lock.
    pub lock_ns: u64,
    /// For a disk.
    pub disk_ns: u64,
    /// It slept.
    pub sleep_ns: u64,
    /// It waited for a socket.
    pub socket_ns: u64,
    /// For a process that it had started.
    pub child_ns: u64,
    /// It was stopped.
    pub stopped_ns: u64,
    /// It was held up while its process collected garbage.
    pub collect_ns: u64,
    /// It could have computed on a core that whoever looks had.
    pub observer_ns: u64,
    /// For something else.
    pub other_ns: u64,
}

impl std::ops::Add for ServerThreadWork {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self {
            thread: self.thread,
            cpu_ns: self.cpu_ns + more.cpu_ns,
            runnable_ns: self.runnable_ns + more.runnable_ns,
            lock_ns: self.lock_ns + more.lock_ns,
            disk_ns: self.disk_ns + more.disk_ns,
            sleep_ns: self.sleep_ns + more.sleep_ns,
            socket_ns: self.socket_ns + more.socket_ns,
            child_ns: self.child_ns + more.child_ns,
            stopped_ns: self.stopped_ns + more.stopped_ns,
            collect_ns: self.collect_ns + more.collect_ns,
            observer_ns: self.observer_ns + more.observer_ns,
            other_ns: self.other_ns + more.other_ns,
        }
    }
}

/// The processes of an exchange's ends, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExchangeProcesses {
    /// That of who asks.
    pub client: Option<u32>,
    /// That of who answers.
    pub server: Option<u32>,
    /// Whether the last program of the trace asks, for which the others are there, or what it has begun.
    pub is_callers: Option<bool>,
}

/// What is known of an exchange beside its packets and sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExchangeContext<'k> {
    /// The programs of both ends, client's first.
    pub programs: (&'k str, &'k str),
    /// Their processes.
    pub processes: ExchangeProcesses,
    /// What hosts are called that are not watched, where somebody named them.
    pub elsewhere: Option<&'k HostsElsewhere>,
    /// What the server did.
    pub work: Option<ServerThreadWork>,
    /// What the thread that read the request did while that lay unread.
    pub wait: Option<ServerThreadWork>,
    /// What the client's thread that read the answer did while that lay unread.
    pub answer_wait: Option<ServerThreadWork>,
    /// Whether names and statuses are kept whole, with all that is in them.
    pub contents: bool,
    /// Whether segments are events too: then they say when a request whose bytes are reported passed the doors.
    pub segments: bool,
}

/// The unit of an exchange.
#[must_use]
pub fn unit_of(exchange: &Exchange) -> i64 {
    unit_ids::unit(exchange.flow & unit_ids::LAST_FLOW, exchange.number)
}

/// What hosts that are not watched are called, by their addresses.
pub type HostsElsewhere = BTreeMap<IpAddr, String>;

/// The name of a place: its host, or its address where it is elsewhere.
#[must_use]
pub fn place_name(place: &ExchangeEnd, hosts: &[String]) -> String {
    place_name_among(place, hosts, None)
}

/// The same where hosts elsewhere may have been given names.
#[must_use]
pub fn place_name_among(
    place: &ExchangeEnd,
    hosts: &[String],
    elsewhere: Option<&HostsElsewhere>,
) -> String {
    let address = place.address.ip().to_canonical();
    let watched = place.host.and_then(|host| hosts.get(host));
    watched
        .or_else(|| elsewhere?.get(&address))
        .cloned()
        .unwrap_or_else(|| place.address.ip().to_string())
}

/// Emits all events of an exchange. Hosts are those that are watched, by number.
pub fn emit_exchange(
    exchange: &Exchange,
    known: &ExchangeContext<'_>,
    hosts: &[String],
    emit: &mut RequestEventSink<'_>,
) {
    let directions = if exchange.reversed {
        [EventStreamDirection::Back, EventStreamDirection::There]
    } else {
        [EventStreamDirection::There, EventStreamDirection::Back]
    };
    let names = [
        place_name_among(&exchange.client, hosts, known.elsewhere),
        place_name_among(&exchange.server, hosts, known.elsewhere),
    ];
    let one = ExchangeEventWriter {
        exchange,
        unit: unit_of(exchange),
        names: &names,
        directions,
        hosts,
    };
    one.points(known.segments, emit);
    one.facts(known, emit);
}

/// Bytes of all that was asked, and of all that was answered, if anything was.
fn count_bytes(exchange: &Exchange) -> (u64, Option<u64>) {
    let bytes = |message: &ExchangeMessage| message.end - message.from;
    let asked = exchange
        .rounds()
        .fold(0, |all: u64, (asked, _)| all.saturating_add(bytes(asked)));
    let answers = exchange.turns.iter().map(|(answer, _)| bytes(answer));
    let answered = exchange
        .response
        .as_ref()
        .map(|answer| answers.fold(bytes(answer), u64::saturating_add));
    (asked, answered)
}

struct ExchangeEventWriter<'l> {
    exchange: &'l Exchange,
    unit: i64,
    names: &'l [String; 2],
    /// Directions of request and response.
    directions: [EventStreamDirection; 2],
    hosts: &'l [String],
}

impl ExchangeEventWriter<'_> {
    fn host(&self, place: &ExchangeEnd) -> Option<&str> {
        place
            .host
            .and_then(|host| self.hosts.get(host))
            .map(String::as_str)
    }

    fn points(&self, segments: bool, emit: &mut RequestEventSink<'_>) {
        let exchange = self.exchange;
        let between = exchange
            .seen_at
            .and_then(|host| self.hosts.get(host))
            .map(String::as_str);
        // Between its ends it is seen as at the door of who asks.
        let (client, server) = (
            self.host(&exchange.client).or(between),
            self.host(&exchange.server),
        );
        let flow = exchange.flow & unit_ids::LAST_FLOW;
        if let (Some(host), Some((asked, there))) = (client, exchange.connect) {
            let connection = EventValue::from(unit_ids::connection(flow, 0));
            emit(host, "APP_CONNECT", asked, &[connection]);
            emit(host, "APP_CONNECTED", there, &[connection]);
        }
        self.asked(&exchange.request, segments, [client, server], emit);
        let Some(response) = &exchange.response else {
            return;
        };
        let Some((first, next)) = exchange.turns.first() else {
            return self.answered(response, true, segments, [client, server], emit);
        };
        // A line passes each point once: what comes behind the first round trip is one part of it.
        self.answered(first, false, segments, [client, server], emit);
        if let (Some(host), Some(at_ns)) = (client.or(server), next.handed_ns()) {
            emit(
                host,
                "APP_TURN",
                at_ns,
                &self.range(next, self.directions[0]),
            );
        }
        self.received(response, client, emit);
    }

    /// The unit, the stream and the bytes of a message.
    fn range(
        &self,
        message: &ExchangeMessage,
        direction: EventStreamDirection,
    ) -> [EventValue<'static>; 4] {
        let flow = self.exchange.flow & unit_ids::LAST_FLOW;
        let stream = EventValue::from(unit_ids::stream(flow, direction));
        [
            self.unit.into(),
            stream,
            message.from.into(),
            (message.end - message.from).into(),
        ]
    }

    /// What the client says in a round trip.
    fn asked(
        &self,
        request: &ExchangeMessage,
        segments: bool,
        hosts: [Option<&str>; 2],
        emit: &mut RequestEventSink<'_>,
    ) {
        let [client, server] = hosts;
        let ask = self.range(request, self.directions[0]);
        let left = request.written.or(request.left).is_some();
        if let (Some(host), Some(at_ns)) = (client.filter(|_| left), request.handed_ns()) {
            emit(host, "APP_CALL", at_ns, &ask);
        }
        if !(segments && left && client.is_some()) {
            self.crosses(
                request,
                ask,
                [client, server],
                &format!("{}>{}", self.names[0], self.names[1]),
                emit,
            );
        }
        if let (Some(host), Some(at_ns)) = (server, request.read) {
            emit(host, "SOCK_RECEIVED", at_ns, &ask);
        }
        // Of a message that nobody answers nothing else says that it came.
        let (keyword, came) = match self.is_message() {
            true => ("APP_RECEIVED", request.came_at_receiver_ns()),
            false => ("APP_INDICATION", request.read),
        };
        if let (Some(host), Some(at_ns)) = (server, came) {
            emit(host, keyword, at_ns, &ask);
        }
    }

    /// Whether nobody answers it, or nobody asked for it.
    fn is_message(&self) -> bool {
        self.exchange.kind == ExchangeKind::OneWay
    }

    /// What answers it; the last answer is the response.
    fn answered(
        &self,
        response: &ExchangeMessage,
        is_last: bool,
        segments: bool,
        hosts: [Option<&str>; 2],
        emit: &mut RequestEventSink<'_>,
    ) {
        let [client, server] = hosts;
        let answer = self.range(response, self.directions[1]);
        if let (Some(host), Some((at_ns, _))) = (server, response.left) {
            let keyword = if self.is_message() {
                "APP_SEND"
            } else {
                "APP_REPLY"
            };
            emit(host, keyword, at_ns, &answer);
        }
        if !(segments && response.left.is_some() && server.is_some()) {
            self.crosses(
                response,
                answer,
                [server, client],
                &format!("{}>{}", self.names[1], self.names[0]),
                emit,
            );
        }
        if let (Some(host), Some(at_ns)) = (client, response.read) {
            emit(host, "SOCK_RECEIVED", at_ns, &answer);
        }
        if is_last {
            self.received(response, client, emit);
        }
    }

    /// The client has all of it.
    fn received(
        &self,
        response: &ExchangeMessage,
        client: Option<&str>,
        emit: &mut RequestEventSink<'_>,
    ) {
        let came =
            self.exchange.void.is_none() && (response.read.is_some() || response.arrived.is_some());
        if let (Some(host), Some(at_ns)) = (client, self.exchange.end_ns().filter(|_| came)) {
            let answer = self.range(response, self.directions[1]);
            let keyword = if self.is_message() {
                "APP_RECEIVED"
            } else {
                "APP_RESPONSE"
            };
            emit(host, keyword, at_ns, &answer);
        }
    }

    /// The last byte of a message at the doors of both hosts.
    fn crosses(
        &self,
        message: &ExchangeMessage,
        range: [EventValue<'_>; 4],
        hosts: [Option<&str>; 2],
        ends: &str,
        emit: &mut RequestEventSink<'_>,
    ) {
        for (host, passed) in hosts.into_iter().zip([message.left, message.arrived]) {
            if let (Some(host), Some((_, at_ns))) = (host, passed) {
                let [unit, stream, offset, bytes] = range;
                NetSeen {
                    unit,
                    stream,
                    offset,
                    bytes,
                    place: ends.into(),
                    way: ends.into(),
                    ..NetSeen::default()
                }
                .emit_on(host, at_ns, emit);
            }
        }
    }

    fn facts(&self, known: &ExchangeContext<'_>, emit: &mut RequestEventSink<'_>) {
        let exchange = self.exchange;
        let between = || {
            exchange
                .seen_at
                .and_then(|host| self.hosts.get(host))
                .map(String::as_str)
        };
        let host = self
            .host(&exchange.client)
            .or_else(|| self.host(&exchange.server))
            .or_else(between);
        let Some(host) = host else { return };
        let at_ns = exchange.end_ns().or(exchange.begin_ns()).unwrap_or(0);
        let (asked_bytes, answered_bytes) = count_bytes(exchange);
        let kind = match exchange.kind {
            ExchangeKind::Call if exchange.is_unopened => "connection",
            ExchangeKind::Call => "call",
            ExchangeKind::Handshake => "handshake",
            ExchangeKind::OneWay => "one way",
        };
        RequestSeen {
            unit: self.unit.into(),
            kind: kind.into(),
            protocol: exchange.protocol.into(),
            exact: i64::from(exchange.exact).into(),
            name: exchange.name.text(known.contents).into(),
            status: exchange.status.text(known.contents).into(),
            client: self.names[0].as_str().into(),
            server: self.names[1].as_str().into(),
            client_program: known.programs.0.into(),
            server_program: known.programs.1.into(),
            request_bytes: asked_bytes.into(),
            response_bytes: answered_bytes.into(),
            parts: exchange.parts.into(),
            unknown: exchange.void.map_or(EventValue::Absent, EventValue::Text),
        }
        .emit_on(host, at_ns, emit);
        self.time(host, at_ns, emit);
        if let Some(context) = exchange.context {
            let (trace, span) = (
                format!("{:032x}", context.trace()),
                format!("{:016x}", context.parent()),
            );
            RequestTrace {
                unit: self.unit.into(),
                trace: EventValue::Text(&trace),
                span: EventValue::Text(&span),
            }
            .emit_on(host, at_ns, emit);
        }
        self.processes(known.processes, host, at_ns, emit);
        self.network(host, at_ns, emit);
        self.work(known, host, at_ns, emit);
    }

    /// The processes of both ends.
    fn processes(
        &self,
        known: ExchangeProcesses,
        host: &str,
        at_ns: u64,
        emit: &mut RequestEventSink<'_>,
    ) {
        if known != ExchangeProcesses::default() {
            RequestProcess {
                unit: self.unit.into(),
                client_pid: known.client.map(u64::from).into(),
                server_pid: known.server.map(u64::from).into(),
                is_callers: known.is_callers.map(i64::from).into(),
            }
            .emit_on(host, at_ns, emit);
        }
    }

    /// Where its time went.
    fn time(&self, host: &str, at_ns: u64, emit: &mut RequestEventSink<'_>) {
        let Some(account) = account_time(self.exchange) else {
            return;
        };
        let begin = self.exchange.begin_ns().unwrap_or(at_ns);
        let [
            lookup_ns,
            connect_ns,
            handshake_ns,
            client_ns,
            hold_ns,
            there_ns,
            unread_ns,
            work_ns,
            sending_ns,
            back_ns,
            client_unread_ns,
        ] = account.map(EventValue::from);
        RequestTime {
            unit: self.unit.into(),
            total_ns: at_ns.saturating_sub(begin).into(),
            lookup_ns,
            connect_ns,
            handshake_ns,
            client_ns,
            hold_ns,
            there_ns,
            unread_ns,
            work_ns,
            sending_ns,
            back_ns,
            client_unread_ns,
            round_trip_ns: self.exchange.round_trip_ns.into(),
            rounds: (1 + self.exchange.turns.len() as u64).into(),
        }
        .emit_on(host, at_ns, emit);
    }

    /// What the threads at both ends did meanwhile, and what they waited for.
    fn work(
        &self,
        known: &ExchangeContext<'_>,
        host: &str,
        at_ns: u64,
        emit: &mut RequestEventSink<'_>,
    ) {
        for (name, work) in [
            ("REQUEST_WORK", &known.work),
            ("REQUEST_WAIT", &known.wait),
            ("RESPONSE_WAIT", &known.answer_wait),
        ] {
            let Some(work) = work else { continue };
            // The data of all are alike.
            let data = RequestWork {
                unit: self.unit.into(),
                thread: work.thread.into(),
                cpu_ns: work.cpu_ns.into(),
                runnable_ns: work.runnable_ns.into(),
                lock_ns: work.lock_ns.into(),
                disk_ns: work.disk_ns.into(),
                sleep_ns: work.sleep_ns.into(),
                socket_ns: work.socket_ns.into(),
                child_ns: work.child_ns.into(),
                stopped_ns: work.stopped_ns.into(),
                collect_ns: work.collect_ns.into(),
                observer_ns: work.observer_ns.into(),
                other_ns: work.other_ns.into(),
            };
            emit(host, name, at_ns, &data.values());
        }
    }

    fn network(&self, host: &str, at_ns: u64, emit: &mut RequestEventSink<'_>) {
        let sum = |role: usize, of: fn(&ExchangeMessage) -> u64| {
            let of_round = |(asked, answer): (&ExchangeMessage, Option<&ExchangeMessage>)| {
                [Some(asked), answer][role].map_or(0, of)
            };
            let sum = self
                .exchange
                .rounds()
                .map(of_round)
                .fold(0, u64::saturating_add);
            EventValue::from(sum)
        };
        let (request, response) = (0, 1);
        let data = RequestNetwork {
            unit: self.unit.into(),
            again_there: sum(request, |message| message.again),
            again_there_ns: sum(request, |message| message.again_ns),
            again_back: sum(response, |message| message.again),
            again_back_ns: sum(response, |message| message.again_ns),
            held_there_ns: sum(request, |message| message.held_ns),
            held_back_ns: sum(response, |message| message.held_ns),
            window_there_ns: sum(request, |message| message.window_ns),
            window_back_ns: sum(response, |message| message.window_ns),
            connect_again: self.exchange.connect_again.into(),
            late_back_ns: sum(response, |message| message.late_ns),
            paused_there_ns: sum(request, |message| message.paused_ns),
            paused_back_ns: sum(response, |message| message.paused_ns),
            awaited_there_ns: sum(request, |message| message.awaited_ns),
        };
        if data.values()[1..]
            .iter()
            .any(|value| *value != EventValue::Number(0))
        {
            data.emit_on(host, at_ns, emit);
        }
        let stall = RequestStall {
            unit: self.unit.into(),
            stalled_there_ns: sum(request, |message| message.stalled_ns),
            stalled_back_ns: sum(response, |message| message.stalled_ns),
        };
        if stall.values()[1..]
            .iter()
            .any(|value| *value != EventValue::Number(0))
        {
            stall.emit_on(host, at_ns, emit);
        }
    }
}
