//! The errors of the stand-alone programs: why a transfer halted.

use super::setup::{MOST, StandaloneProgram};
use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

/// How far a transfer got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StandaloneProgress {
    /// Which program.
    pub program: StandaloneProgram,
    /// Data packets of the transfer.
    pub packets: u32,
    /// Data packets that the receiver took.
    pub came: u64,
    /// Acknowledgements that the sender took.
    pub heard: u32,
}

/// Why a transfer halted. Nothing is retransmitted, so the first loss halts it.
#[derive(Debug)]
pub enum Halt {
    /// No acknowledgement came within the patience.
    Late(StandaloneProgress, Duration),
    /// The data that came differs from what was sent, or came in another order.
    Altered(StandaloneProgram),
    /// A transfer cannot have this number of packets.
    Packets(u32),
    /// One of the sides panicked.
    Panic,
    /// A system call failed: what was being done, and the kernel's error, which may contain a [`crate::frames::Unusable`].
    Io(&'static str, io::Error),
}

impl fmt::Display for Halt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Late(
                StandaloneProgress {
                    program,
                    packets,
                    came,
                    heard,
                },
                patience,
            ) => write!(
                f,
                "{} (packets: {packets}): no acknowledgement within {patience:?}; data packets received: {came}, acknowledgements received: {heard}\nhint: a frame was lost, and nothing is retransmitted: try again on a quieter machine",
                program.name()
            ),
            Self::Altered(program) => {
                write!(
                    f,
                    "{}: the data that arrived differs from what was sent\nhint: another program is using these ethertypes",
                    program.name()
                )
            }
            Self::Packets(packets) => {
                write!(f, "a transfer has 1 to {MOST} packets, not {packets}")
            }
            Self::Panic => f.write_str("one of the sides panicked"),
            Self::Io(what, error) => write!(f, "{what}: {error}"),
        }
    }
}

impl Error for Halt {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        if let Self::Io(_, error) = self {
            Some(error)
        } else {
            None
        }
    }
}
