//! The operations of the language over datagrams, in every world: numbered data units, control messages, timeouts.
//!
//! The module defines the format of the datagrams, and a pure machine for each end; sockets and waiting are left to the
//! worlds.

pub mod control;
pub mod conversation;
pub mod loss_counter;

use stackline_core::catalogue::{OptionKind, OptionTable};
use stackline_core::plan::Stack;
use stackline_core::time::Duration;

/// Proves that a datagram belongs to the run. The top bit of its eighth byte is set, so that its first eight bytes
/// never equal a unit's number.
pub type DatagramToken = [u8; 16];

/// The bytes of a data unit's number, with which its datagram begins.
pub const NUMBER: usize = 8;
/// Numbers are below this, so that no number looks like a token.
pub const NUMBERS: u64 = 1 << 63;
/// The time after which a control datagram is first repeated; it doubles each time up to [`LAST_REPEAT`].
pub const FIRST_REPEAT: Duration = Duration(200_000);
/// The longest time between two repetitions of a control datagram.
pub const LAST_REPEAT: Duration = Duration(20_000_000);
/// How long a control datagram is repeated before the peer counts as gone.
pub const PATIENCE: Duration = Duration(5_000_000_000);
/// How long an END is repeated: everything that was sent without pacing may wait in queues before it.
pub const LAST_PATIENCE: Duration = Duration(20_000_000_000);
/// How long a BYE is repeated, which may never be answered.
pub const FAREWELL: Duration = Duration(200_000_000);
/// The option `timeout` of stacks over datagrams.
pub const TIMEOUT: OptionTable = OptionTable::new(
    "timeout",
    OptionKind::Time,
    "1 s",
    "a call not answered within this time counts as lost",
);

/// The call timeout of a stack: its option [`TIMEOUT`], or 1 s.
#[must_use]
pub fn call_timeout(stack: &Stack) -> Duration {
    Duration::from_seconds(stack.seconds(TIMEOUT.name).unwrap_or(1.0))
}

/// The value of an END contains the number of its transfer and, in this many lower bits, the number of units sent in
/// all.
pub const COUNT_BITS: u32 = 40;
/// The mask of those lower bits.
pub const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

pub use stackline_core::run_record::UnitLosses;
