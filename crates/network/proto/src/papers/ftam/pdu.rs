//! FTAM's own PDUs (ISO 8571-4): those of the kernel, of reading, writing and grouping.
//!
//! There is none for F-DATA: what a file contains travels in a presentation context of its own.

use alloc::format;
use alloc::string::String;
use core::fmt;

/// The functional units read, write and grouping, as bits of a BIT STRING: all that this end has.
pub const FUNCTIONAL_UNITS: u16 = 0b0011_0001 << 8;
/// Processing modes read and replace, as bits of a BIT STRING.
pub(super) const READ_AND_REPLACE: u16 = 0b101 << 13;

/// What a responder says of an action.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FtamOutcome {
    /// Whether the state did not change (state-result `failure`).
    pub failed: bool,
    /// 0: success, 1: transient error, 2: permanent error.
    pub action: u32,
    /// Why, if it says so.
    pub diagnostic: Option<FtamDiagnostic>,
}

/// The first element of a diagnostic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FtamDiagnostic {
    /// 0: informative, 1: transient, 2: permanent.
    pub kind: u32,
    /// The number of ISO 8571-3.
    pub identifier: u32,
    /// Further details; empty without.
    pub details: String,
}

impl FtamOutcome {
    /// Whether the action was carried out.
    #[must_use]
    pub const fn is_success(&self) -> bool {
        !self.failed && self.action == 0
    }
}

impl fmt::Display for FtamOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.action {
            1 => "a transient error",
            2 => "a permanent error",
            _ if self.failed => "it failed",
            _ => "success",
        })?;
        let Some(diagnostic) = &self.diagnostic else {
            return Ok(());
        };
        write!(f, " {}", diagnostic.identifier)?;
        if diagnostic.details.is_empty() {
            Ok(())
        } else {
            write!(f, ": {}", diagnostic.details)
        }
    }
}

/// PDUs without elements. Their numbers are their tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are those of ISO 8571")]
pub enum FtamEmptyPdu {
    TerminateRequest = 2,
    TerminateResponse = 3,
    DeselectRequest = 8,
    BeginGroupResponse = 23,
    EndGroupRequest = 24,
    EndGroupResponse = 25,
    TransferEndRequest = 35,
}

impl FtamEmptyPdu {
    pub(super) const ALL: [Self; 7] = [
        Self::TerminateRequest,
        Self::TerminateResponse,
        Self::DeselectRequest,
        Self::BeginGroupResponse,
        Self::EndGroupRequest,
        Self::EndGroupResponse,
        Self::TransferEndRequest,
    ];
}

/// PDUs that say an outcome and nothing else. Their numbers are their tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are those of ISO 8571")]
pub enum FtamOutcomePdu {
    UserAbort = 4,
    ProviderAbort = 5,
    DeselectResponse = 9,
    CloseRequest = 20,
    CloseResponse = 21,
    DataEnd = 34,
    TransferEndResponse = 36,
}

impl FtamOutcomePdu {
    pub(super) const ALL: [Self; 7] = [
        Self::UserAbort,
        Self::ProviderAbort,
        Self::DeselectResponse,
        Self::CloseRequest,
        Self::CloseResponse,
        Self::DataEnd,
        Self::TransferEndResponse,
    ];

    /// It, of an action that was carried out.
    #[must_use]
    pub fn success(self) -> FtamPdu {
        FtamPdu::Outcome(self, FtamOutcome::default())
    }
}

/// A PDU of FTAM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FtamPdu {
    /// F-INITIALIZE request.
    InitializeRequest {
        /// The functional units that the initiator has.
        functional_units: u16,
    },
    /// F-INITIALIZE response.
    InitializeResponse {
        /// What became of it.
        outcome: FtamOutcome,
        /// The functional units that both have.
        functional_units: u16,
    },
    /// F-SELECT request.
    SelectRequest {
        /// The file's name.
        filename: String,
    },
    /// F-SELECT response.
    SelectResponse {
        /// What became of it.
        outcome: FtamOutcome,
        /// The file's name.
        filename: String,
    },
    /// F-OPEN request, to read and to replace an unstructured binary file (FTAM-3).
    OpenRequest,
    /// F-OPEN response.
    OpenResponse {
        /// What became of it.
        outcome: FtamOutcome,
    },
    /// F-BEGIN-GROUP request.
    BeginGroupRequest {
        /// How many actions of the group have to succeed.
        threshold: u32,
    },
    /// F-READ request, of the whole file.
    ReadRequest,
    /// F-WRITE request, in place of the whole file.
    WriteRequest,
    /// One without elements.
    Empty(FtamEmptyPdu),
    /// One with an outcome alone.
    Outcome(FtamOutcomePdu, FtamOutcome),
}

impl FtamPdu {
    /// Its tag, a context-specific one.
    #[must_use]
    pub const fn tag(&self) -> u8 {
        match self {
            Self::InitializeRequest { .. } => 0,
            Self::InitializeResponse { .. } => 1,
            Self::SelectRequest { .. } => 6,
            Self::SelectResponse { .. } => 7,
            Self::OpenRequest => 18,
            Self::OpenResponse { .. } => 19,
            Self::BeginGroupRequest { .. } => 22,
            Self::ReadRequest => 32,
            Self::WriteRequest => 33,
            Self::Empty(pdu) => *pdu as u8,
            Self::Outcome(pdu, _) => *pdu as u8,
        }
    }

    /// Its name, as ISO 8571 has it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self.tag() {
            0 => "F-INITIALIZE request",
            1 => "F-INITIALIZE response",
            2 => "F-TERMINATE request",
            3 => "F-TERMINATE response",
            4 => "F-U-ABORT request",
            5 => "F-P-ABORT request",
            6 => "F-SELECT request",
            7 => "F-SELECT response",
            8 => "F-DESELECT request",
            9 => "F-DESELECT response",
            18 => "F-OPEN request",
            19 => "F-OPEN response",
            20 => "F-CLOSE request",
            21 => "F-CLOSE response",
            22 => "F-BEGIN-GROUP request",
            23 => "F-BEGIN-GROUP response",
            24 => "F-END-GROUP request",
            25 => "F-END-GROUP response",
            32 => "F-READ request",
            33 => "F-WRITE request",
            34 => "F-DATA-END request",
            35 => "F-TRANSFER-END request",
            _ => "F-TRANSFER-END response",
        }
    }

    /// What it says of an action, if it does.
    #[must_use]
    pub const fn outcome(&self) -> Option<&FtamOutcome> {
        match self {
            Self::InitializeResponse { outcome, .. }
            | Self::SelectResponse { outcome, .. }
            | Self::OpenResponse { outcome }
            | Self::Outcome(_, outcome) => Some(outcome),
            _ => None,
        }
    }

    /// The reason that it gives for a refusal, as the end of a sentence; `None` if all went well.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        let outcome = self.outcome().filter(|outcome| !outcome.is_success())?;
        Some(format!("{} says {outcome}", self.name()))
    }
}
