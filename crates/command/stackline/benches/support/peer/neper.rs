//! neper: calls over many TCP connections by one thread a side, for a second.

use super::number_after;
use crate::support::figure::Figure;
use crate::support::process::{self, Running};
use std::process::Command;

/// Its program for calls.
pub(crate) const CALLS: &str = "tcp_rr";

/// Calls of 1 B over so many connections; the figure is the time from one call to the next.
pub(crate) fn calls(connections: u32) -> Result<Figure, String> {
    let (control, port) = (process::free_port()?, process::free_port()?);
    let command = || {
        let mut command = Command::new(CALLS);
        command.args([
            "--nolog",
            "-T",
            "1",
            "-l",
            "1",
            "-F",
            &connections.to_string(),
        ]);
        command.args(["-C", &control.to_string(), "-P", &port.to_string()]);
        command
    };
    let server = Running::start(&mut command(), None)?;
    process::until_bound(control, false)?;
    let client = process::run(command().args(["-c", "-H", "127.0.0.1"]), None)?;
    let cpu_s = client.cpu_s + server.end().cpu_s;
    let said = client.output()?;
    let calls = number_after(said, "num_transactions")?;
    Ok(Figure {
        value: 1.0 / number_after(said, "\nthroughput")?,
        cpu: Some(cpu_s / calls),
        note: String::new(),
    })
}
