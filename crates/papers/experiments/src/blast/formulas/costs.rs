//! The costs of one packet: C, Ca, T, Ta and the latency (sections 2.1.2 and 2.2, Table 2).

/// The costs of a host and its network in the paper's formulas, all in seconds and not negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlastCostModel {
    /// C: the time in which the processor copies a data packet into an interface, or out of one.
    pub copy_data: f64,
    /// Ca: the same for an acknowledgement.
    pub copy_ack: f64,
    /// T: the time to transmit a data packet.
    pub send_data: f64,
    /// Ta: the time to transmit an acknowledgement.
    pub send_ack: f64,
    /// tau: the propagation time from one end of the network to the other. The paper counts it in section 2.1 only.
    pub latency: f64,
}

/// One line of Table 2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlastCostStep {
    /// What is done.
    pub what: &'static str,
    /// How long it takes, in seconds.
    pub time_s: f64,
    /// Whether the processor does it, by copying; otherwise the network does.
    pub copying: bool,
}

impl BlastCostModel {
    /// The programs without an operating system, two SUNs with 3-Com interfaces, 1024-byte data and 64-byte
    /// acknowledgement packets: Table 2, rounded as printed. The latency is neglected, as in section 2.1.3.
    pub const STANDALONE: Self = Self {
        copy_data: 1.35e-3,
        copy_ack: 0.17e-3,
        send_data: 0.82e-3,
        send_ack: 0.05e-3,
        latency: 0.0,
    };

    /// MoveTo in the V kernel on the same machines: C and Ca of section 2.2.
    pub const V_KERNEL: Self = Self {
        copy_data: 1.83e-3,
        copy_ack: 0.67e-3,
        ..Self::STANDALONE
    };

    /// The network alone: nothing is copied (section 2.1: 820, 51 and 10 us).
    pub const NETWORK: Self = Self {
        copy_data: 0.0,
        copy_ack: 0.0,
        send_data: 820e-6,
        send_ack: 51e-6,
        latency: 10e-6,
    };

    /// T and Ta from the bytes that the packets put on a network of `rate` bit/s; C and Ca from a copy that takes
    /// `copy_packet` seconds a packet and `copy_byte` seconds a byte; the latency in seconds.
    #[must_use]
    pub fn from_sizes(
        sizes: Sizes,
        rate: f64,
        copy_packet: f64,
        copy_byte: f64,
        latency: f64,
    ) -> Self {
        let [data, ack] = [sizes.data, sizes.ack].map(f64::from);
        Self {
            copy_data: copy_packet + data * copy_byte,
            copy_ack: copy_packet + ack * copy_byte,
            send_data: 8.0 * data / rate,
            send_ack: 8.0 * ack / rate,
            latency,
        }
    }

    /// A reliable exchange of one packet, step by step in the order of Table 2. The latency is not in it.
    #[must_use]
    pub const fn breakdown(&self) -> [BlastCostStep; 6] {
        [
            BlastCostStep {
                what: "Copy data into sender's interface",
                time_s: self.copy_data,
                copying: true,
            },
            BlastCostStep {
                what: "Transmit data",
                time_s: self.send_data,
                copying: false,
            },
            BlastCostStep {
                what: "Copy data out of receiver's interface",
                time_s: self.copy_data,
                copying: true,
            },
            BlastCostStep {
                what: "Copy ack into receiver's interface",
                time_s: self.copy_ack,
                copying: true,
            },
            BlastCostStep {
                what: "Transmit ack",
                time_s: self.send_ack,
                copying: false,
            },
            BlastCostStep {
                what: "Copy ack out of sender's interface",
                time_s: self.copy_ack,
                copying: true,
            },
        ]
    }
}

/// The sizes of packets on the network, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Of a data packet.
    pub data: u16,
    /// Of an acknowledgement.
    pub ack: u16,
}

impl Sizes {
    /// The paper's (section 2.1): 1024 and 64 bytes.
    pub const PAPER: Self = Self {
        data: 1024,
        ack: 64,
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blast::formulas::testing::close;

    #[test]
    fn the_sum_of_table_2() {
        let steps = BlastCostModel::STANDALONE.breakdown();
        let sum = |copying| -> f64 {
            steps
                .iter()
                .filter(|s| s.copying == copying)
                .map(|s| s.time_s)
                .sum()
        };
        let (network, copying) = (sum(false), sum(true));
        assert!(close(network + copying, 3.91e-3, 1e-12));
        // Of the 4.08 ms observed: 21 percent network, 75 percent copying (section 2.1.2).
        assert_eq!(
            [network, copying].map(|part| (100.0 * part / 4.08e-3).round() as u32),
            [21, 75]
        );
    }

    #[test]
    fn sizes_give_the_papers_times() {
        // C = 1.35 ms and Ca = 0.17 ms over 960 bytes of difference.
        let byte = 1.18e-3 / 960.0;
        let costs =
            BlastCostModel::from_sizes(Sizes::PAPER, 10e6, 0.17e-3 - 64.0 * byte, byte, 10e-6);
        let expected = BlastCostModel {
            send_data: 819.2e-6,
            send_ack: 51.2e-6,
            latency: 10e-6,
            ..BlastCostModel::STANDALONE
        };
        for (a, b) in [
            (costs.copy_data, expected.copy_data),
            (costs.copy_ack, expected.copy_ack),
            (costs.send_data, expected.send_data),
            (costs.send_ack, expected.send_ack),
            (costs.latency, expected.latency),
        ] {
            assert!(close(a, b, 1e-12), "{a} {b}");
        }
    }
}
