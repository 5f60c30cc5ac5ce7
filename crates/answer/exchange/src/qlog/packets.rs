//! Turns packets in qlog into events: one for each stream frame of a packet, with its stream and byte range, or one without a range.
//! Drafts differ in where numbers, types and lengths stand.

use super::values::{count_of, first_of, first_text};
use serde_json::Value as Json;
use stackline_events::catalogue::families::DataUnit;
use stackline_events::catalogue::rows::{QuicLost, QuicReceived, QuicSent};
use stackline_events::{EventTable, EventValue};

/// What happened to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QlogPacketPoint {
    /// It was sent.
    Sent,
    /// It was received.
    Received,
    /// It was declared lost.
    Lost,
}

/// One packet.
pub(super) struct QlogPacket<'j> {
    /// What happened to it.
    point: QlogPacketPoint,
    /// The packet number.
    pub(super) number: Option<u64>,
    /// The packet type; for a lost packet, why it is taken for lost.
    pub(super) kind: &'j str,
    /// The packet's frames.
    pub(super) frames: &'j [Json],
    /// The packet's length in bytes.
    bytes: Option<u64>,
}

/// A STREAM frame; what the log does not say is absent.
pub(super) struct QlogStreamFrame {
    /// The stream's id.
    pub(super) stream: Option<u64>,
    /// Where its bytes begin. A frame at the start of a stream may omit its offset.
    pub(super) offset: Option<u64>,
    /// How many bytes it carries.
    pub(super) bytes: Option<u64>,
    /// Whether it is the last one of its stream.
    pub(super) fin: Option<bool>,
}

impl QlogStreamFrame {
    /// The frame in a packet's data.
    pub(super) fn from_frame(frame: &Json) -> Self {
        let lengths = [
            &frame["length"],
            &frame["raw"]["payload_length"],
            &frame["raw"]["length"],
        ];
        Self {
            stream: first_of(frame, &["stream_id", "id"]).and_then(count_of),
            offset: first_of(frame, &["offset"]).map_or(Some(0), count_of),
            bytes: lengths.into_iter().find_map(count_of),
            fin: frame["fin"].as_bool(),
        }
    }
}

impl<'j> QlogPacket<'j> {
    /// Reads a packet from the data of its event, and the event's trigger.
    pub(super) fn new(point: QlogPacketPoint, data: &'j Json, trigger: Option<&'j str>) -> Self {
        const KINDS: [&str; 2] = ["packet_type", "type"];
        let header = &data["header"];
        let number = |of: &Json| first_of(of, &["packet_number"]).and_then(count_of);
        let kind = first_text(header, &KINDS).or_else(|| first_text(data, &KINDS));
        let cause = first_text(data, &["trigger"]).or(trigger);
        let kind = match point {
            QlogPacketPoint::Lost => cause.or(kind),
            _ => kind.or(cause),
        };
        let sizes = [
            (&data["raw"], "length"),
            (header, "packet_size"),
            (data, "packet_size"),
        ];
        Self {
            point,
            number: number(header).or_else(|| number(data)),
            kind: kind.unwrap_or_default(),
            frames: data["frames"].as_array().map_or(&[], Vec::as_slice),
            bytes: sizes.iter().find_map(|(of, name)| count_of(&of[*name])),
        }
    }

    /// Adds the packet's events to a table; `kind` is the redacted type.
    pub(super) fn push(&self, host: &str, at_ns: u64, kind: &str, table: &mut EventTable) {
        let (packet, kind) = (EventValue::from(self.number), EventValue::from(kind));
        let mut push = |range: DataUnit<'_>| {
            let emit = &mut table.emitter();
            match self.point {
                QlogPacketPoint::Sent => QuicSent {
                    packet,
                    kind,
                    ..range.into()
                }
                .emit_on(host, at_ns, emit),
                QlogPacketPoint::Received => QuicReceived {
                    packet,
                    kind,
                    ..range.into()
                }
                .emit_on(host, at_ns, emit),
                QlogPacketPoint::Lost => QuicLost {
                    packet,
                    cause: kind,
                    ..range.into()
                }
                .emit_on(host, at_ns, emit),
            }
        };
        let streams = self
            .frames
            .iter()
            .filter(|frame| frame["frame_type"].as_str() == Some("stream"));
        let mut carried = false;
        for frame in streams {
            carried = true;
            let frame = QlogStreamFrame::from_frame(frame);
            push(DataUnit {
                stream: frame.stream.into(),
                offset: frame.offset.into(),
                bytes: frame.bytes.into(),
                ..DataUnit::default()
            });
        }
        if !carried {
            push(DataUnit {
                bytes: self.bytes.into(),
                ..DataUnit::default()
            });
        }
    }
}
