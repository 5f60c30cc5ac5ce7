//! Charts of the tables: the collapse and its remedies by server, Figures 3, 11, 13 and 14.

use stackline_report::chart::{Axis, AxisScale, Chart, ChartCurve};
use stackline_report::paper::PaperReport;
use stackline_report::sheet::{Sheet, SheetCell};

/// A chart: the name of its file, the name of its table, and the function that draws it.
type MagicChart = (&'static str, &'static str, fn(&Sheet) -> Chart);

/// The charts by file name, for those tables that are there and have rows.
pub(super) fn charts(paper: &PaperReport) -> Vec<(&'static str, Chart)> {
    let sheet = |name: &str| paper.sheets.iter().find(|sheet| sheet.name == name);
    let wanted: [MagicChart; 6] = [
        ("figure-3.svg", "Figure 3", platforms),
        ("collapse.svg", "4.3.3", collapse),
        ("remedies.svg", "4.3.4", remedies),
        ("figure-11.svg", "Figure 11", by_mtu),
        ("figure-13.svg", "Figure 13", by_streams),
        ("figure-14.svg", "Figure 14", copies),
    ];
    let drawn = wanted.into_iter().filter_map(|(file, name, draw)| {
        let sheet = sheet(name).filter(|sheet| !sheet.rows.is_empty())?;
        Some((file, draw(sheet)))
    });
    drawn.collect()
}

fn number(cell: &SheetCell) -> Option<f64> {
    match cell {
        SheetCell::Number(value, _) => Some(*value),
        SheetCell::Absent | SheetCell::Text(_) => None,
    }
}

fn text(cell: &SheetCell) -> String {
    match cell {
        SheetCell::Text(words) => words.clone(),
        SheetCell::Number(value, digits) => format!("{value:.digits$}"),
        SheetCell::Absent => String::new(),
    }
}

/// A linear axis from 0 to a round number a little above the largest value.
fn axis(name: &str, values: impl Iterator<Item = f64>) -> Axis {
    let most = values.fold(1.0, f64::max);
    let step = 10_f64.powf(most.log10().floor()) / 2.0;
    Axis {
        name: name.into(),
        scale: AxisScale::Linear,
        from: 0.0,
        to: (1.02 * most / step).ceil() * step,
    }
}

/// Columns of a sheet as curves over its first column.
fn curves(sheet: &Sheet, columns: core::ops::Range<usize>) -> Vec<ChartCurve> {
    let of = |at: usize| {
        let points = sheet
            .rows
            .iter()
            .filter_map(|row| Some((number(&row[0])?, number(row.get(at)?)?)));
        let points: Vec<(f64, f64)> = points.collect();
        ChartCurve {
            name: sheet.columns[at].head.clone(),
            line: points.clone(),
            points,
        }
    };
    columns.map(of).collect()
}

/// A chart of columns of a sheet over its first column.
fn over_first(sheet: &Sheet, columns: core::ops::Range<usize>, y: &str, below: &str) -> Chart {
    let curves = curves(sheet, columns);
    let all = || curves.iter().flat_map(|curve| &curve.points);
    Chart {
        title: sheet.name.clone(),
        x: axis(&sheet.columns[0].head, all().map(|(x, _)| *x)),
        y: axis(y, all().map(|(_, y)| *y)),
        band: None,
        below: below.into(),
        curves,
    }
}

fn by_mtu(sheet: &Sheet) -> Chart {
    let chart = over_first(
        sheet,
        1..5,
        "blocks, Mbit/s",
        "medians of simulated sessions",
    );
    Chart {
        x: Axis {
            name: "largest packet, bytes".into(),
            ..chart.x
        },
        ..chart
    }
}

fn by_streams(sheet: &Sheet) -> Chart {
    over_first(
        sheet,
        2..4,
        "blocks, Mbit/s",
        "medians of simulated sessions",
    )
}

fn copies(sheet: &Sheet) -> Chart {
    over_first(sheet, 1..3, "MB/s", "measured on this machine")
}

/// The chart of Figure 3: each row is a curve over the columns after the first.
fn platforms(sheet: &Sheet) -> Chart {
    let curve = |row: &Vec<SheetCell>| {
        let line: Vec<(f64, f64)> = (1_u32..)
            .zip(&row[1..])
            .filter_map(|(at, cell)| Some((f64::from(at), number(cell)?)))
            .collect();
        ChartCurve {
            name: text(&row[0]),
            points: line.clone(),
            line,
        }
    };
    let curves: Vec<ChartCurve> = sheet.rows.iter().map(curve).collect();
    let heads: Vec<String> = (1..)
        .zip(&sheet.columns[1..])
        .map(|(at, column)| format!("{at} {}", column.head))
        .collect();
    Chart {
        title: "Figure 3: cumulative time of a block by platform".into(),
        x: Axis {
            name: heads.join(", "),
            scale: AxisScale::Linear,
            from: 0.0,
            to: 7.0,
        },
        y: axis(
            "ms since the list was sent",
            curves
                .iter()
                .flat_map(|curve| &curve.points)
                .map(|(_, y)| *y),
        ),
        band: None,
        below: "medians with one block per list".into(),
        curves,
    }
}

/// A chart of the first `rows` rows: points over the row number, one curve for each server and one for the total.
fn by_row(sheet: &Sheet, rows: usize, title: &str) -> Chart {
    let curve = |at: usize| {
        let points = (1_u32..)
            .zip(sheet.rows.iter().take(rows))
            .filter_map(|(row, cells)| Some((f64::from(row), number(&cells[at])?)));
        ChartCurve {
            name: sheet.columns[at].head.clone(),
            line: Vec::new(),
            points: points.collect(),
        }
    };
    let curves: Vec<ChartCurve> = (1..=4).map(curve).collect();
    let names: Vec<String> = (1..)
        .zip(sheet.rows.iter().take(rows))
        .map(|(at, row)| format!("{at} {}", text(&row[0])))
        .collect();
    Chart {
        title: title.into(),
        x: Axis {
            name: names.join(", "),
            scale: AxisScale::Linear,
            from: 0.0,
            to: rows as f64 + 1.0,
        },
        y: axis(
            "blocks, Mbit/s",
            curves
                .iter()
                .flat_map(|curve| &curve.points)
                .map(|(_, y)| *y),
        ),
        band: None,
        below: "each server and the total".into(),
        curves,
    }
}

fn collapse(sheet: &Sheet) -> Chart {
    let chart = by_row(
        sheet,
        // The last row is the median.
        sheet.rows.len().saturating_sub(1),
        "The collapse: three servers through a 1500-byte port",
    );
    Chart {
        x: Axis {
            name: "seed".into(),
            ..chart.x
        },
        ..chart
    }
}

fn remedies(sheet: &Sheet) -> Chart {
    let chart = by_row(sheet, sheet.rows.len(), "Remedies of section 4.3.4");
    Chart {
        x: Axis {
            name: "remedy (row of the table)".into(),
            ..chart.x
        },
        ..chart
    }
}
