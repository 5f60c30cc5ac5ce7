//! The rows of the catalogue: every keyword of stackline with its layer, its data in their order and what happened, and a type for each
//! of them, which is how our own programs emit it. A value is given by its name, so two of them cannot change places.

use super::{CatalogueEntry, DataFate, Layer};
use crate::{EventEmitter, EventLog, EventValue, Keyword, recorder};

/// `r#in` is called `in`.
const fn field_name(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}

macro_rules! entry {
    ($keyword:literal $layer:ident ($($field:ident)*) $help:literal, $fate:expr, $is_work:expr) => {
        CatalogueEntry {
            keyword: $keyword,
            layer: Layer::$layer,
            data: &[$(field_name(stringify!($field))),*],
            help: $help,
            fate: $fate,
            is_work: $is_work,
        }
    };
    ($keyword:literal $layer:ident $fields:tt $help:literal) => {
        entry!($keyword $layer $fields $help, None, false)
    };
    ($keyword:literal $layer:ident $fields:tt $help:literal work) => {
        entry!($keyword $layer $fields $help, None, true)
    };
    ($keyword:literal $layer:ident $fields:tt $help:literal fate $fate:ident) => {
        entry!($keyword $layer $fields $help, Some(DataFate::$fate), false)
    };
}

macro_rules! catalogue {
    ($($name:ident = $keyword:literal, $layer:ident $($more:ident)*: { $($field:ident),* $(,)? } $help:literal;)*) => {
        /// All of them, in the order a data unit meets them.
        pub const ENTRIES: &[CatalogueEntry] = &[$(entry!($keyword $layer ($($field)*) $help $($more)*)),*];

        $(
            #[doc = concat!("`", $keyword, "`: ", $help, ". A field that is not given is empty.")]
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
            pub struct $name<'t> {
                $(
                    #[doc = concat!("The field `", stringify!($field), "`.")]
                    pub $field: EventValue<'t>,
                )*
            }

            impl<'t> $name<'t> {
                /// Its keyword.
                pub const KEYWORD: &'static str = $keyword;

                /// Its data in the order of the catalogue.
                #[inline]
                #[must_use]
                pub const fn values(&self) -> [EventValue<'t>; [$(stringify!($field)),*].len()] {
                    [$(self.$field),*]
                }

                #[inline]
                fn keyword() -> &'static Keyword {
                    static EMITTED: Keyword = Keyword::new($keyword);
                    &EMITTED
                }

                /// Emits it now, if anybody records.
                #[inline]
                pub fn emit(&self) {
                    recorder::emit(Self::keyword(), &self.values());
                }

                /// Emits it with a time of its own (ns), if anybody records.
                #[inline]
                pub fn emit_at(&self, at_ns: u64) {
                    recorder::emit_at(Self::keyword().id(), at_ns, &self.values());
                }

                /// Writes it into a log, as happened at that time (ns).
                #[inline]
                pub fn write(&self, log: &mut EventLog, at_ns: u64) {
                    log.push(Self::keyword().id(), at_ns, &self.values());
                }

                /// Emits it to what takes events of several hosts, as happened on that host at that time (ns).
                pub fn emit_on(&self, host: &str, at_ns: u64, emit: &mut EventEmitter<'_>) {
                    emit(host, $keyword, at_ns, &self.values());
                }
            }
        )*
    };
}

catalogue! {
    AppConnect = "APP_CONNECT", Application: { unit, stream, offset, bytes }
        "a connection is asked for";

    AppConnected = "APP_CONNECTED", Application: { unit, stream, offset, bytes, local, remote }
        "it is there; `stream` is the one from local to remote, `offset` where its data units begin";

    AppAccepted = "APP_ACCEPTED", Application: { unit, stream, offset, bytes, local, remote }
        "the responder has it; `stream` and `offset` as above";

    AppStart = "APP_START", Application: { unit, stream }
        "the clock of this endpoint starts";

    AppCall = "APP_CALL", Application: { unit, stream, offset, bytes }
        "a request is handed over";

    AppTurn = "APP_TURN", Application: { unit, stream, offset, bytes }
        "a request that takes several round trips goes on with the second";

    AppSend = "APP_SEND", Application: { unit, stream, offset, bytes }
        "a data unit is handed over";

    AppSent = "APP_SENT", Application: { unit, stream, offset, bytes }
        "the operation that hands it over returns";

    AppIndication = "APP_INDICATION", Application: { unit, stream, offset, bytes }
        "a request is there whole";

    AppReply = "APP_REPLY", Application: { unit, stream, offset, bytes }
        "a response is handed over";

    AppReplied = "APP_REPLIED", Application: { unit, stream, offset, bytes }
        "the operation that hands it over returns";

    AppAwait = "APP_AWAIT", Application: { unit, stream, offset, bytes }
        "the application waits for a data unit";

    AppReceived = "APP_RECEIVED", Application: { unit, stream, offset, bytes }
        "a data unit is there whole";

    AppEnded = "APP_ENDED", Application: { unit, stream, offset, bytes }
        "the stream ends instead: the unit that was awaited is none";

    AppResponse = "APP_RESPONSE", Application: { unit, stream, offset, bytes }
        "a response is there whole";

    AppLost = "APP_LOST", Application fate GivenUp: { unit, stream, offset, bytes }
        "a call without an answer is given up";

    AppStop = "APP_STOP", Application: { unit, stream }
        "the clock of this endpoint stops";

    AppDisconnect = "APP_DISCONNECT", Application: { unit, stream, offset, bytes }
        "a connection is given up";

    AppDisconnected = "APP_DISCONNECTED", Application: { unit, stream, offset, bytes }
        "it is gone";

    AppTraceparent = "APP_TRACEPARENT", Application: { unit, stream, offset, bytes, traceparent }
        "the request is also known by this W3C trace context";

    ProgramLog = "LOG", Application: { unit, stream, offset, bytes, level, logger, message }
        "the program logged something";

    SockSend = "SOCK_SEND", Socket: { unit, stream, offset, bytes }
        "a sending system call begins";

    SockSent = "SOCK_SENT", Socket: { unit, stream, offset, bytes }
        "it returns; `bytes` is what it took";

    SockReceive = "SOCK_RECEIVE", Socket: { unit, stream, offset, bytes }
        "a receiving system call begins";

    SockReceived = "SOCK_RECEIVED", Socket: { unit, stream, offset, bytes }
        "it returns; `bytes` is what it gave";

    TcpSegment = "TCP_SEGMENT", Protocol: { unit, stream, offset, bytes }
        "the machine sends new data";

    TcpRetransmit = "TCP_RETRANSMIT", Protocol fate SentAgain: {
        unit, stream, offset, bytes, cause, segments, local, remote,
    }
        "data is sent again";

    TcpConnection = "TCP_CONNECTION", Protocol: {
        stream, initiator, responder, duration_ns, handshake_ns, ack_there_ns, ack_back_ns, bytes_there, bytes_back,
        again_there, again_back, zero_windows, window_full_ns, quiet_ns, quiet_until, end,
    }
        "a connection of a capture, at its first packet: round trips, bytes, segments sent again (also those that fill a hole late), time without window, its longest quiet period, what ended it";

    TcpState = "TCP_STATE", Protocol: { unit, stream, offset, bytes, state, local, remote }
        "the sender's view of loss changes: open, disorder, cwr, recovery, loss";

    TcpDrop = "TCP_DROP", Protocol fate Dropped: { unit, stream, offset, bytes, reason, local, remote }
        "a host's kernel drops a packet, and why";

    TcpRcvqFull = "TCP_RCVQ_FULL", Protocol fate Dropped: { unit, stream, offset, bytes, queued, local, remote }
        "a receive queue is full";

    TcpReset = "TCP_RESET", Protocol: { unit, stream, offset, bytes, reason, local, remote }
        "a connection is reset; `reason` is received where the peer did it";

    TcpInfo = "TCP_INFO", Protocol: {
        interval_ns, stream, local, remote, cwnd_bytes, in_flight_bytes, rtt_ns, retransmits, busy_ns,
        rwnd_limited_ns, sndbuf_limited_ns, unsent_bytes, receive_queue_bytes, send_window_bytes, mss_bytes,
        acked_bytes,
    }
        "a connection as the kernel reports it at the end of an interval; retransmits, busy, limited and acknowledged are of it";

    BlastSend = "BLAST_SEND", Protocol: { unit, stream, offset, bytes, cause }
        "the machine sends a packet; `cause` is new or the retransmission's";

    BlastRetransmit = "BLAST_RETRANSMIT", Protocol fate SentAgain: { unit, stream, offset, bytes, cause }
        "data is sent again";

    BlastNak = "BLAST_NAK", Protocol: { unit, stream, offset, bytes, cause }
        "the receiver says what is missing";

    BlastAck = "BLAST_ACK", Protocol: { unit, stream, offset, bytes, cause }
        "the receiver says that it has everything";

    BlastTimer = "BLAST_TIMER", Protocol: { unit, stream, offset, bytes, cause }
        "a timer runs out";

    BlastInfo = "BLAST_INFO", Protocol: {
        interval_ns, stream, local, remote, cwnd_bytes, in_flight_bytes, rtt_ns, retransmits, busy_ns,
        rwnd_limited_ns, sndbuf_limited_ns, unsent_bytes, receive_queue_bytes, send_window_bytes, mss_bytes,
        acked_bytes,
    }
        "a connection of stop-and-wait, the sliding window or blasts, as `TCP_INFO` reports one of TCP; what the receiver grants is its window";

    IkpSend = "IKP_SEND", Protocol: { unit, stream, offset, bytes, cause }
        "a message leaves; `cause` is call or reply";

    IkpRetransmit = "IKP_RETRANSMIT", Protocol fate SentAgain: { unit, stream, offset, bytes, cause }
        "a message leaves again";

    IkpPending = "IKP_PENDING", Protocol: { unit, stream, offset, bytes, cause }
        "the server says that the reply has not been made yet";

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
        "a QUIC connection, as `TCP_INFO` reports one of TCP; bytes are of whole packets, of which those found lost are retransmits";

    QuicConnection = "QUIC_CONNECTION", Protocol: {
        stream, initiator, responder, protocol, duration_ns, handshake_ns, round_trip_ns, datagrams_there, datagrams_back,
        bytes_there, bytes_back, again, retries, migrations, quiet_ns, end,
    }
        "a connection of QUIC in packets, at its first: protocol (ALPN), handshake and its packets sent again, shortest round trip by the spin bit, changes of address, longest quiet period, how it ended";

    NetEnqueue = "NET_ENQUEUE", Network: {
        unit, stream, offset, bytes, place, way, flow, number, segments, length, queued,
    }
        "a packet comes to a queue; `queued` is what is in it with this";

    NetDequeue = "NET_DEQUEUE", Network: { unit, stream, offset, bytes, place, way, flow, number, segments, length }
        "it has left through the link";

    NetMark = "NET_MARK", Network: { unit, stream, offset, bytes, place, way, flow, number, segments, length }
        "it is marked (ECN)";

    NetDuplicate = "NET_DUPLICATE", Network: {
        unit, stream, offset, bytes, place, way, flow, number, segments, length,
    }
        "a link doubles it";

    NetAgain = "NET_AGAIN", Network fate SentAgain: {
        unit, stream, offset, bytes, place, way, flow, number, segments, length,
    }
        "bytes of a stream that a host has sent before enter the network again";

    NetDrop = "NET_DROP", Network fate Dropped: {
        unit, stream, offset, bytes, place, way, flow, number, segments, length, reason,
    }
        "it is dropped or lost, and why";

    NetSeen = "NET_SEEN", Network: { unit, stream, offset, bytes, place, way, flow, number, segments, length }
        "a capture sees it";

    NetDeliver = "NET_DELIVER", Network: { unit, stream, offset, bytes, place, way, flow, number, segments, length }
        "its host has it";

    DisplayCall = "DISPLAY_CALL", Display: { unit }
        "at the client's host: a request to a display is made; `unit` is the number of its client there, and its own";

    DisplaySend = "DISPLAY_SEND", Display: { unit }
        "at the client's host: it is handed over, to the transport, or into the pipe or pseudo-terminal of its host's agent";

    DisplayArrive = "DISPLAY_ARRIVE", Display: { unit }
        "in virtual time, at the internet server's or the display's host: the transport has brought all of it";

    DisplayInternet = "DISPLAY_INTERNET", Display: { unit }
        "in virtual time, at the internet server's host: the server has taken it";

    DisplayAgent = "DISPLAY_AGENT", Display: { unit }
        "in virtual time, at the client's or the display's host: the agent there has taken it; at the client's it hands it to the transport then";

    DisplayParse = "DISPLAY_PARSE", Display work: { unit }
        "at the display's host: the display turns to it";

    DisplayStore = "DISPLAY_STORE", Display work: { unit }
        "at the display's host: what it says is kept, or set aside for the end of its batch";

    DisplayRender = "DISPLAY_RENDER", Display work: { unit }
        "at the display's host: what it changes is drawn; what is not drawn by itself is with what is drawn or answered next";

    DisplayDone = "DISPLAY_DONE", Display: { unit }
        "at the client's host: all that the client had sent is answered, and this with it";

    CpuUse = "CPU_USE", Monitor: {
        interval_ns, core, user_ppm, system_ppm, softirq_ppm, irq_ppm, steal_ppm, idle_ppm, iowait_ppm,
    }
        "a core's time, in parts of a million";

    Vmstat = "VMSTAT", Monitor: {
        interval_ns, interrupts, switches, forks, faults, major_faults, pages_in, pages_out, swapped_in, swapped_out,
    }
        "what the kernel counted";

    VmstatSysCalls = "VMSTAT_SYS_CALLS", Monitor: { interval_ns, calls }
        "system calls of the machine";

    MemoryUse = "MEMORY", Monitor: { interval_ns, available_bytes, free_bytes, dirty_bytes }
        "memory";

    PressureStall = "PRESSURE", Monitor: { interval_ns, resource, some_ppm, full_ppm }
        "time that tasks waited for cpu, memory or io";

    Throttled = "THROTTLED", Monitor: { interval_ns, throttled_ns, periods }
        "time a control group was held back";

    InterfaceUse = "NETIF", Monitor: {
        interval_ns, interface, received_bytes, received_packets, received_drops, received_errors, sent_bytes,
        sent_packets, sent_drops, sent_errors,
    }
        "what went through an interface";

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
        "packets taken by a core's soft interrupt";

    DiskUse = "DISK", Monitor: { interval_ns, device, reads, read_bytes, writes, written_bytes, busy_ns }
        "what a disk or a partition of it completed, and how long it had something to do";

    SwitchPort = "SWITCH_PORT", Monitor: {
        interval_ns, port, in_bytes, in_packets, in_discards, in_errors, out_bytes, out_packets, out_discards,
        out_errors,
    }
        "a switch's counters by SNMP";

    PortUse = "PORT_USE", Monitor: {
        interval_ns, port, packets, bytes, busy_ns, queue_drops, losses, spoilt_frames, marked,
    }
        "a port of a modelled network: what left it, for how long, what its queue dropped, what its link lost; behind a cell switch packets are cells, and frames that lost their first cell are spoilt";

    ImpReport = "IMP_REPORT", Monitor: {
        interval_ns, packets, messages_sent, messages_received, unreachable, cpu_ppm, reassembly_free,
        reassembly_promised, reassembly_all, through,
    }
        "an IMP's report to the Network Control Center: packets passed on, begun or ended there, messages of its hosts, undeliverable packets, its processor's work, free buffers";

    ImpLine = "IMP_LINE", Monitor: {
        interval_ns, port, up, busy_ns, packets, bits, again, refused, duplicates, downs,
    }
        "a line of an IMP, away from it: whether it is up, how long it was busy, packets with repeats, data bits, packets refused or duplicate on arrival, how often it went down";

    ProcessPaused = "PROCESS_PAUSED", Monitor: { interval_ns, pid, waited_ns, reason }
        "a process that is measured could not run for `waited_ns` of an interval: stopped, or waited for a core";

    RequestSeen = "REQUEST", Tool: {
        unit, kind, protocol, exact, name, status, client, server, client_program, server_program, request_bytes,
        response_bytes, parts, unknown,
    }
        "a request of another program: what it was, between whom; why no more is known of it";

    RequestParent = "REQUEST_PARENT", Tool: { unit, parent, parent_ppm }
        "a request was made for another one, and how sure that is";

    RequestTrace = "REQUEST_TRACE", Tool: { unit, trace, span }
        "a request was made for that span of that trace, as its traceparent says (W3C Trace Context)";

    RequestTime = "REQUEST_TIME", Tool: {
        unit, total_ns, lookup_ns, connect_ns, handshake_ns, client_ns, hold_ns, there_ns, unread_ns, work_ns,
        sending_ns, back_ns, client_unread_ns, round_trip_ns, rounds,
    }
        "where its time went: parts that add up to the total, the round trip of its connection's set-up, and how often it went there and back";

    RequestNetwork = "REQUEST_NETWORK", Tool: {
        unit, again_there, again_there_ns, again_back, again_back_ns, held_there_ns, held_back_ns, window_there_ns,
        window_back_ns, connect_again, late_back_ns, paused_there_ns, paused_back_ns, awaited_there_ns,
    }
        "what held it up on its way: retransmissions, Nagle's algorithm, a full receiver; how long bytes lay unread; how long senders paused unhindered; how long the client waited for `100 Continue`";

    RequestWork = "REQUEST_WORK", Tool: {
        unit, thread, cpu_ns, runnable_ns, lock_ns, disk_ns, sleep_ns, socket_ns, child_ns, stopped_ns, collect_ns,
        observer_ns, other_ns,
    }
        "what the server's thread did from reading the request until it had handed over its answer";

    RequestWait = "REQUEST_WAIT", Tool: {
        unit, thread, cpu_ns, runnable_ns, lock_ns, disk_ns, sleep_ns, socket_ns, child_ns, stopped_ns, collect_ns,
        observer_ns, other_ns,
    }
        "what the thread that read it did while it lay unread";

    RequestProcess = "REQUEST_PROCESS", Tool: { unit, client_pid, server_pid, is_callers }
        "the processes of both ends; 1 where the last program of the trace asks, or what it has begun, 0 where another one does, empty where that is not known";

    NetFlow = "NET_FLOW", Tool: { stream, initiator, responder, first_sequence }
        "a connection, or a flow of datagrams, that a network carries begins: its stream there, its ends, the sequence number of its first byte where its beginning was seen";

    RunStart = "RUN_START", Tool: { measurement, run, warmup }
        "a run of a measurement begins";

    RunStop = "RUN_STOP", Tool: { measurement, run, warmup }
        "it is over";

    PortSetup = "PORT_SETUP", Tool: { port, rate_bit_s, queue_bytes, cell_bytes }
        "a port of a modelled network has that rate, that room in its queue and that size of cells; what it does not have is empty";

    ObserverCost = "OBSERVER_COST", Tool: { batches, without_ns, with_ns, spread_ns }
        "CPU time of a message and its answer between two threads with tracing off and on; elapsed time where programs are stopped; medians of batches, half the distance of their quartiles";

    EventsLost = "EVENTS_LOST", Tool: { count, seen }
        "events that found no room since the last such event; by `trace`, packets and records, and how many were seen so far";

    ClockStep = "CLOCK_STEP", Tool: { by_ns }
        "the wall clock of a host was set";
}
