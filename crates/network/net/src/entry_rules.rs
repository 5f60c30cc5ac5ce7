//! What happens to a packet before it joins the queue of a link: it gets another code point, or finds too few tokens.

use crate::token_bucket::TokenClock;
use stackline_core::network::NetworkLink;
use stackline_core::time::Instant;

/// The rules at the sending end of one direction of a link. Most directions have none.
#[derive(Debug)]
pub(crate) struct EntryRules {
    /// The policer's tokens, and the code point of packets that find too few; without one they are dropped.
    policer: Option<(TokenClock, Option<u8>)>,
    /// The code point that every packet gets.
    dscp: Option<u8>,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryVerdict {
    /// It joins the queue as it is.
    Enters,
    /// It joins the queue with this code point.
    Remarked(u8),
    /// It is dropped.
    Dropped,
}

impl EntryRules {
    /// The rules of a link, if it has any.
    pub(crate) fn new(link: &NetworkLink) -> Option<Self> {
        let policer = link
            .policer
            .map(|policer| (TokenClock::new(&policer.bucket), policer.remark));
        (policer.is_some() || link.dscp.is_some()).then_some(Self {
            policer,
            dscp: link.dscp,
        })
    }

    /// Whether packets of a train may be treated differently.
    pub(crate) const fn part_trains(&self) -> bool {
        self.policer.is_some()
    }

    /// Decides about a packet of `charged` bytes that comes at `at`. A code point for all is written first, that of
    /// what exceeds a policer last.
    pub(crate) fn decide(&mut self, at: Instant, charged: u64) -> EntryVerdict {
        let exceeds = match &mut self.policer {
            Some((tokens, remark)) => (!tokens.conforms(at, charged)).then_some(*remark),
            None => None,
        };
        match (exceeds, self.dscp) {
            (Some(None), _) => EntryVerdict::Dropped,
            (Some(Some(dscp)), _) | (None, Some(dscp)) => EntryVerdict::Remarked(dscp),
            (None, None) => EntryVerdict::Enters,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_core::network::{Policer, TokenBucket};

    #[test]
    fn what_exceeds_is_dropped_or_gets_its_code_point() {
        let bucket = TokenBucket {
            bit_s: 8e6,
            burst_bytes: 1000,
        };
        let verdicts = |remark, dscp| {
            let mut rules = EntryRules::new(&NetworkLink {
                policer: Some(Policer { bucket, remark }),
                dscp,
                ..NetworkLink::default()
            })
            .unwrap();
            [0, 0].map(|at| rules.decide(Instant(at), 1000))
        };
        use EntryVerdict::{Dropped, Enters, Remarked};
        assert_eq!(verdicts(None, None), [Enters, Dropped]);
        assert_eq!(verdicts(Some(12), None), [Enters, Remarked(12)]);
        assert_eq!(verdicts(Some(12), Some(10)), [Remarked(10), Remarked(12)]);
        assert_eq!(verdicts(None, Some(10)), [Remarked(10), Dropped]);
        assert!(EntryRules::new(&NetworkLink::default()).is_none());
    }
}
