//! Figures 11 and 13: throughput against the largest packet size (MTU), and against the number of streams into one and two interfaces.

use super::case::MagicCase;
use super::remedies::{buffer, mtu};
use super::session_runner::Lab;
use super::setting::{BUSY, MagicTcp, network, pan};
use super::wan::SERVERS;
use crate::printed_and_here::nothing_printed;
use stackline_blocks::demand::Demand;
use stackline_blockserver::simulated::{BlockProcessingCosts, SimulatedServer};
use stackline_core::distribution::Distribution;
use stackline_core::error::Result;
use stackline_core::network::Network;
use stackline_core::time::Duration;
use stackline_report::sheet::{Sheet, SheetCell};

/// MTUs from the smallest that the paper mentions to that of ATM, bytes; 4352 is that of FDDI.
pub(super) const MTUS: [u64; 7] = [256, 512, 1024, 1500, 2048, 4352, 9180];
/// The windows of Figure 11, KiB.
const WINDOW: u32 = 196;
/// The time that a host's processor takes per packet of any size, 100 us: an assumption, as the paper gives no such figure.
const PACKET: Duration = Duration(100_000);
/// Blocks of a list: more than two links carry until the next list.
const LIST: u32 = 400;

/// A session in which only the network limits the servers: disks and processors take no time.
fn fast(network: Network, hosts: &[&str], window: u32, demand: Demand) -> MagicCase {
    let server = |host: &&str| SimulatedServer {
        host: (*host).to_owned(),
        disks: vec![Distribution::Constant(0.0); 4],
        cache: 32 << 20,
    };
    let servers = hosts.iter().map(server).collect();
    MagicCase {
        servers,
        costs: BlockProcessingCosts::default(),
        demand,
        write_kib: window,
        ..MagicCase::new(network, &[], MagicTcp::Bsd, window)
    }
}

/// Figure 11: throughput by MTU.
pub(super) fn by_mtu(lab: &Lab) -> Result<Sheet> {
    let case = |bytes: u64, hosts: &[&str], large: bool| -> Result<MagicCase> {
        let mut network = network("wan")?;
        mtu(&mut network, bytes);
        if large {
            buffer(&mut network, super::formulas::LATER_BUFFER);
        }
        for host in &mut network.hosts {
            host.interface.copy_per_packet = PACKET;
        }
        Ok(fast(network, hosts, WINDOW, pan(BUSY)))
    };
    let kinds: [(&[&str], bool); 4] = [
        (&["edc"], false),
        (&SERVERS, false),
        (&["edc"], true),
        (&SERVERS, true),
    ];
    let cases = MTUS
        .iter()
        .flat_map(|bytes| kinds.map(|(hosts, large)| case(*bytes, hosts, large)));
    let medians = lab.medians(3, &cases.collect::<Result<Vec<_>>>()?)?;
    let mut sheet = Sheet::new(
        "Figure 11",
        "block throughput, Mbit/s, against the largest packet size, with 196 KiB windows",
        &[
            ("mtu_bytes", "MTU"),
            ("one_1500", "one, 1500-byte port"),
            ("three_1500", "three, 1500-byte port"),
            ("one_624k", "one, 624 KiB"),
            ("three_624k", "three, 624 KiB"),
        ],
    );
    for (bytes, figures) in MTUS.iter().zip(medians.chunks(kinds.len())) {
        let each = figures
            .iter()
            .map(|figures| SheetCell::Number(figures.sum(), 1));
        sheet.rows.push(
            [SheetCell::Number(*bytes as f64, 0)]
                .into_iter()
                .chain(each)
                .collect(),
        );
    }
    Ok(sheet.note(nothing_printed("the curve is lost")).note(
        "Here, a host's processor takes 100 us per packet (an assumption), which makes small packets slow. Three \
         streams get the least through the small port whatever their packet size; with enough buffer, the largest \
         packets are best.",
    ))
}

/// Figure 13: throughput by the number of streams.
pub(super) fn by_streams(lab: &Lab) -> Result<Sheet> {
    // The hosts alternate between the two switches of `striped`.
    const HOSTS: [&str; 6] = ["s1", "s2", "s3", "s4", "s5", "s6"];
    let (two, demand) = (network("striped")?, Demand::Sequential(LIST));
    let mut one = two.clone();
    for link in one
        .links
        .iter_mut()
        .filter(|link| HOSTS.contains(&link.ends.0.as_str()))
    {
        link.ends.1 = "one".into();
    }
    let cases: Vec<MagicCase> = (1..=HOSTS.len())
        .flat_map(|streams| {
            [
                fast(one.clone(), &HOSTS[..streams], 64, demand.clone()),
                fast(two.clone(), &HOSTS[..streams], 64, demand.clone()),
            ]
        })
        .collect();
    let medians = lab.medians(3, &cases)?;
    let mut sheet = Sheet::new(
        "Figure 13",
        "block throughput, Mbit/s, against the number of streams, into one and into two 100 Mbit/s interfaces",
        &[
            ("streams", "streams"),
            ("offered", "offered"),
            ("one_interface", "one interface"),
            ("two_interfaces", "striped over two"),
        ],
    );
    for (streams, figures) in (1..).zip(medians.chunks(2)) {
        let cells = [f64::from(streams), f64::from(streams) * 155.0];
        let cells = cells.map(|number| SheetCell::Number(number, 0)).into_iter();
        sheet.rows.push(
            cells
                .chain(
                    figures
                        .iter()
                        .map(|figures| SheetCell::Number(figures.sum(), 1)),
                )
                .collect(),
        );
    }
    Ok(sheet.note(nothing_printed("the curves are lost")).note(
        "Each stream comes from one server, with a window of 64 KiB. 48 of the 53 bytes of a cell are data, so an interface carries 90 Mbit/s of packets. Ports share 624 KiB, so nothing is lost. The paper's early tests showed lower rates with more than three streams; it gives no cause.",
    ))
}
