//! netperf: a connection, a call of 1 B and its end, for a second.

use super::{number_after, serve};
use crate::support::figure::Figure;
use crate::support::place::Place;
use crate::support::process;
use std::process::Command;

/// Connections with a call each; the figure is the time from one to the next.
pub(crate) fn connections(place: Place) -> Result<Figure, String> {
    let (server, port) = serve(
        "netserver",
        &["-D", "-L", "127.0.0.1", "-p", "PORT"],
        false,
        place,
    )?;
    // It refuses to start where an alarm is set, as it is for what is run here; a child of the shell has none.
    let mut client = Command::new("sh");
    client.args(["-c", "\"$@\"; exit $?", "sh", "netperf"]);
    client.args([
        "-H",
        "127.0.0.1",
        "-p",
        &port,
        "-t",
        "omni",
        "-l",
        "1",
        "--",
    ]);
    // The test TCP_CRR as netperf itself makes it of the omni test.
    client.args([
        "-d",
        "rr",
        "-T",
        "tcp",
        "-c",
        "-r",
        "1,1",
        "-k",
        "THROUGHPUT",
    ]);
    let client = process::run(&mut client, place.initiator())?;
    let cpu_s = client.cpu_s + server.stop();
    let rate = number_after(client.output()?, "THROUGHPUT")?;
    Ok(Figure {
        value: 1.0 / rate,
        cpu: Some(cpu_s / rate),
        note: String::new(),
    })
}
