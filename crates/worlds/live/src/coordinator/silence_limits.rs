//! How long agents may be silent, and take to answer.

use std::time::Duration;

/// How long agents may be silent, in seconds, where a test or a slow host needs another number.
pub(super) const VARIABLE: &str = "STACKLINE_SILENCE_S";
const USUAL: Duration = Duration::from_secs(60);

/// How long agents may be silent before they are asked, and then take to answer.
pub(super) fn silence_limit() -> Duration {
    let given = std::env::var(VARIABLE)
        .ok()
        .and_then(|text| text.parse().ok());
    given.map_or(USUAL, |seconds: u64| Duration::from_secs(seconds.max(1)))
}

/// What an agent may take to answer between runs.
pub(super) fn answer_limit() -> Duration {
    silence_limit() / 2
}
