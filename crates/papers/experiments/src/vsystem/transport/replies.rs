//! Section 6: a server that replies to a request before it has carried it out, simulated with sequential calls.

use super::session::run_all;
use crate::printed_and_here::nothing_printed;
use stackline_core::error::Result;
use stackline_report::sheet::{Sheet, SheetCell};

/// The time that the client works between its calls, and that the server works for each call, ms.
const TIMES: [(u32, u32); 4] = [(0, 10), (5, 10), (10, 10), (20, 10)];

/// The table: late and early replies for each pair of times.
pub(in super::super) fn replies() -> Result<Sheet> {
    let calls = |name: &str| {
        TIMES.map(|(think, service)| {
            format!("1 from a to b {name} 32, 32*500 constant({think} ms) constant({service} ms) over ikp across suns;")
        })
    };
    let (late, early) = (
        run_all(calls("late_reply"))?,
        run_all(calls("early_reply"))?,
    );
    let columns = [
        ("think", "client, ms"),
        ("service", "server, ms"),
        ("late", "reply after, ms"),
        ("early", "before, ms"),
        ("gain", "% faster"),
    ];
    let title = "time per turn of a client that calls and then works, by when the server answers";
    let mut sheet = Sheet::new("6 early reply", title, &columns);
    for ((think, service), (late, early)) in TIMES.iter().zip(late.iter().zip(&early)) {
        let turn = |seconds: f64| 1e3 * seconds / 500.0;
        sheet.rows.push(vec![
            SheetCell::Number(f64::from(*think), 0),
            SheetCell::Number(f64::from(*service), 0),
            SheetCell::Number(turn(late.seconds), 1),
            SheetCell::Number(turn(early.seconds), 1),
            SheetCell::Number(100.0 * (late.seconds / early.seconds - 1.0), 0),
        ]);
    }
    Ok(sheet.note(nothing_printed("the paper gives no figures for this")).note(
        "With an early reply, the server works while the reply travels and the client goes on; a client that calls again before the server is done waits. An early reply can confirm that the request has arrived, but not its outcome. Programs: `late_reply`, `early_reply` (`--profile`).",
    ))
}
