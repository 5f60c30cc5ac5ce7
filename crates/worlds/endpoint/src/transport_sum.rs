//! What the transports of all connections of an endpoint reported from clock start to stop, as if they were one: where connections come
//! and go, the time of their sender is spread over all of them.

use stackline_core::run_record::TransportRecord;

/// A round trip shorter than this crosses no network (s): there asking costs more than it says.
const LEAST_TRIP_S: f64 = 100e-6;

/// The sum over connections that are gone.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TransportSum {
    gone: Option<TransportRecord>,
    /// Connections are near, or report nothing: none is asked when it goes.
    is_unasked: bool,
}

impl TransportSum {
    /// A connection is about to go; `report` asks it.
    pub(crate) fn add_connection(&mut self, report: impl FnOnce() -> Option<TransportRecord>) {
        if self.is_unasked {
            return;
        }
        let Some(last) = report().filter(|last| last.rtt_s >= LEAST_TRIP_S) else {
            (self.gone, self.is_unasked) = (None, true);
            return;
        };
        self.gone = Some(self.gone.map_or(last, |gone| gone.with(&last)));
    }

    /// What was reported when the clock started and when it stopped: of the connection that was there then, of the one that is there now,
    /// and of those between.
    pub(crate) fn total(
        &self,
        start: Option<TransportRecord>,
        now: Option<TransportRecord>,
    ) -> Option<(TransportRecord, TransportRecord)> {
        if self.is_unasked {
            return None;
        }
        let stop = match (self.gone, now) {
            (Some(gone), Some(now)) => gone.with(&now),
            (gone, now) => gone.or(now)?,
        };
        // A connection that came after the start had counted nothing then.
        let start = match (start, self.gone) {
            (None, None) => return None,
            (start, _) => start.unwrap_or_else(|| stop.without_counts()),
        };
        Some((start, stop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(retransmits: u64, busy_s: f64) -> Option<TransportRecord> {
        Some(TransportRecord {
            retransmits,
            busy_s: Some(busy_s),
            rtt_s: 0.01,
            ..TransportRecord::default()
        })
    }

    fn counts(
        total: Option<(TransportRecord, TransportRecord)>,
    ) -> Option<[(u64, Option<f64>); 2]> {
        total.map(|(start, stop)| [start, stop].map(|one| (one.retransmits, one.busy_s)))
    }

    #[test]
    fn connections_that_come_and_go_add_up() {
        let mut sum = TransportSum::default();
        sum.add_connection(|| report(2, 0.5));
        sum.add_connection(|| report(1, 0.25));
        let whole = Some([(0, Some(0.0)), (3, Some(0.75))]);
        assert_eq!(counts(sum.total(None, None)), whole);
        let with_another = Some([(1, Some(0.5)), (7, Some(1.75))]);
        assert_eq!(
            counts(sum.total(report(1, 0.5), report(4, 1.0))),
            with_another
        );
    }

    #[test]
    fn one_that_lasts_is_its_own_sum() {
        let sum = TransportSum::default();
        let own = Some([(1, Some(0.5)), (4, Some(1.0))]);
        assert_eq!(counts(sum.total(report(1, 0.5), report(4, 1.0))), own);
        assert_eq!(counts(sum.total(None, report(4, 1.0))), None);
    }

    #[test]
    fn near_connections_are_asked_once() {
        let mut sum = TransportSum::default();
        let near = report(0, 0.1).map(|near| TransportRecord {
            rtt_s: 1e-5,
            ..near
        });
        sum.add_connection(|| near);
        sum.add_connection(|| unreachable!("asked again"));
        assert_eq!(sum.total(None, near), None);
    }
}
