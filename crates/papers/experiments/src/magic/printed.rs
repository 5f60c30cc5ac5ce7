//! The numbers that the paper prints, with the sections in which they are.

/// Bytes of a block (section 4.2.2).
pub(super) const BLOCK: u32 = 49_152;
/// The time between two lists, s (section 4.2.3).
pub(super) const INTERVAL: f64 = 0.2;
/// How long blocks were counted, s (section 4.3.3).
pub(super) const SECONDS: f64 = 5.0;
/// The throughput of EDC, USW and TIOC in the collapse, Mbit/s (section 4.3.3).
pub(super) const COLLAPSE: [f64; 3] = [0.24, 3.8, 4.4];
/// Blocks that were requested in the five seconds of the collapse.
pub(super) const ASKED: f64 = 900.0;
/// Blocks that were delivered in the five seconds of the collapse.
pub(super) const DELIVERED: f64 = 106.0;
/// The share of packets that lost cells destroyed in the collapse, percent.
pub(super) const DESTROYED: f64 = 65.0;
/// The longest time in which a server delivered no block in the collapse, s.
pub(super) const WAITED: f64 = 5.5;
/// The throughput of each server if cells are paced, Mbit/s (section 4.3.4).
pub(super) const PACED: f64 = 30.0;
/// The throughput of one server on the LAN if the receiver is the limit, Mbit/s (section 4.3.1).
pub(super) const RECEIVER: f64 = 39.0;

/// A row of Table 2: throughput of one server in Mbit/s, in bursts from memory and on average from disk.
pub(super) struct Platform {
    pub(super) name: &'static str,
    pub(super) burst_tcp: f64,
    pub(super) burst_udp: Option<f64>,
    pub(super) average_tcp: f64,
    pub(super) average_udp: f64,
}

const fn platform(name: &'static str, burst: (f64, Option<f64>), average: (f64, f64)) -> Platform {
    Platform {
        name,
        burst_tcp: burst.0,
        burst_udp: burst.1,
        average_tcp: average.0,
        average_udp: average.1,
    }
}

/// Table 2.
pub(super) const TABLE_2: [Platform; 5] = [
    platform("Sun SS10-41; FDDI", (44.0, Some(43.0)), (26.0, 27.0)),
    platform("Sun SS10-42; FDDI", (62.0, Some(56.0)), (37.0, 40.0)),
    platform("Sun SS20-62; FDDI", (48.0, Some(75.0)), (38.0, 56.0)),
    platform("Sun SS20-62; ATM", (68.0, Some(73.0)), (47.0, 50.0)),
    platform("DEC Alpha; ATM", (134.0, None), (61.0, 90.0)),
];
