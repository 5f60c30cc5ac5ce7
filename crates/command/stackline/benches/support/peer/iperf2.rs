//! iperf 2: bulk over TCP from the client to the server.

use super::serve;
use crate::support::figure::Figure;
use crate::support::place::Place;
use crate::support::process;
use std::process::Command;

/// A transfer of `bytes` in units of `unit`; more flags as given.
pub(crate) fn transfer(
    unit: u64,
    bytes: u64,
    flags: &[&str],
    place: Place,
) -> Result<Figure, String> {
    let (server, port) = serve(
        "iperf",
        &["-s", "-B", "127.0.0.1", "-p", "PORT"],
        false,
        place,
    )?;
    let mut client = Command::new("iperf");
    client.args([
        "-c",
        "127.0.0.1",
        "-p",
        &port,
        "-y",
        "C",
        "-l",
        &unit.to_string(),
        "-n",
        &bytes.to_string(),
    ]);
    let client = process::run(client.args(flags), place.initiator())?;
    let line = client
        .output()?
        .trim()
        .lines()
        .next_back()
        .unwrap_or_default()
        .to_owned();
    let rate = line
        .rsplit(',')
        .next()
        .and_then(|word| word.parse::<f64>().ok())
        .ok_or("it says no rate")?;
    let cpu_s = client.cpu_s + server.stop();
    Ok(Figure {
        value: rate,
        cpu: Some(cpu_s / (bytes as f64 / 1e9)),
        note: String::new(),
    })
}
