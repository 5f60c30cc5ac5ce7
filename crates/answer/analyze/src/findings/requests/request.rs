//! Requests of programs that are not ours, as a trace tells of them: what each was, and where its time went. It finds nothing.

use crate::findings::requests::failed_status::{is_failure_status, is_introduction};
use crate::findings::requests::responders::RequestResponder;

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
