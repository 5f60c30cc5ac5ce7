//! Mean times under loss (section 3.1), each packet lost with probability pn independently of the others.
//!
//! To(D) is the time of D packets without an error, Tr how long the sender waits in vain before it sends again: an
//! attempt that fails takes To + Tr. `None` unless 0 <= pn < 1: where everything is lost nothing ends.

use super::loss::any_lost;

/// E[T_SAW(D)] = D (To(1) + (To(1) + Tr) pc / (1 - pc)), pc = 1 - (1 - pn)^2.
#[must_use]
pub fn stop_and_wait(packets: u32, error_free_one: f64, interval: f64, pn: f64) -> Option<f64> {
    let pc = any_lost(pn, 2)?;
    Some(f64::from(packets) * (error_free_one + (error_free_one + interval) * pc / (1.0 - pc)))
}

/// E[T_B(D)] = To(D) + (To(D) + Tr) pc / (1 - pc), pc = 1 - (1 - pn)^(D+1): all D packets and the acknowledgement have
/// to arrive in one attempt.
#[must_use]
pub fn blast(packets: u32, error_free: f64, interval: f64, pn: f64) -> Option<f64> {
    let pc = any_lost(pn, packets.checked_add(1)?)?;
    (pc < 1.0).then(|| error_free + (error_free + interval) * pc / (1.0 - pc))
}

/// A way to move D packets in Figure 5: how long without an error, and the retransmission interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlastCurve {
    /// To(1) for stop-and-wait, To(D) for a blast, in seconds.
    pub error_free: f64,
    /// Tr in seconds.
    pub interval: f64,
}

/// The loss probability from which a blast of `packets` with full retransmission takes longer than stop-and-wait;
/// `None` where it is slower without loss already, or never.
#[must_use]
pub fn crossing(packets: u32, saw: BlastCurve, full: BlastCurve) -> Option<f64> {
    let slower = |pn: f64| {
        let one = stop_and_wait(packets, saw.error_free, saw.interval, pn);
        let all = blast(packets, full.error_free, full.interval, pn);
        // A blast that practically never ends is the slower.
        one.is_some_and(|one| all.is_none_or(|all| all > one))
    };
    let (mut low, mut high) = (0.0, 0.5);
    if slower(low) || !slower(high) {
        return None;
    }
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        if slower(middle) {
            high = middle
        } else {
            low = middle
        }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blast::formulas::testing::close;

    /// How long it takes when the first `failures` attempts fail: the sum of i + 1 times To(D) and i times Tr (3.2).
    fn elapsed_after(failures: u32, error_free: f64, interval: f64) -> f64 {
        error_free + f64::from(failures) * (error_free + interval)
    }

    /// The probability that the first `failures` attempts fail and the next succeeds: s(i+1) = pc^i (1 - pc). An attempt
    /// is one data packet and its acknowledgement where `packets` is 1, else `packets` of data and one acknowledgement.
    fn success_after(failures: u32, pn: f64, packets: u32) -> Option<f64> {
        let pc = any_lost(pn, packets.checked_add(1)?)?;
        Some(libm::pow(pc, f64::from(failures)) * (1.0 - pc))
    }

    const ONE: f64 = 5.87e-3;
    const ALL: f64 = 172.82e-3;

    #[test]
    fn probabilities_add_up_to_the_mean() {
        let (mut chance, mut mean) = (0.0, 0.0);
        for failures in 0..200 {
            let probability = success_after(failures, 1e-3, 64).unwrap();
            chance += probability;
            mean += probability * elapsed_after(failures, ALL, 10.0 * ALL);
        }
        assert!(close(chance, 1.0, 1e-12));
        assert!(close(
            mean,
            blast(64, ALL, 10.0 * ALL, 1e-3).unwrap(),
            1e-12
        ));
    }

    #[test]
    fn means_beside_an_independent_monte_carlo() {
        // Drawn outside of this program, D = 64, V kernel: pn, stop-and-wait Tr = 10 To(1), blast Tr = To(D), 10 To(D).
        for (pn, saw, short, long) in [
            (1e-4, 376.6, 175.09, 185.0),
            (1e-3, 383.9, 196.4, 301.8),
            (1e-2, 459.1, 492.1, 1925.2),
        ] {
            assert!(close(
                stop_and_wait(64, ONE, 10.0 * ONE, pn).unwrap(),
                saw * 1e-3,
                5e-3
            ));
            assert!(close(blast(64, ALL, ALL, pn).unwrap(), short * 1e-3, 5e-3));
            assert!(close(
                blast(64, ALL, 10.0 * ALL, pn).unwrap(),
                long * 1e-3,
                5e-3
            ));
        }
    }

    #[test]
    fn no_loss_and_all_lost() {
        assert_eq!(stop_and_wait(64, ONE, 1.0, 0.0), Some(64.0 * ONE));
        assert_eq!(blast(64, ALL, 1.0, 0.0), Some(ALL));
        for pn in [1.0, 1.5, -0.1, f64::NAN] {
            assert_eq!(
                (stop_and_wait(1, ONE, 1.0, pn), blast(1, ONE, 1.0, pn)),
                (None, None)
            );
        }
        assert_eq!(
            (
                blast(u32::MAX, ALL, 1.0, 0.1),
                success_after(0, 0.9, u32::MAX)
            ),
            (None, None)
        );
        // So much loss that no blast of 64 ends while the numbers last.
        assert_eq!(blast(64, ALL, 1.0, 1.0 - 1e-15), None);
    }

    #[test]
    fn crossings() {
        for (blast, saw, pn) in [
            (1.0, 10.0, 0.00906),
            (1.0, 100.0, 0.0339),
            (10.0, 10.0, 0.00166),
            (10.0, 100.0, 0.00329),
        ] {
            let saw = BlastCurve {
                error_free: ONE,
                interval: saw * ONE,
            };
            let full = BlastCurve {
                error_free: ALL,
                interval: blast * ALL,
            };
            let found = crossing(64, saw, full).unwrap();
            assert!(close(found, pn, 3e-3), "{found} {pn}");
        }
        let slow = BlastCurve {
            error_free: 1.0,
            interval: 1.0,
        };
        assert_eq!(
            crossing(
                64,
                BlastCurve {
                    error_free: ONE,
                    interval: ONE
                },
                slow
            ),
            None
        );
    }
}
