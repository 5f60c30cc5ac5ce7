//! Converts between virtual time and quinn-proto's time, which is [`std::time::Instant`].
//!
//! Such an instant can only be made by reading the machine's clock, which is done once per process. Only differences are used, so the
//! clock's value reaches no result.

use stackline_core::time::Instant;
use std::sync::OnceLock;
use std::time::{Duration, Instant as Moment};

/// The base is a day after the clock's value: quinn-proto also subtracts from an instant, and the clock may start with the machine.
const ROOM: Duration = Duration::from_secs(86_400);

/// The instant of virtual time 0.
fn base() -> Moment {
    static BASE: OnceLock<Moment> = OnceLock::new();
    *BASE.get_or_init(|| Moment::now() + ROOM)
}

/// quinn-proto's instant for a virtual time.
pub(super) fn moment(at: Instant) -> Moment {
    base() + Duration::from_nanos(at.0)
}

/// The virtual time of an instant of quinn-proto.
pub(super) fn instant(at: Moment) -> Instant {
    Instant(u64::try_from(at.saturating_duration_since(base()).as_nanos()).unwrap_or(u64::MAX))
}
