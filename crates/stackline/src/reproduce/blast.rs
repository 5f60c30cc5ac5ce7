//! Zwaenepoel 1985 made again: Tables 1 to 3 and Figures 4 to 6, and the naive times of section 2.1 that lead to them.
//!
//! A line is built with what was printed and what the formulas give; what it asks to be simulated is a [`Case`], and is
//! filled in afterwards.

mod charts;
mod figures;
mod measured;
mod simulated;
mod tables;

use super::here::here;
use super::pictures;
use super::profile::{Host, Profiles};
use crate::exit::{Exit, Result};
use crate::flags;
use crate::output;
use stackline_papers::blast::formulas::{Costs, Strategy};
use stackline_report::paper::{Exhibit, Paper, Row};

/// D of Figures 5 and 6.
const PACKETS: u32 = 64;

/// How packets are moved.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    StopAndWait,
    SlidingWindow,
    Blast(Strategy),
}

/// Which figure of many transfers is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantity {
    Mean,
    Deviation,
}

/// Something to simulate.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Case {
    host: Host,
    way: Way,
    packets: u32,
    loss: f64,
    /// Tr in seconds.
    interval: f64,
    quantity: Quantity,
}

/// A row on its way.
struct Line {
    row: Row,
    case: Option<Case>,
}

/// An exhibit on its way.
struct Sheet {
    name: &'static str,
    title: &'static str,
    subject: &'static str,
    digits: usize,
    lines: Vec<Line>,
    notes: Vec<String>,
}

/// What both kinds of lines are made from.
struct Hosts {
    standalone: Costs,
    standalone_double: Costs,
    kernel: Costs,
}

impl Hosts {
    fn of(profiles: &Profiles) -> Result<Self> {
        Ok(Self {
            standalone: profiles.costs(Host::Standalone)?,
            standalone_double: profiles.costs(Host::StandaloneDouble)?,
            kernel: profiles.costs(Host::Kernel)?,
        })
    }
}

/// Makes it again and prints it.
pub(super) fn reproduce(flags: &flags::Reproduce) -> Result {
    flags.pictures.as_deref().map_or(Ok(()), pictures::directory)?;
    let paper = again(flags)?;
    let drawn = match &flags.pictures {
        Some(directory) => pictures::write(directory, &charts::charts(&paper))?,
        None => Vec::new(),
    };
    if flags.json {
        let mut json = stackline_report::paper_json(&paper);
        json["pictures"] = drawn.into();
        json["seed"] = flags.seed.into();
        output::json(&json, false)?;
    } else {
        let drawn = drawn.into_iter().map(|picture| picture + "\n");
        output::print(&(stackline_report::paper(&paper) + &drawn.collect::<String>()))?;
    }
    Ok(Exit::Done)
}

/// All columns of all exhibits.
fn again(flags: &flags::Reproduce) -> Result<Paper> {
    let profiles = Profiles::read()?;
    let hosts = Hosts::of(&profiles)?;
    let mut sheets = tables::sheets(&hosts);
    sheets.extend(figures::sheets(&hosts));
    if flags.runs > 0 {
        measured::fill(&mut sheets, &here(flags.runs));
    }
    let how = simulated::How { seed: flags.seed, transfers: flags.transfers, precision: flags.precision / 100.0 };
    simulated::fill(sheets.iter_mut().flat_map(|sheet| &mut sheet.lines), &profiles, how)?;
    Ok(Paper {
        name: "blast".into(),
        title: "Zwaenepoel 1985: Protocols for large data transfers over local networks".into(),
        notes: vec![costs(&hosts), format!("What is drawn hangs on the seed {}.", flags.seed)],
        exhibits: sheets.into_iter().map(exhibit).collect(),
    })
}

/// What the profiles cost, in one sentence.
fn costs(hosts: &Hosts) -> String {
    let ms = |seconds: f64| format!("{} ms", (seconds * 1e7).round() / 1e4);
    let Costs { copy_data, copy_ack, send_data, send_ack, latency } = hosts.standalone;
    format!(
        "Host profiles (--profile prints them): C {}, Ca {}, T {}, Ta {}, latency {}; in the V kernel C {}, Ca {}.",
        ms(copy_data),
        ms(copy_ack),
        ms(send_data),
        ms(send_ack),
        ms(latency),
        ms(hosts.kernel.copy_data),
        ms(hosts.kernel.copy_ack)
    )
}

fn exhibit(sheet: Sheet) -> Exhibit {
    Exhibit {
        name: sheet.name.into(),
        title: sheet.title.into(),
        subject: sheet.subject,
        digits: sheet.digits,
        rows: sheet.lines.into_iter().map(|line| line.row).collect(),
        notes: sheet.notes,
    }
}
