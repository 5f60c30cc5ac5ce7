//! Conversations as scripts, and what is found in them as lines.

use super::{Dissector, DissectorEvent, ExchangeKind, ExchangeRole};
use stackline_events::unit_ids::EventStreamDirection;

/// What each side says in turn: `>` the initiator, `<` the responder; nothing at all is the end of what a side says.
pub(crate) type DialogueScript<'s> = &'s [(char, &'s [u8])];

/// Plays a script to a dissector, each entry as one segment, and writes what is found.
pub(crate) fn run_script(dissector: &mut dyn Dissector, script: DialogueScript<'_>) -> Vec<String> {
    let (mut found, mut at) = (Vec::new(), [0_u64; 2]);
    for (side, bytes) in script {
        let side = if *side == '>' {
            EventStreamDirection::There
        } else {
            EventStreamDirection::Back
        };
        match bytes.len() {
            0 => dissector.end(side, at[side as usize], &mut found),
            _ => dissector.bytes(side, at[side as usize], bytes, &mut found),
        }
        at[side as usize] += bytes.len() as u64;
    }
    found.iter().map(describe_event).collect()
}

/// The same, cut into pieces of so many bytes: what is found is the same, whatever the cut, but for [`super::turns`].
pub(crate) fn lines_cut(
    dissector: &mut dyn Dissector,
    script: DialogueScript<'_>,
    piece: usize,
) -> Vec<String> {
    let cut: Vec<(char, &[u8])> = script
        .iter()
        .flat_map(|(side, bytes)| match bytes.len() {
            0 => vec![(*side, *bytes)],
            _ => bytes.chunks(piece).map(|piece| (*side, piece)).collect(),
        })
        .collect();
    run_script(dissector, &cut)
}

/// What is found of a script by a new dissector, whatever the cut.
pub(crate) fn lines_however_cut<D: Dissector + Default>(script: DialogueScript<'_>) -> Vec<String> {
    let whole = run_script(&mut D::default(), script);
    for piece in [1, 2, 3, 7, 50] {
        let cut = lines_cut(&mut D::default(), script, piece);
        assert_eq!(cut, whole, "in pieces of {piece} bytes");
    }
    whole
}

/// Of such lines those that name what is asked and answered, and what is not known.
pub(crate) fn names_of(lines: Vec<String>) -> Vec<String> {
    let is_name = |line: &String| line.contains(" is ") || line.contains("void");
    lines.into_iter().filter(is_name).collect()
}

pub(crate) fn describe_event(found: &DissectorEvent) -> String {
    let side = |side: EventStreamDirection| {
        if side == EventStreamDirection::There {
            '>'
        } else {
            '<'
        }
    };
    let role = |role: ExchangeRole| {
        if role == ExchangeRole::Request {
            "request"
        } else {
            "response"
        }
    };
    match found {
        DissectorEvent::Begins {
            exchange,
            role: which,
            kind,
            side: from,
            at,
        } => {
            let kind = match kind {
                ExchangeKind::Call => "",
                ExchangeKind::Handshake => " (handshake)",
                ExchangeKind::OneWay => " (one way)",
            };
            format!(
                "{exchange} {} begins {} {at}{kind}",
                role(*which),
                side(*from)
            )
        }
        DissectorEvent::Named {
            exchange,
            role: which,
            name,
        } => format!("{exchange} {} is {}", role(*which), name.whole()),
        DissectorEvent::InTrace { exchange, context } => format!("{exchange} is in {context}"),
        DissectorEvent::GoesOn { exchange, of } => format!("{exchange} goes on with {of}"),
        DissectorEvent::Part {
            exchange,
            side: from,
            at,
        } => format!("{exchange} part {} {at}", side(*from)),
        DissectorEvent::Ends {
            exchange,
            role: which,
            side: from,
            at,
        } => {
            format!("{exchange} {} ends {} {at}", role(*which), side(*from))
        }
        DissectorEvent::Void { exchange, why } => format!("{exchange} void: {why}"),
        DissectorEvent::LeftOut(bound, count) => format!("left out: {count} {}", bound.name()),
    }
}

/// Two hostile sides: bytes in pieces of any length, some of them not seen, ends anywhere. What is found is in order, and what is
/// held is bounded.
pub(crate) fn is_unharmed_by(
    dissector: &mut dyn Dissector,
    moves: &[(bool, u8, Vec<u8>)],
) -> Result<(), String> {
    let (mut found, mut at) = (Vec::new(), [0_u64; 2]);
    for (back, what, bytes) in moves {
        let side = if *back {
            EventStreamDirection::Back
        } else {
            EventStreamDirection::There
        };
        let own = &mut at[side as usize];
        match what {
            0 => dissector.end(side, *own, &mut found),
            1 => {
                dissector.unseen(side, *own, 1 + bytes.len() as u64, &mut found);
                *own += 1 + bytes.len() as u64;
            }
            _ if bytes.is_empty() => {}
            _ => {
                dissector.bytes(side, *own, bytes, &mut found);
                *own += bytes.len() as u64;
            }
        }
    }
    in_order(&found)
}

/// What [`is_unharmed_by`] wants: bytes of a protocol, mixed with any.
pub(crate) fn test_hostile_input(
    words: &'static [&'static [u8]],
) -> impl proptest::strategy::Strategy<Value = Vec<(bool, u8, Vec<u8>)>> {
    use proptest::prelude::*;
    let word = proptest::sample::select(words).prop_map(<[u8]>::to_vec);
    let bytes = prop_oneof![4 => word, 1 => proptest::collection::vec(any::<u8>(), 0..40)];
    proptest::collection::vec((any::<bool>(), 0_u8..20, bytes), 0..60)
}

/// Every message begins once before it ends, ends behind its beginning, and nothing is said of it once it is void.
fn in_order(found: &[DissectorEvent]) -> Result<(), String> {
    use std::collections::{BTreeMap, BTreeSet};
    let (mut begun, mut ended, mut void) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
    for (index, one) in found.iter().enumerate() {
        let describe_failure = || {
            found[..=index]
                .iter()
                .map(describe_event)
                .collect::<Vec<_>>()
                .join("\n")
        };
        let (exchange, fine) = match one {
            DissectorEvent::Begins {
                exchange, role, at, ..
            } => (*exchange, begun.insert((*exchange, *role), *at).is_none()),
            DissectorEvent::Named { exchange, name, .. } => {
                let known = [ExchangeRole::Request, ExchangeRole::Response]
                    .iter()
                    .any(|role| begun.contains_key(&(*exchange, *role)));
                let bounded = name.kept().len().max(name.whole().len()) <= super::LONGEST_NAME;
                (*exchange, known && bounded)
            }
            DissectorEvent::InTrace { exchange, .. } | DissectorEvent::Part { exchange, .. } => {
                (*exchange, true)
            }
            DissectorEvent::GoesOn { exchange, of } => (
                *exchange,
                of < exchange && begun.keys().any(|(begun, _)| begun == exchange),
            ),
            DissectorEvent::Ends {
                exchange, role, at, ..
            } => {
                let after = begun
                    .get(&(*exchange, *role))
                    .is_some_and(|begins| begins <= at);
                (*exchange, after && ended.insert((*exchange, *role)))
            }
            DissectorEvent::Void { exchange, .. } => {
                (*exchange, begun.keys().any(|(begun, _)| begun == exchange))
            }
            DissectorEvent::LeftOut(..) => continue,
        };
        if !fine || void.contains(&exchange) {
            return Err(describe_failure());
        }
        if matches!(one, DissectorEvent::Void { .. }) {
            void.insert(exchange);
        }
    }
    Ok(())
}
