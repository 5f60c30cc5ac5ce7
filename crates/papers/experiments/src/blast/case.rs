//! A case: the transfer that is simulated for a row of a table. Also the rows and tables (sheets) while their columns are being filled in.

use super::formulas::{BlastCostModel, BlastResendStrategy};
use super::profile::{BlastHostProfile, Profiles};
use stackline_core::error::Result;
use stackline_report::paper::{Exhibit, PaperRow};

/// N, the packets of a transfer, in Tables 1 and 3.
pub(super) const NUMBERS: [u32; 4] = [1, 4, 16, 64];
/// D, the packets of a transfer, in Figures 5 and 6.
pub(super) const PACKETS: u32 = 64;

/// The protocol by which packets are transferred.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Method {
    StopAndWait,
    SlidingWindow,
    Blast(BlastResendStrategy),
}

/// The statistic of many transfers that a row shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlastQuantity {
    Mean,
    Deviation,
}

/// A transfer to simulate, and the statistic that is shown of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct BlastCase {
    pub(super) host: BlastHostProfile,
    pub(super) method: Method,
    pub(super) packets: u32,
    /// pn: the probability that a packet is lost.
    pub(super) loss: f64,
    /// Tr, the retransmission interval, in seconds.
    pub(super) interval: f64,
    pub(super) quantity: BlastQuantity,
}

impl BlastCase {
    /// A transfer without an error.
    pub(super) const fn error_free(method: Method, host: BlastHostProfile, packets: u32) -> Self {
        // Without loss the interval must only never run out: one second is longer than all of these transfers.
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

/// A row, and the transfer that is simulated for it, if any.
pub(super) struct BlastRow {
    pub(super) row: PaperRow,
    pub(super) case: Option<BlastCase>,
}

/// A table or a figure of the paper with its rows.
pub(super) struct BlastSheet {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// The heading of the rows' subjects.
    pub(super) subject: &'static str,
    /// Digits after the point.
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
    pub(super) fn from_profiles(profiles: &Profiles) -> Result<Self> {
        Ok(Self {
            standalone: profiles.costs(BlastHostProfile::Standalone)?,
            standalone_double: profiles.costs(BlastHostProfile::StandaloneDouble)?,
            kernel: profiles.costs(BlastHostProfile::Kernel)?,
        })
    }
}
