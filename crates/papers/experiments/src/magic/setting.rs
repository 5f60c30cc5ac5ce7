//! The setup that all experiments share: the networks, the TCP of the hosts, the disks, the viewer.

use super::printed::BLOCK;
use crate::profile;
use stackline_blocks::demand::Demand;
use stackline_blocks::placement::BlockPlacementPolicy;
use stackline_blocks::pyramid::Pyramid;
use stackline_blocks::pyramid_viewer::{PyramidViewer, ViewerMotion};
use stackline_blocks::set::BlockSet;
use stackline_blockserver::simulated::{BlockProcessingCosts, SimulatedServer};
use stackline_core::distribution::Distribution;
use stackline_core::error::Result;
use stackline_core::network::Network;
use stackline_core::plan::Stack;
use stackline_core::time::Duration;

/// The specification of the networks.
pub(super) const TEXT: &str = include_str!("../../data/magic.stackline");

/// The TCP implementation of the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MagicTcp {
    /// IRIX, OSF/1 and other hosts with the code of 4.3BSD: slow timers.
    Bsd,
    /// Solaris 2.4.
    Solaris,
    /// Linux today.
    Linux,
    /// Linux with BBR.
    Bbr,
}

impl MagicTcp {
    /// Its options in the specification language.
    const fn options(self) -> &'static str {
        match self {
            Self::Bsd => {
                "congestion = reno, recovery = reno, least_timeout = 1 s, first_timeout = 3 s, timer_tick = 500 ms, \
                 delayed_ack = 200 ms, first_window = 1, quickack = off, "
            }
            Self::Solaris => {
                "congestion = reno, recovery = reno, least_timeout = 200 ms, first_timeout = 500 ms, \
                 delayed_ack = 50 ms, first_window = 1, quickack = off, "
            }
            Self::Linux => "",
            Self::Bbr => "congestion = bbr, ",
        }
    }

    /// The stack of this TCP with a receive window and a send buffer of this many KiB.
    ///
    /// # Errors
    /// Never for the options of these implementations.
    pub(super) fn stack(self, window_kib: u32, write_kib: u32) -> Result<Stack> {
        let over = format!(
            "tcp({}receive_buffer = {window_kib} KiB, send_buffer = {write_kib} KiB)",
            self.options()
        );
        profile::stack(&over)
    }
}

/// The network with this name in [`TEXT`].
///
/// # Errors
/// Never for a name that is in [`TEXT`].
pub(super) fn network(name: &str) -> Result<Network> {
    profile::network(TEXT, name)
}

/// A duration of this many milliseconds.
pub(super) const fn ms(thousandths: u64) -> Duration {
    Duration(thousandths * 1_000_000)
}

/// The picture over which the viewer moves; the session gives the disks on which its tiles are placed.
pub(super) fn picture() -> BlockSet {
    let picture = Pyramid {
        width: 65_536,
        height: 4096,
        tile: 128,
        pixel_bytes: 3,
    };
    BlockSet {
        name: "terrain".into(),
        block_size: BLOCK,
        bytes: picture.tiles() * u64::from(BLOCK),
        replicas: 1,
        placement: BlockPlacementPolicy::Given,
        picture: Some(picture),
    }
}

/// The viewer's speed, pixels a second, at which about 900 blocks are requested in the five seconds of the collapse, as printed.
pub(super) const SPEED: f64 = 1280.0;
/// The viewer's speed, pixels a second, at which more is requested than any of the networks carries.
pub(super) const BUSY: f64 = 4096.0;

/// A viewer that pans over the picture at this speed, pixels a second.
pub(super) const fn pan(speed: f64) -> Demand {
    Demand::Viewer(PyramidViewer {
        path: ViewerMotion::Pan,
        window: (1024, 768),
        speed,
    })
}

/// The number of disks of a server (Tables 1 and 3).
pub(super) fn disks(host: &str) -> usize {
    match host {
        "usw" => 2,
        "ss20" => 6,
        _ => 4,
    }
}

/// A server with this many disks, whose reads take 8 or 22 ms with equal probability (section 4.3.1), and 32 MiB of memory for blocks.
pub(super) fn server(host: &str, disks: usize) -> SimulatedServer {
    SimulatedServer {
        host: host.into(),
        disks: vec![Distribution::Bivalue(0.008, 0.022, 0.5); disks],
        cache: 32 << 20,
    }
}

/// The processing costs: 2 ms to translate a name, 6 ms to forward a list (section 4.2.3), 5 ms to parse it (4.3.1), and the
/// copies of Table 2's SS10-42: one when a block is read, two when it is sent.
pub(super) fn costs() -> BlockProcessingCosts {
    copying(
        62.0,
        BlockProcessingCosts {
            translate: ms(2),
            forward: ms(6),
            parse: ms(5),
            ..BlockProcessingCosts::default()
        },
    )
}

/// Sets the costs of copying for a server that sends `burst` Mbit/s from its memory. Two copies of a block then take all of its
/// time; a block that is read from disk takes one more.
pub(super) fn copying(burst: f64, costs: BlockProcessingCosts) -> BlockProcessingCosts {
    let sending = seconds_of_block(burst);
    BlockProcessingCosts {
        enter: Duration::from_seconds(sending / 2.0),
        hand: Duration::from_seconds(sending),
        ..costs
    }
}

/// The time to transfer a block at this rate, s.
pub(super) fn seconds_of_block(mbit_s: f64) -> f64 {
    f64::from(BLOCK) * 8.0 / (mbit_s * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_in_the_usual_form() {
        assert_eq!(stackline_spec::format(TEXT).unwrap(), TEXT);
    }

    #[test]
    fn every_network_and_every_tcp_is_there() {
        for name in ["lan", "wan", "today", "striped"] {
            assert_eq!(network(name).unwrap().name, name);
        }
        for tcp in [
            MagicTcp::Bsd,
            MagicTcp::Solaris,
            MagicTcp::Linux,
            MagicTcp::Bbr,
        ] {
            assert_eq!(tcp.stack(128, 64).unwrap().name, "tcp");
        }
    }
}
