//! What can be wrong with what a peer sends, and why a peer refuses: the layer that found it, in one sentence.

use alloc::string::String;
use core::fmt;

/// A layer of the stack, from below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OsiLayer {
    /// RFC 1006.
    Tpkt,
    /// ISO 8073, class 0.
    Transport,
    /// ISO 8327.
    Session,
    /// ISO 8823.
    Presentation,
    /// ISO 8650.
    Association,
    /// ISO 8571.
    File,
}

impl fmt::Display for OsiLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tpkt => "TPKT",
            Self::Transport => "COTP",
            Self::Session => "session",
            Self::Presentation => "presentation",
            Self::Association => "ACSE",
            Self::File => "FTAM",
        })
    }
}

/// Why a connection cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OsiError {
    /// The peer sent what its layer does not allow.
    Malformed {
        /// The layer.
        layer: OsiLayer,
        /// What is wrong, as the end of a sentence.
        what: &'static str,
    },
    /// The peer refuses, or ends the connection.
    Refused {
        /// The layer that said so.
        layer: OsiLayer,
        /// The reason that it gave, as the end of a sentence.
        reason: String,
    },
}

impl OsiError {
    pub(super) const fn malformed(layer: OsiLayer, what: &'static str) -> Self {
        Self::Malformed { layer, what }
    }
}

impl fmt::Display for OsiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed { layer, what } => write!(f, "{layer}: {what}"),
            Self::Refused { layer, reason } => write!(f, "{layer}: {reason}"),
        }
    }
}
