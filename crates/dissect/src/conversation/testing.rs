//! Conversations as scripts, and what is found in them as lines.

use super::{Dissector, Found, Kind, Role};
use stackline_events::unit::Direction;

/// What each side says in turn: `>` the initiator, `<` the responder; nothing at all is the end of what a side says.
pub(crate) type Script<'s> = &'s [(char, &'s [u8])];

/// Plays a script to a dissector, each entry as one segment, and writes what is found.
pub(crate) fn lines(dissector: &mut dyn Dissector, script: Script<'_>) -> Vec<String> {
    let (mut found, mut at) = (Vec::new(), [0_u64; 2]);
    for (side, bytes) in script {
        let side = if *side == '>' { Direction::There } else { Direction::Back };
        match bytes.len() {
            0 => dissector.end(side, at[side as usize], &mut found),
            _ => dissector.bytes(side, at[side as usize], bytes, &mut found),
        }
        at[side as usize] += bytes.len() as u64;
    }
    found.iter().map(line).collect()
}

/// The same, cut into pieces of so many bytes: what is found is the same, whatever the cut, but for [`super::turns`].
pub(crate) fn lines_cut(dissector: &mut dyn Dissector, script: Script<'_>, piece: usize) -> Vec<String> {
    let cut: Vec<(char, &[u8])> = script
        .iter()
        .flat_map(|(side, bytes)| match bytes.len() {
            0 => vec![(*side, *bytes)],
            _ => bytes.chunks(piece).map(|piece| (*side, piece)).collect(),
        })
        .collect();
    lines(dissector, &cut)
}

pub(crate) fn line(found: &Found) -> String {
    let side = |side: Direction| if side == Direction::There { '>' } else { '<' };
    let role = |role: Role| if role == Role::Request { "request" } else { "response" };
    match found {
        Found::Begins { exchange, role: which, kind, side: from, at } => {
            let kind = match kind {
                Kind::Call => "",
                Kind::Handshake => " (handshake)",
                Kind::OneWay => " (one way)",
            };
            format!("{exchange} {} begins {} {at}{kind}", role(*which), side(*from))
        }
        Found::Named { exchange, role: which, name } => format!("{exchange} {} is {name}", role(*which)),
        Found::Part { exchange, side: from, at } => format!("{exchange} part {} {at}", side(*from)),
        Found::Ends { exchange, role: which, side: from, at } => {
            format!("{exchange} {} ends {} {at}", role(*which), side(*from))
        }
        Found::Void { exchange, why } => format!("{exchange} void: {why}"),
    }
}
