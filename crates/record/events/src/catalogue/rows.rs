//! The rows of the catalogue: every keyword of stackline with its layer, its data fields in their order and a
//! description. Each also has a type with which stackline's own programs emit it. Values are given by field name, so
//! two of them cannot be confused.

use super::{CatalogueEntry, DataFate, Layer};
use crate::value::EmittedEvent;
use crate::{EventEmitter, EventLog, EventValue, Keyword, recorder};

/// The name without `r#`: `r#in` is called `in`.
pub(super) const fn field_name(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}

/// A type of the data of events, with a field for each value.
macro_rules! event_data {
    ($(#[$about:meta])* $name:ident { $($field:ident),* $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name<'t> {
            $(
                #[doc = concat!("The field `", stringify!($field), "`.")]
                pub $field: EventValue<'t>,
            )*
        }

        impl<'t> $name<'t> {
            /// Names of the data fields, in order.
            pub(super) const FIELDS: &'static [&'static str] =
                &[$($crate::catalogue::rows::field_name(stringify!($field))),*];

            /// The event's data in the order of the catalogue.
            #[inline]
            #[must_use]
            pub const fn values(&self) -> [EventValue<'t>; [$(stringify!($field)),*].len()] {
                [$(self.$field),*]
            }
        }
    };
}

macro_rules! entry {
    ($name:ident $keyword:literal $layer:ident $help:literal, $fate:expr, $is_work:expr) => {
        CatalogueEntry {
            keyword: $keyword,
            layer: Layer::$layer,
            data: $name::FIELDS,
            help: $help,
            fate: $fate,
            is_work: $is_work,
        }
    };
    ($name:ident $keyword:literal $layer:ident $help:literal) => {
        entry!($name $keyword $layer $help, None, false)
    };
    ($name:ident $keyword:literal $layer:ident $help:literal work) => {
        entry!($name $keyword $layer $help, None, true)
    };
    ($name:ident $keyword:literal $layer:ident $help:literal fate $fate:ident) => {
        entry!($name $keyword $layer $help, Some(DataFate::$fate), false)
    };
}

macro_rules! catalogue {
    ($(#[$about:meta])* $entries:ident;
    $($name:ident = $keyword:literal, $layer:ident $($more:ident)*: $fields:tt $help:literal;)*) => {
        $(#[$about])*
        pub const $entries: &[CatalogueEntry] = &[$(entry!($name $keyword $layer $help $($more)*)),*];

        $(
            event_data! {
                #[doc = concat!("`", $keyword, "`: ", $help, ". A field that is not given is empty.")]
                $name $fields
            }

            impl $name<'_> {
                /// The event's keyword.
                pub const KEYWORD: &'static str = $keyword;

                #[inline]
                fn keyword() -> &'static Keyword {
                    static EMITTED: Keyword = Keyword::new($keyword);
                    &EMITTED
                }

                /// Emits the event with the present time, if a recorder runs.
                #[inline]
                pub fn emit(&self) {
                    recorder::emit(Self::keyword(), &self.values());
                }

                /// Emits the event with the given time (ns), if a recorder runs.
                #[inline]
                pub fn emit_at(&self, at_ns: u64) {
                    recorder::emit_at(Self::keyword().id(), at_ns, &self.values());
                }

                /// Appends the event to a log, with the given time (ns).
                #[inline]
                pub fn write(&self, log: &mut EventLog, at_ns: u64) {
                    log.push(Self::keyword().id(), at_ns, &self.values());
                }

                /// Passes the event to an emitter for several hosts, with its host and time (ns).
                pub fn emit_on(&self, host: &str, at_ns: u64, emit: &mut EventEmitter<'_>) {
                    emit(&EmittedEvent {
                        host,
                        keyword: $keyword,
                        at_ns,
                        values: &self.values(),
                    });
                }
            }
        )*
    };
}

pub(super) use {catalogue, entry, event_data};

catalogue! {
    /// All keywords, in the order in which a data unit passes them.
    ENTRIES;

    AppConnect = "APP_CONNECT", Application: { unit, stream, offset, bytes }
        "a connection is requested";

    AppConnected = "APP_CONNECTED", Application: { unit, stream, offset, bytes, local, remote }
        "the connection is established; `stream` is the one from local to remote, and `offset` is where its data units begin";

    AppAccepted = "APP_ACCEPTED", Application: { unit, stream, offset, bytes, local, remote }
        "the responder has accepted the connection; `stream` and `offset` as in `APP_CONNECTED`";

    AppStart = "APP_START", Application: { unit, stream }
        "the clock of this endpoint starts";

    AppCall = "APP_CALL", Application: { unit, stream, offset, bytes }
        "a request is handed over";

    AppTurn = "APP_TURN", Application: { unit, stream, offset, bytes }
        "a request that takes several round trips starts the second one";

    AppSend = "APP_SEND", Application: { unit, stream, offset, bytes }
        "a data unit is handed over";

    AppSent = "APP_SENT", Application: { unit, stream, offset, bytes }
        "the operation that hands over a data unit returns";

    AppIndication = "APP_INDICATION", Application: { unit, stream, offset, bytes }
        "a request has arrived completely";

    AppReply = "APP_REPLY", Application: { unit, stream, offset, bytes }
        "a response is handed over";

    AppReplied = "APP_REPLIED", Application: { unit, stream, offset, bytes }
        "the operation that hands over a response returns";

    AppAwait = "APP_AWAIT", Application: { unit, stream, offset, bytes }
        "the application waits for a data unit";

    AppReceived = "APP_RECEIVED", Application: { unit, stream, offset, bytes }
        "a data unit has arrived completely";

    AppEnded = "APP_ENDED", Application: { unit, stream, offset, bytes }
        "the stream ends before the awaited data unit has arrived";

    AppResponse = "APP_RESPONSE", Application: { unit, stream, offset, bytes }
        "a response has arrived completely";

    AppLost = "APP_LOST", Application fate GivenUp: { unit, stream, offset, bytes }
        "a call is given up without an answer";

    AppStop = "APP_STOP", Application: { unit, stream }
        "the clock of this endpoint stops";

    AppDisconnect = "APP_DISCONNECT", Application: { unit, stream, offset, bytes }
        "a disconnection is requested";

    AppDisconnected = "APP_DISCONNECTED", Application: { unit, stream, offset, bytes }
        "the connection is closed";

    AppTraceparent = "APP_TRACEPARENT", Application: { unit, stream, offset, bytes, traceparent }
        "the request also carries this W3C trace context";

    ProgramLog = "LOG", Application: { unit, stream, offset, bytes, level, logger, message }
        "the program logged a message";

    SockSend = "SOCK_SEND", Socket: { unit, stream, offset, bytes }
        "a sending system call begins";

    SockSent = "SOCK_SENT", Socket: { unit, stream, offset, bytes }
        "the sending call returns; `bytes` is the number accepted";

    SockReceive = "SOCK_RECEIVE", Socket: { unit, stream, offset, bytes }
        "a receiving system call begins";

    SockReceived = "SOCK_RECEIVED", Socket: { unit, stream, offset, bytes }
        "the receiving call returns; `bytes` is the number delivered";

    TcpConnected = "TCP_CONNECTED", Protocol: { unit, stream, offset, bytes }
        "at the initiator: the TCP connection below another protocol is open, and that protocol's handshakes begin";

    TlsConnected = "TLS_CONNECTED", Protocol: { unit, stream, offset, bytes, version, handshake }
        "at the initiator: the TLS handshake is over; `version` is what both sides agreed on, `handshake` is `full` or `resumed`";

    QuicConnected = "QUIC_CONNECTED", Protocol: { unit, stream, offset, bytes, handshake }
        "at the initiator: the QUIC handshake is over; `handshake` is `full` or `resumed`, empty if that is not known";

    StreamBlocked = "STREAM_BLOCKED", Protocol: { unit, stream, offset, bytes, waited_ns }
        "data of a unit waits for the first time until the receiver enlarges the flow-control window of its stream";

    StreamReleased = "STREAM_RELEASED", Protocol: { unit, stream, offset, bytes, waited_ns }
        "the data of the unit no longer waits for the window of its stream; `waited_ns` is how long it waited in all";

    ConnectionBlocked = "CONNECTION_BLOCKED", Protocol: { unit, stream, offset, bytes, waited_ns }
        "data of a unit waits for the first time until the receiver enlarges the flow-control window of the connection";

    ConnectionReleased = "CONNECTION_RELEASED", Protocol: { unit, stream, offset, bytes, waited_ns }
        "the data of the unit no longer waits for the window of the connection; `waited_ns` is how long it waited in all";

    UnitFramed = "UNIT_FRAMED", Protocol: { unit, stream, offset, bytes, payload }
        "the sender has written a data unit, a request or a response in records of TLS or frames of HTTP: they occupy `bytes` bytes of the TCP stream and contain `payload` bytes of the unit";

    TcpSegment = "TCP_SEGMENT", Protocol: { unit, stream, offset, bytes }
        "new data is sent";

    TcpRetransmit = "TCP_RETRANSMIT", Protocol fate SentAgain: {
        unit, stream, offset, bytes, cause, segments, local, remote,
    }
        "data is retransmitted";

    TcpConnection = "TCP_CONNECTION", Protocol: {
        stream, initiator, responder, duration_ns, handshake_ns, ack_there_ns, ack_back_ns, bytes_there, bytes_back,
        again_there, again_back, zero_windows, window_full_ns, quiet_ns, quiet_until, end,
    }
        "a connection in a capture, at its first packet: round trips, bytes, retransmitted segments (including those that fill a gap late), time with a full window, longest quiet period, how it ended";

    TcpTransfer = "TCP_TRANSFER", Protocol: {
        stream, initiator_program, responder_program, pauses_there, paused_there_ns, pauses_back, paused_back_ns,
    }
        "of a `TCP_CONNECTION`: the programs at its ends, where known, and the pauses before new data of each end that neither a loss nor a full window explains: their number and sum";

    TcpGoodput = "TCP_GOODPUT", Protocol: { stream, interval_ns, bytes }
        "of a `TCP_CONNECTION`: the new data of a direction with at least 64 KiB that passed where it was observed, by intervals, each at its begin; at most 32";

    TcpState = "TCP_STATE", Protocol: { unit, stream, offset, bytes, state, local, remote }
        "the sender's congestion state changes: open, disorder, cwr, recovery, loss";

    TcpDrop = "TCP_DROP", Protocol fate Dropped: { unit, stream, offset, bytes, reason, local, remote }
        "a host's kernel drops a packet (see `reason`)";

    TcpRcvqFull = "TCP_RCVQ_FULL", Protocol fate Dropped: { unit, stream, offset, bytes, queued, local, remote }
        "a receive queue is full";

    TcpReset = "TCP_RESET", Protocol: { unit, stream, offset, bytes, reason, local, remote }
        "a connection is reset; `reason` is `received` if the peer reset it";

    TcpInfo = "TCP_INFO", Protocol: {
        interval_ns, stream, local, remote, cwnd_bytes, in_flight_bytes, rtt_ns, retransmits, busy_ns,
        rwnd_limited_ns, sndbuf_limited_ns, unsent_bytes, receive_queue_bytes, send_window_bytes, mss_bytes,
        acked_bytes,
    }
        "a connection as reported by the kernel at the end of an interval; retransmits, busy, limited and acknowledged values cover that interval";

    BlastSend = "BLAST_SEND", Protocol: { unit, stream, offset, bytes, cause }
        "a packet is sent; `cause` is `new` or the reason for the retransmission";

    BlastRetransmit = "BLAST_RETRANSMIT", Protocol fate SentAgain: { unit, stream, offset, bytes, cause }
        "data is retransmitted";

    BlastNak = "BLAST_NAK", Protocol: { unit, stream, offset, bytes, cause }
        "the receiver reports what is missing";

    BlastAck = "BLAST_ACK", Protocol: { unit, stream, offset, bytes, cause }
        "the receiver reports that it has everything";

    BlastTimer = "BLAST_TIMER", Protocol: { unit, stream, offset, bytes, cause }
        "a timer expires";

    BlastInfo = "BLAST_INFO", Protocol: {
        interval_ns, stream, local, remote, cwnd_bytes, in_flight_bytes, rtt_ns, retransmits, busy_ns,
        rwnd_limited_ns, sndbuf_limited_ns, unsent_bytes, receive_queue_bytes, send_window_bytes, mss_bytes,
        acked_bytes,
    }
        "a stop-and-wait, sliding-window or blast connection, reported as in `TCP_INFO`; its window is what the receiver grants";

    IkpSend = "IKP_SEND", Protocol: { unit, stream, offset, bytes, cause }
        "a message is sent; `cause` is `call` or `reply`";

    IkpRetransmit = "IKP_RETRANSMIT", Protocol fate SentAgain: { unit, stream, offset, bytes, cause }
        "a message is retransmitted";

    IkpPending = "IKP_PENDING", Protocol: { unit, stream, offset, bytes, cause }
        "the server reports that the reply is not ready yet";

    QuicSent = "QUIC_SENT", Protocol: { unit, stream, offset, bytes, packet, kind }
        "a QUIC packet is sent";

    QuicReceived = "QUIC_RECEIVED", Protocol: { unit, stream, offset, bytes, packet, kind }
        "a QUIC packet arrives";

    QuicLost = "QUIC_LOST", Protocol fate SentAgain: { unit, stream, offset, bytes, packet, cause }
        "a QUIC packet is declared lost";

    QuicInfo = "QUIC_INFO", Protocol: {
        interval_ns, stream, local, remote, cwnd_bytes, in_flight_bytes, rtt_ns, retransmits, busy_ns,
        rwnd_limited_ns, sndbuf_limited_ns, unsent_bytes, receive_queue_bytes, send_window_bytes, mss_bytes,
        acked_bytes,
    }
        "a QUIC connection, reported as in `TCP_INFO`; bytes count whole packets, and retransmits are packets declared lost";

    QuicConnection = "QUIC_CONNECTION", Protocol: {
        stream, initiator, responder, protocol, duration_ns, handshake_ns, round_trip_ns, datagrams_there, datagrams_back,
        bytes_there, bytes_back, again, retries, migrations, quiet_ns, end,
    }
        "a QUIC connection in a capture, at its first packet: protocol (ALPN), handshake and its retransmitted packets, shortest round trip from the spin bit, address changes, longest quiet period, how it ended";

    NetEnqueue = "NET_ENQUEUE", Network: {
        unit, stream, offset, bytes, place, way, flow, number, segments, length, queued,
    }
        "a packet arrives at a queue; `queued` is the queue's occupancy, including this packet";

    NetDequeue = "NET_DEQUEUE", Network: { unit, stream, offset, bytes, place, way, flow, number, segments, length }
        "a packet has left through the link";

    NetMark = "NET_MARK", Network: { unit, stream, offset, bytes, place, way, flow, number, segments, length }
        "a packet is marked (ECN)";

    NetDuplicate = "NET_DUPLICATE", Network: {
        unit, stream, offset, bytes, place, way, flow, number, segments, length,
    }
        "a link duplicates a packet";

    NetAgain = "NET_AGAIN", Network fate SentAgain: {
        unit, stream, offset, bytes, place, way, flow, number, segments, length,
    }
        "bytes of a stream that a host has already sent enter the network again";

    NetDrop = "NET_DROP", Network fate Dropped: {
        unit, stream, offset, bytes, place, way, flow, number, segments, length, reason,
    }
        "a packet is dropped or lost (see `reason`)";

    NetSeen = "NET_SEEN", Network: { unit, stream, offset, bytes, place, way, flow, number, segments, length }
        "a capture sees a packet";

    NetDeliver = "NET_DELIVER", Network: { unit, stream, offset, bytes, place, way, flow, number, segments, length }
        "a packet has reached its host";

    DisplayCall = "DISPLAY_CALL", Display: { unit }
        "at the client's host: a request to a display is made; `unit` combines the client's number on that host with the request's own";

    DisplaySend = "DISPLAY_SEND", Display: { unit }
        "at the client's host: the request is handed over to the transport, or to the pipe or pseudo-terminal of its host's agent";

    DisplayArrive = "DISPLAY_ARRIVE", Display: { unit }
        "in virtual time, at the internet server's or the display's host: the transport has delivered the whole request";

    DisplayInternet = "DISPLAY_INTERNET", Display: { unit }
        "in virtual time, at the internet server's host: the server has taken the request";

    DisplayAgent = "DISPLAY_AGENT", Display: { unit }
        "in virtual time, at the client's or the display's host: the agent there has taken the request; the client's agent hands it to the transport at that moment";

    DisplayParse = "DISPLAY_PARSE", Display work: { unit }
        "at the display's host: the display starts to process the request";

    DisplayStore = "DISPLAY_STORE", Display work: { unit }
        "at the display's host: the request's content is stored, or set aside until the end of its batch";

    DisplayRender = "DISPLAY_RENDER", Display work: { unit }
        "at the display's host: the request's change is drawn; a change that is not drawn immediately is drawn together with that of the next request that is drawn or answered";

    DisplayDone = "DISPLAY_DONE", Display: { unit }
        "at the client's host: everything that the client had sent has been answered, including this request";

    CpuUse = "CPU_USE", Monitor: {
        interval_ns, core, user_ppm, system_ppm, softirq_ppm, irq_ppm, steal_ppm, idle_ppm, iowait_ppm,
    }
        "use of a core's time, in parts per million";

    Vmstat = "VMSTAT", Monitor: {
        interval_ns, interrupts, switches, forks, faults, major_faults, pages_in, pages_out, swapped_in, swapped_out,
    }
        "the kernel's counters";

    VmstatSysCalls = "VMSTAT_SYS_CALLS", Monitor: { interval_ns, calls }
        "number of system calls on the machine";

    MemoryUse = "MEMORY", Monitor: { interval_ns, available_bytes, free_bytes, dirty_bytes }
        "memory";

    PressureStall = "PRESSURE", Monitor: { interval_ns, resource, some_ppm, full_ppm }
        "time during which tasks waited for CPU, memory or I/O";

    Throttled = "THROTTLED", Monitor: { interval_ns, throttled_ns, periods }
        "time during which a control group was throttled";

    InterfaceUse = "NETIF", Monitor: {
        interval_ns, interface, received_bytes, received_packets, received_drops, received_errors, sent_bytes,
        sent_packets, sent_drops, sent_errors,
    }
        "traffic through an interface";

    NetstatTcp = "NETSTAT_TCP", Monitor: {
        interval_ns, segments_in, segments_out, retransmits, resets, timeouts, listen_drops, receive_queue_drops,
        delayed_acks, loss_probes, out_of_order,
    }
        "the kernel's TCP counters";

    NetstatUdp = "NETSTAT_UDP", Monitor: {
        interval_ns, r#in, out, receive_buffer_errors, send_buffer_errors, checksum_errors,
    }
        "the kernel's UDP counters";

    Softnet = "SOFTNET", Monitor: { interval_ns, core, packets, drops, squeezed }
        "packets processed by a core's softirqs";

    DiskUse = "DISK", Monitor: { interval_ns, device, reads, read_bytes, writes, written_bytes, busy_ns }
        "operations completed by a disk or a partition, and how long it was busy";

    SwitchPort = "SWITCH_PORT", Monitor: {
        interval_ns, port, in_bytes, in_packets, in_discards, in_errors, out_bytes, out_packets, out_discards,
        out_errors,
    }
        "counters of a switch port, read via SNMP";

    PortUse = "PORT_USE", Monitor: {
        interval_ns, port, packets, bytes, busy_ns, queue_drops, losses, spoilt_frames, marked,
    }
        "a port of a modelled network: packets that left it, busy time, queue drops, link losses; behind a cell switch, packets are cells, and a spoilt frame is one whose first lost cell was lost at this port";

    ImpReport = "IMP_REPORT", Monitor: {
        interval_ns, packets, messages_sent, messages_received, unreachable, cpu_ppm, reassembly_free,
        reassembly_promised, reassembly_all, through,
    }
        "an IMP's report to the Network Control Center: packets that it forwarded, sent or received, messages of its hosts, undeliverable packets, processor load, free buffers";

    ImpLine = "IMP_LINE", Monitor: {
        interval_ns, port, up, busy_ns, packets, bits, again, refused, duplicates, downs,
    }
        "an outgoing line of an IMP: whether it is up, how long it was busy, packets including retransmissions, data bits, packets refused or duplicate on arrival, how often it went down";

    ProcessPaused = "PROCESS_PAUSED", Monitor: { interval_ns, pid, waited_ns, reason }
        "a measured process could not run for `waited_ns` of an interval: it was stopped, or waited for a core";

    RequestSeen = "REQUEST", Tool: {
        unit, kind, protocol, exact, name, status, client, server, client_program, server_program, request_bytes,
        response_bytes, parts, unknown,
    }
        "a request of another program: what it was, between whom, and why no more is known about it";

    RequestParent = "REQUEST_PARENT", Tool: { unit, parent, parent_ppm }
        "a request was made on behalf of another one; `parent_ppm` says how certain that is";

    RequestTrace = "REQUEST_TRACE", Tool: { unit, trace, span }
        "a request was made for this span of this trace, according to its traceparent (W3C Trace Context)";

    RequestTime = "REQUEST_TIME", Tool: {
        unit, total_ns, lookup_ns, connect_ns, handshake_ns, client_ns, hold_ns, there_ns, unread_ns, work_ns,
        sending_ns, back_ns, client_unread_ns, round_trip_ns, rounds,
    }
        "where a request's time went: parts that add up to the total; also the round-trip time at its connection's set-up, and the request's number of round trips";

    RequestNetwork = "REQUEST_NETWORK", Tool: {
        unit, again_there, again_there_ns, again_back, again_back_ns, held_there_ns, held_back_ns, window_there_ns,
        window_back_ns, connect_again, late_back_ns, paused_there_ns, paused_back_ns, awaited_there_ns,
    }
        "what delayed a request in the network: retransmissions, Nagle's algorithm, a full receive buffer; how long bytes stayed unread, senders paused although free to send, and the client waited for `100 Continue`";

    RequestStall = "REQUEST_STALL", Tool: { unit, stalled_there_ns, stalled_back_ns, behind_back_ns }
        "how long the senders of request and answer stalled until an acknowledgement, though nothing hindered them; how long the written answer waited for earlier bytes to leave";

    RequestUpstream = "REQUEST_UPSTREAM", Tool: { unit, upstream_ns }
        "how long the servers behind the server of a request took for it, by that server's own access log";

    RequestWork = "REQUEST_WORK", Tool: {
        unit, thread, cpu_ns, runnable_ns, lock_ns, disk_ns, sleep_ns, socket_ns, child_ns, stopped_ns, collect_ns,
        observer_ns, other_ns,
    }
        "what the server's thread did from reading the request to handing over its answer";

    RequestWait = "REQUEST_WAIT", Tool: {
        unit, thread, cpu_ns, runnable_ns, lock_ns, disk_ns, sleep_ns, socket_ns, child_ns, stopped_ns, collect_ns,
        observer_ns, other_ns,
    }
        "what the thread that read a request did while the request was unread";

    ResponseWait = "RESPONSE_WAIT", Tool: {
        unit, thread, cpu_ns, runnable_ns, lock_ns, disk_ns, sleep_ns, socket_ns, child_ns, stopped_ns, collect_ns,
        observer_ns, other_ns,
    }
        "what the client's thread that read the answer did while the answer was unread";

    LockHolder = "LOCK_HOLDER", Tool: {
        unit, thread, cpu_ns, runnable_ns, lock_ns, disk_ns, sleep_ns, socket_ns, child_ns, stopped_ns, collect_ns,
        observer_ns, other_ns,
    }
        "what the threads that held locks did while the server's thread of a `REQUEST_WORK` waited for these; `thread` held them longest";

    RequestProcess = "REQUEST_PROCESS", Tool: { unit, client_pid, server_pid, is_callers }
        "the processes at both ends; `is_callers` is 1 if the client is the last program of the trace or was started by it, 0 if it is another program, empty if unknown";

    NetFlow = "NET_FLOW", Tool: { stream, initiator, responder, first_sequence }
        "a connection or datagram flow carried by a network begins: its stream in that network, its endpoints, and the sequence number of its first byte if its beginning was seen";

    RunStart = "RUN_START", Tool: { measurement, run, warmup }
        "a run of a measurement begins";

    RunStop = "RUN_STOP", Tool: { measurement, run, warmup }
        "the run ends";

    PortSetup = "PORT_SETUP", Tool: { port, rate_bit_s, queue_bytes, cell_bytes }
        "rate, queue capacity and cell size of a port of a modelled network; empty where the port has none";

    ObserverCost = "OBSERVER_COST", Tool: { batches, without_ns, with_ns, spread_ns }
        "CPU time (elapsed time if tracing stops programs) of a message and its answer between two threads, with tracing off and on: medians of batches, and half their interquartile range";

    ProgramEnd = "PROGRAM_END", Tool: { program, pid, code, signal, is_last }
        "a program that `trace` started ended by itself: before the trace did, or, for the last program (`is_last` 1), with a failure; `code` is its exit code, `signal` the signal that killed it";

    ConnectionOwner = "CONNECTION_OWNER", Tool: { local, remote, pid, program }
        "the process that has this end of a watched connection; `pid` and `program` are empty if it is of another user or unknown";

    EventsLost = "EVENTS_LOST", Tool: { count, seen }
        "events lost because a buffer was full, since the last `EVENTS_LOST`; for `trace`, lost packets and records, and how many were seen so far";

    ClockStep = "CLOCK_STEP", Tool: { by_ns }
        "the wall clock of a host was set";
}
