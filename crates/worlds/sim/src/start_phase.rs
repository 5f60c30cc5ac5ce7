//! Offsets between endpoints that start together: the first initiator starts at once, each other one within the time of
//! a packet.
//!
//! Where streams share a queue, their phases decide who loses packets (Floyd and Jacobson 1992, "On traffic phase
//! effects in packet-switched gateways"). Random offsets give a specification as many courses as seeds, and the spread
//! of its runs says how far they differ. A single stream has one course.

use crate::job::SimJob;
use stackline_core::network::{Network, NetworkLink};
use stackline_core::procedure::PairSide;
use stackline_core::time::Duration;

/// The largest offset in s, however slow a link is.
const MOST_S: f64 = 0.01;

/// The time of a packet of the MTU on the slowest link.
pub(crate) fn packet_time(network: &Network) -> Duration {
    let packet_s = |link: &NetworkLink| {
        let rate = link.rate.mean_bit_s().filter(|rate| *rate > 0.0)?;
        Some(8.0 * link.mtu() as f64 / rate)
    };
    Duration::from_seconds(
        network
            .links
            .iter()
            .filter_map(packet_s)
            .fold(0.0, f64::max)
            .min(MOST_S),
    )
}

/// How long after the barrier an endpoint begins.
pub(crate) fn begins_after(job: &SimJob, replica: u32, phase: Duration) -> Duration {
    let first = job.number == 0 && replica == 0;
    if job.task.side == PairSide::Responder || first || phase == Duration::ZERO {
        return Duration::ZERO;
    }
    Duration(job.task.seed.index(u64::from(replica)).child("start").0 % phase.0)
}
