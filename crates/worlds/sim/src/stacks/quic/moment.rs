//! Virtual time as quinn-proto wants it: as moments of the machine's clock.
//!
//! Such a moment cannot be made but by asking that clock, which is done once a process. Only differences are ever looked
//! at, so what it says reaches no result.

use stackline_core::time::Instant;
use std::sync::OnceLock;
use std::time::{Duration, Instant as Moment};

/// A day, as quinn-proto also looks back from a moment, and a machine's clock may begin when the machine does.
const ROOM: Duration = Duration::from_secs(86_400);

fn base() -> Moment {
    static BASE: OnceLock<Moment> = OnceLock::new();
    *BASE.get_or_init(|| Moment::now() + ROOM)
}

pub(super) fn moment(at: Instant) -> Moment {
    base() + Duration::from_nanos(at.0)
}

pub(super) fn instant(at: Moment) -> Instant {
    Instant(u64::try_from(at.saturating_duration_since(base()).as_nanos()).unwrap_or(u64::MAX))
}
