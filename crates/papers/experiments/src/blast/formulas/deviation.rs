//! Standard deviations with full retransmission (sections 3.2, 3.2.1 and 3.2.2), as printed and corrected.
//!
//! To(D) and Tr in seconds; pc = 1 - (1 - pn)^(D+1). `None` unless 0 <= pn < 1. All four strategies are in
//! [`exact`](super::exact).

use super::loss::any_lost;

/// pc: the probability that an attempt fails. None if no attempt can succeed.
fn failing(packets: u32, pn: f64) -> Option<f64> {
    any_lost(pn, packets.checked_add(1)?).filter(|pc| *pc < 1.0)
}

/// Without NAK as printed in 3.2.1: (To(D) + Tr) sqrt(pc) sqrt(1 + pc) / (1 - pc). It is the root mean square about
/// To(D), not about the mean: 0.3, 3 and 22 percent above [`full`] at pn = 1e-4, 1e-3 and 1e-2 and D = 64.
#[must_use]
pub fn full_printed(packets: u32, error_free: f64, interval: f64, pn: f64) -> Option<f64> {
    let pc = failing(packets, pn)?;
    Some((error_free + interval) * libm::sqrt(pc) * libm::sqrt(1.0 + pc) / (1.0 - pc))
}

/// Without NAK, about the mean: (To(D) + Tr) sqrt(pc) / (1 - pc).
#[must_use]
pub fn full(packets: u32, error_free: f64, interval: f64, pn: f64) -> Option<f64> {
    let pc = failing(packets, pn)?;
    Some((error_free + interval) * libm::sqrt(pc) / (1.0 - pc))
}

/// With NAK as printed in 3.2.2: To(D) sqrt(pc) sqrt(1 + pc) / (1 - pc), for pn << 1 and D >> 1. It leaves out that a
/// lost last packet or answer still costs Tr, so it holds for Tr up to about To(D); at 10 To(D) it is half of the truth.
#[must_use]
pub fn full_nak_printed(packets: u32, error_free: f64, pn: f64) -> Option<f64> {
    full_printed(packets, error_free, 0.0, pn)
}

/// With NAK for little loss and any Tr: sigma^2 = (D - 1) pn To(D)^2 + 2 pn (To(D) + Tr)^2.
#[cfg(test)]
pub(super) fn full_nak_low_loss(
    packets: u32,
    error_free: f64,
    interval: f64,
    pn: f64,
) -> Option<f64> {
    failing(packets, pn)?;
    let others = f64::from(packets.saturating_sub(1)) * pn * error_free * error_free;
    let last = 2.0 * pn * (error_free + interval) * (error_free + interval);
    Some(libm::sqrt(others + last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blast::formulas::testing::close;

    /// The general form of 3.2 as printed: sigma^2 = sum over i of elapsed(i)^2 s(i+1), less To(D)^2. It takes To(D) for the
    /// mean inside the square, and is 41 percent too large at pn = 1e-4 and Tr = To(D).
    fn general_printed(packets: u32, error_free: f64, interval: f64, pn: f64) -> Option<f64> {
        let pc = failing(packets, pn)?;
        let (failed, odds) = (error_free + interval, pc / (1.0 - pc));
        // The sum of elapsed(i)^2 s(i+1), with the first two moments of the number of failures.
        let square =
            2.0 * error_free * failed * odds + failed * failed * odds * (1.0 + pc) / (1.0 - pc);
        Some(libm::sqrt(square))
    }

    const ALL: f64 = 172.82e-3;

    fn ms(value: Option<f64>) -> f64 {
        1e3 * value.unwrap()
    }

    #[test]
    fn printed_and_true_without_nak() {
        for (pn, printed, mean) in [
            (1e-4, 28.09, 28.00),
            (1e-3, 95.43, 92.56),
            (1e-2, 559.6, 460.05),
        ] {
            assert!(close(ms(full_printed(64, ALL, ALL, pn)), printed, 1e-3));
            assert!(close(ms(full(64, ALL, ALL, pn)), mean, 1e-3));
        }
        for (pn, literal) in [(1e-4, 39.60), (1e-3, 130.9)] {
            assert!(close(ms(general_printed(64, ALL, ALL, pn)), literal, 1e-3));
        }
    }

    #[test]
    fn printed_and_low_loss_with_nak() {
        for (pn, printed, short, long) in [(1e-4, 14.05, 14.6, 30.2), (1e-3, 47.7, 46.0, 95.4)] {
            assert!(close(ms(full_nak_printed(64, ALL, pn)), printed, 2e-3));
            assert!(close(ms(full_nak_low_loss(64, ALL, ALL, pn)), short, 4e-3));
            assert!(close(
                ms(full_nak_low_loss(64, ALL, 10.0 * ALL, pn)),
                long,
                4e-3
            ));
        }
    }

    #[test]
    fn nothing_lost_nothing_deviates() {
        assert_eq!(full(64, ALL, ALL, 0.0), Some(0.0));
        assert_eq!(full_printed(64, ALL, ALL, 0.0), Some(0.0));
        assert_eq!(general_printed(64, ALL, ALL, 0.0), Some(0.0));
        assert_eq!(full_nak_low_loss(64, ALL, ALL, 0.0), Some(0.0));
        assert_eq!(full(64, ALL, ALL, 1.0), None);
        assert_eq!(full_nak_low_loss(64, ALL, ALL, 1.0), None);
    }
}
