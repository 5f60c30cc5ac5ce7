//! Slow start: the duration of a transfer whose congestion window begins small and doubles each round trip.
//!
//! [`time_transfer`] goes round by round until the path is full or the window is at its limit; the rest is sent at
//! that rate. It assumes no losses. [`before_first_loss`] gives the number of packets expected before the first loss.

use crate::{count_to_f64, is_positive};

/// Segments in the first window (RFC 6928).
pub const INITIAL_SEGMENTS: u64 = 10;

/// A transfer and the path it takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowStartTransfer {
    /// Payload bytes in all.
    pub bytes: u64,
    /// Payload bytes of a segment.
    pub segment_bytes: u64,
    /// Segments in the first window.
    pub initial_segments: u64,
    /// Rate at which the path carries payload, in bit/s; when absent, sending takes no time.
    pub rate_bit_s: Option<f64>,
    /// Round trip of a segment and its acknowledgement, in seconds.
    pub rtt_s: f64,
    /// Largest window in bytes.
    pub window_bytes: Option<f64>,
}

/// How a transfer went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowStartOutcome {
    /// Seconds from the first byte to the last byte going onto the bottleneck.
    pub time_s: f64,
    /// Round trips spent waiting for acknowledgements while the window grew.
    pub rounds: u32,
    /// The window at the end of the transfer, in bytes.
    pub window_bytes: f64,
    /// What limited the transfer at its end.
    pub ended: SlowStartEnd,
}

/// What limited a transfer at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowStartEnd {
    /// The transfer ended while the window was growing.
    SlowStart,
    /// The path was full: a window takes at least a round trip to send.
    Rate,
    /// The window was at its largest.
    Window,
}

/// The duration of a transfer without losses, in which each acknowledged segment lets two others go (RFC 5681 section
/// 3.1 with one acknowledgement for each segment, or its equivalent by bytes in RFC 9406). `None` if the rate, the
/// segment size, the first window or the largest window is zero.
#[must_use]
pub fn time_transfer(transfer: &SlowStartTransfer) -> Option<SlowStartOutcome> {
    let rate = transfer.rate_bit_s.unwrap_or(f64::INFINITY);
    let first = count_to_f64(transfer.segment_bytes) * count_to_f64(transfer.initial_segments);
    let most = transfer.window_bytes.unwrap_or(f64::INFINITY);
    if rate <= 0.0 || first <= 0.0 || most <= 0.0 || transfer.rtt_s < 0.0 {
        return None;
    }
    let mut left = count_to_f64(transfer.bytes);
    let mut sent = SlowStartOutcome {
        time_s: 0.0,
        rounds: 0,
        window_bytes: first.min(most),
        ended: SlowStartEnd::SlowStart,
    };
    let onto = |bytes: f64| 8.0 * bytes / rate;
    loop {
        let window = sent.window_bytes;
        if onto(window) >= transfer.rtt_s {
            sent.ended = if left > window || sent.rounds == 0 {
                SlowStartEnd::Rate
            } else {
                SlowStartEnd::SlowStart
            };
            sent.time_s += onto(left);
            return Some(sent);
        }
        if left <= window {
            sent.time_s += onto(left);
            return Some(sent);
        }
        if window >= most {
            // Whole windows, each with its round trip; the last one, full or not, only goes out.
            let waits = libm::ceil(left / window) - 1.0;
            sent.time_s += waits * transfer.rtt_s + onto(left - waits * window);
            sent.ended = SlowStartEnd::Window;
            return Some(sent);
        }
        sent.time_s += transfer.rtt_s;
        sent.rounds += 1;
        left -= window;
        sent.window_bytes = (2.0 * window).min(most);
    }
}

/// How many of `packets` packets are expected to be sent up to the first loss, the lost one included, if each is lost
/// with probability p:
/// `(1 - (1 - p)^n) (1 - p) / p + 1`, at most n (Cardwell, Savage and Anderson 2000, section 3.2).
#[must_use]
pub fn before_first_loss(packets: f64, p: f64) -> f64 {
    if !is_positive(p) || p > 1.0 || packets <= 0.0 {
        return packets.max(0.0);
    }
    if p == 1.0 {
        return packets.min(1.0);
    }
    let met = -libm::expm1(packets * libm::log1p(-p));
    (met * (1.0 - p) / p + 1.0).min(packets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MSS: u64 = 1000;

    fn over(bytes: u64, rate_bit_s: Option<f64>, window_bytes: Option<f64>) -> SlowStartOutcome {
        let transfer = SlowStartTransfer {
            bytes,
            segment_bytes: MSS,
            initial_segments: 10,
            rate_bit_s,
            rtt_s: 0.1,
            window_bytes,
        };
        time_transfer(&transfer).unwrap()
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn a_short_transfer_is_all_slow_start() {
        // 10 + 20 + 40 = 70 segments: two waits, then 40 segments at 80 Mbit/s.
        let sent = over(70_000, Some(80e6), None);
        assert_eq!((sent.rounds, sent.ended), (2, SlowStartEnd::SlowStart));
        assert!(close(sent.time_s, 0.2 + 0.004));
        assert_eq!(over(10_000, Some(80e6), None).rounds, 0);
    }

    #[test]
    fn a_long_one_fills_the_path() {
        // 8 Mbit/s and 100 ms hold 100 segments: 10, 20, 40, 80 wait, the window of 160 does not.
        let sent = over(1_150_000, Some(8e6), None);
        assert_eq!((sent.rounds, sent.ended), (4, SlowStartEnd::Rate));
        assert!(close(sent.time_s, 0.4 + 1.0));
    }

    #[test]
    fn a_narrow_window_waits_each_round() {
        // 10 and 20 segments grow; then 25 a round: 120 left are 5 windows with 4 waits.
        let sent = over(150_000, Some(80e6), Some(25_000.0));
        assert_eq!((sent.rounds, sent.ended), (2, SlowStartEnd::Window));
        assert!(close(sent.time_s, 0.2 + 0.4 + 0.002), "{sent:?}");
    }

    #[test]
    fn a_path_without_rate_or_time() {
        // 27 windows of 10 segments doubled hold 1.3e12 bytes, 26 of them do not hold 1.1e12.
        let sent = over(1 << 40, None, None);
        assert!(sent.time_s.is_finite() && sent.rounds == 26);
        let here = SlowStartTransfer {
            bytes: 1 << 40,
            segment_bytes: MSS,
            initial_segments: 10,
            rate_bit_s: None,
            rtt_s: 0.0,
            window_bytes: None,
        };
        assert_eq!(time_transfer(&here).unwrap().time_s, 0.0);
        assert_eq!(
            time_transfer(&SlowStartTransfer {
                rate_bit_s: Some(0.0),
                ..here
            }),
            None
        );
        assert_eq!(
            time_transfer(&SlowStartTransfer {
                segment_bytes: 0,
                ..here
            }),
            None
        );
    }

    #[test]
    fn the_first_loss() {
        assert_eq!(before_first_loss(100.0, 0.0), 100.0);
        // (1 - 0.99^100) * 99 + 1.
        assert!((before_first_loss(100.0, 0.01) - 63.763_4).abs() < 1e-3);
        assert!((before_first_loss(1e9, 0.01) - 100.0).abs() < 1e-6);
        assert_eq!(before_first_loss(5.0, 1.0), 1.0);
    }

    proptest! {
        #[test]
        fn never_faster_than_the_path_or_the_window(
            bytes in 1..1_u64 << 40, segment in 1..65_536_u64, rate in 1e3..1e12_f64, rtt in 0.0..10.0_f64,
            window in 1.0..1e9_f64,
        ) {
            let transfer = SlowStartTransfer {
                bytes, segment_bytes: segment, initial_segments: 10, rate_bit_s: Some(rate), rtt_s: rtt,
                window_bytes: Some(window),
            };
            let sent = time_transfer(&transfer).unwrap();
            prop_assert!(sent.time_s.is_finite());
            prop_assert!(sent.time_s >= 8.0 * count_to_f64(bytes) / rate * (1.0 - 1e-9));
            prop_assert!(before_first_loss(count_to_f64(bytes), 0.01) <= count_to_f64(bytes));
        }
    }
}
