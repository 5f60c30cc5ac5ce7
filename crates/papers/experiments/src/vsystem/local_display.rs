//! Measures the paper's pictures on this machine: a display and its client are threads of one process, connected by a Unix socket.

use crate::measuring::end_with_parent;
use crate::printed_and_here::nothing_printed;
use serde::{Deserialize, Serialize};
use stackline_core::error::{Error, Result};
use stackline_core::named::NamedValue as _;
use stackline_display::symbols::DisplayClientLimits;
use stackline_displayserver::address::DisplayAddress;
use stackline_displayserver::bench::{self, DisplayBenchSubject};
use stackline_displayserver::client::DisplayClient;
use stackline_displayserver::listener::DisplayListener;
use stackline_displayserver::send_level::DisplaySendLevel;
use stackline_displayserver::server::DisplayServer;
use stackline_guard::scratch;
use stackline_report::sheet::{Sheet, SheetCell};

/// The name of the table.
pub(super) const NAME: &str = "Today";
/// Trials of each rate, as printed (3.1.1). The number of runs that the user asks for applies to other, shorter programs.
const TRIALS: usize = 10;

/// A rate measured on this machine. The measuring process prints these as JSON.
#[derive(Debug, Serialize, Deserialize)]
struct VSystemLocalRate {
    picture: String,
    rate: String,
    /// Items a second, or characters; the mean of all trials.
    a_second: f64,
}

/// Makes the measurements, in a process of their own.
pub(super) fn measure(_runs: u32) -> Result<serde_json::Value> {
    end_with_parent();
    let directory = scratch::create_directory("vsystem").map_err(|error| {
        Error::environment(format!("cannot create a directory for a socket: {error}"))
    })?;
    let address = DisplayAddress::Unix(directory.path().join("display"));
    let server = DisplayServer::new(DisplayClientLimits::default(), Vec::new());
    server.listen(DisplayListener::at(&address)?, |_| {});
    serde_json::to_value(all(&address)?).map_err(|error| Error::measurement(error.to_string()))
}

/// Measures all rates of all pictures but the one named `short`.
fn all(address: &DisplayAddress) -> Result<Vec<VSystemLocalRate>> {
    let levels: Vec<DisplaySendLevel> = DisplaySendLevel::NAMED
        .iter()
        .map(|(level, ..)| *level)
        .collect();
    let mut found = Vec::new();
    for picture in bench::pictures()
        .iter()
        .filter(|picture| picture.name != "short")
    {
        let mut client = DisplayClient::connect(address, b"")?;
        let rates = bench::rates(picture, &levels);
        let measured = bench::measure(&mut client, picture, &rates, TRIALS, &mut |_, _| true)?;
        found.extend(measured.iter().map(|one| VSystemLocalRate {
            picture: picture.name.to_owned(),
            rate: one.rate.name().to_owned(),
            a_second: one.trials.iter().sum::<f64>() / one.trials.len().max(1) as f64,
        }));
    }
    Ok(found)
}

/// The table: the printed rates of a local application, and those of this machine.
pub(super) fn sheet(measured: Option<&std::result::Result<Vec<u8>, String>>) -> Sheet {
    let columns = [
        ("picture", ""),
        ("rate", ""),
        ("local_1985", "1985, local"),
        ("here", "here"),
        ("times", "times"),
    ];
    let mut sheet = Sheet::new(
        NAME,
        "the same pictures on this machine, items or characters per second",
        &columns,
    );
    let here: std::result::Result<Vec<VSystemLocalRate>, String> = match measured {
        None => Err("nothing was run (`--runs 0`, or another table was requested)".into()),
        Some(Err(reason)) => Err(reason.clone()),
        Some(Ok(bytes)) => serde_json::from_slice(bytes).map_err(|error| error.to_string()),
    };
    for (picture, rate, name, printed) in PRINTED {
        let found = here.as_ref().ok().and_then(|all| {
            all.iter()
                .find(|one| one.picture == picture && one.rate == name)
        });
        let (value, times) = found.map_or((SheetCell::Absent, SheetCell::Absent), |one| {
            (
                SheetCell::Number(one.a_second, 0),
                SheetCell::Number(one.a_second / printed, 0),
            )
        });
        sheet.rows.push(vec![
            SheetCell::text(picture),
            SheetCell::text(rate),
            SheetCell::Number(printed, 0),
            value,
            times,
        ]);
    }
    sheet.notes.push(nothing_printed(
        "the machines of 1985 are not comparable with this one",
    ));
    match here {
        Ok(_) => sheet.note(format!(
            "Means of {TRIALS} trials, with client and display as threads of one process over a Unix socket. Today, answering each item costs two thread switches, and drawing costs as much as everything else: `{}` and `{}` differ less than in 1985.",
            DisplayBenchSubject::At(DisplaySendLevel::Batched).name(),
            DisplayBenchSubject::Construction.name()
        )),
        Err(reason) => sheet.note(format!("Not measured here: {}.", reason.replace('\n', "; "))),
    }
}

/// For each printed rate: the picture, the paper's name of the rate, its name here, and the rate (Tables 3-1, 3-2 and 5-1).
const PRINTED: [(&str, &str, &str, f64); 10] = [
    ("vectors", "display", "display", 430.0),
    ("vectors", "construction", "construction", 440.0),
    ("vectors", "batch", "batched", 220.0),
    ("vectors", "incremental", "pipelined", 62.0),
    ("rectangles", "incremental", "stop-and-wait", 41.0),
    ("rectangles", "pipelined incremental", "pipelined", 61.0),
    ("rectangles", "batch unstructured", "batched", 310.0),
    ("rectangles", "batch structured", "structured", 1070.0),
    ("text", "text", "batched", 7700.0),
    ("text", "text, pipelined", "pipelined", 7700.0),
];
