//! Keywords whose events have the same data: where one of several is emitted, the data are one type and the keyword
//! is a value. That each keyword's row has exactly these fields is checked when this file is compiled.

use super::rows::event_data;
use super::{block_rows, rows};
use crate::value::EmittedEvent;
use crate::{EventEmitter, EventLog, EventValue, Keyword, recorder};

/// Whether these are the same texts in the same order.
const fn are_same(some: &[&str], others: &[&str]) -> bool {
    match (some, others) {
        ([], []) => true,
        ([one, some @ ..], [other, others @ ..]) => {
            is_same(one.as_bytes(), other.as_bytes()) && are_same(some, others)
        }
        _ => false,
    }
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    match (one, other) {
        ([], []) => true,
        ([a, one @ ..], [b, other @ ..]) => *a == *b && is_same(one, other),
        _ => false,
    }
}

/// A family: the type of its data, the type of its keywords with one for each of these rows, and longer rows that
/// begin with the same fields.
macro_rules! family {
    (
        $(#[$about:meta])*
        $data:ident $fields:tt
        $event:ident: $rows:ident::{$($row:ident),* $(,)?};
        $(longer: {$($longer:ident),* $(,)?};)?
    ) => {
        event_data! {
            $(#[$about])*
            $data $fields
        }

        $(
            const _: () = assert!(
                are_same($data::FIELDS, $rows::$row::FIELDS),
                concat!(stringify!($row), " has other fields than ", stringify!($data))
            );
        )*

        #[doc = concat!("A keyword whose event has the data [`", stringify!($data), "`].")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $event {
            $(
                #[doc = concat!("See [`", stringify!($rows), "::", stringify!($row), "`].")]
                $row,
            )*
        }

        impl $event {
            #[inline]
            fn keyword(self) -> &'static Keyword {
                static KEYWORDS: [Keyword; [$($rows::$row::KEYWORD),*].len()] =
                    [$(Keyword::new($rows::$row::KEYWORD)),*];
                &KEYWORDS[self as usize]
            }

            /// The keyword's name.
            #[must_use]
            pub fn name(self) -> &'static str {
                self.keyword().name()
            }

            /// Emits the event with the present time, if a recorder runs.
            #[inline]
            pub fn emit(self, data: &$data<'_>) {
                recorder::emit(self.keyword(), &data.values());
            }

            /// Emits the event with a time read before (ns), if a recorder runs.
            #[inline]
            pub fn emit_at(self, data: &$data<'_>, at_ns: u64) {
                recorder::emit_at(self.keyword().id(), at_ns, &data.values());
            }

            /// Appends the event to a log, with the given time (ns).
            #[inline]
            pub fn write(self, data: &$data<'_>, log: &mut EventLog, at_ns: u64) {
                log.push(self.keyword().id(), at_ns, &data.values());
            }

            /// Passes the event to an emitter for several hosts, with its host and time (ns).
            pub fn emit_on(self, data: &$data<'_>, host: &str, at_ns: u64, emit: &mut EventEmitter<'_>) {
                emit(&EmittedEvent {
                    host,
                    keyword: self.name(),
                    at_ns,
                    values: &data.values(),
                });
            }
        }

        $($(begins! { $data $fields $longer })*)?
    };
}

/// A longer row from the data that it begins with.
macro_rules! begins {
    ($data:ident { $($field:ident),* $(,)? } $longer:ident) => {
        impl<'t> From<$data<'t>> for rows::$longer<'t> {
            /// The fields that both have; the others are empty.
            #[inline]
            fn from(data: $data<'t>) -> Self {
                Self {
                    $($field: data.$field,)*
                    ..Self::default()
                }
            }
        }
    };
}

family! {
    /// A data unit at a point of its way, or a connection; `bytes` from `offset` on of a stream.
    DataUnit { unit, stream, offset, bytes }
    DataUnitEvent: rows::{
        AppConnect, AppCall, AppTurn, AppSend, AppSent, AppIndication, AppReply, AppReplied, AppAwait, AppReceived,
        AppEnded, AppResponse, AppLost, AppDisconnect, AppDisconnected, SockReceived,
    };
    longer: {AppConnected, AppAccepted, QuicSent, QuicReceived, QuicLost, NetSeen};
}

family! {
    /// A unit whose data waits for a flow-control window, or has waited.
    WindowWait { unit, stream, offset, bytes, waited_ns }
    WindowWaitEvent: rows::{StreamBlocked, StreamReleased, ConnectionBlocked, ConnectionReleased};
}

family! {
    /// What a blast or a V message does with bytes of its stream, and why.
    ProtocolStep { unit, stream, offset, bytes, cause }
    ProtocolStepEvent: rows::{
        BlastSend, BlastRetransmit, BlastNak, BlastAck, BlastTimer, IkpSend, IkpRetransmit, IkpPending,
    };
}

family! {
    /// A connection at the end of an interval.
    ConnectionReport {
        interval_ns, stream, local, remote, cwnd_bytes, in_flight_bytes, rtt_ns, retransmits, busy_ns,
        rwnd_limited_ns, sndbuf_limited_ns, unsent_bytes, receive_queue_bytes, send_window_bytes, mss_bytes,
        acked_bytes,
    }
    ConnectionReportEvent: rows::{TcpInfo, BlastInfo, QuicInfo};
}

family! {
    /// A packet at a place of a network.
    NetPacket { unit, stream, offset, bytes, place, way, flow, number, segments, length }
    NetPacketEvent: rows::{NetDequeue, NetMark, NetDuplicate, NetAgain, NetDeliver};
    longer: {NetEnqueue, NetDrop};
}

family! {
    /// A request to a display at a point of its way.
    DisplayPassage { unit }
    DisplayPassageEvent: rows::{
        DisplayCall, DisplaySend, DisplayArrive, DisplayInternet, DisplayAgent, DisplayParse, DisplayStore,
        DisplayRender, DisplayDone,
    };
}

family! {
    /// What a thread did during a time of a request, ns.
    ThreadWork {
        unit, thread, cpu_ns, runnable_ns, lock_ns, disk_ns, sleep_ns, socket_ns, child_ns, stopped_ns, collect_ns,
        observer_ns, other_ns,
    }
    ThreadWorkEvent: rows::{RequestWork, RequestWait, ResponseWait, LockHolder};
}

family! {
    /// A block at a point of its way.
    BlockPassage { unit, block, set, list, bytes, source }
    BlockPassageEvent: block_rows::{
        TvReqTile, DpssMasterIn, DpssMasterOut, DpssServIn, DpssStartRead, DpssEndRead, DpssStartWrite, DpssEndWrite,
        TvRecvTile, DpssFlush, TvGivenUp,
    };
}
