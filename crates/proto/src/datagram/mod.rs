//! What the language's operations say over datagrams, in every world: numbered data units, control between, patience.
//!
//! It holds the form of what is sent and the counting of what arrives; who waits for what, and how, is the world's.

pub mod control;
pub mod sequence;

use stackline_core::time::Duration;

/// Proof that a datagram belongs to the run; the top bit of its eighth byte is set, so that no number looks like it.
pub type Token = [u8; 16];

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
/// The same for a farewell, to which nobody may be left to answer.
pub const FAREWELL: Duration = Duration(200_000_000);
/// An END says which transfer it ends and, in so many lower bits, how many units were sent in all.
pub const COUNT_BITS: u32 = 40;
/// Those bits.
pub const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

pub use stackline_core::record::Losses;
