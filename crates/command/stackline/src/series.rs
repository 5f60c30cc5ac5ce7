//! `stackline series`: what happened when in a kept run, in the terminal and in files.

use crate::exit::{Error, Exit, Result};
use crate::flags::{SeriesFlag, SeriesFlags};
use crate::output;
use crate::plot_files::PlotFileFormat;
use stackline_analyze::loaded_run::{LoadedRun, incomplete};
use stackline_analyze::time_series::{NOTHING_KEPT, SeriesQuestion, TimeSeries, time_series};
use stackline_report::plot::{
    TextPlotForm, series_csv, series_notes, series_page, series_picture, series_text,
};
use std::io::stdout;

/// Draws the series of a run.
pub(crate) fn series(flags: &SeriesFlags) -> Result {
    let files = flags
        .output
        .iter()
        .map(|path| PlotFileFormat::of_path(path));
    let files = files.collect::<Result<Vec<PlotFileFormat>>>()?;
    let loaded = LoadedRun::whatever(&flags.run, flags.most_events)?;
    let run = &loaded.run;
    incomplete(run, "drawn").iter().for_each(output::say);
    if let Some(note) = loaded.note("series") {
        output::say(&format_args!("note: {note}"));
    }
    let question = SeriesQuestion {
        measurement: flags.measurement.map(|number| number as usize - 1),
        run: flags.number.map(|number| number - 1),
        every_s: flags.every.map(|every| every.as_secs_f64()),
        only: flags.only.iter().map(|SeriesFlag(kind)| *kind).collect(),
    };
    let series = time_series(&loaded.input(), &question).map_err(refused)?;
    if series.panels.is_empty() {
        let notes = series_notes(&series).join("; ");
        let hint = "omit --only to see what the run has";
        return Err(Error::input(format!("nothing to draw: {notes}")).hint(hint));
    }
    if files.is_empty() {
        print(flags, &series)?;
    } else {
        write(flags, &series, &files)?;
    }
    let notes = series_notes(&series);
    notes.iter().for_each(|note| {
        output::say(&format_args!("note: {note}"));
    });
    Ok(Exit::Done)
}

fn refused(message: String) -> Error {
    let hint = match message == NOTHING_KEPT {
        true => "`stackline run SPEC --interval 1s` keeps sums of intervals, `--trace` events",
        false => "`stackline show RUN` lists the measurements and the number of their runs",
    };
    Error::input(message).hint(hint)
}

fn write(flags: &SeriesFlags, series: &TimeSeries, files: &[PlotFileFormat]) -> Result<()> {
    let picture = || series_picture(series, flags.width.width());
    let mut names = String::new();
    for (path, format) in flags.output.iter().zip(files) {
        let write = |bytes: std::result::Result<Vec<u8>, String>| {
            output::file(path, bytes.map_err(Error::measurement)?)
        };
        match format {
            PlotFileFormat::Points => write(Ok(series_csv(series).into_bytes()))?,
            PlotFileFormat::Page => {
                write(series_page(series, &picture()).map(String::into_bytes))?;
            }
            PlotFileFormat::Picture(format) => write(picture().encode(*format))?,
        }
        names += &format!("{}\n", path.display());
    }
    output::print(&names)
}

/// In a terminal the panels, elsewhere their intervals.
fn print(flags: &SeriesFlags, series: &TimeSeries) -> Result<()> {
    let Some(columns) = output::columns(stdout()) else {
        return output::print_for_programs(&series_csv(series));
    };
    let form = TextPlotForm {
        columns,
        is_ascii: flags.ascii || !output::is_utf8_locale(),
        is_heat: false,
        log: None,
    };
    output::print(&series_text(series, form))
}
