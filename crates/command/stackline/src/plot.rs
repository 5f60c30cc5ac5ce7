//! `stackline plot`: results of kept runs as curves, in the terminal and in files.

use crate::exit::{Error, Exit, Result};
use crate::flags::PlotFlags;
use crate::output;
use crate::plot_files::PlotFileFormat;
use stackline_analyze::curves::{
    CurveKind, CurveMetric, CurveQuestion, CurveRun, CurveSet, curves,
};
use stackline_analyze::loaded_run::incomplete;
use stackline_core::units::counted;
use stackline_report::plot::{
    TextPlotForm, heat_picture, line_picture, plot_csv, plot_page, text_plot,
};
use stackline_report::scene::VectorScene;
use stackline_runs::StoredRun;
use std::io::stdout;
use std::path::{Path, PathBuf};

/// Draws curves.
pub(crate) fn plot(flags: &PlotFlags) -> Result {
    let files = flags
        .output
        .iter()
        .map(|path| PlotFileFormat::of_path(path));
    let files = files.collect::<Result<Vec<PlotFileFormat>>>()?;
    let question = question(flags)?;
    let runs = flags.runs.iter().map(|run| curve_run(run));
    let runs = runs.collect::<Result<Vec<CurveRun>>>()?;
    let set = curves(&runs, &question)?;
    if files.is_empty() {
        print(flags, &set)?;
    } else {
        write(flags, &set, &files, &plot_csv(&set))?;
    }
    notes(&set).iter().for_each(|note| {
        output::say(&format_args!("note: {note}"));
    });
    Ok(Exit::Done)
}

fn question(flags: &PlotFlags) -> Result<CurveQuestion> {
    let kind = match (flags.cdf, flags.percentiles) {
        (true, _) => CurveKind::Cumulative,
        (_, true) => CurveKind::Percentiles,
        (false, false) => CurveKind::Sweep,
    };
    let metric = |name: &String| {
        let hint = "`stackline show RUN --json` shows what a run has";
        CurveMetric::parse(name).map_err(|words| Error::input(words).hint(hint))
    };
    let y = flags.y.as_ref().map(metric).transpose()?;
    Ok(CurveQuestion {
        kind,
        x: flags.x.clone(),
        y: y.unwrap_or(CurveMetric::OWN),
        by: flags.by.clone().or_else(|| flags.heat.clone()),
        panels: flags.panels.clone(),
    })
}

/// The results of a kept run.
fn curve_run(path: &Path) -> Result<CurveRun> {
    let run = StoredRun::open(path)?;
    incomplete(&run, "drawn").iter().for_each(output::say);
    // A run is called as it was called on the command line, which may be shorter than its directory.
    let given = path.file_name().map(|name| name.to_string_lossy());
    let given = given.filter(|name| !name.starts_with("last"));
    Ok(CurveRun {
        name: given.map_or_else(|| run.title(), |name| name.into_owned()),
        summaries: stackline_analyze::summarise(&run.plan, &run.records),
    })
}

/// Draws curves that are not of runs in these files; `points` is what a file of their points holds.
pub(crate) fn write_curves(set: &CurveSet, paths: &[PathBuf], points: &str) -> Result {
    let files = paths.iter().map(|path| PlotFileFormat::of_path(path));
    let files = files.collect::<Result<Vec<PlotFileFormat>>>()?;
    let flags = PlotFlags {
        output: paths.to_vec(),
        ..PlotFlags::of_curves()
    };
    write(&flags, set, &files, points)?;
    // What pictures leave out, a file of the points has.
    if files
        .iter()
        .any(|format| !matches!(format, PlotFileFormat::Points))
    {
        let omissions = set.omissions();
        omissions.iter().for_each(|note| {
            output::say(&format_args!("note: {note}"));
        });
    }
    Ok(Exit::Done)
}

fn picture(flags: &PlotFlags, set: &CurveSet) -> Result<VectorScene> {
    let width = flags.width.width();
    match flags.heat {
        Some(_) => heat_picture(set, width).map_err(|words| {
            Error::input(words).hint("--x and --heat name two swept variables with numbers")
        }),
        None => Ok(line_picture(set, width, flags.log.map(|log| log.axes()))),
    }
}

fn write(flags: &PlotFlags, set: &CurveSet, files: &[PlotFileFormat], points: &str) -> Result<()> {
    let mut names = String::new();
    for (path, format) in flags.output.iter().zip(files) {
        match format {
            PlotFileFormat::Points => output::file(path, points)?,
            PlotFileFormat::Page => {
                let title = format!("{} over {}", set.y.name, set.x.name);
                let page = plot_page(&title, set, &picture(flags, set)?, &notes(set));
                output::file(path, page.map_err(Error::measurement)?)?;
            }
            PlotFileFormat::Picture(format) => {
                let bytes = picture(flags, set)?.encode(*format);
                output::file(path, bytes.map_err(Error::measurement)?)?;
            }
        }
        names += &format!("{}\n", path.display());
    }
    output::print(&names)?;
    let has_points =
        |format: &PlotFileFormat| matches!(format, PlotFileFormat::Points | PlotFileFormat::Page);
    if !files.iter().any(has_points) {
        output::say(&"note: the points are in none of these files; add -o FILE.csv to have them");
    }
    Ok(())
}

/// In a terminal the curves, elsewhere their points.
fn print(flags: &PlotFlags, set: &CurveSet) -> Result<()> {
    let Some(columns) = output::columns(stdout()) else {
        return output::print_for_programs(&plot_csv(set));
    };
    let form = TextPlotForm {
        columns,
        is_ascii: flags.ascii || !output::is_utf8_locale(),
        is_heat: flags.heat.is_some(),
        log: flags.log.map(|log| log.axes()),
    };
    output::print(&text_plot(set, form))
}

/// What is missing in the curves.
fn notes(set: &CurveSet) -> Vec<String> {
    let mut notes = set.omissions();
    let single = set.single_points();
    if single > 0 {
        let points = counted(single as u64, "point");
        notes.push(format!("{points} without an interval: one run each"));
    }
    notes
}
