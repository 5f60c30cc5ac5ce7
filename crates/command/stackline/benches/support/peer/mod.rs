//! Other tools, started as their users start them: a server, a client, the figure from what the client says.

pub(crate) mod iperf2;
pub(crate) mod iperf3;
pub(crate) mod neper;
pub(crate) mod netperf;
pub(crate) mod qperf;
pub(crate) mod sockperf;

use super::place::Place;
use super::process::{self, Running};
use std::process::Command;

/// Whether a program can be found.
pub(crate) fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// Starts a server on a free port and waits until it listens.
fn serve(
    program: &str,
    arguments: &[&str],
    udp: bool,
    place: Place,
) -> Result<(Running, String), String> {
    let port = process::free_port()?;
    let mut command = Command::new(program);
    command.args(
        arguments
            .iter()
            .map(|argument| argument.replace("PORT", &port.to_string())),
    );
    let server = Running::start(&mut command, place.responder())?;
    process::until_bound(port, udp)?;
    Ok((server, port.to_string()))
}

/// The number after a word, as the peer prints it: `percentile 50.000 =   10.711`.
fn number_after(text: &str, word: &str) -> Result<f64, String> {
    let rest = text
        .split_once(word)
        .map(|(_, rest)| rest.trim_start_matches([' ', '=', ':']));
    let digits = rest.and_then(|rest| rest.split(|c: char| !c.is_ascii_digit() && c != '.').next());
    digits
        .and_then(|digits| digits.parse().ok())
        .ok_or_else(|| format!("it does not say `{word}`"))
}
