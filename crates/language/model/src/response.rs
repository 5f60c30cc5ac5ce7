//! The time that a packet or a message of several packets takes over the hops of a path, from the sender's memory to
//! the receiver's; and the wait of calls that arrive at random.
//!
//! Every node stores and forwards packets, first come first served, without other traffic. A stage is something that
//! one packet keeps busy at a time: copying between memory and interface is a stage before the first hop and one
//! behind the last (Zwaenepoel 1985, section 2). Times are in seconds; `None` if a hop has rate zero.

use crate::{PathModel, count_to_f64, is_positive};
use alloc::vec::Vec;
use stackline_core::network::NetworkInterface;

/// How long the host's processor takes to copy a packet between memory and interface:
/// `(packet + bytes * per byte) / speed` (Zwaenepoel 1985, section 2).
#[must_use]
pub fn copy_s(interface: &NetworkInterface, packet_bytes: u64) -> f64 {
    let s = interface.copy_per_packet.seconds()
        + interface.copy_ns_per_byte.max(0.0) * 1e-9 * count_to_f64(packet_bytes);
    s / interface.copy_speed()
}

/// For each stage in order (the copy in, each hop, the copy out): how long a packet keeps it busy, and the delay
/// behind it. An interface with one buffer copies only when the packet before has left: copy and first hop are then
/// one stage.
fn stages(path: &PathModel, packet_bytes: u64) -> Option<Vec<(f64, f64)>> {
    let mut stages = Vec::with_capacity(path.hops.len() + 2);
    stages.push((copy_s(&path.sender, packet_bytes), 0.0));
    for (at, hop) in path.hops.iter().enumerate() {
        let mut busy = hop.serialisation_s(packet_bytes)?;
        if at == 0 && path.sender.single_buffered {
            busy += stages.pop().map_or(0.0, |(copy, _)| copy);
        }
        match stages.last_mut().filter(|_| hop.cut_through && at > 0) {
            // Cells go on as they come: the slowest hop sets the time of the frame, the others add that of one cell.
            Some((before, delay)) => {
                let cell = hop.cell_s(packet_bytes)?;
                *delay += hop.delay_s
                    + if busy > *before {
                        *before * cell / busy
                    } else {
                        cell
                    };
                *before = before.max(busy);
            }
            None => stages.push((busy, hop.delay_s)),
        }
    }
    stages.push((copy_s(&path.receiver, packet_bytes), 0.0));
    Some(stages)
}

/// The time of one packet from memory to memory.
#[must_use]
pub fn packet_s(path: &PathModel, packet_bytes: u64) -> Option<f64> {
    Some(
        stages(path, packet_bytes)?
            .iter()
            .map(|(busy, delay)| busy + delay)
            .sum(),
    )
}

/// A message cut into packets, of which all but the last have the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packets {
    /// Packets before the last.
    pub full: u64,
    /// Bytes of each of them, headers with them.
    pub full_bytes: u64,
    /// Bytes of the last, headers with them.
    pub last_bytes: u64,
}

impl Packets {
    /// Cuts `bytes` into segments of at most `segment_bytes` with `header_bytes` each; a message without bytes is one
    /// packet of headers.
    #[must_use]
    pub const fn from_bytes(bytes: u64, segment_bytes: u64, header_bytes: u64) -> Self {
        let segment = if segment_bytes == 0 { 1 } else { segment_bytes };
        // A message of whole segments has a full last packet.
        let full = bytes.saturating_sub(1) / segment;
        Self {
            full,
            full_bytes: segment + header_bytes,
            last_bytes: bytes - full * segment + header_bytes,
        }
    }

    /// The number of packets.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.full + 1
    }
}

/// The time of a message from memory to memory, whose packets follow one another through the stages. It is exact for
/// equal packets and a shorter last one. The n-th of equal packets leaves stage i after the sum of the stages up to i
/// and `n - 1` times the busiest of them. The last packet starts at each stage when it has arrived and the packet
/// before it has left.
#[must_use]
pub fn message_s(path: &PathModel, packets: &Packets) -> Option<f64> {
    let last = stages(path, packets.last_bytes)?;
    if packets.full == 0 {
        return Some(last.iter().map(|(busy, delay)| busy + delay).sum());
    }
    let equal = stages(path, packets.full_bytes)?;
    let (mut sum, mut busiest, mut here) = (0.0, 0.0_f64, 0.0_f64);
    for ((busy, delay), (last_busy, _)) in equal.iter().zip(&last) {
        busiest = busiest.max(*busy);
        let before_free = sum + busy + count_to_f64(packets.full - 1) * busiest;
        here = here.max(before_free) + last_busy + delay;
        sum += busy + delay;
    }
    Some(here)
}

/// Mean wait, in seconds, for a server that serves one call after another, if calls arrive at random (Pollaczek 1930,
/// Khinchine 1932; Kleinrock 1975, volume 1, section 5.6): `lambda (S^2 + var S) / (2 (1 - rho))` with mean service
/// time S, `lambda = 1 / interval` and `rho = S / interval`. That is `rho S (1 + c^2) / (2 (1 - rho))` with the
/// coefficient of variation c of the service time. `None` when calls arrive faster than they are served: the wait then
/// grows without end.
#[must_use]
pub fn random_arrivals_wait_s(service_s: f64, variance_s2: f64, interval_s: f64) -> Option<f64> {
    if service_s == 0.0 && interval_s >= 0.0 {
        return Some(0.0);
    }
    let load = service_s / interval_s;
    (is_positive(load) && load < 1.0)
        .then(|| (service_s * service_s + variance_s2.max(0.0)) / interval_s / (2.0 * (1.0 - load)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HopModel;
    use alloc::vec;
    use proptest::prelude::*;
    use stackline_core::network::{Charge, LossModel};
    use stackline_core::time::Duration;

    /// The time between two packets of that size that follow one another closely: the busiest stage.
    fn period_s(path: &PathModel, packet_bytes: u64) -> Option<f64> {
        Some(
            stages(path, packet_bytes)?
                .iter()
                .map(|(busy, _)| *busy)
                .fold(0.0, f64::max),
        )
    }

    fn hop(rate_bit_s: f64, delay_s: f64) -> HopModel {
        HopModel {
            ends: ("a".into(), "b".into()),
            rate_bit_s: Some(rate_bit_s),
            delay_s,
            mtu_bytes: 1500,
            losses: LossModel::None,
            loss: 0.0,
            jitter: None,
            queue_bytes: None,
            drops_early: false,
            charge: Charge::Packet,
            cell_bytes: None,
            cut_through: false,
            joins_imps: false,
        }
    }

    fn path(hops: Vec<HopModel>) -> PathModel {
        PathModel {
            hops,
            ..PathModel::default()
        }
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * b.abs().max(1e-9)
    }

    #[test]
    fn one_packet_pays_every_hop() {
        // 1000 bytes: 8 ms at 1 Mbit/s, 0.8 ms at 10.
        let two = path(vec![hop(1e6, 0.01), hop(10e6, 0.02)]);
        assert!(close(packet_s(&two, 1000).unwrap(), 0.038_8));
        assert!(close(period_s(&two, 1000).unwrap(), 0.008));
        assert_eq!(packet_s(&path(vec![hop(0.0, 0.0)]), 1), None);
    }

    #[test]
    fn several_packets_follow_one_another() {
        // Five packets of 1000 bytes over 10 and 1 Mbit/s: 0.8 + 5 * 8 ms.
        let two = path(vec![hop(10e6, 0.0), hop(1e6, 0.0)]);
        assert!(close(
            message_s(&two, &Packets::from_bytes(5000, 1000, 0)).unwrap(),
            0.040_8
        ));
        // A short last one: 4 * 8 + 0.8 ms at the slow hop, waiting there for those before it.
        assert!(close(
            message_s(&two, &Packets::from_bytes(4100, 1000, 0)).unwrap(),
            0.000_8 + 0.032 + 0.000_8
        ));
    }

    #[test]
    fn cells_go_on_as_they_come() {
        // 1500 bytes are 32 cells of 424 bits: 13568 bits, 1.3568 ms at 10 Mbit/s, 0.0424 ms for one of them.
        let cells = |rate, cut_through| HopModel {
            cell_bytes: Some(53),
            cut_through,
            ..hop(rate, 0.001)
        };
        let even = path(vec![cells(10e6, false), cells(10e6, true)]);
        assert!(close(
            packet_s(&even, 1500).unwrap(),
            0.001_356_8 + 0.000_042_4 + 0.002
        ));
        let slower = path(vec![cells(10e6, false), cells(1e6, true)]);
        assert!(close(
            packet_s(&slower, 1500).unwrap(),
            0.013_568 + 0.000_042_4 + 0.002
        ));
        assert!(close(period_s(&slower, 1500).unwrap(), 0.013_568));
    }

    #[test]
    fn cutting() {
        assert_eq!(
            Packets::from_bytes(0, 1000, 52),
            Packets {
                full: 0,
                full_bytes: 1052,
                last_bytes: 52
            }
        );
        assert_eq!(
            Packets::from_bytes(1000, 1000, 52),
            Packets {
                full: 0,
                full_bytes: 1052,
                last_bytes: 1052
            }
        );
        assert_eq!(
            Packets::from_bytes(1001, 1000, 52),
            Packets {
                full: 1,
                full_bytes: 1052,
                last_bytes: 53
            }
        );
    }

    #[test]
    fn copies_as_zwaenepoel_measured_them() {
        // 1985, table 1 in shape: 1.35 ms to copy in, 0.82 ms on the wire, 1.35 ms to copy out.
        let interface = NetworkInterface {
            copy_per_packet: Duration(1_350_000),
            ..NetworkInterface::default()
        };
        let single = NetworkInterface {
            single_buffered: true,
            ..interface.clone()
        };
        let wire = vec![hop(10e6, 0.0)];
        let mut path = PathModel {
            hops: wire,
            sender: interface,
            receiver: single.clone(),
            ..PathModel::default()
        };
        assert!(close(packet_s(&path, 1025).unwrap(), 0.003_52));
        let many = Packets {
            full: 63,
            full_bytes: 1025,
            last_bytes: 1025,
        };
        // Two buffers: N copies in, then the wire and one copy out; one buffer: N (copy + wire), then a copy out.
        assert!(close(
            message_s(&path, &many).unwrap(),
            64.0 * 0.001_35 + 0.000_82 + 0.001_35
        ));
        path.sender = single;
        assert!(close(
            message_s(&path, &many).unwrap(),
            64.0 * 0.002_17 + 0.001_35
        ));
        path.sender.cpu_speed = Some(2.0);
        assert!(close(period_s(&path, 1025).unwrap(), 0.000_675 + 0.000_82));
    }

    #[test]
    fn waiting_for_those_before() {
        let wait = |variance_s2| random_arrivals_wait_s(0.005, variance_s2, 0.01).unwrap();
        // At half the load: constant S / 2, exponential S, uniform from 0 to 2 S 2 S / 3, and S = 1 ms or 41 ms in one of ten.
        for (variance_s2, theory_s) in [
            (0.0, 0.0025),
            (25e-6, 0.005),
            (100e-6 / 12.0, 0.01 / 3.0),
            (144e-6, 0.0169),
        ] {
            assert!(close(wait(variance_s2), theory_s), "{variance_s2}");
        }
        assert_eq!(random_arrivals_wait_s(0.02, 0.0, 0.02), None);
        assert_eq!(random_arrivals_wait_s(0.0, 0.0, 0.0), Some(0.0));
    }

    /// Packet by packet, as a queue in front of each stage would do it.
    fn by_hand(path: &PathModel, packets: &Packets) -> f64 {
        let mut free = vec![0.0_f64; path.hops.len() + 2];
        let mut done = 0.0;
        for n in 0..packets.count() {
            let bytes = if n < packets.full {
                packets.full_bytes
            } else {
                packets.last_bytes
            };
            done = 0.0;
            for (free, (busy, delay)) in free.iter_mut().zip(stages(path, bytes).unwrap()) {
                *free = free.max(done) + busy;
                done = *free + delay;
            }
        }
        done
    }

    proptest! {
        #[test]
        fn the_closed_form_is_the_queues(
            rates in proptest::collection::vec((1e5..1e9_f64, 0.0..0.1_f64), 1..6),
            bytes in 0..60_000_u64, copy in 0..1_000_000_u64, single in any::<bool>(),
        ) {
            let sender = NetworkInterface { copy_per_packet: Duration(copy), single_buffered: single, ..NetworkInterface::default() };
            let hops = rates.into_iter().map(|(rate, delay)| hop(rate, delay)).collect();
            let path = PathModel { hops, sender, ..PathModel::default() };
            let packets = Packets::from_bytes(bytes, 1000, 40);
            let (form, queues) = (message_s(&path, &packets).unwrap(), by_hand(&path, &packets));
            prop_assert!((form - queues).abs() <= 1e-9 * queues.max(1e-6), "{} {}", form, queues);
        }
    }
}
