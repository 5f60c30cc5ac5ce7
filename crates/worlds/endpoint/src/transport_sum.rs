//! Sums what the transports of all connections of an endpoint reported between clock start and stop, as if they were
//! one connection: where connections come and go, the sender's busy time is spread over all of them.

use stackline_core::run_record::TransportRecord;

/// The shortest round trip for which transports are asked, in s. Below it, connections do not cross a network, and
/// asking costs more than the answer is worth.
const LEAST_TRIP_S: f64 = 100e-6;

/// The sum over connections that have ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TransportSum {
    /// The sum so far; `None` before the first connection ended.
    gone: Option<TransportRecord>,
    /// Connections cross no network or report nothing: later ones are not asked.
    is_unasked: bool,
}

impl TransportSum {
    /// Adds a connection that is about to end; `report` asks its transport.
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

    /// The sums at clock start and at clock stop. `start` is the report at clock start of the connection that was open
    /// then, `now` the report of the one open at clock stop.
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
