//! Writes an exchange as events: the points that its unit passes (its lifeline), as instrumented programs emit them, and facts about
//! it (`REQUEST`, `REQUEST_TIME`, `REQUEST_NETWORK`, `REQUEST_WORK`). The unit is the number under which the events of an exchange
//! are found.

use crate::exchange::ExchangeKind;
use crate::exchange::{Exchange, ExchangeEnd, ExchangeMessage};
use crate::time_account::account_time;
use stackline_events::catalogue::families::{DataUnit, DataUnitEvent, ThreadWork, ThreadWorkEvent};
use stackline_events::catalogue::rows::{
    AppConnected, NetSeen, RequestNetwork, RequestProcess, RequestSeen, RequestStall, RequestTime,
    RequestTrace,
};
use stackline_events::unit_ids::{self, EventStreamDirection};
use stackline_events::{EventEmitter, EventValue};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Receives events.
pub type RequestEventSink<'e> = EventEmitter<'e>;

/// What a thread did during a time of an exchange, such as the server's between request and answer, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServerThreadWork {
    /// The thread.
    pub thread: u32,
    /// It ran on a core.
    pub cpu_ns: u64,
    /// It was runnable and had no core.
    pub runnable_ns: u64,
    /// It waited for a lock.
    pub lock_ns: u64,
    /// It waited for a disk.
    pub disk_ns: u64,
    /// It slept.
    pub sleep_ns: u64,
    /// It waited for a socket.
    pub socket_ns: u64,
    /// It waited for a process that it had started.
    pub child_ns: u64,
    /// It was stopped (by a signal or a debugger).
    pub stopped_ns: u64,
    /// It was held up while its process collected garbage.
    pub collect_ns: u64,
    /// It was runnable, while the observer's own threads had the core.
    pub observer_ns: u64,
    /// It waited for something else.
    pub other_ns: u64,
}

impl ServerThreadWork {
    /// The sum of its parts: the whole time, ns.
    #[must_use]
    pub const fn total_ns(&self) -> u64 {
        let on_cores = self.cpu_ns + self.runnable_ns + self.observer_ns;
        let waits = self.lock_ns + self.disk_ns + self.sleep_ns + self.socket_ns + self.child_ns;
        on_cores + waits + self.stopped_ns + self.collect_ns + self.other_ns
    }
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

/// The process IDs of an exchange's two ends, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExchangeProcesses {
    /// The client's process.
    pub client: Option<u32>,
    /// The server's process.
    pub server: Option<u32>,
    /// Whether the client belongs to the last program of the trace, which the programs before it serve, or was started by it.
    pub is_callers: Option<bool>,
}

/// What is known of an exchange from other sources than its packets and sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExchangeContext<'k> {
    /// The programs of both ends, client's first.
    pub programs: (&'k str, &'k str),
    /// The processes of both ends.
    pub processes: ExchangeProcesses,
    /// Names of hosts that are not observed, where the user gave them.
    pub elsewhere: Option<&'k HostsElsewhere>,
    /// What the server's thread did between request and answer.
    pub work: Option<ServerThreadWork>,
    /// What the threads that held its locks did meanwhile.
    pub holders: Option<ServerThreadWork>,
    /// What the thread that read the request did between its arrival and the reading.
    pub wait: Option<ServerThreadWork>,
    /// What the client's thread that read the answer did between its arrival and the reading.
    pub answer_wait: Option<ServerThreadWork>,
    /// Whether names and statuses are written in full, not redacted.
    pub contents: bool,
    /// Whether segments are written as events too. They show then when a message passed the doors, and the points at the doors are
    /// not written for it.
    pub segments: bool,
}

/// The unit of an exchange: made of its flow and its number.
#[must_use]
pub fn unit_of(exchange: &Exchange) -> i64 {
    unit_ids::unit(exchange.flow & unit_ids::LAST_FLOW, exchange.number)
}

/// Names of hosts that are not observed, by address.
pub type HostsElsewhere = BTreeMap<IpAddr, String>;

/// The name of an end's host, or its address if it is not observed.
#[must_use]
pub fn place_name(place: &ExchangeEnd, hosts: &[String]) -> String {
    place_name_among(place, hosts, None)
}

/// As [`place_name`], with names for hosts that are not observed.
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

/// Emits all events of an exchange. `hosts`: the names of the observed hosts, by number.
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

/// Bytes of all requests of an exchange, and of all answers if there is a response.
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

/// Writes the events of one exchange.
struct ExchangeEventWriter<'l> {
    exchange: &'l Exchange,
    unit: i64,
    /// The names of the client's and the server's host.
    names: &'l [String; 2],
    /// The directions of request and response.
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

    /// Emits the points of the lifeline.
    fn points(&self, segments: bool, emit: &mut RequestEventSink<'_>) {
        let exchange = self.exchange;
        let between = exchange
            .seen_at
            .and_then(|host| self.hosts.get(host))
            .map(String::as_str);
        // An exchange that is seen between its ends counts as seen at the client's door.
        let (client, server) = (
            self.host(&exchange.client).or(between),
            self.host(&exchange.server),
        );
        let flow = exchange.flow & unit_ids::LAST_FLOW;
        if let (Some(host), Some((asked, there))) = (client, exchange.connect) {
            let connection = DataUnit {
                unit: unit_ids::connection(flow, 0).into(),
                ..DataUnit::default()
            };
            DataUnitEvent::AppConnect.emit_on(&connection, host, asked, emit);
            AppConnected::from(connection).emit_on(host, there, emit);
        }
        self.asked(&exchange.request, segments, [client, server], emit);
        let Some(response) = &exchange.response else {
            return;
        };
        let Some((first, next)) = exchange.turns.first() else {
            return self.answered(response, true, segments, [client, server], emit);
        };
        // A lifeline passes each point once: the round trips after the first are one part of it.
        self.answered(first, false, segments, [client, server], emit);
        if let (Some(host), Some(at_ns)) = (client.or(server), next.handed_ns()) {
            let turn = self.range(next, self.directions[0]);
            DataUnitEvent::AppTurn.emit_on(&turn, host, at_ns, emit);
        }
        self.received(response, client, emit);
    }

    /// The data of a point: the unit, the stream, and the offset and number of the message's bytes.
    fn range(
        &self,
        message: &ExchangeMessage,
        direction: EventStreamDirection,
    ) -> DataUnit<'static> {
        let flow = self.exchange.flow & unit_ids::LAST_FLOW;
        DataUnit {
            unit: self.unit.into(),
            stream: unit_ids::stream(flow, direction).into(),
            offset: message.from.into(),
            bytes: (message.end - message.from).into(),
        }
    }

    /// Emits the points of a request.
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
            DataUnitEvent::AppCall.emit_on(&ask, host, at_ns, emit);
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
            DataUnitEvent::SockReceived.emit_on(&ask, host, at_ns, emit);
        }
        // A message that nobody answers has no other point that shows its arrival.
        let (event, came) = match self.is_message() {
            true => (DataUnitEvent::AppReceived, request.came_at_receiver_ns()),
            false => (DataUnitEvent::AppIndication, request.read),
        };
        if let (Some(host), Some(at_ns)) = (server, came) {
            event.emit_on(&ask, host, at_ns, emit);
        }
    }

    /// Whether it is a one-way message.
    fn is_message(&self) -> bool {
        self.exchange.kind == ExchangeKind::OneWay
    }

    /// Emits the points of an answer; the last answer is the response.
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
            let event = if self.is_message() {
                DataUnitEvent::AppSend
            } else {
                DataUnitEvent::AppReply
            };
            event.emit_on(&answer, host, at_ns, emit);
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
            DataUnitEvent::SockReceived.emit_on(&answer, host, at_ns, emit);
        }
        if is_last {
            self.received(response, client, emit);
        }
    }

    /// Emits the point at which the client has the whole response.
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
            let event = if self.is_message() {
                DataUnitEvent::AppReceived
            } else {
                DataUnitEvent::AppResponse
            };
            event.emit_on(&answer, host, at_ns, emit);
        }
    }

    /// Emits the moments at which the last byte of a message passed the doors of both hosts. `hosts`: the sender's, then the
    /// receiver's; `ends`: the names of both.
    fn crosses(
        &self,
        message: &ExchangeMessage,
        range: DataUnit<'_>,
        hosts: [Option<&str>; 2],
        ends: &str,
        emit: &mut RequestEventSink<'_>,
    ) {
        for (host, passed) in hosts.into_iter().zip([message.left, message.arrived]) {
            if let (Some(host), Some((_, at_ns))) = (host, passed) {
                NetSeen {
                    place: ends.into(),
                    way: ends.into(),
                    ..range.into()
                }
                .emit_on(host, at_ns, emit);
            }
        }
    }

    /// Emits the facts about the exchange.
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

    /// Emits the processes of both ends, if any is known.
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

    /// Emits the parts of its time.
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

    /// Emits what the threads at both ends did, and what they waited for.
    fn work(
        &self,
        known: &ExchangeContext<'_>,
        host: &str,
        at_ns: u64,
        emit: &mut RequestEventSink<'_>,
    ) {
        for (event, work) in [
            (ThreadWorkEvent::RequestWork, &known.work),
            (ThreadWorkEvent::LockHolder, &known.holders),
            (ThreadWorkEvent::RequestWait, &known.wait),
            (ThreadWorkEvent::ResponseWait, &known.answer_wait),
        ] {
            let Some(work) = work else { continue };
            let data = ThreadWork {
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
            event.emit_on(&data, host, at_ns, emit);
        }
    }

    /// Emits retransmissions, waits and stalls of its messages, unless all are zero.
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
            behind_back_ns: sum(response, |message| message.behind_ns),
        };
        if stall.values()[1..]
            .iter()
            .any(|value| *value != EventValue::Number(0))
        {
            stall.emit_on(host, at_ns, emit);
        }
    }
}
