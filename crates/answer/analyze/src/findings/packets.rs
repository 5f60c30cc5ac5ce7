//! Reads fields of packet events (`NET_ENQUEUE` and others of a network) by position: looking the fields up by name would be too slow for
//! millions of events.

use crate::findings::rows::{EventRows, FlowByteRange};
use stackline_events::catalogue;

/// The positions of fields in the events of a network, which all begin with the same fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketEventFields {
    pub(super) place: usize,
    pub(super) number: usize,
    pub(super) length: usize,
    pub(super) stream: usize,
    pub(super) offset: usize,
    pub(super) bytes: usize,
    pub(super) segments: usize,
    pub(super) queued: usize,
}

impl PacketEventFields {
    /// The positions according to the catalogue of events; `None` if a field is missing there.
    pub(super) fn new() -> Option<Self> {
        let field = |name| catalogue::find("NET_ENQUEUE")?.field(name);
        let (place, number, length) = (field("place")?, field("number")?, field("length")?);
        Some(Self {
            place,
            number,
            length,
            stream: field("stream")?,
            offset: field("offset")?,
            bytes: field("bytes")?,
            segments: field("segments")?,
            queued: field("queued")?,
        })
    }
}

/// The bytes that an event of a network is about, as [`EventRows::range`]; 1, 2 and 3 are the positions of stream, offset and bytes.
pub(super) fn packet_range(log: &EventRows<'_>, row: u32) -> Option<FlowByteRange> {
    let number = |field| log.input.events.number(row as usize, field);
    let (stream, from, bytes) = (
        number(1)?,
        number(2)?,
        number(3).filter(|bytes| *bytes > 0)?,
    );
    Some(FlowByteRange {
        stream,
        from,
        to: from.saturating_add(bytes),
    })
}

/// The stream of a packet that carries data without an offset in the stream: a datagram (TCP data has an offset); else `None`.
pub(super) fn datagram_stream(
    log: &EventRows<'_>,
    row: u32,
    fields: PacketEventFields,
) -> Option<i64> {
    let number = |field| log.input.events.number(row as usize, field);
    let has_data = number(fields.bytes).is_some_and(|bytes| bytes > 0);
    let stream = number(fields.stream)?;
    (has_data && number(fields.offset).is_none()).then_some(stream)
}

/// The name of the port (one direction of a link) where the event happened; empty if it has none.
pub(super) fn read_port_name<'c>(
    log: &EventRows<'c>,
    row: u32,
    fields: PacketEventFields,
) -> &'c str {
    log.input
        .events
        .value(row as usize, fields.place)
        .text()
        .unwrap_or_default()
}
