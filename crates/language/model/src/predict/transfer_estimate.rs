//! The estimate of a transfer, before it is checked whether the formula covers it.

/// The pace of a sender: units that leave at given intervals.
pub(super) struct SendingPace {
    /// Whether the sender has a pace.
    pub(super) is_kept: bool,
    /// Whether units arrive at random, or about as fast as the path carries them.
    pub(super) in_heaps: bool,
    /// Coefficient of variation of an interval: standard deviation over mean.
    pub(super) variation: f64,
    /// Number of intervals in a run.
    pub(super) draws: f64,
    /// Largest relative error of a run's mean interval in nine of ten runs.
    pub(super) off: f64,
}

/// The estimate of a transfer.
pub(super) struct TransferEstimate<'e> {
    /// The name of the long-run limit.
    pub(super) binds: &'e str,
    /// The name of the limit of the whole transfer.
    pub(super) limit: &'e str,
    /// The long-run throughput.
    pub(super) steady_bit_s: f64,
    /// Duration of the transfer.
    pub(super) elapsed_s: f64,
    /// Time for which its window grows.
    pub(super) grown_s: f64,
    /// Round-trip time.
    pub(super) rtt_s: f64,
    pub(super) pace: &'e SendingPace,
}
