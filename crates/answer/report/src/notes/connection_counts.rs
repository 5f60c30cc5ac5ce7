//! Notes on what stacks counted over their connections: handshakes by kind, early data that was rejected, changes of address.

use stackline_analyze::{SideSummary, Summary};
use stackline_core::connection_count::{
    EARLY_DATA_REJECTED, HANDSHAKES_EARLY, HANDSHAKES_FULL, HANDSHAKES_RESUMED, MIGRATIONS,
};

/// What both sides counted; once, if it is the same.
pub(super) fn handshakes_and_migrations(summary: &Summary) -> Vec<String> {
    let [initiator, responder] = [&summary.initiator, &summary.responder].map(of_side);
    if initiator == responder || responder.is_empty() {
        return initiator;
    }
    let named = |side: &'static str| move |text: String| format!("{side}: {text}");
    let initiator = initiator.into_iter().map(named("initiator"));
    initiator
        .chain(responder.into_iter().map(named("responder")))
        .collect()
}

fn of_side(side: &SideSummary) -> Vec<String> {
    let count = |name: &str, words: &str| {
        let times = side.counts.get(name).filter(|times| **times > 0)?;
        Some(format!("{times} {words}"))
    };
    let kinds = [
        count(HANDSHAKES_FULL, "full"),
        count(HANDSHAKES_RESUMED, "resumed"),
        count(HANDSHAKES_EARLY, "resumed with early data"),
    ];
    let kinds: Vec<String> = kinds.into_iter().flatten().collect();
    let handshakes = (!kinds.is_empty()).then(|| format!("handshakes: {}", kinds.join(", ")));
    let times = |name: &str, what: &str| {
        let times = side.counts.get(name).filter(|times| **times > 0)?;
        Some(format!("{what}: {times}"))
    };
    let others = [
        times(EARLY_DATA_REJECTED, "early data rejected and repeated"),
        times(MIGRATIONS, "changes of the local address"),
    ];
    handshakes
        .into_iter()
        .chain(others.into_iter().flatten())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(all: &[(&str, u64)]) -> SideSummary {
        let counts = all.iter().map(|(name, n)| ((*name).to_owned(), *n));
        SideSummary {
            counts: counts.collect(),
            ..SideSummary::default()
        }
    }

    fn said(initiator: SideSummary, responder: SideSummary) -> Vec<String> {
        handshakes_and_migrations(&Summary {
            initiator,
            responder,
            ..Summary::default()
        })
    }

    #[test]
    fn handshakes_are_said_by_kind_once_for_both_sides() {
        let both = [
            (HANDSHAKES_FULL, 1),
            (HANDSHAKES_RESUMED, 2),
            (HANDSHAKES_EARLY, 7),
        ];
        assert_eq!(
            said(counts(&both), counts(&both)),
            ["handshakes: 1 full, 2 resumed, 7 resumed with early data"]
        );
        assert!(said(counts(&[]), counts(&[])).is_empty());
    }

    #[test]
    fn what_one_side_counts_alone_is_said_alone() {
        let rejected = [
            (HANDSHAKES_FULL, 2),
            (EARLY_DATA_REJECTED, 1),
            (MIGRATIONS, 3),
        ];
        assert_eq!(
            said(counts(&rejected), counts(&[])),
            [
                "handshakes: 2 full",
                "early data rejected and repeated: 1",
                "changes of the local address: 3"
            ]
        );
        assert_eq!(
            said(
                counts(&[(HANDSHAKES_FULL, 1)]),
                counts(&[(HANDSHAKES_FULL, 2)])
            ),
            [
                "initiator: handshakes: 1 full",
                "responder: handshakes: 2 full"
            ]
        );
    }
}
