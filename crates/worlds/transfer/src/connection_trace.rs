//! Emits a connection's events while a recorder is on: packets sent with the reason, acknowledgements, missing packets, timers. It never
//! changes the connection; while no recorder is on, it costs one load.

use stackline_events::catalogue::families::{ProtocolStep, ProtocolStepEvent};
use stackline_events::{EventValue, recorder, scope};
use stackline_proto::blast::event_tracer::{BlastTracer, EventKind};
use stackline_proto::blast::{BlastHeader, BlastOutput};

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
    let step = match event.kind {
        EventKind::Send => ProtocolStepEvent::BlastSend,
        EventKind::Retransmit => ProtocolStepEvent::BlastRetransmit,
        EventKind::Timer => ProtocolStepEvent::BlastTimer,
        EventKind::Nak => ProtocolStepEvent::BlastNak,
        EventKind::Ack => ProtocolStepEvent::BlastAck,
    };
    let (own, peer) = scope::streams();
    let stream = if event.kind.is_own() { own } else { peer };
    step.emit(&ProtocolStep {
        unit: EventValue::Absent,
        stream: stream.into(),
        offset: event.offset.into(),
        bytes: event.bytes.into(),
        cause: EventValue::Text(event.cause),
    });
}
