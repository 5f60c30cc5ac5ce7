//! Collects the streams of a connection as one end logged them: when bytes of each direction left or arrived, and the HTTP/3 headers on
//! them. Logs of both ends that name the same connection are joined; clocks are corrected later, as for any two logs.

use super::packets::{QlogPacket, QlogStreamFrame};
use super::send_pauses::QlogSendPauses;
use super::values::{count_of, first_of, first_text};
use serde_json::Value as Json;
use stackline_redact::{RedactedName, http};
use stackline_requests::quic_stream_direction::QuicStreamDirection;
use std::collections::BTreeMap;

/// Which end of a connection wrote the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QlogSide {
    /// The end that opened the connection.
    Client,
    /// The end that was connected to.
    Server,
}

/// One direction of a stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct QlogStreamDirection {
    /// When its bytes left and arrived.
    pub(crate) passed: QuicStreamDirection,
    /// The length of the stream, once its last frame was seen.
    pub(crate) end: Option<u64>,
    /// Whether a frame of it was seen.
    pub(crate) has_begun: bool,
    /// When it was ended early, by a reset of its sender or a request of its receiver to stop, ns: as the client logged it, as the
    /// server did.
    pub(crate) reset_ns: [Option<u64>; 2],
}

/// One stream, which carries one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct QlogStream {
    /// The direction from the client, and the one from the server.
    pub(crate) directions: [QlogStreamDirection; 2],
    /// The name of the request, from HTTP/3 headers.
    pub(crate) name: RedactedName,
    /// The status of the response, from HTTP/3 headers.
    pub(crate) status: RedactedName,
}

/// One connection, as its logs describe it. The number of its streams is limited by the size of the logs.
#[derive(Clone, Debug, Default)]
pub(crate) struct QlogConnection {
    /// The name of the connection in its logs: the first connection id that the client chose.
    pub(crate) group: Option<String>,
    /// The hosts whose logs describe it: the client's, the server's.
    pub(crate) hosts: [Option<String>; 2],
    /// The streams that the client opened in both directions, by stream id.
    pub(crate) streams: BTreeMap<u64, QlogStream>,
    /// The times of its set-up at the client and at the server.
    pub(crate) set_up: [QlogSetUp; 2],
    /// The least round-trip time that an end measured, ns.
    pub(crate) round_trip_ns: Option<u64>,
    /// When it was closed, ns, and whether the server did it: as the client logged it, as the server did.
    pub(crate) closed: [Option<(u64, bool)>; 2],
    /// Whether the logs say of frames whether they are the last ones of their stream.
    pub(crate) says_ends: bool,
    /// The greatest stream id, of all kinds of streams.
    pub(crate) last_stream: u64,
    /// Whether HTTP/3 headers were seen on it.
    pub(crate) is_http3: bool,
    /// What hinders the end that logs from sending.
    sending: QlogSendPauses,
}

/// The set-up of a connection at one end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QlogSetUp {
    /// When the first packet was sent or received, ns.
    pub(crate) first_ns: Option<u64>,
    /// When the first packet with application data (1-RTT) was sent or received, ns.
    pub(crate) done_ns: Option<u64>,
}

/// A packet that was sent or received at the end that logs.
#[derive(Clone, Copy, Debug)]
pub(super) struct QlogPassage {
    pub(super) at_ns: u64,
    pub(super) side: QlogSide,
    pub(super) is_sent: bool,
}

impl QlogPassage {
    /// The side that sent the packet: the client (0) or the server (1).
    const fn sender(self) -> usize {
        match self.is_sent {
            true => self.side as usize,
            false => 1 - self.side as usize,
        }
    }
}

impl QlogConnection {
    /// Takes a packet with its frames.
    pub(super) fn packet(&mut self, passage: QlogPassage, packet: &QlogPacket<'_>) {
        let set_up = &mut self.set_up[passage.side as usize];
        set_up.first_ns.get_or_insert(passage.at_ns);
        let has_data = matches!(packet.kind.to_ascii_lowercase().as_str(), "1rtt" | "onertt");
        if has_data {
            set_up.done_ns.get_or_insert(passage.at_ns);
        }
        if has_data && !passage.is_sent {
            self.sending.receive(packet.frames, passage.at_ns);
        }
        // The first frame of a packet ends the pause before it.
        let mut paused_ns = None;
        for frame in packet.frames {
            match first_text(frame, &["frame_type"]).unwrap_or_default() {
                "stream" => {
                    if passage.is_sent && paused_ns.is_none() {
                        paused_ns = Some(self.sending.send(packet.number, passage.at_ns));
                    }
                    self.stream_frame(passage, frame, paused_ns.unwrap_or(0));
                }
                "reset_stream" | "stop_sending" => self.reset(passage, frame),
                "connection_close" => {
                    let is_by_server = passage.sender() == QlogSide::Server as usize;
                    self.closed[passage.side as usize].get_or_insert((passage.at_ns, is_by_server));
                }
                _ => {}
            }
        }
    }

    /// The stream of a frame, if it is one that the client opened in both directions (ids that are multiples of 4).
    fn stream_of(&mut self, of: &Json) -> Option<&mut QlogStream> {
        let id = first_of(of, &["stream_id", "id"]).and_then(count_of)?;
        if !id.is_multiple_of(4) {
            return None;
        }
        Some(self.streams.entry(id).or_default())
    }

    /// Takes a STREAM frame, before which its sender paused for a time, ns.
    fn stream_frame(&mut self, passage: QlogPassage, frame: &Json, paused_ns: u64) {
        let QlogStreamFrame {
            stream,
            offset,
            bytes,
            fin,
        } = QlogStreamFrame::from_frame(frame);
        self.says_ends |= fin.is_some();
        self.last_stream = self.last_stream.max(stream.unwrap_or(0));
        let range = offset.zip(bytes).and_then(|(from, bytes)| {
            let end = from.checked_add(bytes)?;
            Some((from, end))
        });
        let Some((from, end)) = range else {
            return;
        };
        let Some(stream) = self.stream_of(frame) else {
            return;
        };
        let direction = &mut stream.directions[passage.sender()];
        direction.has_begun = true;
        direction.passed.pause(paused_ns);
        if fin == Some(true) {
            direction.end = Some(end);
        }
        let at_ns = passage.at_ns;
        match passage.is_sent {
            true => direction.passed.leave(from, end, at_ns),
            false => direction.passed.arrive(from, end, at_ns),
        }
    }

    /// Takes a RESET_STREAM or STOP_SENDING frame.
    fn reset(&mut self, passage: QlogPassage, frame: &Json) {
        if let Some(stream) = self.stream_of(frame) {
            let is_stopped = first_text(frame, &["frame_type"]) == Some("stop_sending");
            let at = match is_stopped {
                true => 1 - passage.sender(),
                false => passage.sender(),
            };
            stream.directions[at].reset_ns[passage.side as usize].get_or_insert(passage.at_ns);
        }
    }

    /// Takes an HTTP/3 frame that was written or read: keeps the request's name and the response's status.
    pub(super) fn http_frame(&mut self, data: &Json) {
        let frame = &data["frame"];
        if first_text(frame, &["frame_type"]) != Some("headers") {
            return;
        }
        self.is_http3 = true;
        let header = |name: &str| {
            let of = frame["headers"].as_array().into_iter().flatten();
            of.filter(|one| one["name"].as_str() == Some(name))
                .find_map(|one| one["value"].as_str())
                .map(str::as_bytes)
        };
        let (method, target, status) = (header(":method"), header(":path"), header(":status"));
        let Some(stream) = self.stream_of(data) else {
            return;
        };
        if let (Some(method), Some(target)) = (method, target) {
            stream.name = http::redact_request(method, target);
        }
        let status = status.and_then(|status| str::from_utf8(status).ok()?.parse().ok());
        if let Some(status) = status.filter(|status| *status >= 200) {
            stream.status = RedactedName::number("", status);
        }
    }

    /// An end measured a round trip.
    pub(super) fn measure_round_trip(&mut self, least_ns: Option<u64>) {
        self.round_trip_ns = self.round_trip_ns.into_iter().chain(least_ns).min();
    }

    /// Whether another log of the same name describes the connection at its other end.
    fn is_other_end(&self, other: &Self) -> bool {
        let mut apart = self.hosts.iter().zip(&other.hosts);
        apart.all(|ends| !matches!(ends, (Some(_), Some(_))))
    }

    /// Adds what the other end logged.
    fn join(&mut self, other: Self) {
        for (side, host) in other.hosts.into_iter().enumerate() {
            if host.is_some() {
                self.hosts[side] = host;
                self.set_up[side] = other.set_up[side];
                self.closed[side] = other.closed[side];
            }
        }
        for (id, there) in other.streams {
            let here = self.streams.entry(id).or_default();
            if here.name.is_empty() {
                here.name = there.name;
            }
            if here.status.is_empty() {
                here.status = there.status;
            }
            for (here, there) in here.directions.iter_mut().zip(there.directions) {
                here.join(there);
            }
        }
        let trips = self.round_trip_ns.into_iter().chain(other.round_trip_ns);
        self.round_trip_ns = trips.min();
        self.is_http3 |= other.is_http3;
        self.says_ends |= other.says_ends;
        self.last_stream = self.last_stream.max(other.last_stream);
    }
}

impl QlogStreamDirection {
    /// Adds what the other end logged: one end knows when bytes left, the other when they arrived.
    fn join(&mut self, other: Self) {
        self.passed.join(other.passed);
        self.end = self.end.or(other.end);
        self.has_begun |= other.has_begun;
        for (here, there) in self.reset_ns.iter_mut().zip(other.reset_ns) {
            *here = here.or(there);
        }
    }
}

/// The connections of all logs, with those of both ends joined.
pub(crate) fn join_ends(connections: Vec<QlogConnection>) -> Vec<QlogConnection> {
    let mut joined: Vec<QlogConnection> = Vec::new();
    // The last connection of each name that lacks the log of one end.
    let mut half: BTreeMap<String, usize> = BTreeMap::new();
    for connection in connections {
        let name = connection.group.clone().filter(|name| !name.is_empty());
        let known = name.as_ref().and_then(|name| half.get(name)).copied();
        match known.filter(|at| joined[*at].is_other_end(&connection)) {
            Some(at) => joined[at].join(connection),
            None => {
                half.extend(name.map(|name| (name, joined.len())));
                joined.push(connection);
            }
        }
    }
    joined
}
