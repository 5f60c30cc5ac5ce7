//! What a row of a table asks to be simulated, and rows and tables before all of their columns are filled in.

use super::formulas::{BlastCostModel, BlastResendStrategy};
use super::profile::{BlastHostProfile, Profiles};
use stackline_core::error::Result;
use stackline_report::paper::{Exhibit, PaperRow};

/// N of Tables 1 and 3.
pub(super) const NUMBERS: [u32; 4] = [1, 4, 16, 64];
/// D of Figures 5 and 6.
pub(super) const PACKETS: u32 = 64;

/// How packets are moved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Method {
    StopAndWait,
    SlidingWindow,
    Blast(BlastResendStrategy),
}

/// Which figure of many transfers is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlastQuantity {
    Mean,
    Deviation,
}

/// Something to simulate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct BlastCase {
    pub(super) host: BlastHostProfile,
    pub(super) method: Method,
    pub(super) packets: u32,
    pub(super) loss: f64,
    /// Tr in seconds.
    pub(super) interval: f64,
    pub(super) quantity: BlastQuantity,
}

impl BlastCase {
    /// A transfer without an error.
    pub(super) const fn error_free(method: Method, host: BlastHostProfile, packets: u32) -> Self {
        // An answer that is never late needs no interval; one second is beyond all of these.
        Self {
            host,
            method,
            packets,
            loss: 0.0,
            interval: 1.0,
            quantity: BlastQuantity::Mean,
        }
    }
}

/// A row, and what it asks to be simulated.
pub(super) struct BlastRow {
    pub(super) row: PaperRow,
    pub(super) case: Option<BlastCase>,
}

/// A table or a figure with its lines.
pub(super) struct BlastSheet {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) subject: &'static str,
    pub(super) digits: usize,
    pub(super) lines: Vec<BlastRow>,
    pub(super) notes: Vec<String>,
}

impl From<BlastSheet> for Exhibit {
    fn from(sheet: BlastSheet) -> Self {
        Self {
            name: sheet.name.into(),
            title: sheet.title.into(),
            subject: sheet.subject,
            digits: sheet.digits,
            rows: sheet.lines.into_iter().map(|line| line.row).collect(),
            notes: sheet.notes,
        }
    }
}

/// The costs of the host profiles.
pub(super) struct Hosts {
    pub(super) standalone: BlastCostModel,
    pub(super) standalone_double: BlastCostModel,
    pub(super) kernel: BlastCostModel,
}

impl Hosts {
    pub(super) fn of(profiles: &Profiles) -> Result<Self> {
        Ok(Self {
            standalone: profiles.costs(BlastHostProfile::Standalone)?,
            standalone_double: profiles.costs(BlastHostProfile::StandaloneDouble)?,
            kernel: profiles.costs(BlastHostProfile::Kernel)?,
        })
    }
}
