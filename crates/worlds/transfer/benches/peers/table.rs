//! Results: medians of all rounds, and whether blasts reach their targets beside each peer, round by round.

use crate::{BLAST, Case, Goal, Peer, median};

/// One transfer: seconds of wall time, and of the processor's at both ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    pub(crate) seconds: f64,
    pub(crate) sender: f64,
    pub(crate) receiver: f64,
}

impl Turn {
    fn both(&self) -> f64 {
        self.sender + self.receiver
    }
}

/// Prints a case. The first peer is ours, if it is there.
pub(crate) fn print(case: &Case, bytes: usize, peers: &[Peer]) {
    let Some((ours, others)) = peers
        .split_first()
        .filter(|(first, _)| first.name == BLAST.name)
    else {
        return;
    };
    println!(
        "\n{}: {} MiB, MTU 1500, medians of {} rounds",
        case.name,
        bytes >> 20,
        ours.turns.len()
    );
    println!(
        "  {:<6} {:>28} {:>30} {:>8} {:>8}   blast's speed, and CPU, in parts of it",
        "", "Gbit/s", "CPU s/GiB", "sender", "receiver"
    );
    line(ours, bytes, String::new());
    for peer in others {
        let goal = case.goals.iter().find(|goal| goal.peer == peer.name);
        line(
            peer,
            bytes,
            goal.map_or(String::new(), |goal| {
                verdicts(goal, &ours.turns, &peer.turns)
            }),
        );
    }
    for Peer {
        name, overflown, ..
    } in peers.iter().filter(|peer| peer.overflown > 0)
    {
        println!(
            "  {name}: the kernel dropped {overflown} packets more in all rounds, its backlog being full"
        );
    }
}

fn line(peer: &Peer, bytes: usize, verdicts: String) {
    let gib = bytes as f64 / f64::from(1 << 30);
    let speed = |turn: &Turn| bytes as f64 * 8e-9 / turn.seconds;
    println!(
        "  {:<6} {:>28} {:>30} {:>8.3} {:>8.3}   {verdicts}",
        peer.name,
        spread(peer.turns.iter().map(speed)),
        spread(peer.turns.iter().map(|turn| turn.both() / gib)),
        median(peer.turns.iter().map(|turn| turn.sender / gib)),
        median(peer.turns.iter().map(|turn| turn.receiver / gib)),
    );
}

fn verdicts(goal: &Goal, ours: &[Turn], peers: &[Turn]) -> String {
    let faster = || {
        ours.iter()
            .zip(peers)
            .map(|(our, peer)| peer.seconds / our.seconds)
    };
    let processor = || {
        ours.iter()
            .zip(peers)
            .map(|(our, peer)| our.both() / peer.both())
    };
    let say = |reached: bool| if reached { "reached" } else { "MISSED" };
    let faster = match goal.faster {
        Some(least) => format!(
            "{} (at least {least}: {})",
            spread(faster()),
            say(median(faster()) >= least)
        ),
        None => spread(faster()),
    };
    let processor = match goal.processor {
        Some(most) => format!(
            "{} (at most {most}: {})",
            spread(processor()),
            say(median(processor()) <= most)
        ),
        None => spread(processor()),
    };
    format!("{faster}, {processor}")
}

/// Median, least and greatest, in words.
fn spread(values: impl Iterator<Item = f64> + Clone) -> String {
    let (least, greatest) = values.clone().fold((f64::MAX, f64::MIN), |(a, b), value| {
        (a.min(value), b.max(value))
    });
    format!("{:.2} ({least:.2}..{greatest:.2})", median(values))
}
