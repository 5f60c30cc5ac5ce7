//! Judges how close the simulated cells of the tables are to the printed ones. Cells that calibrate the profile (`sets`) are not
//! predictions and are counted apart.

use super::case::{Machines, VSystemCase, Version};
use super::printed::{VSystemCell as Printed, VSystemTable};
use crate::parallel;
use crate::printed_and_here::{self, nothing_printed};
use stackline_core::error::Result;
use stackline_report::sheet::{Sheet, SheetCell};

/// A cell is close enough if it is off by at most this share, or by half of the last printed digit.
const WITHIN: f64 = 0.15;
/// The same share for serial lines (Table 8-2).
const WITHIN_SERIAL: f64 = 0.10;

/// A table with the simulated value of each cell.
pub(super) struct Judged {
    pub(super) table: VSystemTable,
    pub(super) simulated: Vec<f64>,
}

/// Simulates all cells of some tables. An experiment behind several cells is simulated once.
pub(super) fn simulate(tables: Vec<VSystemTable>) -> Result<Vec<Judged>> {
    let machines = Machines::read()?;
    let mut cases: Vec<_> = Vec::new();
    for cell in tables.iter().flat_map(|table| &table.cells) {
        if !cases.contains(&cell.case) {
            cases.push(cell.case);
        }
    }
    let rates: Vec<f64> = parallel::each(&cases, |case| case.simulated(&machines))
        .into_iter()
        .collect::<Result<_>>()?;
    let rate = |cell: &Printed| {
        let found = cases
            .iter()
            .zip(&rates)
            .find(|(case, _)| **case == cell.case);
        found.map_or(f64::NAN, |(_, rate)| *rate)
    };
    let judged = |table: VSystemTable| Judged {
        simulated: table.cells.iter().map(rate).collect(),
        table,
    };
    Ok(tables.into_iter().map(judged).collect())
}

/// Half a unit of the last printed digit. Values have two significant digits, or one if they are whole numbers below 10.
fn rounding(printed: f64) -> f64 {
    let magnitude = 10f64.powf(printed.log10().floor());
    if printed < 10.0 && printed.fract() == 0.0 {
        0.5
    } else {
        magnitude / 20.0
    }
}

/// Whether a simulated value is close enough to the printed one.
fn is_within(version: Version, printed: f64, simulated: f64) -> bool {
    let share = if version == Version::Serial {
        WITHIN_SERIAL
    } else {
        WITHIN
    };
    let off = (simulated - printed).abs();
    off <= share * printed || off <= rounding(printed)
}

impl Judged {
    /// The number of cells that calibrate nothing, and how many of them are close enough.
    fn predicted(&self) -> (usize, usize) {
        let free = self
            .table
            .cells
            .iter()
            .zip(&self.simulated)
            .filter(|(cell, _)| cell.sets.is_none());
        let within = |(cell, simulated): &(&Printed, &f64)| {
            is_within(self.table.version, cell.printed, **simulated)
        };
        (free.clone().count(), free.filter(within).count())
    }

    /// The number of pairs of cells in a row whose printed values differ, and how many of these pairs have the same order when simulated.
    fn orders(&self) -> (usize, usize) {
        let (mut all, mut same) = (0, 0);
        for (at, (one, of_one)) in self.table.cells.iter().zip(&self.simulated).enumerate() {
            for (other, of_other) in self.table.cells.iter().zip(&self.simulated).skip(at + 1) {
                if one.row == other.row && one.printed != other.printed {
                    all += 1;
                    same += usize::from((one.printed < other.printed) == (of_one < of_other));
                }
            }
        }
        (all, same)
    }

    /// The table with printed and simulated values.
    pub(super) fn sheet(&self) -> Sheet {
        let columns = [
            ("row", ""),
            ("column", ""),
            ("printed", "published"),
            ("simulated", "simulated"),
            ("is", ""),
        ];
        let mut sheet = Sheet::new(self.table.name, self.table.title, &columns);
        sheet.columns.extend(printed_and_here::columns());
        for (cell, simulated) in self.table.cells.iter().zip(&self.simulated) {
            let digits = usize::from(cell.printed < 100.0);
            let is = match cell.sets {
                Some(what) => format!("sets {what}"),
                None if is_within(self.table.version, cell.printed, *simulated) => String::new(),
                None => "off".into(),
            };
            let own = [
                SheetCell::text(cell.row),
                SheetCell::text(cell.column),
                SheetCell::Number(cell.printed, usize::from(cell.printed.fract() > 0.0)),
                SheetCell::Number(*simulated, digits),
                SheetCell::text(is),
            ];
            let compared = printed_and_here::cells(cell.printed, *simulated, why(cell, *simulated));
            sheet.rows.push(own.into_iter().chain(compared).collect());
        }
        let ((free, within), (pairs, same)) = (self.predicted(), self.orders());
        let set = self.table.cells.len() - free;
        let share = if self.table.version == Version::Serial {
            WITHIN_SERIAL
        } else {
            WITHIN
        };
        sheet.note(format!(
            "Cells used to calibrate the profile (`sets`): {set} of {}. Others within {:.0} % or rounding error: {within} of {free}. Row orders as published: {same} of {pairs}.",
            self.table.cells.len(),
            100.0 * share
        ))
    }
}

/// The summary by version of the programs: experiments, how many of them calibrate the profile, and how many of the others are close
/// enough.
pub(super) fn summary(all: &[Judged]) -> Sheet {
    let columns = [
        ("tables", "tables"),
        ("experiments", "experiments"),
        ("set", "set"),
        ("predicted", "others"),
        ("within", "within"),
        ("share", "%"),
        ("pairs", "orders"),
        ("same", "as published"),
    ];
    let mut sheet = Sheet::new(
        "Judgement",
        "share of the paper's results that the profile predicts",
        &columns,
    );
    let mut totals = [0usize; 5];
    for (version, tables) in Version::ALL {
        let own: Vec<&Judged> = all
            .iter()
            .filter(|judged| judged.table.version == version)
            .collect();
        let (experiments, free, within) = experiments(&own);
        let orders = own
            .iter()
            .map(|judged| judged.orders())
            .fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        let row = [experiments, free, within, orders.0, orders.1];
        totals
            .iter_mut()
            .zip(row)
            .for_each(|(total, own)| *total += own);
        sheet.rows.push(line(tables, row));
    }
    sheet.rows.push(line("all", totals));
    sheet.note(nothing_printed("this table counts comparisons in the others")).note(
        "A cell that repeats an experiment is counted with it, as Table 3-2 is with the row of 4-1 that it matches digit for digit. An experiment counts as within if it is off by at most 15 % (10 % in Table 8-2) or half of the last published digit. Tables of different versions contradict each other (E-IP batch on the 780: 110 and 380), so each version has its own machines.",
    )
}

/// The number of experiments in some tables, how many of them calibrate nothing, and how many of those are close enough in every cell.
fn experiments(tables: &[&Judged]) -> (usize, usize, usize) {
    let cells = || {
        tables.iter().flat_map(|judged| {
            judged
                .table
                .cells
                .iter()
                .zip(&judged.simulated)
                .map(|cell| (judged.table.version, cell))
        })
    };
    let mut cases = Vec::new();
    for (_, (cell, _)) in cells() {
        if !cases.contains(&cell.case) {
            cases.push(cell.case);
        }
    }
    let of = |case: &VSystemCase| {
        cells()
            .filter(|(_, (cell, _))| cell.case == *case)
            .collect::<Vec<_>>()
    };
    let free: Vec<_> = cases
        .iter()
        .map(of)
        .filter(|cells| cells.iter().all(|(_, (cell, _))| cell.sets.is_none()))
        .collect();
    let good = |cells: &&Vec<(Version, (&Printed, &f64))>| {
        cells
            .iter()
            .all(|(version, (cell, rate))| is_within(*version, cell.printed, **rate))
    };
    (cases.len(), free.len(), free.iter().filter(good).count())
}

/// A row of the summary.
fn line(name: &str, [cells, free, within, pairs, same]: [usize; 5]) -> Vec<SheetCell> {
    let count = |count: usize| SheetCell::Number(count as f64, 0);
    let share = if free > 0 {
        SheetCell::Number(100.0 * within as f64 / free as f64, 0)
    } else {
        SheetCell::Absent
    };
    vec![
        SheetCell::text(name),
        count(cells),
        count(cells - free),
        count(free),
        count(within),
        share,
        count(pairs),
        count(same),
    ]
}

/// Why a cell is off, where that is known.
fn why(cell: &Printed, simulated: f64) -> Option<&'static str> {
    ((simulated - cell.printed).abs() <= rounding(cell.printed))
        .then_some("within half of the last published digit")
}

/// The gains from pipelining, batching and structure (section 5), computed from Table 5-1.
pub(super) fn gains(all: &[Judged]) -> Sheet {
    let columns = [
        ("gain", ""),
        ("column", ""),
        ("printed", "published"),
        ("simulated", "simulated"),
    ];
    let mut sheet = Sheet::new(
        "5.1 to 5.3",
        "gain factors from pipelining, batching and structure",
        &columns,
    );
    sheet.columns.extend(printed_and_here::columns());
    let Some(levels) = all.iter().find(|judged| judged.table.name == "Table 5-1") else {
        return sheet;
    };
    let of = |row: &str, column: &str| {
        let mut cells = levels.table.cells.iter().zip(&levels.simulated);
        cells
            .find(|(cell, _)| cell.row == row && cell.column == column)
            .map(|(cell, rate)| (cell.printed, *rate))
    };
    let steps = [
        ("pipelining", "incremental", "pipelined incremental"),
        ("batching", "pipelined incremental", "batch unstructured"),
        ("structure", "batch unstructured", "batch structured"),
    ];
    for (name, before, after) in steps {
        for column in ["Local", "E-IP", "A-IP"] {
            if let (Some(before), Some(after)) = (of(before, column), of(after, column)) {
                let (printed, simulated) = (after.0 / before.0, after.1 / before.1);
                let own = [
                    SheetCell::text(name),
                    SheetCell::text(column),
                    SheetCell::Number(printed, 2),
                    SheetCell::Number(simulated, 2),
                ];
                let open =
                    (before.0 < 10.0).then_some("the earlier rate is published to only one digit");
                let compared = printed_and_here::cells(printed, simulated, open);
                sheet.rows.push(own.into_iter().chain(compared).collect());
            }
        }
    }
    sheet.note("The published rates of 5 and 2 per second have only one digit, so the gain from pipelining is between 12 and \
                15 times over E-IP, and between 14 and 24 times over A-IP.")
}
