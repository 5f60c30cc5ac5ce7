//! sockperf: ping-pong over TCP and UDP, median of the round trips of a second.

use super::{number_after, serve};
use crate::support::figure::Figure;
use crate::support::place::Place;
use crate::support::process;
use std::process::Command;

/// Messages of fewer bytes have no room for its header.
pub(crate) const LEAST: usize = 14;

/// Round trips of `size` bytes each way.
pub(crate) fn ping_pong(size: usize, tcp: bool, place: Place) -> Result<Figure, String> {
    let protocol: &[&str] = if tcp { &["--tcp"] } else { &[] };
    let arguments = [&["server", "-i", "127.0.0.1", "-p", "PORT"], protocol].concat();
    let (server, port) = serve("sockperf", &arguments, !tcp, place)?;
    let mut client = Command::new("sockperf");
    client.args([
        "ping-pong",
        "-i",
        "127.0.0.1",
        "-p",
        &port,
        "-t",
        "1",
        "--full-rtt",
        "-m",
        &size.to_string(),
    ]);
    let client = process::run(client.args(protocol), place.initiator())?;
    let cpu_s = client.cpu_s + server.stop();
    let said = client.output()?;
    let calls = number_after(said, "ReceivedMessages")?;
    let note = format!(
        "mean {:.2}, p99 {:.2} us",
        number_after(said, "Round trip is")?,
        number_after(said, "percentile 99.000")?
    );
    let median = number_after(said, "percentile 50.000")? / 1e6;
    Ok(Figure {
        value: median,
        cpu: Some(cpu_s / calls),
        note,
    })
}
