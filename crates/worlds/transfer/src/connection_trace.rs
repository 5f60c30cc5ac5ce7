//! Emits a connection's events while a recorder is on: packets sent with the reason, acknowledgements, missing packets, timers. It never
//! changes the connection; while no recorder is on, it costs one load.

use stackline_events::catalogue::rows::BlastSend;
use stackline_events::{EventValue, Keyword, recorder, scope};
use stackline_proto::blast::event_tracer::{BlastTracer, EventKind};
use stackline_proto::blast::{BlastHeader, BlastOutput};

// The kinds of events, by the names that recorders know.
static SEND: Keyword = Keyword::new(EventKind::Send.keyword());
static RETRANSMIT: Keyword = Keyword::new(EventKind::Retransmit.keyword());
static TIMER: Keyword = Keyword::new(EventKind::Timer.keyword());
static NAK: Keyword = Keyword::new(EventKind::Nak.keyword());
static ACK: Keyword = Keyword::new(EventKind::Ack.keyword());

/// What is remembered of a connection to derive its events; made when the first packet is seen while a recorder is on.
#[derive(Default)]
pub(crate) struct ConnectionTrace(Option<BlastTracer>);

impl ConnectionTrace {
    /// Notes a packet that has arrived, or the first of a row of consecutive packets.
    #[inline]
    pub(crate) fn arrived(&mut self, header: &BlastHeader) {
        if recorder::is_recording() {
            self.0.get_or_insert_default().arrived(header);
        }
    }

    /// Emits the events of an output that is sent; `packet` is the number of data bytes of a full packet.
    #[inline]
    pub(crate) fn leaves(&mut self, output: &BlastOutput, packet: u32) {
        if recorder::is_recording() {
            self.0.get_or_insert_default().leaves(output, packet, emit);
        }
    }
}

/// Emits one event.
fn emit(event: stackline_proto::blast::event_tracer::BlastEvent) {
    let keyword = match event.kind {
        EventKind::Send => &SEND,
        EventKind::Retransmit => &RETRANSMIT,
        EventKind::Timer => &TIMER,
        EventKind::Nak => &NAK,
        EventKind::Ack => &ACK,
    };
    let (own, peer) = scope::streams();
    let stream = if event.kind.is_own() { own } else { peer };
    // All kinds of these events have the same fields.
    let data = BlastSend {
        unit: EventValue::Absent,
        stream: stream.into(),
        offset: event.offset.into(),
        bytes: event.bytes.into(),
        cause: EventValue::Text(event.cause),
    };
    recorder::emit(keyword, &data.values());
}
