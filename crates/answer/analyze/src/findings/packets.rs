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
