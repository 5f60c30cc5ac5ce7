//! What may be asked of the data path.

use serde::{Deserialize, Serialize};
use stackline_core::time::Duration;

/// How the data path works. The defaults are right nearly always.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// Whether trains of segments and unfinished checksums travel as they are. Without it the hosts have to have their
    /// segmentation and checksum offload off.
    pub offload: bool,
    /// Whether the kernel's stamps say when a frame came (else the instant at which it was read).
    pub stamps: bool,
    /// How long before a departure it wakes to spin for the rest; never spins when zero, or on a single processor.
    pub spin: Duration,
    /// Most memory for frames on their way, in bytes; what would need more is lost, and counted as overload.
    pub memory: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { offload: true, stamps: true, spin: Duration(100_000), memory: 2 << 30 }
    }
}
