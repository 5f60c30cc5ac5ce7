//! A path as a pipe: how many bytes it holds, what fills it, and how a window or a buffer limits it.
//!
//! Rates are in bit/s, times in seconds, windows and buffers in bytes. A limit that does not exist is `None`.

use crate::is_positive;

/// The bandwidth-delay product, which the path holds in one round trip: `rate * rtt / 8` bytes (RFC 7323 section 1.1).
#[must_use]
pub fn bandwidth_delay_bytes(rate_bit_s: f64, rtt_s: f64) -> f64 {
    (rate_bit_s * rtt_s / 8.0).max(0.0)
}

/// The throughput of one window in each round trip: `8 W / RTT` bit/s (RFC 7323 section 1.1); `None` when the round
/// trip takes no time, so that the window is not a limit.
#[must_use]
pub fn window_limited_bit_s(window_bytes: f64, rtt_s: f64) -> Option<f64> {
    is_positive(rtt_s).then(|| 8.0 * window_bytes.max(0.0) / rtt_s)
}

/// The rate that is left for payload: `rate * share` bit/s.
#[must_use]
pub fn rate_limited_bit_s(rate_bit_s: f64, useful_share: f64) -> f64 {
    (rate_bit_s * useful_share).max(0.0)
}

/// The smallest of several limits with its index, the first of equal ones; `None` when there is no limit.
#[must_use]
pub fn find_least_limit(limits: &[Option<f64>]) -> Option<(usize, f64)> {
    let there = limits
        .iter()
        .enumerate()
        .filter_map(|(at, limit)| Some((at, (*limit)?)));
    there.fold(None, |best, (at, limit)| match best {
        Some((_, least)) if least <= limit => best,
        _ => Some((at, limit)),
    })
}

/// The buffer with which one flow keeps its bottleneck busy when it reduces its window by the factor `keep` after a
/// loss: `BDP (1 - keep) / keep` bytes. With Reno's 0.5 this is the bandwidth-delay product (Villamizar and Song
/// 1994), with CUBIC's 0.7 it is 0.43 of it. `None` unless 0 < `keep` <= 1.
#[must_use]
pub fn buffer_to_fill_bytes(bandwidth_delay_bytes: f64, keep: f64) -> Option<f64> {
    (keep > 0.0 && keep <= 1.0).then(|| bandwidth_delay_bytes * (1.0 - keep) / keep)
}

/// The buffer for `flows` unsynchronised flows: `BDP / sqrt(n)` bytes (Appenzeller, Keslassy and McKeown 2004, section
/// 3). `None` without flows.
#[must_use]
pub fn buffer_for_flows_bytes(bandwidth_delay_bytes: f64, flows: u32) -> Option<f64> {
    (flows > 0).then(|| bandwidth_delay_bytes / libm::sqrt(f64::from(flows)))
}

/// The waiting time of the last byte of a full buffer: `8 B / rate` seconds; `None` at rate zero.
#[must_use]
pub fn queueing_delay_s(buffer_bytes: f64, rate_bit_s: f64) -> Option<f64> {
    is_positive(rate_bit_s).then(|| 8.0 * buffer_bytes.max(0.0) / rate_bit_s)
}

/// The share of a bottleneck that one flow uses in the long run when its window grows by a constant in each round trip
/// until path and buffer are full, and falls by the factor `keep` at each loss (from the area under the sawtooth; 3/4
/// for Reno without a buffer, as Villamizar and Song 1994 found). It is 1 when the buffer covers the fall. `None`
/// where the path holds nothing or `keep` is not between 0 and 1.
#[must_use]
pub fn sawtooth_share(bandwidth_delay_bytes: f64, buffer_bytes: f64, keep: f64) -> Option<f64> {
    let (pipe, top) = peak(bandwidth_delay_bytes, buffer_bytes, keep)?;
    if keep * top >= pipe {
        return Some(1.0);
    }
    // While the window is smaller than the pipe each round takes one round-trip time; above, data leave at the
    // bottleneck's rate.
    let below = pipe - keep * top;
    let above = (top * top - pipe * pipe) / (2.0 * pipe);
    Some(((1.0 - keep * keep) * top * top / 2.0 / (pipe * (below + above))).min(1.0))
}

/// Like [`sawtooth_share`] for CUBIC's curve, which returns to its last maximum quickly and stays near it (RFC 9438
/// section 4.2).
#[must_use]
pub fn cubic_share(bandwidth_delay_bytes: f64, buffer_bytes: f64, keep: f64) -> Option<f64> {
    let (pipe, top) = peak(bandwidth_delay_bytes, buffer_bytes, keep)?;
    if keep * top >= pipe {
        return Some(1.0);
    }
    // W(s) = top - (1 - keep) top (1 - s)^3 for s from 0 to 1; it passes the pipe's size at s = 1 - rest.
    let fall = (1.0 - keep) * top;
    let rest = libm::cbrt(((top - pipe) / fall).max(0.0));
    let area = top * (1.0 - rest) - fall * (1.0 - rest * rest * rest * rest) / 4.0;
    Some((area / pipe + rest).min(1.0))
}

/// The pipe's size and the largest window, in bytes; `None` where the formulas do not hold.
fn peak(pipe: f64, buffer: f64, keep: f64) -> Option<(f64, f64)> {
    (is_positive(pipe) && buffer >= 0.0 && keep > 0.0 && keep < 1.0)
        .then_some((pipe, pipe + buffer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * b.abs()
    }

    #[test]
    fn a_long_fat_pipe() {
        // 100 Mbit/s and 80 ms hold 1 MB; 64 KiB of window make 6.55 Mbit/s of it.
        assert!(close(bandwidth_delay_bytes(100e6, 0.08), 1e6));
        assert!(close(
            window_limited_bit_s(65_536.0, 0.08).unwrap(),
            6.553_6e6
        ));
        assert_eq!(window_limited_bit_s(65_536.0, 0.0), None);
        assert!(close(
            rate_limited_bit_s(1e9, 1448.0 / 1538.0),
            941_482_444.733_42
        ));
    }

    #[test]
    fn the_least_limit_binds() {
        assert_eq!(
            find_least_limit(&[None, Some(5.0), Some(3.0), Some(3.0)]),
            Some((2, 3.0))
        );
        assert_eq!(find_least_limit(&[None]), None);
    }

    #[test]
    fn buffers() {
        assert!(close(buffer_to_fill_bytes(1e6, 0.5).unwrap(), 1e6));
        assert!(close(buffer_to_fill_bytes(0.7e6, 0.7).unwrap(), 0.3e6));
        assert_eq!(buffer_to_fill_bytes(1e6, 0.0), None);
        assert!(close(buffer_for_flows_bytes(1e6, 100).unwrap(), 1e5));
        assert_eq!(buffer_for_flows_bytes(1e6, 0), None);
        // 125 kB at 10 Mbit/s: 100 ms.
        assert!(close(queueing_delay_s(125_000.0, 10e6).unwrap(), 0.1));
        assert_eq!(queueing_delay_s(1.0, 0.0), None);
    }

    #[test]
    fn sawtooths() {
        assert!(close(sawtooth_share(1e6, 0.0, 0.5).unwrap(), 0.75));
        assert!(close(sawtooth_share(1e6, 1e6, 0.5).unwrap(), 1.0));
        // CUBIC without a buffer: (3 + 0.7) / 4, the mean of its curve in RFC 9438 section 5.1.
        assert!(close(cubic_share(1e6, 0.0, 0.7).unwrap(), 0.925));
        assert!(close(cubic_share(0.7e6, 0.3e6, 0.7).unwrap(), 1.0));
        assert_eq!(cubic_share(0.0, 1.0, 0.7), None);
    }

    proptest! {
        #[test]
        fn shares_are_shares(pipe in 1.0..1e9_f64, buffer in 0.0..1e9_f64, keep in 0.01..0.99_f64) {
            for share in [sawtooth_share(pipe, buffer, keep), cubic_share(pipe, buffer, keep)] {
                let share = share.unwrap();
                prop_assert!(share > 0.0 && share <= 1.0, "{}", share);
            }
        }
    }
}
