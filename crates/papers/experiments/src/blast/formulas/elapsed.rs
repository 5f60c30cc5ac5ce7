//! Times of error-free transfers with copying, and the share of them in which the network is used (section 2.1.3).
//!
//! A processor that copies does nothing else meanwhile; an interface has one buffer for sending, or two. The paper leaves
//! the latency out here; it is counted where [`BlastCostModel::latency`] is not zero. A transfer of 0 packets takes 0 s.

use super::costs::BlastCostModel;

/// The protocols of Figure 4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlastFigureProtocol {
    /// Each packet waits for the acknowledgement of the one before.
    StopAndWait,
    /// The window never closes, each packet is acknowledged.
    SlidingWindow,
    /// All packets, one acknowledgement; one send buffer.
    Blast,
    /// A blast with two send buffers: a packet is copied into one while the other is sent.
    DoubleBuffered,
}

impl BlastFigureProtocol {
    /// All of them, the slowest first.
    pub const ALL: [Self; 4] = [
        Self::StopAndWait,
        Self::SlidingWindow,
        Self::Blast,
        Self::DoubleBuffered,
    ];

    /// Its name in tables and charts.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::StopAndWait => "stop-and-wait",
            Self::SlidingWindow => "sliding window",
            Self::Blast => "blast",
            Self::DoubleBuffered => "blast, double-buffered",
        }
    }

    /// To(N): the time of `packets` without an error.
    #[must_use]
    pub fn elapsed(self, costs: &BlastCostModel, packets: u32) -> f64 {
        match self {
            Self::StopAndWait => stop_and_wait(costs, packets),
            Self::SlidingWindow => sliding_window(costs, packets),
            Self::Blast => blast(costs, packets),
            Self::DoubleBuffered => double_buffered(costs, packets),
        }
    }
}

/// T_SAW = N (2 C + 2 Ca + T + Ta): nothing overlaps. The formula is missing in the surviving copy of the paper and was
/// restored from Figure 3 and Table 2.
#[must_use]
pub fn stop_and_wait(costs: &BlastCostModel, packets: u32) -> f64 {
    let BlastCostModel {
        copy_data,
        copy_ack,
        send_data,
        send_ack,
        latency,
    } = *costs;
    f64::from(packets) * (2.0 * copy_data + 2.0 * copy_ack + send_data + send_ack + 2.0 * latency)
}

/// T_SW = N (C + Ca + T) + C + Ta, as printed. It is short by Ca at N = 1; see [`sliding_window`].
#[must_use]
pub fn sliding_window_printed(costs: &BlastCostModel, packets: u32) -> f64 {
    let BlastCostModel {
        copy_data,
        copy_ack,
        send_data,
        send_ack,
        latency,
    } = *costs;
    if packets == 0 {
        return 0.0;
    }
    f64::from(packets) * (copy_data + copy_ack + send_data) + copy_data + send_ack + 2.0 * latency
}

/// T_SW with the one acknowledgement of a single packet counted at both ends (+ Ca at N = 1). Exact where an
/// acknowledgement is there before the packet after the next has left: Ca + Ta + 2 tau <= T.
#[must_use]
pub fn sliding_window(costs: &BlastCostModel, packets: u32) -> f64 {
    let single = if packets == 1 { costs.copy_ack } else { 0.0 };
    sliding_window_printed(costs, packets) + single
}

/// T_B = N (C + T) + C + 2 Ca + Ta: the sender copies and sends in turn, the receiver copies while the next is copied.
#[must_use]
pub fn blast(costs: &BlastCostModel, packets: u32) -> f64 {
    if packets == 0 {
        return 0.0;
    }
    f64::from(packets) * (costs.copy_data + costs.send_data) + end_of_blast(costs)
}

/// T_dbl = N C + T + C + 2 Ca + Ta where T <= C, else N T + 2 C + 2 Ca + Ta: copying or the network, whichever takes
/// longer, goes on all the time. Both are the same where T = C, and a third buffer would gain nothing.
#[must_use]
pub fn double_buffered(costs: &BlastCostModel, packets: u32) -> f64 {
    let BlastCostModel {
        copy_data,
        send_data,
        ..
    } = *costs;
    let more = match packets {
        0 => return 0.0,
        packets => f64::from(packets - 1) * copy_data.max(send_data),
    };
    more + copy_data + send_data + end_of_blast(costs)
}

/// The time after the last data packet has been sent: it is copied out, and its acknowledgement copied in, sent and copied out.
fn end_of_blast(costs: &BlastCostModel) -> f64 {
    costs.copy_data + 2.0 * costs.copy_ack + costs.send_ack + 2.0 * costs.latency
}

/// u = (N T + Ta) / time: the share of a blast's time in which the network is used, 0 to 1. For [`BlastFigureProtocol::Blast`] it
/// is the printed u_n = (N T + Ta) / (N T + Ta + N C + C + 2 Ca); 0 where nothing is sent or nothing takes time.
#[must_use]
pub fn utilisation(protocol: BlastFigureProtocol, costs: &BlastCostModel, packets: u32) -> f64 {
    let acks = match protocol {
        BlastFigureProtocol::StopAndWait | BlastFigureProtocol::SlidingWindow => packets,
        BlastFigureProtocol::Blast | BlastFigureProtocol::DoubleBuffered => packets.min(1),
    };
    let used = f64::from(packets) * costs.send_data + f64::from(acks) * costs.send_ack;
    let all = protocol.elapsed(costs, packets);
    if all > 0.0 {
        (used / all).min(1.0)
    } else {
        0.0
    }
}

/// What [`utilisation`] of a single-buffered blast comes to when N grows: T / (T + C); 0 where neither takes time.
#[must_use]
pub fn utilisation_limit(costs: &BlastCostModel) -> f64 {
    let all = costs.send_data + costs.copy_data;
    if all > 0.0 {
        costs.send_data / all
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests;
