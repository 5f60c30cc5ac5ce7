//! The trace events of all TCP and UDP sockets of the machine: states, bytes that calls send and receive, data that becomes ready.
//!
//! The five events lie below the system calls, so they include io_uring, sendfile and statically linked programs. They name a socket
//! by its kernel address, which only tells sockets apart; [`State`] gives its connection (see [`connections`]). The connection of a
//! socket that existed before is not known until its state changes or one of its segments is probed, as the kernel shows its address
//! only in trace records. There are no transferred bytes in the events, and no time at which a call began. Each event costs about
//! 0.4 us.
//!
//! [`State`]: SocketChange::State
//! [`connections`]: super::connections

use super::event_stream::{TraceEventDecoder, TraceEventRings};
use super::thread;
use crate::kernel_trace::{TraceEventFormat, UndecodedTrace, address_pair};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

#[cfg(test)]
mod tests;

/// The most ports in a filter of the kernel.
const MOST_PORTS: usize = 16;
/// The kernel's filter for sends and receives: IPv4 and IPv6, TCP and UDP only.
const INTERNET: &str = "(family==2||family==10)&&(protocol==6||protocol==17)";
/// The kernel's filter for calls that transferred bytes over TCP.
const TRANSFERRED: &str = "(family==2||family==10)&&protocol==6&&ret>0";

/// An event of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketEvent {
    /// When, on the clock of events, ns.
    pub at_ns: u64,
    /// The kernel's address of the socket. It is used again after the socket is closed.
    pub socket: u64,
    /// The thread that was running.
    pub thread: u32,
    /// Whether an interrupt was being handled: then the thread may have nothing to do with the socket. Over loopback it is the
    /// sender.
    pub in_interrupt: bool,
    /// The protocol of the socket.
    pub transport: Transport,
    /// What happened.
    pub what: SocketChange,
}

/// The protocol of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// What happened at a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketChange {
    /// The state of a TCP connection changed.
    State {
        /// The state before.
        old: TcpState,
        /// The state from now on.
        new: TcpState,
        /// Address and port at this end, unless there is no port yet.
        local: Option<SocketAddr>,
        /// Address and port at the other end, unless there is no port (a socket that listens).
        remote: Option<SocketAddr>,
    },
    /// A sending call has returned.
    Sent {
        /// Bytes sent, or the negative error number.
        bytes: i64,
        /// Its flags as the kernel records them: always 0 in Linux 6.18.
        flags: u32,
    },
    /// A receiving call has returned.
    Received {
        /// Bytes received, 0 at the end of the stream, or the negative error number.
        bytes: i64,
        /// Its flags; see [`SocketChange::taken`].
        flags: u32,
    },
    /// Data can be read, or a connection waits to be accepted.
    Ready,
    /// A segment of an established connection was received and is not processed yet.
    Probe(Probe),
}

impl SocketChange {
    /// The bytes that a receiving call took out of the socket: none if it only looked (`MSG_PEEK`) or failed.
    #[must_use]
    pub fn taken(&self) -> u64 {
        match self {
            Self::Received { bytes, flags } if flags & libc::MSG_PEEK.cast_unsigned() == 0 => {
                u64::try_from(*bytes).unwrap_or(0)
            }
            _ => 0,
        }
    }
}

/// A connection's figures when a segment is received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Next sequence number to be sent.
    pub snd_nxt: u32,
    /// First sequence number that is not acknowledged.
    pub snd_una: u32,
    /// Congestion window, segments.
    pub snd_cwnd: u32,
    /// Slow start threshold, segments.
    pub ssthresh: u32,
    /// The other end's window, bytes.
    pub snd_wnd: u32,
    /// Smoothed round trip time, us.
    pub srtt_us: u32,
    /// This end's window, bytes.
    pub rcv_wnd: u32,
    /// Bytes of data in the segment.
    pub length: u32,
    /// Address and port at this end.
    pub local: Option<SocketAddr>,
    /// Address and port at the other end.
    pub remote: Option<SocketAddr>,
}

/// The state of a TCP connection, as the kernel numbers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "names of RFC 9293")]
pub enum TcpState {
    Established,
    SynSent,
    SynReceived,
    FinWait1,
    FinWait2,
    TimeWait,
    Closed,
    CloseWait,
    LastAck,
    Listen,
    Closing,
    /// A connection request for which the kernel has no full socket yet.
    NewSynReceived,
}

impl TcpState {
    /// All states in the order of the kernel's numbers, from 1.
    const ALL: [Self; 12] = [
        Self::Established,
        Self::SynSent,
        Self::SynReceived,
        Self::FinWait1,
        Self::FinWait2,
        Self::TimeWait,
        Self::Closed,
        Self::CloseWait,
        Self::LastAck,
        Self::Listen,
        Self::Closing,
        Self::NewSynReceived,
    ];

    fn from_number(number: u64) -> Option<Self> {
        Self::ALL
            .get(usize::try_from(number.checked_sub(1)?).ok()?)
            .copied()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    State,
    Sent,
    Received,
    Ready,
    Probe,
}

/// A trace event: its kind, its name in tracefs, its filter, and the fields without which it is of no use.
type Row = (Kind, &'static str, &'static str, &'static [&'static str]);

const SENT: &str = "sock/sock_send_length";
const RECEIVED: &str = "sock/sock_recv_length";

const EVENTS: [Row; 4] = [
    (
        Kind::State,
        "sock/inet_sock_set_state",
        "protocol==6",
        &["skaddr", "oldstate", "newstate", "protocol"],
    ),
    (Kind::Sent, SENT, INTERNET, &["sk", "ret", "protocol"]),
    (
        Kind::Received,
        RECEIVED,
        INTERNET,
        &["sk", "ret", "flags", "protocol"],
    ),
    (
        Kind::Ready,
        "sock/sk_data_ready",
        INTERNET,
        &["skaddr", "protocol"],
    ),
];
const PROBE: Row = (
    Kind::Probe,
    "tcp/tcp_probe",
    "",
    &["skaddr", "snd_nxt", "snd_una"],
);

/// Which events the kernel writes. Each costs the program at the socket some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketCoverage {
    /// All events of TCP and UDP.
    Everything,
    /// Of TCP only: states, and calls that transferred bytes.
    Transfers,
}

impl SocketCoverage {
    /// The filter of an event; `None` if it is not switched on.
    const fn filter(self, kind: Kind, everything: &'static str) -> Option<&'static str> {
        match (self, kind) {
            (Self::Transfers, Kind::Ready) => None,
            (Self::Transfers, Kind::Sent | Kind::Received) => Some(TRANSFERRED),
            _ => Some(everything),
        }
    }
}

/// The events of all sockets, from when it starts until it is dropped.
pub struct SocketTrace {
    rings: TraceEventRings<Kind>,
}

/// Decodes the events of sockets.
pub struct SocketEventDecoder {
    decoder: TraceEventDecoder<Kind, SocketEvent>,
}

impl SocketTrace {
    /// Switches the events on, but not [`SocketChange::Probe`]. The second value says which events this kernel lacks.
    ///
    /// # Errors
    /// Where there is no tracefs, or not for this user, or the kernel has none of the events.
    pub fn start(covers: SocketCoverage) -> Result<(Self, BTreeMap<String, String>), String> {
        let mut rings = TraceEventRings::create()?;
        let mut absent = BTreeMap::new();
        for (kind, name, everything, fields) in EVENTS {
            if let Some(filter) = covers.filter(kind, everything)
                && let Err(reason) = rings.add(kind, name, filter, fields)
            {
                absent.insert(name.to_owned(), reason);
            }
        }
        // Without these two events the program of a message is not known; `ptrace` shows more then.
        if [SENT, RECEIVED]
            .iter()
            .any(|name| absent.contains_key(*name))
        {
            return Err(
                "this kernel does not report what programs send and receive \
                        (Linux 6.3 and newer do)"
                    .into(),
            );
        }
        Ok((Self { rings }, absent))
    }

    /// Switches [`SocketChange::Probe`] on, for connections with one of these ports; for all if there is none, or more than 16.
    ///
    /// # Errors
    /// Where this kernel lacks it.
    pub fn probe(&mut self, ports: &BTreeSet<u16>) -> Result<(), String> {
        let (kind, name, _, fields) = PROBE;
        let either = |port: &u16| format!("sport=={port}||dport=={port}");
        let filter: Vec<String> = ports
            .iter()
            .filter(|_| ports.len() <= MOST_PORTS)
            .map(either)
            .collect();
        self.rings.add(kind, name, &filter.join("||"), fields)
    }

    /// Reads the records since the last call, without decoding them. It should be called about every 10 ms, before the rings are
    /// full.
    ///
    /// # Errors
    /// When the records cannot be read.
    pub fn read(&mut self, into: &mut UndecodedTrace) -> Result<(), String> {
        self.rings.read(into)
    }

    /// The decoder for the events that are switched on so far.
    #[must_use]
    pub fn decoder(&self) -> SocketEventDecoder {
        SocketEventDecoder {
            decoder: self.rings.decoder(),
        }
    }
}

impl SocketEventDecoder {
    /// Decodes a reading and adds its events to `out`, in order of time.
    pub fn decode(&mut self, read: &UndecodedTrace, out: &mut Vec<SocketEvent>) {
        let each = |kind, format: &TraceEventFormat, _, record: &[u8]| decode(kind, format, record);
        self.decoder.decode(read, u64::MAX, each, |at_ns, event| {
            out.push(SocketEvent { at_ns, ..event })
        });
    }
}

/// Decodes a record; `None` if it is too short. The caller sets the event's time, which is not part of the record.
fn decode(kind: Kind, format: &TraceEventFormat, record: &[u8]) -> Option<SocketEvent> {
    let number = |field| format.number(record, field);
    let small = |field| number(field).and_then(|value| u32::try_from(value).ok());
    let (thread, in_interrupt) = thread(format, record)?;
    let socket = number("skaddr").or_else(|| number("sk"))?;
    let what = match kind {
        Kind::State => {
            let (local, remote) = addresses(format, record);
            SocketChange::State {
                old: TcpState::from_number(number("oldstate")?)?,
                new: TcpState::from_number(number("newstate")?)?,
                local,
                remote,
            }
        }
        Kind::Sent => SocketChange::Sent {
            bytes: format.signed(record, "ret")?,
            flags: small("flags").unwrap_or(0),
        },
        Kind::Received => SocketChange::Received {
            bytes: format.signed(record, "ret")?,
            flags: small("flags")?,
        },
        Kind::Ready => SocketChange::Ready,
        Kind::Probe => SocketChange::Probe(probe(format, record)?),
    };
    let transport = match kind {
        Kind::Probe => Transport::Tcp,
        _ if number("protocol")? == u64::from(libc::IPPROTO_UDP.cast_unsigned()) => Transport::Udp,
        _ => Transport::Tcp,
    };
    Some(SocketEvent {
        at_ns: 0,
        socket,
        thread,
        in_interrupt,
        transport,
        what,
    })
}

fn probe(format: &TraceEventFormat, record: &[u8]) -> Option<Probe> {
    let number = |field| {
        format
            .number(record, field)
            .and_then(|value| u32::try_from(value).ok())
    };
    let (local, remote) = addresses(format, record);
    Some(Probe {
        snd_nxt: number("snd_nxt")?,
        snd_una: number("snd_una")?,
        snd_cwnd: number("snd_cwnd")?,
        ssthresh: number("ssthresh")?,
        snd_wnd: number("snd_wnd")?,
        srtt_us: number("srtt")?,
        rcv_wnd: number("rcv_wnd")?,
        length: number("data_len")?,
        local,
        remote,
    })
}

/// The local and the remote address, each if it has a port.
fn addresses(format: &TraceEventFormat, record: &[u8]) -> (Option<SocketAddr>, Option<SocketAddr>) {
    let pair = address_pair(format, record);
    let known = |address: SocketAddr| Some(address).filter(|address| address.port() != 0);
    (
        pair.and_then(|pair| known(pair.local)),
        pair.and_then(|pair| known(pair.remote)),
    )
}
