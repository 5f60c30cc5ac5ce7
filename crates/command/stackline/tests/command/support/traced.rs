//! A run whose events are kept, and events as they are exported in text.

use super::Place;

/// Calls over a link that loses one packet.
pub(crate) const TRACED: &str = "network n { host a, b; link a - b 10 Mbit/s 1 ms loss packets 8; } 1 from a to b rr 3000*4 over tcp across n in simulated;";

/// A run of it, and where the run is.
pub(crate) fn traced() -> (Place, String) {
    let place = Place::new();
    place
        .stackline(&["run", "-e", TRACED, "--trace"])
        .succeeds();
    let run = place.kept().0.to_str().unwrap().to_owned();
    (place, run)
}

/// The lines of a run's events with that first part, in order.
pub(crate) fn lines(place: &Place, run: &str, program: &str) -> Vec<String> {
    let text = place
        .stackline(&["export", run, "--text"])
        .succeeds()
        .out
        .clone();
    let mut lines: Vec<String> = text
        .lines()
        .filter(|line| line.starts_with(program))
        .map(str::to_owned)
        .collect();
    lines.sort();
    lines
}
