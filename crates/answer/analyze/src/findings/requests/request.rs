//! A request of a traced program (any program, not one of stackline): what it was, who made it, and where its time went, as read from the
//! trace's events. No findings are made here.

use crate::findings::requests::failed_status::{is_failure_status, is_introduction};
use crate::findings::requests::responders::RequestResponder;

/// Reasons for a missing answer, as in the field `unknown` of `REQUEST` events.
pub(crate) const SERVER_CLOSED: &str = "the server closed its connection";
pub(crate) const SERVER_RESET: &str = "the server reset its connection";
pub(crate) const SILENT: &str = "nothing answered its connection";
pub(crate) const CUT_OFF: &str = "its answer was cut off";
pub(crate) const UNDER_WAY: &str = "it was under way when the trace ended";
pub(crate) const REFUSED: &str = "its connection was refused";
pub(crate) const UNANSWERED: &str = "nothing answered it";
const ENDED_BEFORE: &str = "the connection ended before its response";
const RESET_BEFORE: &str = "its stream was reset before its response";
/// The reasons that say that a request failed; others say that it was not captured completely.
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
/// How the names of set-up steps begin that a server may refuse.
const SET_UPS: [&str; 2] = ["login", "TLS handshake"];

/// A request of a traced program. Times are in ns.
#[derive(Clone, Debug, Default)]
pub(crate) struct TracedRequest {
    /// Its id (unit), which contains its flow and its number there.
    pub(crate) unit: i64,
    /// The row of its `REQUEST` event.
    pub(crate) row: u32,
    /// Whether it is a call: a request that is to be answered.
    pub(crate) is_call: bool,
    /// Whether it is a message that nobody answers.
    pub(crate) is_one_way: bool,
    /// Whether it is a connection that could not be set up, so that no request was made.
    pub(crate) is_unopened: bool,
    /// Whether its protocol was understood; else it is a guess from the turns of a connection.
    pub(crate) exact: bool,
    /// The name of its protocol, such as `HTTP/1.1`.
    pub(crate) protocol: String,
    /// What was asked, such as `GET /item/17`.
    pub(crate) name: String,
    /// The status that was answered, such as `200`; empty if there was none.
    pub(crate) status: String,
    /// The host that asks.
    pub(crate) client: String,
    /// The host that is asked.
    pub(crate) server: String,
    /// The programs that ask and that serve; empty where not known.
    pub(crate) programs: (String, String),
    /// The port of the server, where it is known.
    pub(crate) port: Option<u16>,
    /// The sizes of the request and of its answer, bytes.
    pub(crate) bytes: (i64, i64),
    /// The number of complete parts of an answer that is a stream: events, gRPC messages.
    pub(crate) parts: i64,
    /// The unit of the request on whose behalf this one was made.
    pub(crate) parent: Option<i64>,
    /// Why there is no (complete) answer; `None` if there is one.
    pub(crate) unknown: Option<String>,
    /// When it ended, reference time.
    pub(crate) end_ns: u64,
    /// The parts of its time, where they are known.
    pub(crate) times: Option<RequestTimes>,
    /// The parts of its time without those that it waited for other requests on its connection, where it did.
    pub(crate) own_times: Option<RequestTimes>,
    /// What delayed it on the network.
    pub(crate) network: RequestNetworkDelays,
    /// The program that answers it, if its server is a broker that hands it on.
    pub(crate) responder: Option<RequestResponder>,
    /// What the server's thread did from reading the request to the answer.
    pub(crate) work: Option<RequestServerWork>,
    /// How long the servers behind its server took for it, by that server's log.
    pub(crate) upstream_ns: Option<i64>,
    /// What the threads that held locks did while the server's thread waited for these.
    pub(crate) holders: Option<RequestServerWork>,
    /// What the server's thread that read the request did while it lay unread.
    pub(crate) wait: Option<RequestServerWork>,
    /// What the client's thread that read the answer did while the answer lay unread.
    pub(crate) answer_wait: Option<RequestServerWork>,
    /// The process that asks.
    pub(crate) client_pid: Option<i64>,
    /// The process that answers.
    pub(crate) server_pid: Option<i64>,
    /// Whether the client is the last program of the trace, for whose sake the others run, or was started by it; `None` if not known.
    pub(crate) is_callers: Option<bool>,
    /// Whether it controls a transfer between the same two programs and lasts as long as that: nobody waits for its answer.
    pub(crate) is_control: bool,
}

/// The consecutive parts of a request's time, which add up to `total`, ns. A part whose ends were not seen is 0 and its time is in the next
/// one (see `docs/REAL.md`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RequestTimes {
    /// The whole time.
    pub(crate) total: i64,
    /// The server's address is looked up.
    pub(crate) lookup: i64,
    /// The connection is opened, from the first SYN to its answer.
    pub(crate) connect: i64,
    /// TLS or a login is set up.
    pub(crate) handshake: i64,
    /// The client prepares the request, until it is written.
    pub(crate) client: i64,
    /// The request is in the client's stack, until its last byte has left the host.
    pub(crate) hold: i64,
    /// The request travels, until it is complete at the server's host.
    pub(crate) there: i64,
    /// The request lies unread at the server.
    pub(crate) unread: i64,
    /// The server works, until the first byte of the answer leaves.
    pub(crate) work: i64,
    /// The answer leaves, until its last byte has left the server's host.
    pub(crate) sending: i64,
    /// The answer travels, until its last byte is at the client's host.
    pub(crate) back: i64,
    /// The answer lies unread at the client.
    pub(crate) client_unread: i64,
    /// Whether `there` and `back` are both known: both messages were seen at both hosts.
    pub(crate) is_transit_known: bool,
    /// Whether it was seen at the client or on the path, but not at the server: `work` then includes the way to the server and back.
    pub(crate) is_of_client: bool,
    /// Whether it was seen at the server, but not at the client.
    pub(crate) is_of_server: bool,
    /// The round trip measured at its connection's set-up.
    pub(crate) round_trip: Option<i64>,
    /// The number of its round trips, such as the steps of a database statement.
    pub(crate) rounds: i64,
    /// Whether it opened a connection.
    pub(crate) has_connect: bool,
    /// Whether it set up TLS or a login.
    pub(crate) has_handshake: bool,
}

impl RequestTimes {
    /// The time on the network that is not in `total` because only the server was seen: a round trip of its connection for each of its
    /// round trips.
    pub(crate) fn trip_to_server(&self) -> i64 {
        let trip = self.round_trip.filter(|_| self.is_of_server);
        trip.unwrap_or(0).max(0).saturating_mul(self.trips())
    }

    /// The whole time as its client experiences it.
    pub(crate) fn whole(&self) -> i64 {
        self.total.max(0).saturating_add(self.trip_to_server())
    }
}

/// What delayed a request (`there`) and its answer (`back`) on the network: counts of segments, and times in ns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RequestNetworkDelays {
    /// Retransmitted segments of the request.
    pub(crate) again_there: i64,
    /// The delay by them.
    pub(crate) again_there_ns: i64,
    /// Retransmitted segments of the answer.
    pub(crate) again_back: i64,
    /// The delay by them.
    pub(crate) again_back_ns: i64,
    /// The time that Nagle's algorithm held the end of the request back.
    pub(crate) held_there_ns: i64,
    /// The time that Nagle's algorithm held the end of the answer back.
    pub(crate) held_back_ns: i64,
    /// The time that the request waited for room in the server's receive buffer.
    pub(crate) window_there_ns: i64,
    /// The time that the answer waited for room in the client's receive buffer.
    pub(crate) window_back_ns: i64,
    /// The time that the client read nothing although bytes of the answer lay there.
    pub(crate) late_back_ns: i64,
    /// The time that the client sent nothing in the middle of the request although nothing hindered it.
    pub(crate) paused_there_ns: i64,
    /// The time that the server sent nothing in the middle of the answer although nothing hindered it.
    pub(crate) paused_back_ns: i64,
    /// Retransmissions of the first packets of the connection.
    pub(crate) connect_again: i64,
    /// The time that the client waited in the middle of its request for an answer such as `100 Continue`, without the time on the network.
    pub(crate) awaited_there_ns: i64,
    /// The time that the client stopped sending in the middle of the request until an acknowledgement arrived, although the server had
    /// room.
    pub(crate) stalled_there_ns: i64,
    /// The time that the server stopped sending in the middle of the answer likewise.
    pub(crate) stalled_back_ns: i64,
    /// The time that the beginning of the answer, already written, waited for earlier bytes of its connection to leave.
    pub(crate) behind_back_ns: i64,
}

/// What a thread did in some part of a request's time, ns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RequestServerWork {
    /// The thread.
    pub(crate) thread: i64,
    /// It ran on a core.
    pub(crate) cpu: i64,
    /// It was ready to run and had no core.
    pub(crate) runnable: i64,
    /// It waited for a lock.
    pub(crate) lock: i64,
    /// It waited for a disk.
    pub(crate) disk: i64,
    /// It slept for a set time.
    pub(crate) sleep: i64,
    /// It waited for a socket.
    pub(crate) socket: i64,
    /// It waited for a process that it had started.
    pub(crate) child: i64,
    /// It was stopped.
    pub(crate) stopped: i64,
    /// It waited for garbage collection.
    pub(crate) collect: i64,
    /// It had no core because the trace itself used it.
    pub(crate) observer: i64,
}

impl RequestServerWork {
    /// The time that it waited for something other than the network or a core.
    pub(crate) const fn waits(&self) -> i64 {
        self.lock + self.disk + self.sleep + self.child + self.stopped + self.collect
    }
}

impl RequestTimes {
    /// The number of its round trips, at least one.
    pub(crate) fn trips(&self) -> i64 {
        self.rounds.max(1)
    }
}

impl TracedRequest {
    /// Whether its client gave it up before any byte of an answer came.
    pub(crate) const fn is_given_up(&self) -> bool {
        self.unknown.is_some() && self.times.is_some() && self.bytes.1 == 0
    }

    /// Whether its deadline passed before its answer: gRPC's `DEADLINE_EXCEEDED`. Client and server notice that at the same moment, so it
    /// is chance whether the server answers with that status or the client resets the stream.
    pub(crate) fn exceeds_deadline(&self) -> bool {
        self.protocol == "gRPC" && self.status.starts_with("grpc-status 4")
    }

    /// Whether it is a gRPC call whose stream the client reset before any answer.
    pub(crate) fn is_cancelled_call(&self) -> bool {
        let is_reset = self.unknown.as_deref() == Some(RESET_BEFORE);
        self.protocol == "gRPC" && is_reset && self.is_given_up()
    }

    /// Whether only a part of its answer arrived.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.unknown.as_deref() == Some(CUT_OFF)
    }

    /// Whether it was not fully answered yet when the trace ended; it did not fail then.
    pub(crate) fn is_under_way(&self) -> bool {
        self.unknown.as_deref() == Some(UNDER_WAY)
    }

    /// Whether nothing of its answer had arrived when the trace ended.
    pub(crate) fn is_hung(&self) -> bool {
        self.is_under_way() && self.bytes.1 == 0
    }

    /// Whether its server closed or reset the connection instead of answering.
    pub(crate) fn is_ended_by_server(&self) -> bool {
        self.unknown
            .as_deref()
            .is_some_and(|why| why == SERVER_CLOSED || why == SERVER_RESET)
    }

    /// Whether the answer says that the request failed, or that a login or TLS handshake did.
    pub(crate) fn has_failed(&self) -> bool {
        let is_set_up =
            !self.is_unopened && SET_UPS.iter().any(|words| self.name.starts_with(words));
        // Redis answers `ERR` to a client's introduction that it does not know; a refused login has another word.
        let is_answer = is_introduction(&self.protocol, &self.name)
            && (self.protocol == "FTP" || self.status.starts_with("ERR"));
        let is_tried = self.is_call || is_set_up;
        is_tried && !is_answer && is_failure_status(&self.protocol, &self.status)
    }

    /// Whether it failed: its answer says so, or there is none. A request that was not captured completely does not count.
    pub(crate) fn has_no_good_answer(&self) -> bool {
        let has_none = self
            .unknown
            .as_deref()
            .is_some_and(|why| FAILS.contains(&why));
        has_none || self.has_failed()
    }

    /// Whether it was made by a program other than the one that the trace is about.
    pub(crate) fn is_background(&self) -> bool {
        self.is_callers == Some(false)
    }

    /// Whether its answer is a stream of parts with nothing to send for most of the time: it lasts as long as the client listens.
    pub(crate) fn is_event_stream(&self) -> bool {
        let whole = self.times.map_or(0, |times| times.total);
        self.parts > 1 && self.network.paused_back_ns > whole / 2
    }

    /// The size of its answer or of the request itself, bytes.
    pub(crate) fn message_bytes(&self, is_answer: bool) -> i64 {
        if is_answer {
            self.bytes.1
        } else {
            self.bytes.0
        }
    }

    /// When it began, reference time, ns.
    pub(crate) fn begin_ns(&self) -> u64 {
        self.times.map_or(self.end_ns, |times| {
            self.end_ns.saturating_sub(times.total.max(0) as u64)
        })
    }

    /// When the server had read it and when the answer began to leave, reference time, ns.
    pub(crate) fn at_server(&self) -> Option<(u64, u64)> {
        let times = self.times?;
        let after = times.sending + times.back + times.client_unread;
        let end = self.end_ns.saturating_sub(after.max(0) as u64);
        Some((end.saturating_sub(times.work.max(0) as u64), end))
    }
}

/// Whether a request waits for an event by design, such as a blocking read of a queue.
pub(crate) fn is_wait(request: &TracedRequest) -> bool {
    request.name.ends_with(", blocking")
}

/// The program that serves, with its host; the host alone if the program is not known.
pub(crate) fn server_name(request: &TracedRequest) -> String {
    named(&request.programs.1, &request.server)
}

/// The program that asks, with its host; the host alone if the program is not known.
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
