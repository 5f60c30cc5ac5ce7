//! `stackline reproduce`: reproduces the tables and figures of a paper beside the printed values.

mod compare;

use crate::exit::{Error, Exit, Result};
use crate::progress::draw_target;
use crate::{flags, output};
use indicatif::{ProgressBar, ProgressStyle};
use stackline_papers::{PAPERS, PaperExperiment, ReproductionSettings};
use stackline_report::Chart;
use std::path::Path;
use std::process::{Command, Stdio};

/// Lists the papers, or reproduces one.
pub(crate) fn reproduce(flags: &flags::Reproduce) -> Result {
    let Some(name) = &flags.paper else {
        return list(flags);
    };
    let paper = find(name)?;
    if flags.profile {
        output::print_for_programs(paper.profile)?;
        return Ok(Exit::Done);
    }
    again(paper, flags)
}

/// `stackline measure`: the process that measures for `reproduce`. It still has a single thread.
pub(crate) fn measure(flags: &flags::Measure) -> Result {
    let paper = find(&flags.paper)?;
    let measure = paper
        .measure
        .ok_or_else(|| Error::input(format!("{} has no programs to measure", paper.name)))?;
    output::json(&measure(flags.runs)?, false)?;
    Ok(Exit::Done)
}

fn find(name: &str) -> Result<&'static PaperExperiment> {
    PAPERS
        .iter()
        .find(|paper| paper.name.eq_ignore_ascii_case(name))
        .ok_or_else(|| {
            let names: Vec<&str> = PAPERS.iter().map(|paper| paper.name).collect();
            Error::input(format!("unknown paper {name}"))
                .hint(format!("the papers are {}", names.join(", ")))
        })
}

/// Prints the papers that can be reproduced.
fn list(flags: &flags::Reproduce) -> Result {
    if flags.json {
        let papers = PAPERS
            .iter()
            .map(|paper| serde_json::json!({ "paper": paper.name, "title": paper.title }));
        output::json(
            &serde_json::json!({ "papers": papers.collect::<Vec<_>>() }),
            false,
        )?;
    } else {
        let lines = PAPERS
            .iter()
            .map(|paper| format!("{:<8} {}\n", paper.name, paper.title));
        output::print(
            &(lines.collect::<String>() + "\n`stackline reproduce PAPER` reproduces one.\n"),
        )?;
    }
    Ok(Exit::Done)
}

/// Reproduces a paper and prints it.
fn again(paper: &PaperExperiment, flags: &flags::Reproduce) -> Result {
    if flags.world == flags::NetworkWorld::Emulated && paper.compare.is_none() {
        return Err(Error::input(format!(
            "{} has no experiment that runs in the emulated world",
            paper.name
        ))
        .hint("try `stackline reproduce magic --in emulated`"));
    }
    flags.pictures.as_deref().map_or(Ok(()), directory)?;
    let measures =
        flags.runs > 0 && paper.measure.is_some() && paper.measures(flags.only.as_deref());
    let measured = measures.then(|| measured(paper, flags.runs));
    let bar = bar();
    let progress = |done: usize, all: usize| {
        bar.set_length(all as u64);
        bar.set_position(done as u64);
    };
    let made = (paper.reproduce)(&ReproductionSettings {
        seed: flags.seed,
        transfers: flags.transfers,
        most_seeds: None,
        precision: flags.precision / 100.0,
        measured,
        only: flags.only.as_deref(),
        progress: &progress,
    });
    let mut made = made.inspect_err(|_| bar.finish_and_clear())?;
    if let Some(comparison) = paper
        .compare
        .filter(|_| flags.world == flags::NetworkWorld::Emulated)
    {
        made.tables.sheets.push(compare::compare(
            &comparison,
            flags.seed,
            flags.sessions,
            &progress,
        )?);
    }
    bar.finish_and_clear();
    if let (Some(only), true) = (
        &flags.only,
        made.tables.exhibits.is_empty() && made.tables.sheets.is_empty(),
    ) {
        return Err(Error::input(format!(
            "`--runs 0` skips {only}, which is measured on this machine"
        ))
        .hint("omit `--runs 0`"));
    }
    let drawn = flags
        .pictures
        .as_deref()
        .map_or(Ok(Vec::new()), |directory| write(directory, &made.charts))?;
    if let (Some(only), true, true) = (&flags.only, flags.pictures.is_some(), drawn.is_empty()) {
        output::say(&format_args!(
            "{only} has no figure, so no picture was drawn"
        ));
    }
    if flags.json {
        let mut json = stackline_report::paper_json(&made.tables);
        json["pictures"] = drawn.into();
        json["seed"] = flags.seed.into();
        output::json(&json, false)?;
    } else {
        let drawn = drawn.into_iter().map(|picture| picture + "\n");
        output::print(&(stackline_report::paper(&made.tables) + &drawn.collect::<String>()))?;
    }
    Ok(Exit::Done)
}

/// The output of the measuring process, or why there is none.
fn measured(paper: &PaperExperiment, runs: u32) -> Result<Vec<u8>, String> {
    let program = std::env::current_exe();
    let child = program.and_then(|program| {
        let arguments = ["measure", paper.name, "--runs", &runs.to_string()];
        let mut measuring = Command::new(program);
        measuring
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = measuring.spawn()?;
        // The pipe is closed when this process ends for whatever reason, and the child ends with it.
        let held = child.stdin.take();
        let output = child.wait_with_output();
        drop(held);
        output
    });
    match child {
        Ok(child) if child.status.success() => Ok(child.stdout),
        Ok(child) => Err(format!("the measuring process failed: {}", child.status)),
        Err(error) => Err(format!("cannot start the measuring process: {error}")),
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, draw_target());
    if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len}") {
        bar.set_style(style);
    }
    bar
}

/// Creates the directory for pictures. Done first, so that no computation is wasted if it fails.
fn directory(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(|cause| output::unwritten(path.display(), &cause))
}

/// Writes each chart into the directory. Returns the paths.
fn write(directory: &Path, charts: &[(&str, Chart)]) -> Result<Vec<String>> {
    let each = charts.iter().map(|(name, chart)| {
        let path = directory.join(name);
        output::file(&path, stackline_report::chart(chart))?;
        Ok(path.display().to_string())
    });
    each.collect()
}
