//! iperf3: bulk over TCP and UDP. CPU time is that of both processes from start to end.

use super::serve;
use crate::support::figure::Figure;
use crate::support::place::Place;
use crate::support::process;
use serde_json::Value;
use std::process::Command;

/// Whether this version has a flag.
pub(crate) fn has(flag: &str) -> bool {
    let help = Command::new("iperf3").arg("--help").output();
    help.is_ok_and(|help| {
        [help.stdout, help.stderr]
            .iter()
            .any(|text| String::from_utf8_lossy(text).contains(flag))
    })
}

/// A transfer of `bytes` in units of `unit`; more flags as given.
pub(crate) fn transfer(
    unit: u64,
    bytes: u64,
    flags: &[&str],
    place: Place,
) -> Result<Figure, String> {
    let (server, port) = serve(
        "iperf3",
        &["-s", "-1", "-B", "127.0.0.1", "-p", "PORT"],
        false,
        place,
    )?;
    let mut client = Command::new("iperf3");
    client
        .args([
            "-c",
            "127.0.0.1",
            "-p",
            &port,
            "-J",
            "-l",
            &unit.to_string(),
            "-n",
            &bytes.to_string(),
        ])
        .args(flags);
    if let (Some(near), Some(far)) = (place.initiator(), place.responder()) {
        client.arg("-A").arg(format!("{near},{far}"));
    }
    let client = process::run(&mut client, place.initiator())?;
    let said: Value =
        serde_json::from_str(client.output()?).map_err(|error| format!("its JSON: {error}"))?;
    let cpu_s = client.cpu_s + server.end().cpu_s;
    let number = |path: &str| {
        said.pointer(path)
            .and_then(Value::as_f64)
            .ok_or_else(|| format!("no {path}"))
    };
    let received = number("/end/sum_received/bytes")?;
    let figure = Figure::throughput(received as u64, number("/end/sum_received/seconds")?, cpu_s);
    Ok(
        match said
            .pointer("/end/sum/lost_percent")
            .and_then(Value::as_f64)
        {
            Some(lost) => figure.noting(format!("{lost:.2} % lost")),
            None => figure,
        },
    )
}
