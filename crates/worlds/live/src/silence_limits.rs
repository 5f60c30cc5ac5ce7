//! How long an agent may be silent during a run, and how long it may take to answer.

use std::time::Duration;

/// Environment variable that overrides [`USUAL`], in whole seconds, for tests and slow hosts.
pub(crate) const VARIABLE: &str = "STACKLINE_SILENCE_S";
/// The limit without [`VARIABLE`].
const USUAL: Duration = Duration::from_secs(60);

/// How long all agents may be silent during a run before each is asked for a sign of life, and then how long they may take to answer.
/// At least one second.
pub(crate) fn silence_limit() -> Duration {
    let given = std::env::var(VARIABLE)
        .ok()
        .and_then(|text| text.parse().ok());
    given.map_or(USUAL, |seconds: u64| Duration::from_secs(seconds.max(1)))
}

/// How long an agent may take to answer while no clock of a run is running.
pub(crate) fn answer_limit() -> Duration {
    silence_limit() / 2
}
