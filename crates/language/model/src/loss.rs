//! Throughput of TCP under random loss, and the loss of packets caused by bit errors.
//!
//! Segments are in bytes of payload, times in seconds, rates in bit/s; `p` is the probability that a packet is lost.
//! The formulas hold for 0 < p < 1 and a positive round-trip time; elsewhere they return `None`: loss is then not the
//! limit.

use crate::{count_to_f64, is_positive};

/// The constant C of CUBIC's window curve, in segments per cubic second (RFC 9438 section 5.1).
pub const CUBIC_C: f64 = 0.4;
/// The factor by which CUBIC reduces its window at a loss (RFC 9438 section 4.6).
pub const CUBIC_BETA: f64 = 0.7;
/// The factor by which Reno reduces its window at a loss (RFC 5681 section 3.2).
pub const RENO_BETA: f64 = 0.5;

/// Whether the formulas hold for this loss and round-trip time.
fn holds(p: f64, rtt_s: f64) -> bool {
    p > 0.0 && p < 1.0 && is_positive(rtt_s)
}

/// The probability that at least one bit of `bytes` bytes is wrong: `1 - (1 - b)^(8 n)`, for a bit error rate `b` of 0
/// to 1.
#[must_use]
pub fn of_bit_errors(bit_error_rate: f64, bytes: u64) -> f64 {
    if bit_error_rate >= 1.0 {
        return if bytes > 0 { 1.0 } else { 0.0 };
    }
    -libm::expm1(8.0 * count_to_f64(bytes) * libm::log1p(-bit_error_rate.max(0.0)))
}

/// Reno's average window under loss, in segments: `C / sqrt(p)` with `C = sqrt(3 / (2 b))`, b the packets that one
/// acknowledgement is for: 1, or 2 when they are delayed (Mathis, Semke, Mahdavi and Ott 1997, section 2).
#[must_use]
pub fn mathis_window(p: f64, packets_per_ack: u32) -> Option<f64> {
    (p > 0.0 && p < 1.0).then(|| libm::sqrt(3.0 / (2.0 * f64::from(packets_per_ack.max(1)) * p)))
}

/// CUBIC's average window under loss, in segments, away from the Reno-friendly region (RFC 9438 section 5.1):
/// `(C (3 + beta) / (4 (1 - beta)))^(1/4) RTT^(3/4) / p^(3/4)`.
#[must_use]
pub fn cubic_curve_window(rtt_s: f64, p: f64) -> Option<f64> {
    let factor = CUBIC_C * (3.0 + CUBIC_BETA) / (4.0 * (1.0 - CUBIC_BETA));
    holds(p, rtt_s).then(|| libm::pow(factor, 0.25) * libm::pow(rtt_s / p, 0.75))
}

/// CUBIC's average window under loss, in segments: the larger of its own curve and of Reno's window, which it follows
/// where that is larger (RFC 9438 section 4.3).
#[must_use]
pub fn cubic_window(rtt_s: f64, p: f64) -> Option<f64> {
    Some(cubic_curve_window(rtt_s, p)?.max(mathis_window(p, 1)?))
}

/// The input of the PFTK formula.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reno {
    /// Payload bytes of a segment.
    pub segment_bytes: u64,
    /// Round trip in seconds.
    pub rtt_s: f64,
    /// First retransmission timeout in seconds.
    pub timeout_s: f64,
    /// Packets that one acknowledgement covers.
    pub packets_per_ack: u32,
    /// Largest window in bytes.
    pub window_bytes: Option<f64>,
}

/// Reno's throughput under loss with its timeouts, in bit/s (Padhye, Firoiu, Towsley and Kurose 1998, the approximate
/// form; without its largest window it is RFC 5348 section 3.1):
/// `1 / (RTT sqrt(2 b p / 3) + T0 min(1, 3 sqrt(3 b p / 8)) p (1 + 32 p^2))` segments a second, at most `W / RTT`.
#[must_use]
pub fn pftk_bit_s(reno: &Reno, p: f64) -> Option<f64> {
    if !holds(p, reno.rtt_s) || reno.timeout_s < 0.0 {
        return None;
    }
    let b = f64::from(reno.packets_per_ack.max(1));
    let halving = reno.rtt_s * libm::sqrt(2.0 * b * p / 3.0);
    let waiting =
        reno.timeout_s * (3.0 * libm::sqrt(3.0 * b * p / 8.0)).min(1.0) * p * (1.0 + 32.0 * p * p);
    let rate = 8.0 * count_to_f64(reno.segment_bytes) / (halving + waiting);
    let most = reno
        .window_bytes
        .map_or(f64::INFINITY, |window| 8.0 * window / reno.rtt_s);
    Some(rate.min(most))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// CUBIC's throughput under loss in bit/s.
    fn cubic_bit_s(segment_bytes: u64, rtt_s: f64, p: f64) -> Option<f64> {
        Some(8.0 * count_to_f64(segment_bytes) * cubic_window(rtt_s, p)? / rtt_s)
    }

    /// Reno's throughput under loss in bit/s: `(8 MSS / RTT) C / sqrt(p)`.
    fn mathis_bit_s(segment_bytes: u64, rtt_s: f64, p: f64, packets_per_ack: u32) -> Option<f64> {
        let window = mathis_window(p, packets_per_ack)?;
        holds(p, rtt_s).then(|| 8.0 * count_to_f64(segment_bytes) * window / rtt_s)
    }

    fn close(a: f64, b: f64, share: f64) -> bool {
        (a - b).abs() <= share * b.abs()
    }

    #[test]
    fn mathis() {
        // 1460 bytes, 100 ms, 1 %: 116.8 kbit/s * 12.247.
        assert!(close(
            mathis_bit_s(1460, 0.1, 0.01, 1).unwrap(),
            1_430_502.0,
            1e-5
        ));
        // Delayed acknowledgements cost a factor of sqrt(2).
        let both = [1, 2].map(|b| mathis_bit_s(1460, 0.1, 0.01, b).unwrap());
        assert!(close(both[0] / both[1], core::f64::consts::SQRT_2, 1e-12));
        assert_eq!(mathis_bit_s(1460, 0.1, 0.0, 1), None);
        assert_eq!(mathis_bit_s(1460, 0.0, 0.1, 1), None);
    }

    #[test]
    fn cubic_as_printed_in_the_rfc() {
        // RFC 9438 table 1 (RTT 0.1 s): at p = 1e-2 12 (Reno's), at 1e-4 187, at 1e-8 187000 segments.
        assert!(close(cubic_window(0.1, 1e-2).unwrap(), 12.25, 1e-3));
        assert!(close(cubic_window(0.1, 1e-4).unwrap(), 187.4, 1e-3));
        assert!(close(cubic_window(0.1, 1e-8).unwrap(), 187_400.0, 1e-3));
        // Table 2 (RTT 0.01 s): at 1e-5 Reno's 387, at 1e-8 33.3 k.
        assert!(close(cubic_window(0.01, 1e-5).unwrap(), 387.3, 1e-3));
        assert!(close(cubic_window(0.01, 1e-8).unwrap(), 33_325.0, 1e-3));
        assert!(close(
            cubic_bit_s(1460, 0.1, 1e-4).unwrap(),
            8.0 * 1460.0 * 187.4 / 0.1,
            1e-3
        ));
    }

    #[test]
    fn timeouts_cost() {
        let reno = Reno {
            segment_bytes: 1460,
            rtt_s: 0.1,
            timeout_s: 1.0,
            packets_per_ack: 2,
            window_bytes: None,
        };
        // By hand at 1 %, b = 2: 0.1 * 0.11547 = 0.011547; 1 * 0.259808 * 0.01 * 1.0032 = 0.0026064; 70.655 segments/s.
        assert!(close(
            pftk_bit_s(&reno, 0.01).unwrap(),
            70.655 * 11_680.0,
            1e-4
        ));
        let narrow = Reno {
            window_bytes: Some(2920.0),
            ..reno
        };
        assert!(close(pftk_bit_s(&narrow, 0.01).unwrap(), 233_600.0, 1e-9));
        // Hardly any loss: it comes to Mathis with delayed acknowledgements.
        let mathis = mathis_bit_s(1460, 0.1, 1e-8, 2).unwrap();
        assert!(close(pftk_bit_s(&reno, 1e-8).unwrap(), mathis, 1e-2));
        assert_eq!(pftk_bit_s(&reno, 1.0), None);
    }

    #[test]
    fn bits_and_packets() {
        assert_eq!(of_bit_errors(0.0, 1500), 0.0);
        assert_eq!(of_bit_errors(1.0, 1500), 1.0);
        assert_eq!(of_bit_errors(1.0, 0), 0.0);
        // So small that 1 - (1 - b)^n would lose all digits.
        assert!(close(of_bit_errors(1e-15, 1500), 1.2e-11, 1e-6));
    }

    proptest! {
        #[test]
        fn there_and_back(rate in 1e-12..1e-4_f64, bytes in 1..2000_u64) {
            let lost = of_bit_errors(rate, bytes);
            let back = -libm::expm1(libm::log1p(-lost) / (8.0 * count_to_f64(bytes)));
            prop_assert!(close(back, rate, 1e-6), "{} {}", back, rate);
        }

        #[test]
        fn more_loss_is_never_faster(p in 1e-9..0.5_f64, rtt in 1e-5..2.0_f64, bytes in 1..65_536_u64) {
            let reno = Reno { segment_bytes: bytes, rtt_s: rtt, timeout_s: 0.2, packets_per_ack: 1, window_bytes: None };
            let at = |p| [mathis_bit_s(bytes, rtt, p, 1), cubic_bit_s(bytes, rtt, p), pftk_bit_s(&reno, p)];
            for (less, more) in at(p).into_iter().zip(at(p * 1.5)) {
                let (less, more) = (less.unwrap(), more.unwrap());
                prop_assert!(less.is_finite() && less > 0.0 && more <= less);
            }
        }
    }
}
