//! qperf: ping-pong over TCP and UDP. It says the mean of half a round trip, so its figure is twice that.

use super::{number_after, serve};
use crate::support::figure::Figure;
use crate::support::place::Place;
use crate::support::process;
use std::process::Command;

/// Round trips of `size` bytes each way.
pub(crate) fn ping_pong(size: usize, tcp: bool, place: Place) -> Result<Figure, String> {
    let (server, port) = serve("qperf", &["-lp", "PORT"], false, place)?;
    let mut client = Command::new("qperf");
    let test = if tcp { "tcp_lat" } else { "udp_lat" };
    client.args([
        "127.0.0.1",
        "-lp",
        &port,
        "-t",
        "1",
        "-uu",
        "-m",
        &size.to_string(),
        test,
    ]);
    let client = process::run(&mut client, place.initiator())?;
    drop(server);
    let half_ns = number_after(client.output()?, "latency")?;
    Ok(Figure {
        value: 2.0 * half_ns / 1e9,
        cpu: None,
        note: "mean, not median".to_owned(),
    })
}
