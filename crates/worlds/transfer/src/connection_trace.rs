//! Emits a connection's events while a recorder is on: packets sent with the reason, missing packets, timers. It never
//! changes the connection; without a recorder it costs one load.

use stackline_events::catalogue::rows::BlastSend;
use stackline_events::{EventValue, Keyword, recorder, scope};
use stackline_proto::blast::event_tracer::{BlastTracer, EventKind};
use stackline_proto::blast::{BlastHeader, BlastOutput};

static SEND: Keyword = Keyword::new(EventKind::Send.keyword());
static RETRANSMIT: Keyword = Keyword::new(EventKind::Retransmit.keyword());
static TIMER: Keyword = Keyword::new(EventKind::Timer.keyword());
static NAK: Keyword = Keyword::new(EventKind::Nak.keyword());
static ACK: Keyword = Keyword::new(EventKind::Ack.keyword());

/// The state needed to derive events.
#[derive(Default)]
pub(crate) struct ConnectionTrace(Option<BlastTracer>);

impl ConnectionTrace {
    /// A packet has arrived, or the first of a row.
    #[inline]
    pub(crate) fn arrived(&mut self, header: &BlastHeader) {
        if recorder::is_recording() {
            self.0.get_or_insert_default().arrived(header);
        }
    }

    /// Something leaves; `packet` is the size of a full packet's data.
    #[inline]
    pub(crate) fn leaves(&mut self, output: &BlastOutput, packet: u32) {
        if recorder::is_recording() {
            self.0.get_or_insert_default().leaves(output, packet, emit);
        }
    }
}

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
    // The data of all that a blast does are alike.
    let data = BlastSend {
        unit: EventValue::Absent,
        stream: stream.into(),
        offset: event.offset.into(),
        bytes: event.bytes.into(),
        cause: EventValue::Text(event.cause),
    };
    recorder::emit(keyword, &data.values());
}
