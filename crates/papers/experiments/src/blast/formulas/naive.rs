//! Times when only the network takes time and copying is free (section 2.1). The three differ by a tenth at most, which
//! is why the paper looks further.

use super::costs::BlastCostModel;

/// Stop-and-wait: N (T + Ta + 2 tau).
#[must_use]
pub fn stop_and_wait(costs: &BlastCostModel, packets: u32) -> f64 {
    f64::from(packets) * (costs.send_data + costs.send_ack + 2.0 * costs.latency)
}

/// A window that never closes, each packet acknowledged: N (T + Ta) + 2 tau, and 0 for 0 packets.
#[must_use]
pub fn sliding_window(costs: &BlastCostModel, packets: u32) -> f64 {
    if packets == 0 {
        return 0.0;
    }
    f64::from(packets) * (costs.send_data + costs.send_ack) + 2.0 * costs.latency
}

/// A blast, acknowledged once: N T + Ta + 2 tau, and 0 for 0 packets.
#[must_use]
pub fn blast(costs: &BlastCostModel, packets: u32) -> f64 {
    if packets == 0 {
        return 0.0;
    }
    f64::from(packets) * costs.send_data + costs.send_ack + 2.0 * costs.latency
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixty_four_kilobytes_as_printed() {
        let us = |time_s: f64| (time_s * 1e6).round() as u64;
        let all = [stop_and_wait, sliding_window, blast]
            .map(|form| us(form(&BlastCostModel::NETWORK, 64)));
        assert_eq!(all, [57_024, 55_764, 52_551]);
        assert!(all[0] * 10 < all[2] * 11, "within 10 percent");
        assert_eq!(
            [stop_and_wait, sliding_window, blast]
                .map(|form| us(form(&BlastCostModel::NETWORK, 0))),
            [0, 0, 0]
        );
    }
}
