//! What was read to requests and their events: the part of a trace that takes time, and may come later than the reading.

use crate::event_order::EventOrder;
use crate::recorder::RequestRecorder;
use crate::source_reading::SourceReading;
use crate::tls_key_log::KeyLogReader;
use stackline_core::error::Result;
use stackline_runs::events::Spooling;

/// Makes requests of what was read.
pub(crate) struct TraceAnalysis {
    pub(crate) order: EventOrder,
    pub(crate) recorder: RequestRecorder,
    pub(crate) keys: Option<KeyLogReader>,
    pub(crate) spool: Spooling,
}

impl TraceAnalysis {
    /// Takes what was read into account; readings come in their order.
    pub(crate) fn take(&mut self, reading: SourceReading) -> Result<()> {
        let Self {
            order,
            recorder,
            keys,
            spool,
        } = self;
        let now_ns = reading.now_ns;
        let (lost_packets, lost_records) = (reading.lost_packets, reading.lost_records);
        keys.iter_mut().for_each(KeyLogReader::read);
        reading
            .newcomers
            .iter()
            .for_each(|process| recorder.who.trace(process));
        for (ends, process) in &reading.datagram_owners {
            recorder.owns_datagrams(*ends, *process);
        }
        for (host, sample) in &reading.transfers {
            recorder.transfers.add(*host, now_ns, *sample);
        }
        let mut relieved = Ok(());
        order.take(reading, |at_ns, seen| {
            recorder.see(at_ns, seen);
            if relieved.is_ok() {
                relieved = recorder.relieve(spool);
            }
        });
        relieved?;
        let seen = order.packets + order.records;
        recorder.lost(now_ns, lost_packets, lost_records, seen);
        recorder.advance(now_ns, spool)
    }
}
