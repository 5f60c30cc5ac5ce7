//! Options of the data path.

use serde::{Deserialize, Serialize};
use stackline_core::time::Duration;

/// How the data path works. The defaults are nearly always right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EmulatorOptions {
    /// Whether trains of segments and unfinished checksums pass unchanged. Without it the hosts need segmentation and
    /// checksum offload off.
    pub offload: bool,
    /// Whether the kernel's timestamps give the arrival of a frame (else the instant at which it was read).
    pub stamps: bool,
    /// How long before a departure the thread wakes up to spin until the departure. Zero never spins; nor does a single processor.
    pub spin: Duration,
    /// How long frames may stay unread if small ones come fast in one direction, so that many are read and sent together; up to a
    /// millisecond if they wait longer than that anyway, but never beyond a departure. Zero reads each frame at once.
    pub pause: Duration,
    /// Most memory for frames in transit, in bytes; frames beyond it are lost and count as overload.
    pub memory: usize,
}

impl Default for EmulatorOptions {
    fn default() -> Self {
        let (spin, pause) = (Duration(100_000), Duration(50_000));
        Self {
            offload: true,
            stamps: true,
            spin,
            pause,
            memory: 2 << 30,
        }
    }
}
