//! The series of a run as characters: panels one below the other over one time axis. Its intervals as rows of CSV (RFC 4180), and as a
//! page.

use super::plot_page::page_with_rows;
use super::plotted_axes::{PlottedAxes, round_ticks_of};
use super::series_curves::{curves_of, series_notes};
use super::text_plot::{TextCanvas, TextPlotForm, label_columns};
use crate::csv::line;
use crate::grid::wrap;
use crate::scene::VectorScene;
use stackline_analyze::curves::{Curve, CurveSet};
use stackline_analyze::time_series::TimeSeries;
use stackline_core::units::format_time;

/// With fewer columns rows are written instead of panels.
const LEAST_COLUMNS: usize = 40;
const MOST_COLUMNS: usize = 80;
/// Lines of a panel.
const LINES: usize = 5;
/// About how many labels a panel has.
const TICKS: f64 = 2.0;

/// The panels as text; each line ends with a line break. In a terminal that is too narrow, rows of CSV.
#[must_use]
pub fn series_text(series: &TimeSeries, form: TextPlotForm) -> String {
    let columns = form.columns.min(MOST_COLUMNS);
    if columns < LEAST_COLUMNS {
        return series_csv(series);
    }
    let sets: Vec<CurveSet> = series.panels.iter().map(curves_of).collect();
    let axes: Vec<PlottedAxes> = sets
        .iter()
        .map(|set| {
            let mut axes = PlottedAxes::over_time(set, series.length_s);
            axes.y_ticks = round_ticks_of(&axes.y, TICKS);
            axes
        })
        .collect();
    let label = axes.iter().map(label_columns).max().unwrap_or(0);
    let label = label.min(columns / 3);
    let heading = format!("{}, run {}", series.text, series.run + 1);
    let mut text = wrap(&heading, columns).join("\n") + "\n";
    for (at, (set, axes)) in sets.iter().zip(&axes).enumerate() {
        let every = format_time(series.panels[at].every_s);
        let name = format!("{}, each {every}", axes.y.name);
        text += &(wrap(&name, columns).join("\n") + "\n");
        let curves: Vec<&Curve> = set.curves.iter().collect();
        let canvas = TextCanvas::with_size(axes, [columns, LINES], label, form.is_ascii);
        text += &canvas.panel(&curves, at + 1 == sets.len());
    }
    text
}

/// A header line, then a line for each interval of each line of each panel, in base units: bytes, seconds, bit/s, percent.
#[must_use]
pub fn series_csv(series: &TimeSeries) -> String {
    let rows = rows(series).map(|cells| line(&cells));
    line(&head()) + &rows.collect::<String>()
}

/// The picture, its notes and all rows as one file for a browser.
///
/// # Errors
/// If the picture cannot be encoded: one sentence.
pub fn series_page(series: &TimeSeries, picture: &VectorScene) -> Result<String, String> {
    let notes = series_notes(series);
    page_with_rows(&series.text, picture, &notes, &head(), rows(series))
}

/// The names of the columns.
fn head() -> Vec<String> {
    let names = ["series", "line", "from_s", "to_s", "value"];
    names.map(str::to_owned).into()
}

/// The cells of each interval.
fn rows(series: &TimeSeries) -> impl Iterator<Item = Vec<String>> {
    let lines = series
        .panels
        .iter()
        .flat_map(|panel| panel.lines.iter().map(move |line| (panel.kind, line)));
    lines.flat_map(|(kind, line)| {
        line.points.iter().map(move |point| {
            vec![
                kind.word().to_owned(),
                line.name.clone(),
                point.from_s.to_string(),
                point.to_s.to_string(),
                point.value.to_string(),
            ]
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{PlotWidth, series_picture};
    use crate::scene::picture_file::PictureFileFormat;
    use stackline_analyze::time_series::{
        AbsentSeries, SeriesKind, SeriesLine, SeriesPanel, SeriesPoint,
    };

    /// A rate that halves after two seconds, and two queues, one of them with a long name.
    fn series() -> TimeSeries {
        let line = |name: &str, value: fn(u32) -> f64| SeriesLine {
            name: name.into(),
            points: (0..40)
                .map(|tick| SeriesPoint {
                    from_s: f64::from(tick) / 10.0,
                    to_s: f64::from(tick + 1) / 10.0,
                    value: value(tick),
                })
                .collect(),
        };
        let panel = |kind, lines| SeriesPanel {
            kind,
            every_s: 0.1,
            lines,
            left_out: 0,
        };
        let rate = |tick| if tick < 20 { 10e6 } else { 5e6 };
        let long = "a>a-switch-with-a-name-that-is-longer-than-a-narrow-terminal-is-wide-and-wider";
        TimeSeries {
            measurement: 0,
            text: "1 bulk_put 1448 over tcp".into(),
            run: 0,
            length_s: 4.0,
            panels: vec![
                panel(SeriesKind::Throughput, vec![line("", rate)]),
                panel(
                    SeriesKind::Queue,
                    vec![
                        line("x>b", |tick| f64::from(tick) * 1500.0),
                        line(long, |_| 3000.0),
                    ],
                ),
            ],
            absent: vec![AbsentSeries {
                kind: SeriesKind::Processor,
                reason: "not traced".into(),
                is_notable: true,
            }],
        }
    }

    fn form(columns: usize, is_ascii: bool) -> TextPlotForm {
        TextPlotForm {
            columns,
            is_ascii,
            is_heat: false,
            log: None,
        }
    }

    #[test]
    fn panels_stand_above_one_time_axis_and_fit() {
        for (columns, is_ascii) in [(80, false), (80, true), (40, false), (200, false)] {
            let text = series_text(&series(), form(columns, is_ascii));
            let longest = text.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(columns.min(80)), "{columns}\n{text}");
            assert_eq!(text.matches("time since the clock started, s").count(), 1);
            assert_eq!(text.matches("each 100 ms").count(), 2, "{text}");
            assert!(text.contains("a x>b"), "{text}");
            assert_eq!(text.is_ascii(), is_ascii, "{text}");
        }
    }

    #[test]
    fn rows_have_base_units_and_a_narrow_terminal_has_rows() {
        let csv = series_csv(&series());
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines[0], "series,line,from_s,to_s,value");
        assert_eq!(lines[1], "throughput,,0,0.1,10000000");
        assert_eq!(lines.len(), 1 + 3 * 40);
        assert_eq!(series_text(&series(), form(30, false)), csv);
    }

    #[test]
    fn a_picture_has_each_panel_and_says_what_is_absent() {
        let series = series();
        let picture = series_picture(&series, PlotWidth::Double);
        let svg = picture.encode(PictureFileFormat::Svg).unwrap();
        let svg = String::from_utf8(svg).unwrap();
        for words in [
            "throughput, Mbit/s",
            "x&gt;b",
            "not shown: cpu (not traced)",
        ] {
            assert!(svg.contains(words), "{words}\n{svg}");
        }
        let page = series_page(&series, &picture).unwrap();
        assert!(
            page.contains("<td class=\"name\">throughput</td>"),
            "{page}"
        );
    }
}
