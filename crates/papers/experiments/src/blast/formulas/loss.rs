//! The probability that at least one of several packets is lost (section 3.1).

/// The probability that at least one of `packets` is lost, each with probability `pn` independently of the others:
/// pc = 1 - (1 - pn)^packets. `None` unless 0 <= pn < 1.
#[must_use]
pub fn any_lost(pn: f64, packets: u32) -> Option<f64> {
    (0.0..1.0)
        .contains(&pn)
        .then(|| -libm::expm1(f64::from(packets) * libm::log1p(-pn)))
}
