//! What a form says of a transfer, before it is known whether it holds.

/// How a sender keeps its pace.
pub(super) struct SendingPace {
    /// Whether it has one.
    pub(super) is_kept: bool,
    /// Whether units come at random, or about as fast as the way passes them.
    pub(super) in_heaps: bool,
    /// Of one interval: its standard deviation over its mean.
    pub(super) variation: f64,
    /// Intervals of a run.
    pub(super) draws: f64,
    /// How far the mean interval of a run is off in nine of ten runs, over itself.
    pub(super) off: f64,
}

/// What a form says of a transfer.
pub(super) struct TransferEstimate<'e> {
    /// What limits it in the long run, and in all.
    pub(super) binds: &'e str,
    pub(super) limit: &'e str,
    /// What the long run comes to.
    pub(super) steady_bit_s: f64,
    /// How long it lasts, of it how long its window grows, and a round trip.
    pub(super) elapsed_s: f64,
    pub(super) grown_s: f64,
    pub(super) rtt_s: f64,
    pub(super) pace: &'e SendingPace,
}
