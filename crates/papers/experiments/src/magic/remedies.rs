//! Section 4.3.4: which of the paper's remedies cure the collapse and which do not, and the means of today.

use super::case::MagicCase;
use super::formulas::{EARLIER_BUFFER, LATER_BUFFER};
use super::printed::PACED;
use super::session_runner::Lab;
use super::setting::{BUSY, MagicTcp, network, pan};
use super::wan::{SERVERS, WINDOW, collapse, row, row_beside, sheet};
use crate::printed_and_here::PrintedFigure;
use stackline_core::error::Result;
use stackline_core::network::Network;
use stackline_report::sheet::Sheet;

/// The remedy for which the paper prints the rate of each server.
const CELLS_PACED: &str = "cells paced, 1/3";

/// The tables of the paper's remedies and of today's.
pub(super) fn sheets(lab: &Lab) -> Result<[Sheet; 2]> {
    Ok([of_the_paper(lab)?, of_today(lab)?])
}

/// Three servers whose cells are paced at a third of the link.
pub(super) fn build_paced_case() -> Result<MagicCase> {
    let network = wan(|network| pace(network, 100e6 / 3.0))?;
    Ok(MagicCase {
        demand: pan(BUSY),
        ..MagicCase::new(network, &SERVERS, MagicTcp::Bsd, WINDOW)
    })
}

fn wan(change: impl Fn(&mut Network)) -> Result<Network> {
    let mut network = network("wan")?;
    change(&mut network);
    Ok(network)
}

/// Sets the MTU of all links.
pub(super) fn mtu(network: &mut Network, bytes: u64) {
    for link in &mut network.links {
        link.mtu_bytes = Some(bytes);
    }
}

/// Makes the servers' interfaces send their cells evenly at this rate.
pub(super) fn pace(network: &mut Network, bit_s: f64) {
    for host in network
        .hosts
        .iter_mut()
        .filter(|host| SERVERS.contains(&host.name.as_str()))
    {
        host.interface.pace_bit_s = Some(bit_s);
    }
}

/// Sets the buffer of each switch, which its ports share; only the 1500 bytes of the earlier module are per port.
pub(super) fn buffer(network: &mut Network, bytes: u64) {
    for switch in &mut network.switches {
        (switch.buffer_bytes, switch.buffer_per_port) = (Some(bytes), bytes == EARLIER_BUFFER);
    }
}

/// Turns on early packet discard: switches refuse whole packets instead of single cells.
pub(super) fn early(network: &mut Network) {
    for switch in &mut network.switches {
        switch.early_packet_discard = true;
    }
}

/// A viewer that asks for more than the link carries, with each remedy that the paper names.
fn cases_of_the_paper() -> Result<[(&'static str, MagicCase); 11]> {
    let with = |network: Network, window: u32, speed: f64| MagicCase {
        demand: pan(speed),
        ..MagicCase::new(network, &SERVERS, MagicTcp::Bsd, window)
    };
    Ok([
        ("none", with(wan(|_| {})?, WINDOW, BUSY)),
        (
            "MTU 512",
            with(wan(|network| mtu(network, 512))?, WINDOW, BUSY),
        ),
        (
            "MTU 256",
            with(wan(|network| mtu(network, 256))?, WINDOW, BUSY),
        ),
        (
            CELLS_PACED,
            with(wan(|network| pace(network, 100e6 / 3.0))?, WINDOW, BUSY),
        ),
        (
            "624 KiB buffer",
            with(wan(|network| buffer(network, LATER_BUFFER))?, WINDOW, BUSY),
        ),
        ("early discard", with(wan(early)?, WINDOW, BUSY)),
        (
            "early, 60 KiB",
            with(
                wan(|network| {
                    early(network);
                    buffer(network, 60 << 10);
                })?,
                WINDOW,
                BUSY,
            ),
        ),
        (
            "60 KiB alone",
            with(wan(|network| buffer(network, 60 << 10))?, WINDOW, BUSY),
        ),
        (
            "ABR",
            with(
                wan(|network| {
                    for switch in &mut network.switches {
                        switch.abr = true;
                    }
                })?,
                WINDOW,
                BUSY,
            ),
        ),
        ("window 512 KiB", with(wan(|_| {})?, 512, BUSY)),
        (
            "624 and 512 KiB",
            with(wan(|network| buffer(network, LATER_BUFFER))?, 512, BUSY),
        ),
    ])
}

fn of_the_paper(lab: &Lab) -> Result<Sheet> {
    let cases = cases_of_the_paper()?;
    let medians = lab.medians(5, &cases.clone().map(|(_, case)| case))?;
    let mut sheet = sheet(
        "4.3.4",
        "each remedy with a viewer that requests more than the link carries",
    );
    sheet
        .rows
        .extend(cases.iter().zip(&medians).map(|((name, _), figures)| {
            let printed = if *name == CELLS_PACED {
                PrintedFigure::Figure(3.0 * PACED)
            } else {
                PrintedFigure::Nothing
            };
            row_beside(name, &SERVERS, figures, printed)
        }));
    Ok(sheet
        .note(
            "With pacing, each sender sends cells at a third of the last link's rate, and no two cells meet, so nothing is lost. Early packet discard is useless where the port holds less than a packet, as the paper says. With ABR, the switch tells each sender its share of nine tenths of the link.",
        )
        .note("Larger windows do not help while packets are lost, and do no harm where the buffer holds the packets."))
}

/// The table of today's means: packets instead of cells, and today's TCP and queue management.
fn of_today(lab: &Lab) -> Result<Sheet> {
    let with = |network: Network, tcp: MagicTcp| MagicCase {
        demand: pan(BUSY),
        ..MagicCase::new(network, &SERVERS, tcp, 1024)
    };
    let queue = |discipline: &str| network(discipline);
    let cases = [
        (
            "1500-byte port",
            MagicCase {
                tcp: MagicTcp::Linux,
                demand: pan(BUSY),
                ..collapse()?
            },
        ),
        ("156 KiB queue", with(queue("today")?, MagicTcp::Linux)),
        ("BBR", with(queue("today")?, MagicTcp::Bbr)),
        ("CoDel", with(queue("codel")?, MagicTcp::Linux)),
        ("CoDel and ECN", with(queue("codel_ecn")?, MagicTcp::Linux)),
    ];
    let medians = lab.medians(5, &cases.clone().map(|(_, case)| case))?;
    let mut sheet = sheet(
        "Today",
        "Linux TCP through the same port, and through a queue of packets",
    );
    sheet.rows.extend(
        cases
            .iter()
            .zip(&medians)
            .map(|((name, _), figures)| row(name, &SERVERS, figures)),
    );
    Ok(sheet.note(
        "Selective acknowledgements and 200 ms timers get more through the 1500-byte port than the hosts of 1995 did, but no host can solve the problem. A queue of one bandwidth-delay product solves it; BBR and CoDel keep the queue short.",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(change: impl Fn(&mut Network)) -> super::super::case::MagicFigures {
        let case = MagicCase {
            demand: pan(BUSY),
            ..MagicCase::new(wan(change).unwrap(), &SERVERS, MagicTcp::Bsd, WINDOW)
        };
        case.run(1).unwrap()
    }

    #[test]
    fn cells_that_are_paced_at_a_third_are_not_lost_and_each_server_sends_as_printed() {
        let paced = run(|network| pace(network, 100e6 / 3.0));
        assert!(paced.asked >= 1150.0 && paced.again() == 0.0, "{paced:?}");
        assert!(
            paced
                .servers
                .iter()
                .all(|server| (server.mbit_s / PACED - 1.0).abs() < 0.05),
            "{paced:?}"
        );
        assert!(paced.unequal() < 1.05, "{paced:?}");
    }

    #[test]
    fn early_packet_discard_is_useless_at_1500_bytes_and_a_large_buffer_is_not() {
        let (none, early, large) = (
            run(|_| {}),
            run(early),
            run(|network| buffer(network, LATER_BUFFER)),
        );
        assert!(
            early.sum() < 1.5 * none.sum() && large.sum() > 85.0,
            "{none:?} {early:?} {large:?}"
        );
    }

    #[test]
    fn explicit_rates_share_the_port_and_lose_little() {
        let rates = run(|network| {
            network
                .switches
                .iter_mut()
                .for_each(|switch| switch.abr = true)
        });
        assert!(
            rates.servers.iter().all(|server| server.mbit_s > 24.0),
            "{rates:?}"
        );
        assert!(rates.unequal() < 1.1, "{rates:?}");
    }
}
