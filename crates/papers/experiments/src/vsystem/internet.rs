//! Section 9.2: an internet server (the program where the connection from the remote host ends) on the display's workstation and on another
//! one. Both are simulated at the same time, as the paper measured them, for TELNET and for a file transfer.

use super::case::{Machines, VSystemCase, VSystemConnection, VSystemDrawing, rate_at_level};
use crate::{parallel, printed_and_here};
use stackline_core::error::Result;
use stackline_displayserver::send_level::DisplaySendLevel;
use stackline_report::sheet::{Sheet, SheetCell};

/// For each application: its name, the loss of throughput that the paper prints (words, and percent), whether it runs without a terminal,
/// and the speed of the remote host.
const CASES: [(&str, (&str, f64), bool, f64); 5] = [
    (
        "TELNET, a fifth of a 780",
        ("15 on average", 15.0),
        false,
        0.32,
    ),
    ("TELNET, half of a 780", ("15 on average", 15.0), false, 0.8),
    ("TELNET, 780", ("near 50", 50.0), false, 1.6),
    ("TELNET, twice a 780", ("near 50", 50.0), false, 3.2),
    ("FTP, 780", ("20 on average", 20.0), true, 1.6),
];

/// The table: throughput of text with the server on the display's workstation and on another one, at the same time.
pub(super) fn sheet() -> Result<Sheet> {
    let columns = [
        ("application", ""),
        ("local", "characters/s"),
        ("remote", "characters/s"),
        ("lost", "%"),
        ("printed", "published"),
    ];
    let mut sheet = Sheet::new(
        "9.2 internet server",
        "cost of an internet server on another workstation, for text",
        &columns,
    );
    sheet.columns.extend(printed_and_here::columns());
    let machines = Machines::read()?;
    let case = |plain: bool, speed: f64, server: &'static str| VSystemCase {
        internet: Some(server),
        is_plain: plain,
        cpu: [1.0, speed],
        ..VSystemCase::new(
            "remote_server",
            VSystemConnection::Ethernet,
            VSystemDrawing::Text,
            rate_at_level(DisplaySendLevel::Batched),
        )
    };
    let pairs: Vec<[VSystemCase; 2]> = CASES
        .iter()
        .map(|(_, _, plain, speed)| ["sun", "server"].map(|server| case(*plain, *speed, server)))
        .collect();
    let both =
        |[local, remote]: &[VSystemCase; 2]| local.beside(std::slice::from_ref(remote), &machines);
    let rates: Vec<Vec<f64>> = parallel::each(&pairs, both)
        .into_iter()
        .collect::<Result<_>>()?;
    for ((name, printed, ..), rates) in CASES.iter().zip(&rates) {
        let own = [
            SheetCell::text(*name),
            SheetCell::Number(rates[0], 0),
            SheetCell::Number(rates[1], 0),
            SheetCell::Number(100.0 * (1.0 - rates[1] / rates[0]), 0),
            SheetCell::text(printed.0),
        ];
        // The losses themselves are compared: where nothing is lost here, the difference is 100 %.
        let lost = 100.0 * (1.0 - rates[1] / rates[0]);
        let compared = printed_and_here::cells(printed.1, lost, None);
        sheet.rows.push(own.into_iter().chain(compared).collect());
    }
    Ok(sheet.note(
        "Two clients of one VAX at the same time, one through the workstation's own server, one through another workstation's, as in the paper's measurement. Published: 60 KB of code and 20 KB of buffers are saved, and each block crosses the network twice. Here, a block costs a request and a reply, with the copies and messages of Sun-IKP, while the other workstation relieves this one of the stream's packets: the remote server is slower where the workstation is busy, but by less than published.",
    ))
}
