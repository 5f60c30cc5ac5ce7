//! The paper's benchmarks (section 3.1) at each level: construction (nothing is shown), sending a picture to a window that shows it, and
//! display (drawing what is there). Trials of the levels alternate.

use crate::client::DisplayClient;
use crate::send_level::{DisplayPicture, DisplaySendLevel, send};
use stackline_core::error::{Error, Result};
use stackline_core::named::NamedValue as _;
use stackline_display::item::{DisplayItem, DisplayItemKind};
use stackline_display::machine::FULL_SIZE;
use stackline_display::protocol::DisplayRequest;
use stackline_display::scenes::{self, LETTERS};
use stackline_report::display::DisplayRateRow;
use std::time::{Duration, Instant};

/// The number of the window.
pub(crate) const WINDOW: u32 = 1;
/// Width and height of the window, pixels.
const SIZE: (u16, u16) = (800, 800);
/// The number of the symbol that is drawn; above the symbols of structured pictures.
pub(crate) const SYMBOL: u32 = 100;
/// The number of lines of text.
const LINES: usize = 25;
/// The number of short lines.
const SHORT: u32 = 20_000;
/// A trial that is shorter than this is repeated until it takes as long.
const LEAST: Duration = Duration::from_millis(20);

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisplayBenchSubject {
    /// A picture is defined and not shown.
    Construction,
    /// A picture is sent to a window that shows it, at a level.
    At(DisplaySendLevel),
    /// The existing picture is drawn.
    Display,
}

impl DisplayBenchSubject {
    /// The name of the benchmark.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Construction => "construction",
            Self::At(level) => level.name(),
            Self::Display => "display",
        }
    }
}

/// The result: items per second of each trial.
#[derive(Clone, Debug)]
pub struct DisplayBenchResult {
    /// The name of the picture.
    pub picture: &'static str,
    /// What is counted.
    pub unit: &'static str,
    /// What was measured.
    pub rate: DisplayBenchSubject,
    /// Items per second, one value per trial.
    pub trials: Vec<f64>,
}

/// Results as rows of a report.
#[must_use]
pub fn rate_rows(all: &[DisplayBenchResult]) -> Vec<DisplayRateRow> {
    let row = |one: &DisplayBenchResult| DisplayRateRow {
        picture: one.picture,
        rate: one.rate.name(),
        unit: one.unit,
        trials: one.trials.clone(),
        absent: None,
    };
    all.iter().map(row).collect()
}

/// A picture of the benchmarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisplayBenchPicture {
    /// The paper's lines.
    Vectors,
    /// The paper's rectangles, which are symbols that call each other.
    Rectangles,
    /// The paper's text.
    Text,
    /// Lines of 10 pixels.
    Short,
}

stackline_core::named_values!(DisplayBenchPicture,
    Vectors = "vectors";
    Rectangles = "rectangles";
    Text = "text";
    Short = "short", "Lines 10 pixels long, as in x11perf; run only if named");

impl DisplayBenchPicture {
    /// The pictures of the paper.
    pub const OF_PAPER: [Self; 3] = [Self::Vectors, Self::Rectangles, Self::Text];

    /// The picture's items and symbols.
    #[must_use]
    pub fn picture(self) -> DisplayPicture {
        let [vectors, rectangles, text, short] = pictures();
        match self {
            Self::Vectors => vectors,
            Self::Rectangles => rectangles,
            Self::Text => text,
            Self::Short => short,
        }
    }
}

/// All pictures with their names.
#[must_use]
pub fn pictures() -> [DisplayPicture; 4] {
    let plain =
        |items: Vec<DisplayItem>| items.into_iter().map(|item| (item, Vec::new())).collect();
    let letters = (0..LINES).map(|line| {
        let item = DisplayItem::drawn(
            DisplayItemKind::Text,
            line as u32 + 1,
            (8, 16 * line as i16),
            (0, 0),
        );
        let bytes = (0..LETTERS)
            .map(|at| b' ' + 1 + ((line * 7 + at) % 94) as u8)
            .collect();
        (item, bytes)
    });
    let numbers = [SYMBOL - 2, SYMBOL - 1, SYMBOL];
    [
        DisplayPicture {
            name: "vectors",
            unit: "vectors/s",
            items: plain(scenes::polygon()),
            symbols: Vec::new(),
            letters: 0,
        },
        DisplayPicture {
            name: "rectangles",
            unit: "rectangles/s",
            items: plain(scenes::inverters()),
            symbols: numbers
                .into_iter()
                .zip(scenes::structured_inverters(numbers))
                .collect(),
            letters: 0,
        },
        DisplayPicture {
            name: "text",
            unit: "characters/s",
            items: letters.collect(),
            symbols: Vec::new(),
            letters: LINES * LETTERS,
        },
        DisplayPicture {
            name: "short",
            unit: "lines/s",
            items: plain(scenes::short_lines(SHORT)),
            symbols: Vec::new(),
            letters: 0,
        },
    ]
}

/// The benchmarks of a picture at these levels.
#[must_use]
pub fn rates(picture: &DisplayPicture, levels: &[DisplaySendLevel]) -> Vec<DisplayBenchSubject> {
    let fits = |level: &&DisplaySendLevel| {
        **level != DisplaySendLevel::Structured || !picture.symbols.is_empty()
    };
    let at = levels
        .iter()
        .filter(fits)
        .map(|level| DisplayBenchSubject::At(*level));
    std::iter::once(DisplayBenchSubject::Construction)
        .chain(at)
        .chain([DisplayBenchSubject::Display])
        .collect()
}

/// Measures a picture, with this many trials of each benchmark, alternating. `tell` is called before each trial.
///
/// # Errors
/// If the display refuses something, or is lost.
pub fn measure(
    client: &mut DisplayClient,
    picture: &DisplayPicture,
    rates: &[DisplayBenchSubject],
    trials: usize,
    on_trial: &mut dyn FnMut(DisplayBenchSubject, usize) -> bool,
) -> Result<Vec<DisplayBenchResult>> {
    client.send(&DisplayRequest::CreateWindow(
        WINDOW,
        SIZE,
        picture.name.as_bytes(),
    ))?;
    let mut all: Vec<DisplayBenchResult> = rates
        .iter()
        .map(|rate| DisplayBenchResult {
            picture: picture.name,
            unit: picture.unit,
            rate: *rate,
            trials: Vec::new(),
        })
        .collect();
    for trial in 0..trials {
        for one in &mut all {
            if !on_trial(one.rate, trial) {
                return Err(Error {
                    blame: stackline_core::error::Blame::Interrupted,
                    ..Error::measurement("interrupted")
                });
            }
            let taken = trial_s(client, picture, one.rate)?;
            one.trials.push(picture.count() as f64 / taken);
        }
    }
    Ok(all)
}

/// The seconds of a trial; for short ones the mean of several.
fn trial_s(
    client: &mut DisplayClient,
    picture: &DisplayPicture,
    rate: DisplayBenchSubject,
) -> Result<f64> {
    let (mut taken, mut times, begun) = (Duration::ZERO, 0u32, Instant::now());
    while times == 0 || begun.elapsed() < LEAST {
        taken += once(client, picture, rate)?;
        times += 1;
    }
    Ok(taken.as_secs_f64() / f64::from(times))
}

fn once(
    client: &mut DisplayClient,
    picture: &DisplayPicture,
    rate: DisplayBenchSubject,
) -> Result<Duration> {
    let shows = |symbol| DisplayRequest::DisplayView(WINDOW, symbol, (8, 8), FULL_SIZE);
    // The symbol is empty at first, and the window shows it, or nothing.
    if rate != DisplayBenchSubject::Display {
        client.send(&DisplayRequest::DefineSymbol(SYMBOL))?;
        client.send(&DisplayRequest::EndSymbol)?;
    }
    client.send(&shows(if rate == DisplayBenchSubject::Construction {
        0
    } else {
        SYMBOL
    }))?;
    client.sync(0)?;
    let begun = Instant::now();
    match rate {
        DisplayBenchSubject::Construction => {
            send(client, DisplaySendLevel::Batched, picture, SYMBOL)?
        }
        DisplayBenchSubject::At(level) => send(client, level, picture, SYMBOL)?,
        DisplayBenchSubject::Display => {
            client.send(&shows(SYMBOL))?;
            // Only drawing, by the display's own clock.
            let stamps = client.sync(1)?;
            return Ok(Duration::from_nanos(
                stamps.rendered.saturating_sub(stamps.stored).max(1),
            ));
        }
    }
    Ok(begun.elapsed())
}
