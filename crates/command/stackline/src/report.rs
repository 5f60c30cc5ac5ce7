//! `stackline report` and `stackline open`: write a kept run as a page, and its lifelines as pictures.

use crate::exit::{Error, Exit, Result};
use crate::flags;
use crate::output;
use stackline_analyze::loaded_run::{LoadedRun, MOST_EVENTS, incomplete};
use stackline_report::chart;
use stackline_report::monitored::{MonitoredSpan, fields, monitored};
use stackline_report::page::origin_ns;
use stackline_report::picture::{PictureSelection, picture};
use stackline_report::results_picture::results_picture;
use stackline_report::scene::VectorScene;
use stackline_report::scene::picture_file::PictureFileFormat;
use stackline_runs::{StoredRun, names, runs_root};
use stackline_whatif::advice;
use stackline_whatif::simulated_runs::SimulationBudget;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Writes the page or the pictures.
pub(crate) fn report(flags: &flags::ReportFlags) -> Result {
    let files = picture_files(flags);
    if !flags.took.filter().is_any() && (files.is_empty() || flags.monitor.is_some()) {
        return Err(Error::input("--slower-than and --faster-than apply only to pictures of lifelines")
            .hint("add -o FILE.svg, .png or .pdf, without --monitor; `stackline lifelines` accepts these flags too"));
    }
    if files.is_empty() && chooses_lifelines(flags) {
        return Err(
            Error::input("--from, --to and --units apply only to pictures")
                .hint("add -o FILE.svg, .png or .pdf; the page shows all lifelines"),
        );
    }
    if let Some(field) = &flags.monitor {
        if files.is_empty()
            || files
                .iter()
                .any(|(_, format)| *format != PictureFileFormat::Svg)
        {
            return Err(Error::input("--monitor draws SVG only").hint("use -o FILE.svg"));
        }
        let loaded = noted(LoadedRun::open(&flags.run, flags.most_events)?);
        let drawn = monitor(field, flags, &loaded)?;
        for (path, _) in &files {
            output::file(path, &drawn)?;
        }
        return print_names(&files);
    }
    if !files.is_empty() {
        // With `-o`, a run without lifelines is drawn as figures, unless flags select lifelines.
        let loaded = if flags.output.is_some() {
            LoadedRun::whatever(&flags.run, flags.most_events)?
        } else {
            LoadedRun::open(&flags.run, flags.most_events)?
        };
        let scene = scene(flags, noted(loaded))?;
        return write_pictures(&files, &scene);
    }
    if let Some(path) = flags.output.as_ref().filter(|path| !is_page(path)) {
        return Err(
            Error::input(format!("the type of {} is unknown", path.display()))
                .hint("name a page FILE.html, or a picture FILE.svg, .png or .pdf"),
        );
    }
    let loaded = noted(LoadedRun::whatever(&flags.run, flags.most_events)?);
    let page = page(&loaded, flags.most_events)?;
    let path = match &flags.output {
        Some(path) => output::file(path, page).map(|()| path.clone())?,
        None => loaded
            .run
            .keep_page(&page)
            .map_err(|error| Error::from(error).hint("use -o FILE to write the page elsewhere"))?,
    };
    output::print(&format!("{}\n", path.display()))?;
    Ok(Exit::Done)
}

/// Whether a file name is that of a page. A file without extension, such as a device, is accepted.
fn is_page(path: &Path) -> bool {
    path.extension().is_none_or(|ending| {
        ["html", "htm"]
            .iter()
            .any(|page| ending.eq_ignore_ascii_case(page))
    })
}

/// The run, after messages on stderr if it is incomplete or not all of its events were read.
fn noted(loaded: LoadedRun) -> LoadedRun {
    incomplete(&loaded.run, "shown")
        .iter()
        .for_each(output::say);
    if let Some(note) = loaded.note("report") {
        output::say(&format_args!("note: {note}"));
    }
    loaded
}

/// The picture files to write, with their formats.
fn picture_files(flags: &flags::ReportFlags) -> Vec<(&Path, PictureFileFormat)> {
    let named = flags.output.as_deref();
    [
        named.and_then(|path| Some((path, PictureFileFormat::from_path(path)?))),
        flags
            .svg
            .as_deref()
            .map(|path| (path, PictureFileFormat::Svg)),
        flags
            .png
            .as_deref()
            .map(|path| (path, PictureFileFormat::Png)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

const fn chooses_lifelines(flags: &flags::ReportFlags) -> bool {
    flags.from.is_some() || flags.to.is_some() || !flags.units.is_empty()
}

/// The drawing of a run: its lifelines, or its figures if it was not traced.
fn scene(flags: &flags::ReportFlags, loaded: LoadedRun) -> Result<VectorScene> {
    if loaded.lifelines.lines.is_empty() && flags.output.is_some() && !chooses_lifelines(flags) {
        let summaries = stackline_analyze::summarise(&loaded.run.plan, &loaded.run.records);
        return results_picture(&loaded.run.title(), &summaries).ok_or_else(|| {
            Error::input("the run has neither lifelines nor figures to draw")
                .hint("`stackline report RUN` writes the run's page")
        });
    }
    lifelines_scene(flags, loaded)
}

/// The drawing of the selected lifelines.
fn lifelines_scene(flags: &flags::ReportFlags, mut loaded: LoadedRun) -> Result<VectorScene> {
    let origin_ns = origin_ns(&loaded.index, &loaded.events, &loaded.lifelines);
    let moment = |since: Option<f64>| since.map(|seconds| origin_ns + (seconds * 1e9) as u64);
    let (from_ns, to_ns) = (moment(flags.from), moment(flags.to));
    let beside = stackline_analyze::data_fates::find_data_fates(
        &loaded.events,
        &loaded.index,
        &loaded.lifelines,
    );
    flags.took.filter().leave(&mut loaded.lifelines);
    let wanted = PictureSelection {
        origin_ns,
        from_ns,
        to_ns,
        units: flags.units.clone(),
        beside,
    };
    let picture = picture(&loaded.lifelines, &loaded.index, &wanted).ok_or_else(|| {
        let hint = "times are counted from the first event, as on the report page; `stackline lifelines RUN` shows unit ids";
        Error::input("no requested lifeline was found in the run").hint(hint)
    })?;
    if picture.lines < picture.of_lines {
        let (lines, of) = (picture.lines, picture.of_lines);
        output::say(&format_args!(
            "note: drew {lines} of {of} lifelines; select fewer with --from, --to or --units"
        ));
    }
    Ok(picture.scene)
}

fn write_pictures(files: &[(&Path, PictureFileFormat)], scene: &VectorScene) -> Result {
    for (path, format) in files {
        output::file(path, scene.encode(*format).map_err(Error::measurement)?)?;
    }
    print_names(files)
}

fn print_names(files: &[(&Path, PictureFileFormat)]) -> Result {
    let names = files
        .iter()
        .map(|(path, _)| format!("{}\n", path.display()));
    output::print(&names.collect::<String>())?;
    Ok(Exit::Done)
}

/// A chart of a monitored field over time, as SVG.
fn monitor(field: &str, flags: &flags::ReportFlags, loaded: &LoadedRun) -> Result<String> {
    let origin_ns = origin_ns(&loaded.index, &loaded.events, &loaded.lifelines);
    let drawn = monitored(
        &loaded.index,
        &loaded.events,
        origin_ns,
        field,
        MonitoredSpan {
            from: flags.from,
            to: flags.to,
        },
    )
    .ok_or_else(|| {
        let known: Vec<&str> = fields(&loaded.events).into_iter().collect();
        let hint = match known[..] {
            [] => "`stackline run SPEC --trace` also records monitor data".to_owned(),
            _ => format!("recorded fields: {}", known.join(", ")),
        };
        Error::input(format!(
            "no monitor in this run recorded {field} in the requested period"
        ))
        .hint(hint)
    })?;
    let (curves, of) = (drawn.chart.curves.len(), drawn.of_curves);
    if curves < of {
        output::say(&format_args!(
            "note: drew {curves} of {of} curves, those with the largest values"
        ));
    }
    Ok(chart(&drawn.chart))
}

/// Opens the page of a run in a browser. The page is written first if there is none, or if events were added since.
pub(crate) fn open(flags: &flags::OpenFlags) -> Result {
    let run = match &flags.run {
        Some(run) => run.clone(),
        None => {
            let root = runs_root();
            let newest = names(&root).pop();
            let none = || Error::input(format!("no runs are kept under {}", root.display()));
            PathBuf::from(
                newest.ok_or_else(|| none().hint("`stackline run SPEC --trace` creates one"))?,
            )
        }
    };
    let run = StoredRun::open_events(&run)?;
    incomplete(&run, "shown").iter().for_each(output::say);
    let path = run.page();
    if !run.has_fresh_page() {
        run.keep_page(&page(
            &LoadedRun::whatever(&run.path, MOST_EVENTS)?,
            MOST_EVENTS,
        )?)?;
    }
    output::print(&format!("{}\n", path.display()))?;
    // The desktop decides which browser; its output is discarded.
    let mut browser = Command::new("xdg-open");
    browser
        .arg(&path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if !browser.status().is_ok_and(|status| status.success()) {
        output::say(
            &"note: cannot open a browser (xdg-open); open the file above in any browser, here or elsewhere",
        );
    }
    Ok(Exit::Done)
}

/// The text of a run's page.
fn page(loaded: &LoadedRun, most_events: usize) -> Result<String> {
    let findings = advice::findings(loaded, SimulationBudget::moment());
    stackline_report::run_page(loaded, &findings, most_events).map_err(Error::measurement)
}
