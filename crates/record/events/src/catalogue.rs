//! Every keyword of stackline: who emits it, what its data are, in their order. Docs, importers, lifelines and findings read
//! this table; an event with a keyword that is not in it is kept and shown all the same.
//!
//! The data of everything on the path of a data unit begin alike: `unit; stream; offset; bytes` (see [`crate::unit`]). A
//! field that is not known is empty. `offset` counts bytes of the transport's stream from the connection's first byte on.

/// Where an event comes from; the first part of its keyword names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// The application: operations of the language.
    Application,
    /// The socket: system calls.
    Socket,
    /// The protocol machine, of ours or the kernel's.
    Protocol,
    /// The network: queues, links, hosts' interfaces.
    Network,
    /// A structured display, its clients and what stands between, live or in virtual time.
    Display,
    /// Monitors of machines: intervals, stamped with their end; their first data field is the interval in ns.
    Monitor,
    /// stackline itself.
    Tool,
}

/// What an event says became of data beside its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataFate {
    /// It, or a part of it, is sent again.
    SentAgain,
    /// It, or a part of it, is dropped.
    Dropped,
    /// It is given up by who waits for it.
    GivenUp,
    /// It is discarded in favour of a newer request.
    Flushed,
}

/// One row.
#[derive(Clone, Copy, Debug)]
pub struct CatalogueEntry {
    /// The keyword.
    pub keyword: &'static str,
    /// Who emits it.
    pub layer: Layer,
    /// Names of its data, in order.
    pub data: &'static [&'static str],
    /// What happened, for people.
    pub help: &'static str,
    /// What became of data beside its way, if it is about that.
    pub fate: Option<DataFate>,
    /// Whether a program has done work of its own when it happens, and no transport has taken anything.
    pub is_work: bool,
}

impl CatalogueEntry {
    /// Which data field has that name, from 0.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<usize> {
        self.data.iter().position(|field| *field == name)
    }

    const fn is_work(mut self) -> Self {
        self.is_work = true;
        self
    }

    const fn of(mut self, fate: DataFate) -> Self {
        self.fate = Some(fate);
        self
    }
}

const fn entry(
    keyword: &'static str,
    layer: Layer,
    data: &'static [&'static str],
    help: &'static str,
) -> CatalogueEntry {
    CatalogueEntry {
        keyword,
        layer,
        data,
        help,
        fate: None,
        is_work: false,
    }
}

const UNIT: &[&str] = &["unit", "stream", "offset", "bytes"];
const NET: &[&str] = &[
    "unit", "stream", "offset", "bytes", "place", "way", "flow", "number", "segments", "length",
];
const NET_QUEUED: &[&str] = &[
    "unit", "stream", "offset", "bytes", "place", "way", "flow", "number", "segments", "length",
    "queued",
];
const NET_REASON: &[&str] = &[
    "unit", "stream", "offset", "bytes", "place", "way", "flow", "number", "segments", "length",
    "reason",
];
const INFO: &[&str] = &[
    "interval_ns",
    "stream",
    "local",
    "remote",
    "cwnd_bytes",
    "in_flight_bytes",
    "rtt_ns",
    "retransmits",
    "busy_ns",
    "rwnd_limited_ns",
    "sndbuf_limited_ns",
    "unsent_bytes",
    "receive_queue_bytes",
    "send_window_bytes",
    "mss_bytes",
    "acked_bytes",
];
/// A request to a display: its client's number there, and its own.
const REQUEST: &[&str] = &["unit"];
const CAUSE: &[&str] = &["unit", "stream", "offset", "bytes", "cause"];
const THREAD_TIME: &[&str] = &[
    "unit",
    "thread",
    "cpu_ns",
    "runnable_ns",
    "lock_ns",
    "disk_ns",
    "sleep_ns",
    "socket_ns",
    "child_ns",
    "stopped_ns",
    "collect_ns",
    "observer_ns",
    "other_ns",
];

/// All of them, in the order a data unit meets them.
pub const ENTRIES: &[CatalogueEntry] = &[
    entry("APP_CONNECT", Layer::Application, UNIT, "a connection is asked for"),
    entry(
        "APP_CONNECTED",
        Layer::Application,
        &["unit", "stream", "offset", "bytes", "local", "remote"],
        "it is there; `stream` is the one from local to remote, `offset` where its data units begin",
    ),
    entry(
        "APP_ACCEPTED",
        Layer::Application,
        &["unit", "stream", "offset", "bytes", "local", "remote"],
        "the responder has it; `stream` and `offset` as above",
    ),
    entry("APP_START", Layer::Application, &["unit", "stream"], "the clock of this endpoint starts"),
    entry("APP_CALL", Layer::Application, UNIT, "a request is handed over"),
    entry("APP_SEND", Layer::Application, UNIT, "a data unit is handed over"),
    entry("APP_SENT", Layer::Application, UNIT, "the operation that hands it over returns"),
    entry("APP_INDICATION", Layer::Application, UNIT, "a request is there whole"),
    entry("APP_REPLY", Layer::Application, UNIT, "a response is handed over"),
    entry("APP_REPLIED", Layer::Application, UNIT, "the operation that hands it over returns"),
    entry("APP_AWAIT", Layer::Application, UNIT, "the application waits for a data unit"),
    entry("APP_RECEIVED", Layer::Application, UNIT, "a data unit is there whole"),
    entry("APP_ENDED", Layer::Application, UNIT, "the stream ends instead: the unit that was awaited is none"),
    entry("APP_RESPONSE", Layer::Application, UNIT, "a response is there whole"),
    entry("APP_LOST", Layer::Application, UNIT, "a call that nobody answered is given up").of(DataFate::GivenUp),
    entry("APP_STOP", Layer::Application, &["unit", "stream"], "the clock of this endpoint stops"),
    entry("APP_DISCONNECT", Layer::Application, UNIT, "a connection is given up"),
    entry("APP_DISCONNECTED", Layer::Application, UNIT, "it is gone"),
    entry(
        "APP_TRACEPARENT",
        Layer::Application,
        &["unit", "stream", "offset", "bytes", "traceparent"],
        "the request is also known by this W3C trace context",
    ),
    entry(
        "LOG",
        Layer::Application,
        &["unit", "stream", "offset", "bytes", "level", "logger", "message"],
        "the program logged something",
    ),
    entry("SOCK_SEND", Layer::Socket, UNIT, "a sending system call begins"),
    entry("SOCK_SENT", Layer::Socket, UNIT, "it returns; `bytes` is what it took"),
    entry("SOCK_RECEIVE", Layer::Socket, UNIT, "a receiving system call begins"),
    entry("SOCK_RECEIVED", Layer::Socket, UNIT, "it returns; `bytes` is what it gave"),
    entry("TCP_SEGMENT", Layer::Protocol, UNIT, "the machine sends new data"),
    entry(
        "TCP_RETRANSMIT",
        Layer::Protocol,
        &["unit", "stream", "offset", "bytes", "cause", "segments", "local", "remote"],
        "data is sent again",
    )
    .of(DataFate::SentAgain),
    entry(
        "TCP_CONNECTION",
        Layer::Protocol,
        &[
            "stream",
            "initiator",
            "responder",
            "duration_ns",
            "handshake_ns",
            "ack_there_ns",
            "ack_back_ns",
            "bytes_there",
            "bytes_back",
            "again_there",
            "again_back",
            "zero_windows",
            "window_full_ns",
            "quiet_ns",
            "quiet_until",
            "end",
        ],
        "a connection of a capture, at its first packet: round trip of its handshake, medians from data to acknowledgement, bytes, segments sent again, time without window, its longest quiet period and what ended it",
    ),
    entry(
        "TCP_STATE",
        Layer::Protocol,
        &["unit", "stream", "offset", "bytes", "state", "local", "remote"],
        "the sender's view of loss changes: open, disorder, cwr, recovery, loss",
    ),
    entry(
        "TCP_DROP",
        Layer::Protocol,
        &["unit", "stream", "offset", "bytes", "reason", "local", "remote"],
        "a host's kernel drops a packet, and why",
    )
    .of(DataFate::Dropped),
    entry(
        "TCP_RCVQ_FULL",
        Layer::Protocol,
        &["unit", "stream", "offset", "bytes", "queued", "local", "remote"],
        "a receive queue is full",
    )
    .of(DataFate::Dropped),
    entry(
        "TCP_RESET",
        Layer::Protocol,
        &["unit", "stream", "offset", "bytes", "reason", "local", "remote"],
        "a connection is reset; `reason` is received where the peer did it",
    ),
    entry(
        "TCP_INFO",
        Layer::Protocol,
        INFO,
        "a connection as the kernel reports it at the end of an interval; retransmits, busy, limited and acknowledged are of it",
    ),
    entry("BLAST_SEND", Layer::Protocol, CAUSE, "the machine sends a packet; `cause` is new or the retransmission's"),
    entry("BLAST_RETRANSMIT", Layer::Protocol, CAUSE, "data is sent again").of(DataFate::SentAgain),
    entry("BLAST_NAK", Layer::Protocol, CAUSE, "the receiver says what is missing"),
    entry("BLAST_ACK", Layer::Protocol, CAUSE, "the receiver says that it has everything"),
    entry("BLAST_TIMER", Layer::Protocol, CAUSE, "a timer runs out"),
    entry(
        "BLAST_INFO",
        Layer::Protocol,
        INFO,
        "a connection of stop-and-wait, the sliding window or blasts, as `TCP_INFO` reports one of TCP; what the receiver grants is its window",
    ),
    entry("IKP_SEND", Layer::Protocol, CAUSE, "a message leaves; `cause` is call or reply"),
    entry("IKP_RETRANSMIT", Layer::Protocol, CAUSE, "a message leaves again").of(DataFate::SentAgain),
    entry("IKP_PENDING", Layer::Protocol, CAUSE, "the server says that the reply has not been made yet"),
    entry(
        "QUIC_SENT",
        Layer::Protocol,
        &["unit", "stream", "offset", "bytes", "packet", "kind"],
        "a QUIC packet is sent",
    ),
    entry(
        "QUIC_RECEIVED",
        Layer::Protocol,
        &["unit", "stream", "offset", "bytes", "packet", "kind"],
        "a QUIC packet arrives",
    ),
    entry(
        "QUIC_LOST",
        Layer::Protocol,
        &["unit", "stream", "offset", "bytes", "packet", "cause"],
        "a QUIC packet is declared lost",
    )
    .of(DataFate::SentAgain),
    entry(
        "QUIC_INFO",
        Layer::Protocol,
        INFO,
        "a QUIC connection, as `TCP_INFO` reports one of TCP; bytes are of whole packets, of which those found lost are retransmits",
    ),
    entry("NET_ENQUEUE", Layer::Network, NET_QUEUED, "a packet comes to a queue; `queued` is what is in it with this"),
    entry("NET_DEQUEUE", Layer::Network, NET, "it has left through the link"),
    entry("NET_MARK", Layer::Network, NET, "it is marked (ECN)"),
    entry("NET_DUPLICATE", Layer::Network, NET, "a link doubles it"),
    entry("NET_AGAIN", Layer::Network, NET, "bytes of a stream that a host has sent before enter the network again")
        .of(DataFate::SentAgain),
    entry("NET_DROP", Layer::Network, NET_REASON, "it is dropped or lost, and why").of(DataFate::Dropped),
    entry("NET_SEEN", Layer::Network, NET, "a capture sees it"),
    entry("NET_DELIVER", Layer::Network, NET, "its host has it"),
    entry(
        "DISPLAY_CALL",
        Layer::Display,
        REQUEST,
        "at the client's host: a request to a display is made; `unit` is the number of its client there, and its own",
    ),
    entry(
        "DISPLAY_SEND",
        Layer::Display,
        REQUEST,
        "at the client's host: it is handed over, to the transport, or into the pipe or pseudo-terminal of its host's agent",
    ),
    entry(
        "DISPLAY_ARRIVE",
        Layer::Display,
        REQUEST,
        "in virtual time, at the internet server's or the display's host: the transport has brought all of it",
    ),
    entry(
        "DISPLAY_INTERNET",
        Layer::Display,
        REQUEST,
        "in virtual time, at the internet server's host: the server has taken it",
    ),
    entry(
        "DISPLAY_AGENT",
        Layer::Display,
        REQUEST,
        "in virtual time, at the client's or the display's host: the agent there has taken it; at the client's it hands it to the transport then",
    ),
    entry("DISPLAY_PARSE", Layer::Display, REQUEST, "at the display's host: the display turns to it").is_work(),
    entry(
        "DISPLAY_STORE",
        Layer::Display,
        REQUEST,
        "at the display's host: what it says is kept, or set aside for the end of its batch",
    )
    .is_work(),
    entry(
        "DISPLAY_RENDER",
        Layer::Display,
        REQUEST,
        "at the display's host: what it changes is drawn; what is not drawn by itself is with what is drawn or answered next",
    )
    .is_work(),
    entry(
        "DISPLAY_DONE",
        Layer::Display,
        REQUEST,
        "at the client's host: all that the client had sent is answered, and this with it",
    ),
    entry(
        "CPU_USE",
        Layer::Monitor,
        &[
            "interval_ns",
            "core",
            "user_ppm",
            "system_ppm",
            "softirq_ppm",
            "irq_ppm",
            "steal_ppm",
            "idle_ppm",
            "iowait_ppm",
        ],
        "a core's time, in parts of a million",
    ),
    entry(
        "VMSTAT",
        Layer::Monitor,
        &[
            "interval_ns",
            "interrupts",
            "switches",
            "forks",
            "faults",
            "major_faults",
            "pages_in",
            "pages_out",
            "swapped_in",
            "swapped_out",
        ],
        "what the kernel counted",
    ),
    entry("VMSTAT_SYS_CALLS", Layer::Monitor, &["interval_ns", "calls"], "system calls of the machine"),
    entry("MEMORY", Layer::Monitor, &["interval_ns", "available_bytes", "free_bytes", "dirty_bytes"], "memory"),
    entry(
        "PRESSURE",
        Layer::Monitor,
        &["interval_ns", "resource", "some_ppm", "full_ppm"],
        "time that tasks waited for cpu, memory or io",
    ),
    entry(
        "THROTTLED",
        Layer::Monitor,
        &["interval_ns", "throttled_ns", "periods"],
        "time a control group was held back",
    ),
    entry(
        "NETIF",
        Layer::Monitor,
        &[
            "interval_ns",
            "interface",
            "received_bytes",
            "received_packets",
            "received_drops",
            "received_errors",
            "sent_bytes",
            "sent_packets",
            "sent_drops",
            "sent_errors",
        ],
        "what went through an interface",
    ),
    entry(
        "NETSTAT_TCP",
        Layer::Monitor,
        &[
            "interval_ns",
            "segments_in",
            "segments_out",
            "retransmits",
            "resets",
            "timeouts",
            "listen_drops",
            "receive_queue_drops",
            "delayed_acks",
            "loss_probes",
            "out_of_order",
        ],
        "the kernel's TCP counters",
    ),
    entry(
        "NETSTAT_UDP",
        Layer::Monitor,
        &["interval_ns", "in", "out", "receive_buffer_errors", "send_buffer_errors", "checksum_errors"],
        "the kernel's UDP counters",
    ),
    entry(
        "SOFTNET",
        Layer::Monitor,
        &["interval_ns", "core", "packets", "drops", "squeezed"],
        "packets taken by a core's soft interrupt",
    ),
    entry(
        "DISK",
        Layer::Monitor,
        &["interval_ns", "device", "reads", "read_bytes", "writes", "written_bytes", "busy_ns"],
        "what a disk or a partition of it completed, and how long it had something to do",
    ),
    entry(
        "SWITCH_PORT",
        Layer::Monitor,
        &[
            "interval_ns",
            "port",
            "in_bytes",
            "in_packets",
            "in_discards",
            "in_errors",
            "out_bytes",
            "out_packets",
            "out_discards",
            "out_errors",
        ],
        "a switch's counters by SNMP",
    ),
    entry(
        "PORT_USE",
        Layer::Monitor,
        &["interval_ns", "port", "packets", "bytes", "busy_ns", "queue_drops", "losses", "spoilt_frames", "marked"],
        "a port of a modelled network: what left it and how long its rate was spent for that, what its queue dropped, what its link lost; of a port that leaves a cell switch packets are cells, and frames of which the first cell was lost there are spoilt",
    ),
    entry(
        "IMP_REPORT",
        Layer::Monitor,
        &[
            "interval_ns",
            "packets",
            "messages_sent",
            "messages_received",
            "unreachable",
            "cpu_ppm",
            "reassembly_free",
            "reassembly_promised",
            "reassembly_all",
            "through",
        ],
        "an IMP to the Network Control Center: packets that it passed on or that began or ended there, messages of its hosts, packets that nobody can be reached for, its processor's work, buffers to put messages together, packets on their way through",
    ),
    entry(
        "IMP_LINE",
        Layer::Monitor,
        &["interval_ns", "port", "up", "busy_ns", "packets", "bits", "again", "refused", "duplicates", "downs"],
        "a line of an IMP, the way from it: whether it is used, how long something was on it, packets with those that went again, data bits, packets that came and were refused or there already, how often it went down",
    ),
    entry(
        "PROCESS_PAUSED",
        Layer::Monitor,
        &["interval_ns", "pid", "waited_ns", "reason"],
        "a process that is measured could not run for `waited_ns` of an interval: stopped, or waited for a core",
    ),
    entry(
        "REQUEST",
        Layer::Tool,
        &[
            "unit",
            "kind",
            "protocol",
            "exact",
            "name",
            "status",
            "client",
            "server",
            "client_program",
            "server_program",
            "request_bytes",
            "response_bytes",
            "parts",
            "unknown",
        ],
        "a request of a program that is not ours: what it was, between whom; why no more is known of it",
    ),
    entry(
        "REQUEST_PARENT",
        Layer::Tool,
        &["unit", "parent", "parent_ppm"],
        "a request was made for another one, and how sure that is",
    ),
    entry(
        "REQUEST_TIME",
        Layer::Tool,
        &[
            "unit",
            "total_ns",
            "lookup_ns",
            "connect_ns",
            "handshake_ns",
            "client_ns",
            "hold_ns",
            "there_ns",
            "unread_ns",
            "work_ns",
            "sending_ns",
            "back_ns",
            "client_unread_ns",
            "round_trip_ns",
        ],
        "where its time went: parts that add up to the total, and the round trip of its connection's set-up",
    ),
    entry(
        "REQUEST_NETWORK",
        Layer::Tool,
        &[
            "unit",
            "again_there",
            "again_there_ns",
            "again_back",
            "again_back_ns",
            "held_there_ns",
            "held_back_ns",
            "window_there_ns",
            "window_back_ns",
            "connect_again",
            "late_back_ns",
        ],
        "what held it up on its way: segments sent again and how late, ends held back for an acknowledgement, no room at the receiver; how long the client read nothing although bytes lay there",
    ),
    entry("REQUEST_WORK", Layer::Tool, THREAD_TIME, "what the server's thread did between the request and its answer"),
    entry("REQUEST_WAIT", Layer::Tool, THREAD_TIME, "what the thread that read it did while it lay unread"),
    entry(
        "NET_FLOW",
        Layer::Tool,
        &["stream", "initiator", "responder", "first_sequence"],
        "a connection, or a flow of datagrams, that a network carries begins: its stream there, its ends, the sequence number of its first byte where its beginning was seen",
    ),
    entry("RUN_START", Layer::Tool, &["measurement", "run", "warmup"], "a run of a measurement begins"),
    entry("RUN_STOP", Layer::Tool, &["measurement", "run", "warmup"], "it is over"),
    entry(
        "PORT_SETUP",
        Layer::Tool,
        &["port", "rate_bit_s", "queue_bytes", "cell_bytes"],
        "a port of a modelled network has that rate, that room in its queue and that size of cells; what it does not have is empty",
    ),
    entry(
        "OBSERVER_COST",
        Layer::Tool,
        &["batches", "without_ns", "with_ns", "spread_ns"],
        "CPU time of a message and its answer between two threads while nobody looks at programs, and while somebody does; elapsed time where programs are stopped to be looked at; medians of batches, half the distance of their quartiles",
    ),
    entry(
        "EVENTS_LOST",
        Layer::Tool,
        &["count", "seen"],
        "events there was no room for since this was last said; by `trace`, packets and records, and how many were seen so far",
    ),
    entry("CLOCK_STEP", Layer::Tool, &["by_ns"], "the wall clock of a host was set"),
];

/// The row of a keyword.
#[must_use]
pub fn find(keyword: &str) -> Option<&'static CatalogueEntry> {
    ENTRIES.iter().find(|entry| entry.keyword == keyword)
}

/// What an event with a keyword says became of data beside its way; for keywords of others it follows from their names. One
/// end of a span is none: what has a beginning and an end is a part of the way.
#[must_use]
pub fn fate(keyword: &str) -> Option<DataFate> {
    match find(keyword) {
        Some(entry) => entry.fate,
        None if is_monitor(keyword) || keyword.ends_with("_START") || keyword.ends_with("_END") => {
            None
        }
        None if keyword.contains("RETRANS") => Some(DataFate::SentAgain),
        None if keyword.contains("FLUSH") => Some(DataFate::Flushed),
        None if keyword.contains("DROP") => Some(DataFate::Dropped),
        None => None,
    }
}

/// Whether a program has done work of its own when such an event happens; of keywords of others that is not known.
#[must_use]
pub fn is_work(keyword: &str) -> bool {
    find(keyword).is_some_and(|entry| entry.is_work)
}

/// Whether it is a monitor's, of stackline's own or of others: those are known by the program that the first part names.
#[must_use]
pub fn is_monitor(keyword: &str) -> bool {
    const PROGRAMS: [&str; 8] = [
        "VMSTAT", "NETSTAT", "IOSTAT", "MPSTAT", "SNMP", "CPU", "MEM", "NETIF",
    ];
    match find(keyword) {
        Some(entry) => entry.layer == Layer::Monitor,
        None => PROGRAMS.contains(&keyword.split('_').next().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn rows_are_distinguished_and_their_data_fit_a_record() {
        let keywords: BTreeSet<&str> = ENTRIES.iter().map(|entry| entry.keyword).collect();
        assert_eq!(keywords.len(), ENTRIES.len());
        for entry in ENTRIES {
            assert!(
                entry.data.len() <= crate::table::FIELDS,
                "{}",
                entry.keyword
            );
            let path = matches!(
                entry.layer,
                Layer::Application | Layer::Socket | Layer::Network | Layer::Display
            );
            assert!(
                !path || UNIT.starts_with(&entry.data[..entry.data.len().min(4)]),
                "{}",
                entry.keyword
            );
        }
    }

    #[test]
    fn the_keyword_says_what_became_of_data() {
        for keyword in [
            "TCP_RETRANSMIT",
            "BLAST_RETRANSMIT",
            "IKP_RETRANSMIT",
            "QUIC_LOST",
            "RTP_RETRANSMIT",
        ] {
            assert_eq!(fate(keyword), Some(DataFate::SentAgain), "{keyword}");
        }
        for keyword in ["NET_DROP", "TCP_DROP", "TCP_RCVQ_FULL", "SWITCH_DROPPED"] {
            assert_eq!(fate(keyword), Some(DataFate::Dropped), "{keyword}");
        }
        assert_eq!(
            (fate("APP_LOST"), fate("SERVER_FLUSH")),
            (Some(DataFate::GivenUp), Some(DataFate::Flushed))
        );
        for keyword in [
            "EVENTS_LOST",
            "NETSTAT_TCP",
            "NETSTAT_RETRANSSEGS",
            "NET_MARK",
            "READ",
            "DROP_TABLE_START",
            "FLUSH_END",
        ] {
            assert_eq!(fate(keyword), None, "{keyword}");
        }
        // A new row for such a thing needs its fate.
        for entry in ENTRIES
            .iter()
            .filter(|entry| entry.keyword != "EVENTS_LOST")
        {
            let named = ["_RETRANSMIT", "_DROP", "_LOST"]
                .iter()
                .any(|end| entry.keyword.ends_with(end));
            assert!(!named || entry.fate.is_some(), "{}", entry.keyword);
        }
    }
}
