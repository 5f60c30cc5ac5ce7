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

/// The networks.
pub(super) const TEXT: &str = include_str!("../../data/magic.stackline");

/// Whose TCP the hosts have.
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

    /// With a window and a write buffer of so many KiB.
    ///
    /// # Errors
    /// Never for the options above.
    pub(super) fn stack(self, window_kib: u32, write_kib: u32) -> Result<Stack> {
        let over = format!(
            "tcp({}receive_buffer = {window_kib} KiB, send_buffer = {write_kib} KiB)",
            self.options()
        );
        profile::stack(&over)
    }
}

/// The network of that name.
///
/// # Errors
/// Never for the names of the text.
pub(super) fn network(name: &str) -> Result<Network> {
    profile::network(TEXT, name)
}

/// Milliseconds.
pub(super) const fn ms(thousandths: u64) -> Duration {
    Duration(thousandths * 1_000_000)
}

/// A picture; the loader says where its tiles are put.
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

/// Pixels a second at which about 900 blocks are asked for in five seconds of the collapse, as printed.
pub(super) const SPEED: f64 = 1280.0;
/// Pixels a second at which more is asked for than any of the networks carries.
pub(super) const BUSY: f64 = 4096.0;

/// A viewer that pans over the picture; what was delivered is kept, and not asked for again.
pub(super) const fn pan(speed: f64) -> Demand {
    Demand::Viewer(PyramidViewer {
        path: ViewerMotion::Pan,
        window: (1024, 768),
        speed,
    })
}

/// Disks of a server (Tables 1 and 3).
pub(super) fn disks(host: &str) -> usize {
    match host {
        "usw" => 2,
        "ss20" => 6,
        _ => 4,
    }
}

/// A server with so many disks, each of which takes 8 or 22 ms (section 4.3.1), and 32 MB of memory for blocks.
pub(super) fn server(host: &str, disks: usize) -> SimulatedServer {
    SimulatedServer {
        host: host.into(),
        disks: vec![Distribution::Bivalue(0.008, 0.022, 0.5); disks],
        cache: 32 << 20,
    }
}

/// What processors take: translation 2 ms and passing on 6 ms (section 4.2.3), understanding a list 5 ms (4.3.1), and the
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

/// With the copies of a server that sends so many Mbit/s from its memory: two copies of a block take all of its time then,
/// and one more where it was read from disk.
pub(super) fn copying(burst: f64, costs: BlockProcessingCosts) -> BlockProcessingCosts {
    let sending = seconds_of_block(burst);
    BlockProcessingCosts {
        enter: Duration::from_seconds(sending / 2.0),
        hand: Duration::from_seconds(sending),
        ..costs
    }
}

/// A block at so many Mbit/s, s.
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
