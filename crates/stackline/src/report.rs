//! `stackline report` and `stackline open`: a kept run as a page.

use crate::exit::{Error, Exit, Result};
use crate::flags;
use crate::loaded::Loaded;
use crate::output;
use stackline_analyze::findings::Finding;
use stackline_core::plan::World;
use stackline_report::page::Content;
use stackline_report::{Header, TableOptions};
use stackline_runs::Run;
use std::fs;
use std::path::{Path, PathBuf};

/// What a page is called in its run directory.
const PAGE: &str = "report.html";
/// What the findings of a run are called there.
const FINDINGS: &str = "findings.json";

/// Writes the page.
pub(crate) fn report(flags: &flags::Report) -> Result {
    let loaded = Loaded::open(&flags.run)?;
    let path = flags.output.clone().unwrap_or_else(|| loaded.run.path.join(PAGE));
    write(&path, page(&loaded, flags.most_events)?.as_bytes())?;
    output::print(&format!("{}\n", path.display()))?;
    Ok(Exit::Done)
}

/// The page of a run.
fn page(loaded: &Loaded, most_events: usize) -> Result<String> {
    let run = &loaded.run;
    let summaries = stackline_analyze::summarise(&run.plan, &run.records);
    let header = Header {
        stackline: env!("CARGO_PKG_VERSION").into(),
        run: run.path.display().to_string(),
        seed: run.plan.seed,
        world: run.plan.measurements.first().map_or(World::Live, |measurement| measurement.world),
        wake_up: None,
        complete: run.complete,
        reason: run.reason.clone(),
    };
    let title = run.path.file_name().map_or_else(|| "run".into(), |name| name.to_string_lossy());
    let printed = if summaries.is_empty() {
        String::new()
    } else {
        stackline_report::table(&summaries, &TableOptions::default())
    };
    let content = Content {
        title: &title,
        run: &stackline_report::json(&header, &summaries),
        printed: &printed,
        specification: &run.specification,
        environment: &run.environment,
        findings: &findings(run)?,
        index: &loaded.index,
        events: &loaded.events,
        lifelines: &loaded.lifelines,
        most_events,
    };
    stackline_report::page(&content).map_err(|mistake| Error::new(Exit::Failed, mistake))
}

/// The findings that are kept with the run.
fn findings(run: &Run) -> Result<Vec<Finding>> {
    let path = run.path.join(FINDINGS);
    if !path.is_file() {
        return Ok(Vec::new());
    }
    let text = fs::read_to_string(&path).map_err(|cause| unreadable(&path, &cause))?;
    serde_json::from_str(&text).map_err(|cause| unreadable(&path, &cause))
}

fn unreadable(path: &Path, cause: &dyn std::fmt::Display) -> Error {
    let what = format!("cannot read {}: {cause}", path.display());
    Error::new(Exit::Environment, what).hint("`stackline diagnose RUN` writes it anew")
}

/// Writes a file whole or not at all.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".tmp");
    let temporary: PathBuf = path.with_file_name(name);
    fs::write(&temporary, bytes).and_then(|()| fs::rename(&temporary, path)).map_err(|cause| {
        let what = format!("cannot write {}: {cause}", path.display());
        Error::new(Exit::Environment, what).hint("-o FILE writes it elsewhere")
    })
}
