//! The benchmarks of the paper (section 3.1) at each level: construction (nothing is shown), and with a window that shows the picture as it
//! comes; display is drawing what is there. Trials of a level take turns with those of the others.

use crate::client::Client;
use crate::level::{Level, Picture, send};
use stackline_core::error::{Error, Result};
use stackline_display::item::{Item, Kind};
use stackline_display::machine::FULL_SIZE;
use stackline_display::protocol::Request;
use stackline_display::scenes::{self, LETTERS};
use std::time::{Duration, Instant};

/// The window of the benchmarks.
pub(crate) const WINDOW: u32 = 1;
const SIZE: (u16, u16) = (800, 800);
/// The symbol that is drawn, beyond those of structured pictures.
pub(crate) const SYMBOL: u32 = 100;
/// Lines of letters.
const LINES: usize = 25;
/// Lines of the picture of short ones.
const SHORT: u32 = 20_000;
/// A trial that is shorter is repeated until it takes as long.
const LEAST: Duration = Duration::from_millis(20);

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// A picture is defined and not shown.
    Construction,
    /// A picture is sent to a window that shows it, at a level.
    At(Level),
    /// What is there is drawn.
    Display,
}

impl Rate {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Construction => "construction",
            Self::At(level) => level.name(),
            Self::Display => "display",
        }
    }
}

/// Items a second of each trial.
#[derive(Clone, Debug)]
pub struct Measured {
    /// Of which picture.
    pub picture: &'static str,
    /// What was counted.
    pub unit: &'static str,
    /// What was measured.
    pub rate: Rate,
    /// Items a second, a trial each.
    pub trials: Vec<f64>,
}

/// The pictures, by name.
#[must_use]
pub fn pictures() -> [Picture; 4] {
    let plain = |items: Vec<Item>| items.into_iter().map(|item| (item, Vec::new())).collect();
    let letters = (0..LINES).map(|line| {
        let item = Item::drawn(Kind::Text, line as u32 + 1, (8, 16 * line as i16), (0, 0));
        let bytes = (0..LETTERS)
            .map(|at| b' ' + 1 + ((line * 7 + at) % 94) as u8)
            .collect();
        (item, bytes)
    });
    let numbers = [SYMBOL - 2, SYMBOL - 1, SYMBOL];
    [
        Picture {
            name: "vectors",
            unit: "vectors/s",
            items: plain(scenes::polygon()),
            symbols: Vec::new(),
            letters: 0,
        },
        Picture {
            name: "rectangles",
            unit: "rectangles/s",
            items: plain(scenes::inverters()),
            symbols: numbers
                .into_iter()
                .zip(scenes::structured_inverters(numbers))
                .collect(),
            letters: 0,
        },
        Picture {
            name: "text",
            unit: "characters/s",
            items: letters.collect(),
            symbols: Vec::new(),
            letters: LINES * LETTERS,
        },
        Picture {
            name: "short",
            unit: "lines/s",
            items: plain(scenes::short_lines(SHORT)),
            symbols: Vec::new(),
            letters: 0,
        },
    ]
}

/// What is measured of a picture, of these levels.
#[must_use]
pub fn rates(picture: &Picture, levels: &[Level]) -> Vec<Rate> {
    let fits = |level: &&Level| **level != Level::Structured || !picture.symbols.is_empty();
    let at = levels.iter().filter(fits).map(|level| Rate::At(*level));
    std::iter::once(Rate::Construction)
        .chain(at)
        .chain([Rate::Display])
        .collect()
}

/// Measures a picture, so many trials of each rate in turns. `tell` is called before each trial.
///
/// # Errors
/// When the display refuses something, or is lost.
pub fn measure(
    client: &mut Client,
    picture: &Picture,
    rates: &[Rate],
    trials: usize,
    tell: &mut dyn FnMut(Rate, usize) -> bool,
) -> Result<Vec<Measured>> {
    client.send(&Request::CreateWindow(
        WINDOW,
        SIZE,
        picture.name.as_bytes(),
    ))?;
    let mut all: Vec<Measured> = rates
        .iter()
        .map(|rate| Measured {
            picture: picture.name,
            unit: picture.unit,
            rate: *rate,
            trials: Vec::new(),
        })
        .collect();
    for trial in 0..trials {
        for one in &mut all {
            if !tell(one.rate, trial) {
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

/// Seconds of a trial; of one that is short the mean of several.
fn trial_s(client: &mut Client, picture: &Picture, rate: Rate) -> Result<f64> {
    let (mut taken, mut times, begun) = (Duration::ZERO, 0u32, Instant::now());
    while times == 0 || begun.elapsed() < LEAST {
        taken += once(client, picture, rate)?;
        times += 1;
    }
    Ok(taken.as_secs_f64() / f64::from(times))
}

fn once(client: &mut Client, picture: &Picture, rate: Rate) -> Result<Duration> {
    let shows = |symbol| Request::DisplayView(WINDOW, symbol, (8, 8), FULL_SIZE);
    // Nothing is there before, and the window shows it, or nothing.
    if rate != Rate::Display {
        client.send(&Request::DefineSymbol(SYMBOL))?;
        client.send(&Request::EndSymbol)?;
    }
    client.send(&shows(if rate == Rate::Construction {
        0
    } else {
        SYMBOL
    }))?;
    client.sync(0)?;
    let begun = Instant::now();
    match rate {
        Rate::Construction => send(client, Level::Batched, picture, SYMBOL)?,
        Rate::At(level) => send(client, level, picture, SYMBOL)?,
        Rate::Display => {
            client.send(&shows(SYMBOL))?;
            // Drawing alone, by the display's own clock.
            let stamps = client.sync(1)?;
            return Ok(Duration::from_nanos(
                stamps.rendered.saturating_sub(stamps.stored).max(1),
            ));
        }
    }
    Ok(begun.elapsed())
}
