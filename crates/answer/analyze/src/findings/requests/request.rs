//! Requests of programs that are not ours, as a trace tells of them: what each was, and where its time went. It finds nothing.

use crate::findings::requests::control_connections::{AlternatingMessage, find_control_requests};
use crate::findings::requests::failed_status::{is_failure_status, is_introduction};
use crate::findings::requests::program_ports::name_by_port;
use crate::findings::requests::responders::{RequestResponder, find_responders};
use crate::findings::rows::EventRows;
use stackline_events::unit_ids;
use std::collections::BTreeMap;

/// Why there is no answer: what `unknown` of REQUEST says.
pub(crate) const SERVER_CLOSED: &str = "the server closed its connection";
pub(crate) const SERVER_RESET: &str = "the server reset its connection";
pub(crate) const SILENT: &str = "nothing answered its connection";
pub(crate) const CUT_OFF: &str = "its answer was cut off";
pub(crate) const UNDER_WAY: &str = "it was under way when the trace ended";
pub(crate) const REFUSED: &str = "its connection was refused";
pub(crate) const UNANSWERED: &str = "nothing answered it";
const ENDED_BEFORE: &str = "the connection ended before its response";
const RESET_BEFORE: &str = "its stream was reset before its response";
/// Those that say that a request failed, and not that it was not seen whole.
const FAILS: [&str; 8] = [
    SERVER_CLOSED,
    SERVER_RESET,
    SILENT,
    CUT_OFF,
    REFUSED,
    UNANSWERED,
    ENDED_BEFORE,
    RESET_BEFORE,
];
/// How names of set-ups begin that an answer may refuse.
const SET_UPS: [&str; 2] = ["login", "TLS handshake"];

/// A request. Times are ns.
#[derive(Clone, Debug, Default)]
pub(crate) struct TracedRequest {
    pub(crate) unit: i64,
    /// Its row in the log.
    pub(crate) row: u32,
    pub(crate) is_call: bool,
    /// Nobody answers it: a message.
    pub(crate) is_one_way: bool,
    /// It is a connection that was not set up, and so no request was made.
    pub(crate) is_unopened: bool,
    pub(crate) exact: bool,
    pub(crate) protocol: String,
    pub(crate) name: String,
    /// What was answered.
    pub(crate) status: String,
    pub(crate) client: String,
    pub(crate) server: String,
    pub(crate) programs: (String, String),
    /// Of the server, where it is known.
    pub(crate) port: Option<u16>,
    pub(crate) bytes: (i64, i64),
    /// Whole parts of an answer that is a stream: events, messages of gRPC.
    pub(crate) parts: i64,
    pub(crate) parent: Option<i64>,
    pub(crate) unknown: Option<String>,
    pub(crate) end_ns: u64,
    pub(crate) times: Option<RequestTimes>,
    /// The same without what requests before it on its connection have, where these were under way too and are answered first.
    pub(crate) own_times: Option<RequestTimes>,
    pub(crate) network: RequestNetworkDelays,
    /// Who answers it, where its server hands it on.
    pub(crate) responder: Option<RequestResponder>,
    pub(crate) work: Option<RequestServerWork>,
    /// What the thread that read it did while it lay unread.
    pub(crate) wait: Option<RequestServerWork>,
    /// What the client's thread that read the answer did while that lay unread.
    pub(crate) answer_wait: Option<RequestServerWork>,
    /// The process that asks.
    pub(crate) client_pid: Option<i64>,
    /// The process that answers.
    pub(crate) server_pid: Option<i64>,
    /// Whether who asks is the trace's last program, for which the others are there; `None` where that is not known.
    pub(crate) is_callers: Option<bool>,
    /// It lasts as long as a transfer between the same two programs, which it controls: nobody waits for its answer.
    pub(crate) is_control: bool,
}

/// Where its time went.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RequestTimes {
    pub(crate) total: i64,
    pub(crate) lookup: i64,
    pub(crate) connect: i64,
    pub(crate) handshake: i64,
    pub(crate) client: i64,
    pub(crate) hold: i64,
    pub(crate) there: i64,
    pub(crate) unread: i64,
    pub(crate) work: i64,
    pub(crate) sending: i64,
    pub(crate) back: i64,
    pub(crate) client_unread: i64,
    /// Whether it is known when both messages were at both hosts.
    pub(crate) is_transit_known: bool,
    /// It was seen at the client, or on the way, and not at the server: the server's time has the way to it and back in it.
    pub(crate) is_of_client: bool,
    /// It was seen at the server, and not at the client.
    pub(crate) is_of_server: bool,
    pub(crate) round_trip: Option<i64>,
    /// How often it went there and back.
    pub(crate) rounds: i64,
    pub(crate) has_connect: bool,
    pub(crate) has_handshake: bool,
}

impl RequestTimes {
    /// How long it is on the network where only its server is seen: a round trip of its connection.
    pub(crate) fn trip_to_server(&self) -> i64 {
        let trip = self.round_trip.filter(|_| self.is_of_server);
        trip.unwrap_or(0).max(0).saturating_mul(self.trips())
    }

    /// All of it, as its client has it.
    pub(crate) fn whole(&self) -> i64 {
        self.total.max(0).saturating_add(self.trip_to_server())
    }
}

/// What held it up on its way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RequestNetworkDelays {
    pub(crate) again_there: i64,
    pub(crate) again_there_ns: i64,
    pub(crate) again_back: i64,
    pub(crate) again_back_ns: i64,
    pub(crate) held_there_ns: i64,
    pub(crate) held_back_ns: i64,
    pub(crate) window_there_ns: i64,
    pub(crate) window_back_ns: i64,
    /// How long the client read nothing although bytes of the answer lay there.
    pub(crate) late_back_ns: i64,
    /// How long client and server sent nothing in the midst of their messages although nothing hindered them.
    pub(crate) paused_there_ns: i64,
    pub(crate) paused_back_ns: i64,
    pub(crate) connect_again: i64,
    /// How long the client waited in the midst of its request for what the server said then (`100 Continue`), beside the way.
    pub(crate) awaited_there_ns: i64,
    /// How long senders stood still in the midst of their messages until an acknowledgement came, although there was room.
    pub(crate) stalled_there_ns: i64,
    pub(crate) stalled_back_ns: i64,
}

/// What the server's thread did meanwhile.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RequestServerWork {
    pub(crate) cpu: i64,
    pub(crate) runnable: i64,
    pub(crate) lock: i64,
    pub(crate) disk: i64,
    pub(crate) sleep: i64,
    pub(crate) socket: i64,
    pub(crate) child: i64,
    pub(crate) stopped: i64,
    pub(crate) collect: i64,
    pub(crate) observer: i64,
}

impl RequestServerWork {
    /// How long it waited for something that is not the network.
    pub(crate) const fn waits(&self) -> i64 {
        self.lock + self.disk + self.sleep + self.child + self.stopped + self.collect
    }
}

impl RequestTimes {
    /// How often it went there and back, at least once.
    pub(crate) fn trips(&self) -> i64 {
        self.rounds.max(1)
    }
}

impl TracedRequest {
    /// Whether its client gave it up before anything answered it.
    pub(crate) const fn is_given_up(&self) -> bool {
        self.unknown.is_some() && self.times.is_some() && self.bytes.1 == 0
    }

    /// Whether its deadline was over before its answer: gRPC's `DEADLINE_EXCEEDED`. Client and server see that at the same moment, so
    /// chance decides whether the server says it or the client resets the stream.
    pub(crate) fn exceeds_deadline(&self) -> bool {
        self.protocol == "gRPC" && self.status.starts_with("grpc-status 4")
    }

    /// Whether its client reset the stream of one of gRPC before anything answered it.
    pub(crate) fn is_cancelled_call(&self) -> bool {
        let is_reset = self.unknown.as_deref() == Some(RESET_BEFORE);
        self.protocol == "gRPC" && is_reset && self.is_given_up()
    }

    /// Whether a part of its answer came, and nothing more.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.unknown.as_deref() == Some(CUT_OFF)
    }

    /// Whether it was not answered yet when the trace ended: it did not fail.
    pub(crate) fn is_under_way(&self) -> bool {
        self.unknown.as_deref() == Some(UNDER_WAY)
    }

    /// The same of one of whose answer nothing had come.
    pub(crate) fn is_hung(&self) -> bool {
        self.is_under_way() && self.bytes.1 == 0
    }

    /// Whether its server ended the connection instead of an answer.
    pub(crate) fn is_ended_by_server(&self) -> bool {
        self.unknown
            .as_deref()
            .is_some_and(|why| why == SERVER_CLOSED || why == SERVER_RESET)
    }

    /// Whether the answer says that it failed, or that a login or the set-up of security did.
    pub(crate) fn has_failed(&self) -> bool {
        let is_set_up =
            !self.is_unopened && SET_UPS.iter().any(|words| self.name.starts_with(words));
        // A refused login of one of those is said by its word.
        let is_answer =
            is_introduction(&self.protocol, &self.name) && self.status.starts_with("ERR");
        let is_tried = self.is_call || is_set_up;
        is_tried && !is_answer && is_failure_status(&self.protocol, &self.status)
    }

    /// Whether it failed: its answer says so, or there is none. What was not captured did not.
    pub(crate) fn has_no_good_answer(&self) -> bool {
        let has_none = self
            .unknown
            .as_deref()
            .is_some_and(|why| FAILS.contains(&why));
        has_none || self.has_failed()
    }

    /// Whether programs made it that are beside the one that the trace is about.
    pub(crate) fn is_background(&self) -> bool {
        self.is_callers == Some(false)
    }

    /// Whether its answer is a stream in parts, in most of whose time nothing was to be sent: it lasts as long as somebody listens.
    pub(crate) fn is_event_stream(&self) -> bool {
        let whole = self.times.map_or(0, |times| times.total);
        self.parts > 1 && self.network.paused_back_ns > whole / 2
    }

    /// Bytes of its answer, or of what it said.
    pub(crate) fn message_bytes(&self, is_answer: bool) -> i64 {
        if is_answer {
            self.bytes.1
        } else {
            self.bytes.0
        }
    }

    /// When it began, ns.
    pub(crate) fn begin_ns(&self) -> u64 {
        self.times.map_or(self.end_ns, |times| {
            self.end_ns.saturating_sub(times.total.max(0) as u64)
        })
    }

    /// From when to when the server had it, ns.
    pub(crate) fn at_server(&self) -> Option<(u64, u64)> {
        let times = self.times?;
        let after = times.sending + times.back + times.client_unread;
        let end = self.end_ns.saturating_sub(after.max(0) as u64);
        Some((end.saturating_sub(times.work.max(0) as u64), end))
    }
}

/// The program that serves, and where.
pub(crate) fn server_name(request: &TracedRequest) -> String {
    named(&request.programs.1, &request.server)
}

/// The program that asks, and where.
pub(crate) fn client_name(request: &TracedRequest) -> String {
    named(&request.programs.0, &request.client)
}

fn named(program: &str, host: &str) -> String {
    if program.is_empty() {
        host.to_owned()
    } else {
        format!("{program} on {host}")
    }
}

/// All requests of a trace, in the order of their ends.
pub(crate) fn requests(log: &EventRows<'_>) -> Vec<TracedRequest> {
    let mut all: Vec<TracedRequest> = log
        .rows("REQUEST")
        .iter()
        .map(|row| request(log, *row))
        .collect();
    let by_unit: BTreeMap<i64, usize> = all
        .iter()
        .enumerate()
        .map(|(at, request)| (request.unit, at))
        .collect();
    let mut each = |keyword: &str, put: &dyn Fn(&mut TracedRequest, u32)| {
        for row in log.rows(keyword) {
            if let Some(at) = log.number(*row, "unit").and_then(|unit| by_unit.get(&unit)) {
                put(&mut all[*at], *row);
            }
        }
    };
    each("REQUEST_TIME", &|request, row| {
        let times = times(log, row);
        // Where nothing answered, no answer was seen at its client either.
        let is_of_server = times.is_of_server && request.bytes.1 > 0;
        request.times = Some(RequestTimes {
            is_of_server,
            ..times
        });
    });
    each("REQUEST_NETWORK", &|request, row| {
        request.network = network(log, row)
    });
    each("REQUEST_STALL", &|request, row| {
        let number = |field: &str| log.number(row, field).unwrap_or(0);
        request.network.stalled_there_ns = number("stalled_there_ns");
        request.network.stalled_back_ns = number("stalled_back_ns");
    });
    each("REQUEST_PARENT", &|request, row| {
        request.parent = log.number(row, "parent")
    });
    each("REQUEST_WORK", &|request, row| {
        request.work = Some(work(log, row))
    });
    each("REQUEST_WAIT", &|request, row| {
        request.wait = Some(work(log, row))
    });
    each("RESPONSE_WAIT", &|request, row| {
        request.answer_wait = Some(work(log, row))
    });
    each("REQUEST_PROCESS", &|request, row| {
        request.client_pid = log.number(row, "client_pid");
        request.server_pid = log.number(row, "server_pid");
        request.is_callers = log.number(row, "is_callers").map(|of| of == 1);
    });
    find_ports(&mut all, log);
    find_servers(&mut all);
    name_by_port(&mut all);
    find_responders(&mut all);
    mark_control_requests(&mut all, log);
    all
}

fn mark_control_requests(all: &mut [TracedRequest], log: &EventRows<'_>) {
    if log.rows("TCP_CONNECTION").is_empty() {
        return;
    }
    let turns: Vec<(usize, AlternatingMessage<'_>)> = all
        .iter()
        .enumerate()
        .filter(|(_, request)| !request.exact)
        .map(|(at, request)| {
            let turn = AlternatingMessage {
                flow: unit_ids::parts(request.unit).0,
                is_call: request.is_call,
                client: (&request.client, &request.programs.0),
                server: &request.server,
                from_ns: request.begin_ns(),
                to_ns: request.end_ns,
            };
            (at, turn)
        })
        .collect();
    for at in find_control_requests(&turns, log) {
        all[at].is_control = true;
    }
}

/// The ports of servers, as the run's index has them.
fn find_ports(all: &mut [TracedRequest], log: &EventRows<'_>) {
    let port = |service: &str| service.rsplit_once(':')?.1.parse::<u16>().ok();
    let flows = log.input.index.flows.iter();
    let ports: BTreeMap<u32, u16> = flows
        .filter_map(|flow| Some((flow.id, port(&flow.service)?)))
        .collect();
    for request in all {
        request.port = ports.get(&unit_ids::parts(request.unit).0).copied();
    }
}

/// Who serves those whose connections no program has taken yet: the one program that serves others at that port.
fn find_servers(all: &mut [TracedRequest]) {
    let mut programs: BTreeMap<(&str, u16), Option<&str>> = BTreeMap::new();
    for request in all.iter().filter(|one| !one.programs.1.is_empty()) {
        let Some(port) = request.port else { continue };
        let program = request.programs.1.as_str();
        programs
            .entry((&request.server, port))
            .and_modify(|known| *known = known.filter(|known| *known == program))
            .or_insert(Some(program));
    }
    let found = all.iter().map(|request| {
        let is_asked = request.is_call && request.programs.1.is_empty();
        let port = request.port.filter(|_| is_asked)?;
        let program = programs.get(&(request.server.as_str(), port))?;
        program.map(str::to_owned)
    });
    let found: Vec<Option<String>> = found.collect();
    for (request, program) in all.iter_mut().zip(found) {
        if let Some(program) = program {
            request.programs.1 = program;
        }
    }
}

fn request(log: &EventRows<'_>, row: u32) -> TracedRequest {
    let text = |field: &str| log.text(row, field).unwrap_or_default().to_owned();
    let either = |field: &str| {
        log.number(row, field)
            .map_or_else(|| text(field), |number| number.to_string())
    };
    let number = |field: &str| log.number(row, field);
    TracedRequest {
        unit: number("unit").unwrap_or(-1),
        row,
        is_call: log.text(row, "kind") == Some("call"),
        is_one_way: log.text(row, "kind") == Some("one way"),
        is_unopened: log.text(row, "kind") == Some("connection"),
        exact: number("exact") == Some(1),
        protocol: text("protocol"),
        name: either("name"),
        status: either("status"),
        client: either("client"),
        server: either("server"),
        programs: (either("client_program"), either("server_program")),
        bytes: (
            number("request_bytes").unwrap_or(0),
            number("response_bytes").unwrap_or(0),
        ),
        parts: number("parts").unwrap_or(0),
        unknown: log.text(row, "unknown").map(str::to_owned),
        end_ns: log.at(row),
        ..TracedRequest::default()
    }
}

/// The longest time of a request that is believed, 39 h: those of 65,000 requests can be added up, whatever a log says.
const LONGEST_NS: i64 = 1 << 47;

/// Round trips of a request that are believed.
const MOST_ROUNDS: i64 = 1 << 10;

fn times(log: &EventRows<'_>, row: u32) -> RequestTimes {
    let known = |field: &str| {
        log.number(row, field)
            .map(|ns| ns.clamp(-LONGEST_NS, LONGEST_NS))
    };
    let time = |field: &str| known(field).unwrap_or(0);
    RequestTimes {
        total: time("total_ns"),
        lookup: time("lookup_ns"),
        connect: time("connect_ns"),
        handshake: time("handshake_ns"),
        client: time("client_ns"),
        hold: time("hold_ns"),
        there: time("there_ns"),
        unread: time("unread_ns"),
        work: time("work_ns"),
        sending: time("sending_ns"),
        back: time("back_ns"),
        client_unread: time("client_unread_ns"),
        is_transit_known: known("there_ns").is_some() && known("back_ns").is_some(),
        is_of_server: known("there_ns").is_some() && known("back_ns").is_none(),
        is_of_client: known("there_ns").is_none() && known("back_ns").is_some(),
        round_trip: known("round_trip_ns"),
        rounds: log.number(row, "rounds").unwrap_or(1).clamp(1, MOST_ROUNDS),
        has_connect: known("connect_ns").is_some(),
        has_handshake: known("handshake_ns").is_some(),
    }
}

fn network(log: &EventRows<'_>, row: u32) -> RequestNetworkDelays {
    let number = |field: &str| log.number(row, field).unwrap_or(0);
    RequestNetworkDelays {
        again_there: number("again_there"),
        again_there_ns: number("again_there_ns"),
        again_back: number("again_back"),
        again_back_ns: number("again_back_ns"),
        held_there_ns: number("held_there_ns"),
        held_back_ns: number("held_back_ns"),
        window_there_ns: number("window_there_ns"),
        window_back_ns: number("window_back_ns"),
        late_back_ns: number("late_back_ns"),
        paused_there_ns: number("paused_there_ns"),
        paused_back_ns: number("paused_back_ns"),
        connect_again: number("connect_again"),
        awaited_there_ns: number("awaited_there_ns"),
        ..RequestNetworkDelays::default()
    }
}

fn work(log: &EventRows<'_>, row: u32) -> RequestServerWork {
    let number = |field: &str| log.number(row, field).unwrap_or(0);
    RequestServerWork {
        cpu: number("cpu_ns"),
        runnable: number("runnable_ns"),
        lock: number("lock_ns"),
        disk: number("disk_ns"),
        sleep: number("sleep_ns"),
        socket: number("socket_ns"),
        child: number("child_ns"),
        stopped: number("stopped_ns"),
        collect: number("collect_ns"),
        observer: number("observer_ns"),
    }
}
