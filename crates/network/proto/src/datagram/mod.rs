//! The operations of the language over datagrams, in every world: numbered data units, control messages, timeouts.
//!
//! It defines the format of what is sent and is a pure machine for each end; sockets and waiting are left to the worlds.

pub mod control;
pub mod conversation;
pub mod loss_counter;

use stackline_core::catalogue::{OptionKind, OptionTable};
use stackline_core::plan::Stack;
use stackline_core::time::Duration;

/// Proves that a datagram belongs to the run; the top bit of its eighth byte is set, so that it never equals a number.
pub type DatagramToken = [u8; 16];

/// Bytes of a number.
pub const NUMBER: usize = 8;
/// Numbers stay below this, so that a token is none.
pub const NUMBERS: u64 = 1 << 63;
/// How long control waits before it is repeated the first time, and later: doubled each time up to this.
pub const FIRST_REPEAT: Duration = Duration(200_000);
/// See [`FIRST_REPEAT`].
pub const LAST_REPEAT: Duration = Duration(20_000_000);
/// How long control is repeated in all.
pub const PATIENCE: Duration = Duration(5_000_000_000);
/// The same for an END: all that was sent without pacing may wait in queues before it.
pub const LAST_PATIENCE: Duration = Duration(20_000_000_000);
/// The same for a BYE, which may never be answered.
pub const FAREWELL: Duration = Duration(200_000_000);
/// After which time without an answer a call is lost, as the stacks' users set it.
pub const TIMEOUT: OptionTable = OptionTable::new(
    "timeout",
    OptionKind::Time,
    "1 s",
    "a call not answered within this time counts as lost",
);

/// That time of a stack: [`TIMEOUT`], or its default.
#[must_use]
pub fn call_timeout(stack: &Stack) -> Duration {
    Duration::from_seconds(stack.seconds(TIMEOUT.name).unwrap_or(1.0))
}

/// An END contains the number of its transfer and, in so many lower bits, the number of units sent in all.
pub const COUNT_BITS: u32 = 40;
/// Those bits.
pub const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

pub use stackline_core::run_record::UnitLosses;
