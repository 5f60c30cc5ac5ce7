//! `stackline runs`: lists the kept runs, stores notes about them, and removes them.

use crate::exit::{Error, Exit, Result};
use crate::flags::{RunsCommand, RunsFlags, RunsPrune};
use crate::output;
use serde_json::json;
use stackline_core::units::{counted, format_size};
use stackline_runs::kept_runs::{KeptRun, PruneRule, RunState, kept_run, kept_runs, to_prune};
use stackline_runs::{StoredRun, located, runs_root};
use std::path::Path;
use std::time::SystemTime;

/// How many runs are listed without `--all`.
const NEWEST: usize = 20;

/// Words that are accepted for the list itself.
const LIST: [&str; 2] = ["list", "ls"];

/// Carries out the subcommand of `runs`.
pub(crate) fn runs(flags: &RunsFlags) -> Result {
    match &flags.command {
        None => list(flags),
        Some(RunsCommand::Note(note)) => {
            found(&note.run)?.keep_note(&note.text)?;
            Ok(Exit::Done)
        }
        Some(RunsCommand::Remove(remove)) => {
            // All runs are found before the first is removed: `last` would name another run afterwards.
            let runs = remove.runs.iter().map(|run| found(run));
            remove_all(&runs.collect::<Result<Vec<KeptRun>>>()?)
        }
        Some(RunsCommand::Prune(rule)) => prune(rule),
    }
}

fn found(name: &Path) -> Result<KeptRun> {
    let path = located(name)?;
    kept_run(&path)
        .ok_or_else(|| Error::input(format!("{} is not the directory of a run", path.display())))
}

fn list(flags: &RunsFlags) -> Result {
    let root = runs_root();
    let wanted = |run: &KeptRun| {
        // Other tools call this command `list`.
        let text = flags.text.as_deref().filter(|text| !LIST.contains(text));
        let text = text.unwrap_or_default();
        let mut texts = run.about.iter().chain(&run.note).chain([&run.name]);
        texts.any(|one| one.contains(text))
    };
    let mut runs = kept_runs(&root).filter(wanted);
    let most = if flags.all { usize::MAX } else { NEWEST };
    let shown: Vec<KeptRun> = runs.by_ref().take(most).collect();
    let more = runs.next().is_some();
    if flags.json {
        let runs: Vec<_> = shown.iter().map(value).collect();
        output::json(
            &json!({ "root": root.display().to_string(), "runs": runs, "more": more }),
            false,
        )?;
        return Ok(Exit::Done);
    }
    if shown.is_empty() {
        let which = flags
            .text
            .as_ref()
            .map_or_else(String::new, |text| format!(" with `{text}`"));
        output::print(&format!(
            "no runs{which} are kept under {}\n",
            root.display()
        ))?;
        return Ok(Exit::Done);
    }
    let rows = shown.iter().map(row).collect::<Vec<_>>();
    output::print(&stackline_report::kept_run_table(&rows))?;
    if more {
        output::say(&format_args!(
            "showing the newest {NEWEST}; --all lists all"
        ));
    }
    Ok(Exit::Done)
}

/// The row of a run: name, how it ended or what it measured, size, what it is about.
fn row(run: &KeptRun) -> [String; 4] {
    let result = match run.state {
        RunState::Complete => headline(&run.path).unwrap_or_default(),
        other => other.name().to_owned(),
    };
    let more = run.about.len().saturating_sub(1);
    let mut about = run
        .about
        .first()
        .cloned()
        .unwrap_or_else(|| "trace".to_owned());
    if more > 0 {
        about += &format!(" (and {more} more)");
    }
    if let Some(note) = &run.note {
        about += &format!("; note: {note}");
    }
    [run.name.clone(), result, format_size(run.bytes), about]
}

/// The first figure of a run that has measurements.
fn headline(path: &Path) -> Option<String> {
    let run = StoredRun::open(path).ok()?;
    let summaries = stackline_analyze::summarise(&run.plan, &run.records);
    summaries
        .iter()
        .filter(|summary| !summary.background)
        .find_map(stackline_report::headline_figure)
}

fn value(run: &KeptRun) -> serde_json::Value {
    json!({
        "name": run.name,
        "path": run.path.display().to_string(),
        "started": Some(&run.started).filter(|started| !started.is_empty()),
        "state": run.state.name(),
        "about": run.about,
        "headline": headline(&run.path),
        "note": run.note,
        "bytes": run.bytes,
    })
}

fn prune(flags: &RunsPrune) -> Result {
    let rule = PruneRule {
        keep: flags.keep,
        older_than: flags.older_than,
        most_bytes: flags.most_size,
    };
    let runs = to_prune(&runs_root(), rule, SystemTime::now());
    if flags.dry_run {
        let names = runs.iter().map(|run| format!("{}\n", run.name));
        output::print(&names.collect::<String>())?;
        output::say(&format_args!("would remove {}", room(&runs)));
        return Ok(Exit::Done);
    }
    remove_all(&runs)
}

fn remove_all(runs: &[KeptRun]) -> Result {
    for run in runs {
        run.remove()?;
    }
    output::print(&format!("removed {}\n", room(runs)))?;
    Ok(Exit::Done)
}

/// The text `3 runs, 1.2 MB`.
fn room(runs: &[KeptRun]) -> String {
    let bytes = runs.iter().map(|run| run.bytes).sum();
    format!(
        "{}, {}",
        counted(runs.len() as u64, "run"),
        format_size(bytes)
    )
}
