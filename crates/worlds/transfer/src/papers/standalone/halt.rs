//! Why a transfer halted.

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
    /// Data packets that came.
    pub came: u64,
    /// Acknowledgements that came.
    pub heard: u32,
}

/// Why a transfer halted; nothing is repeated.
#[derive(Debug)]
pub enum Halt {
    /// No acknowledgement came within the patience.
    Late(StandaloneProgress, Duration),
    /// Data came other than it was sent, or in another order.
    Altered(StandaloneProgram),
    /// Transfers have no such number of packets.
    Packets(u32),
    /// One of the sides panicked.
    Panic,
    /// What was done, and what the kernel says; [`crate::frames::Unusable`] may be inside.
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
