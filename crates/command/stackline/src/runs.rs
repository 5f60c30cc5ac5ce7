//! `stackline runs`: lists the kept runs, stores notes and tags, adds archives, and removes runs.

mod changes;

use crate::again::again;
use crate::archive::added_line;
use crate::exit::{Error, Exit, Result};
use crate::flags::{
    RunsAdd, RunsCommand, RunsFilterFlags, RunsFlags, RunsPrune, RunsSince, RunsTag,
};
use crate::output;
use serde_json::json;
use stackline_core::plan::World;
use stackline_core::units::{counted, format_size};
use stackline_runs::archive::add_archive;
use stackline_runs::kept_runs::{KeptRun, RunFacts, RunState, named_run};
use stackline_runs::pruning::{PruneRule, prune, remove_leftovers, to_prune};
use stackline_runs::run_list::RunList;
use stackline_runs::{StoredRun, iso_utc, runs_root};
use std::collections::BTreeSet;
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
            named_run(&note.run)?.keep_note(&note.text)?;
            Ok(Exit::Done)
        }
        Some(RunsCommand::Tag(flags)) => tag(flags),
        Some(RunsCommand::Changes(flags)) => changes::changes(flags),
        Some(RunsCommand::Add(flags)) => add(flags),
        Some(RunsCommand::Again(flags)) => again(flags),
        Some(RunsCommand::Remove(remove)) => {
            // All runs are found before the first is removed: `last` would name another run afterwards.
            let runs = remove.runs.iter().map(|run| named_run(run));
            let runs = runs.collect::<std::result::Result<Vec<KeptRun>, _>>()?;
            for run in &runs {
                run.remove()?;
            }
            removed(&runs)
        }
        Some(RunsCommand::Prune(rule)) => prune_by(rule),
    }
}

/// Which runs are listed.
struct RunFilter<'f> {
    text: &'f str,
    tags: &'f [String],
    world: Option<World>,
    /// Moment as ISO 8601 writes it.
    since: Option<String>,
}

impl<'f> RunFilter<'f> {
    fn new(flags: &'f RunsFilterFlags, now: SystemTime) -> Self {
        // Other tools call this command `list`.
        let text = flags.text.as_deref().filter(|text| !LIST.contains(text));
        Self {
            text: text.unwrap_or_default(),
            tags: &flags.tag,
            world: flags.world,
            since: flags.since.as_ref().map(|since| match since {
                RunsSince::Ago(age) => {
                    iso_utc(now.checked_sub(*age).unwrap_or(SystemTime::UNIX_EPOCH))
                }
                RunsSince::Date(date) => date.clone(),
            }),
        }
    }

    fn accepts(&self, run: &KeptRun) -> bool {
        let facts = &run.facts;
        let mut texts = facts
            .about
            .iter()
            .chain(&facts.note)
            .chain(&facts.tags)
            .chain([&run.name]);
        texts.any(|one| one.contains(self.text))
            && self.tags.iter().all(|tag| facts.tags.contains(tag))
            && self.world.is_none_or(|world| facts.worlds.contains(&world))
            && self
                .since
                .as_ref()
                .is_none_or(|since| run.began() >= *since)
    }

    /// What is asked for, behind `no runs`.
    fn words(&self) -> String {
        let mut words = Vec::new();
        words.extend((!self.text.is_empty()).then(|| format!("with `{}`", self.text)));
        words.extend(self.tags.iter().map(|tag| format!("tagged {tag}")));
        words.extend(self.world.map(|world| format!("in the {world} world")));
        words.extend(self.since.as_ref().map(|since| format!("since {since}")));
        words.iter().map(|words| format!(" {words}")).collect()
    }
}

fn list(flags: &RunsFlags) -> Result {
    let (root, now) = (runs_root(), SystemTime::now());
    let filter = RunFilter::new(&flags.which, now);
    let mut runs = RunList::open(&root, now, headline);
    let most = if flags.all { usize::MAX } else { NEWEST };
    let mut shown: Vec<KeptRun> = Vec::new();
    let mut more = false;
    for at in 0..runs.len() {
        let accepted = runs.run(at).filter(|run| filter.accepts(run));
        if shown.len() == most {
            // Of those that follow one is enough to know that there are more.
            if accepted.is_some() {
                more = true;
                break;
            }
        } else {
            shown.extend(accepted);
        }
    }
    let (count, bytes) = (runs.len(), runs.bytes());
    runs.store();
    if flags.json {
        let runs: Vec<_> = shown.iter().map(value).collect();
        let root = root.display().to_string();
        let list =
            json!({ "root": root, "runs": runs, "more": more, "count": count, "bytes": bytes });
        output::json(&list, false)?;
        return Ok(Exit::Done);
    }
    if shown.is_empty() {
        let words = filter.words();
        output::print(&format!(
            "no runs{words} are kept under {}\n",
            root.display()
        ))?;
        return Ok(Exit::Done);
    }
    let rows = shown.iter().map(row).collect::<Vec<_>>();
    output::print(&stackline_report::kept_run_table(&rows))?;
    for run in &shown {
        if let Some(wrong) = &run.facts.wrong {
            output::say(&format_args!("{}: {wrong}", run.name));
        }
    }
    if more {
        output::say(&format_args!(
            "showing the newest {NEWEST}; --all lists all"
        ));
    }
    let all = counted(count as u64, "run");
    output::say(&format_args!(
        "{all} under {}, {}",
        root.display(),
        format_size(bytes)
    ));
    Ok(Exit::Done)
}

/// The row of a run: name, how it ended or what it measured, where, size, what it is about.
fn row(run: &KeptRun) -> [String; 5] {
    let facts = &run.facts;
    let result = match facts.state {
        RunState::Complete => facts.headline.clone().unwrap_or_default(),
        RunState::Incomplete => ending(facts).to_owned(),
        other => other.name().to_owned(),
    };
    let more = facts.about.len().saturating_sub(1);
    let mut about = facts
        .about
        .first()
        .cloned()
        .unwrap_or_else(|| "trace".to_owned());
    if more > 0 {
        about += &format!(" (and {more} more)");
    }
    let mut before = String::new();
    if let Some(note) = &facts.note {
        before += &format!("{note}; ");
    }
    if !facts.tags.is_empty() {
        let tags: Vec<&str> = facts.tags.iter().map(String::as_str).collect();
        before += &format!("[{}] ", tags.join(" "));
    }
    [
        run.name.clone(),
        result,
        place(facts),
        format_size(run.bytes),
        before + &about,
    ]
}

/// How a run ended that is not complete.
fn ending(facts: &RunFacts) -> &'static str {
    match &facts.reason {
        None => "killed",
        Some(reason) if reason.contains("interrupted") => "interrupted",
        Some(_) => "failed",
    }
}

/// Where a run was made: its worlds, and the hosts of a live one.
fn place(facts: &RunFacts) -> String {
    let worlds: Vec<String> = facts.worlds.iter().map(ToString::to_string).collect();
    let hosts = match facts.hosts.as_slice() {
        hosts if !facts.worlds.contains(&World::Live) || hosts.is_empty() => String::new(),
        [one] => format!(" {one}"),
        [first, .., last] => format!(" {first}..{last}"),
        [] => String::new(),
    };
    worlds.join("+") + &hosts
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
    let facts = &run.facts;
    json!({
        "name": run.name,
        "path": run.path.display().to_string(),
        "started": Some(&facts.started).filter(|started| !started.is_empty()),
        "state": facts.state.name(),
        "reason": facts.reason,
        "wrong": facts.wrong,
        "about": facts.about,
        "worlds": facts.worlds,
        "hosts": facts.hosts,
        "headline": facts.headline,
        "note": facts.note,
        "tags": facts.tags,
        "from_archive": facts.from_archive,
        "bytes": run.bytes,
    })
}

fn tag(flags: &RunsTag) -> Result {
    let run = named_run(&flags.run)?;
    let mut tags: BTreeSet<String> = run.facts.tags.clone();
    if flags.tags.is_empty() {
        let lines: Vec<String> = tags.iter().map(|tag| format!("{tag}\n")).collect();
        output::print(&lines.concat())?;
        return Ok(Exit::Done);
    }
    for tag in &flags.tags {
        let changed = match flags.remove {
            true => tags.remove(tag),
            false => tags.insert(tag.clone()),
        };
        if flags.remove && !changed {
            let has: Vec<&str> = tags.iter().map(String::as_str).collect();
            return Err(Error::input(format!("{} has no tag {tag}", run.name))
                .hint(format!("its tags: {}", has.join(", "))));
        }
    }
    run.keep_tags(&tags)?;
    Ok(Exit::Done)
}

fn add(flags: &RunsAdd) -> Result {
    for file in &flags.files {
        let added = add_archive(&runs_root(), file, flags.sharing.access())?;
        output::print(&format!("{}\n", added_line(&added)))?;
    }
    Ok(Exit::Done)
}

fn prune_by(flags: &RunsPrune) -> Result {
    let rule = PruneRule {
        keep: flags.keep,
        older_than: flags.older_than,
        larger_than: flags.larger,
        most_bytes: flags.most_size,
        tags: flags.tag.clone(),
    };
    let (root, now) = (runs_root(), SystemTime::now());
    let mut list = RunList::open(&root, now, headline);
    let runs = to_prune(&mut list, &rule, now);
    list.store();
    if flags.dry_run {
        let names = runs.iter().map(|run| format!("{}\n", run.name));
        output::print(&names.collect::<String>())?;
        output::say(&format_args!("would remove {}", room(&runs)));
        return Ok(Exit::Done);
    }
    let runs = prune(runs, &rule)?;
    remove_leftovers(&root, now);
    removed(&runs)
}

fn removed(runs: &[KeptRun]) -> Result {
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
