//! Events of packets in a network, read by the places of their fields: there are millions of them.

use crate::findings::rows::{EventRows, FlowByteRange};
use stackline_events::catalogue;

/// Fields of events of a network, which all begin alike.
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

/// As [`EventRows::range`], for millions of events of a network.
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

/// The stream of a datagram: data without a position in it. Data of TCP has one.
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

/// At which port.
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
