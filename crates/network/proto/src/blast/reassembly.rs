//! A blast that is arriving: which packets have arrived, whether an answer was requested, and when to report missing
//! ones.
//!
//! It is plain state: its [receiver](super::receiver) decides.

use super::bitmap::Bitmap;
use super::options::BlastExtent;
use stackline_core::time::{Duration, Instant};

/// The longest time between two unrequested reports of missing packets; the time doubles up to this.
const LONGEST_NAK_DELAY: Duration = Duration(1_000_000_000);
/// A blast that is arriving.
#[derive(Clone, Debug)]
pub(super) struct BlastReassembly {
    pub(super) blast: BlastExtent,
    pub(super) bitmap: Bitmap,
    pub(super) round: u16,
    /// The last round whose requesting packet has arrived.
    pub(super) ack_requested: Option<u16>,
    /// The checksum that came with that request.
    pub(super) check: u32,
    /// When the last packet arrived.
    pub(super) last_received: Instant,
    /// When missing packets were last reported without a request, or the last packet arrived.
    pub(super) reported_at: Instant,
    /// Unrequested reports since the last packet.
    pub(super) reports: u32,
    /// Whether the blast is complete.
    pub(super) complete: bool,
    /// Whether it waits for the driver's verdict on its checksum.
    pub(super) unchecked: bool,
}

impl BlastReassembly {
    /// A blast of `packets` packets whose first packet arrives now, in that round.
    pub(super) fn new(now: Instant, blast: BlastExtent, round: u16, packets: u32) -> Self {
        let bitmap = Bitmap::none(packets);
        let (last_received, reported_at) = (now, now);
        let (ack_requested, check, reports, complete, unchecked) = (None, 0, 0, false, false);
        Self {
            blast,
            bitmap,
            round,
            ack_requested,
            check,
            last_received,
            reported_at,
            reports,
            complete,
            unchecked,
        }
    }

    /// Notes that packets of the blast have arrived.
    pub(super) const fn note_packet(&mut self, now: Instant) {
        (self.last_received, self.reported_at, self.reports) = (now, now, 0);
    }

    /// When missing packets are reported next without a request; the first time `nak_delay` after the last packet.
    pub(super) fn report_due(&self, nak_delay: Duration) -> Instant {
        self.reported_at + wait(nak_delay, self.reports)
    }
}

fn wait(nak_delay: Duration, times: u32) -> Duration {
    Duration(
        nak_delay
            .0
            .saturating_mul(1 << times.min(16))
            .min(LONGEST_NAK_DELAY.0.max(nak_delay.0)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn naks_become_rarer_until_something_comes() {
        let blast = BlastExtent {
            number: 0,
            start: 0,
            length: 3000,
            last: false,
        };
        let mut reassembly = BlastReassembly::new(Instant(MS), blast, 0, 3);
        let nak_delay = Duration(10 * MS);
        let awaits_answer: alloc::vec::Vec<u64> = (0..9)
            .map(|_| {
                let at = reassembly.report_due(nak_delay);
                let waited = at - reassembly.reported_at;
                (reassembly.reported_at, reassembly.reports) = (at, reassembly.reports + 1);
                waited.0 / MS
            })
            .collect();
        assert_eq!(awaits_answer, [10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        reassembly.note_packet(Instant(9000 * MS));
        assert_eq!(reassembly.report_due(nak_delay), Instant(9010 * MS));
        assert_eq!(
            reassembly.report_due(Duration(2000 * MS)),
            Instant(11_000 * MS)
        );
    }
}
