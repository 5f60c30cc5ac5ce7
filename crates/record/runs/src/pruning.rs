//! Which kept runs a rule removes, and their removal.

use crate::Error;
use crate::kept_runs::{KeptRun, REMOVING, Removal, kept_run};
use crate::run_list::RunList;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// After how long what an unpacking that was killed left behind is removed.
const LEFT_BEHIND: Duration = Duration::from_secs(86_400);

/// Which runs to remove; a run is removed if any of the criteria applies.
#[derive(Clone, Debug, Default)]
pub struct PruneRule {
    /// Removes all but this number of the newest runs.
    pub keep: Option<usize>,
    /// Removes runs that ended longer ago than this.
    pub older_than: Option<Duration>,
    /// Removes runs that take more than this many bytes.
    pub larger_than: Option<u64>,
    /// Removes the oldest runs until the rest takes at most this many bytes.
    pub most_bytes: Option<u64>,
    /// Looks only at runs with one of these tags; such runs are then removed although they have tags.
    pub tags: Vec<String>,
}

impl PruneRule {
    /// Whether the rule looks at the run at all.
    fn concerns(&self, run: &KeptRun) -> bool {
        self.tags.is_empty() || self.tags.iter().any(|tag| run.facts.tags.contains(tag))
    }

    /// Whether a run stays whatever the rule says.
    fn spares(&self, run: &KeptRun) -> bool {
        let is_tagged = self.tags.is_empty() && !run.facts.tags.is_empty();
        !run.is_removable() || run.facts.note.is_some() || is_tagged
    }
}

/// The runs that a rule removes, newest first. Runs that are being written, are damaged or have a note are never
/// removed, and those with a tag only by a rule that names the tag.
#[must_use]
pub fn to_prune(list: &RunList, rule: &PruneRule, now: SystemTime) -> Vec<KeptRun> {
    let concerned = (0..list.len()).filter_map(|at| list.run_without_headline(at));
    let mut sum = 0_u64;
    let mut pruned = Vec::new();
    for (at, run) in concerned.filter(|run| rule.concerns(run)).enumerate() {
        let stays = rule.spares(&run);
        let age = run.ended().and_then(|ended| now.duration_since(ended).ok());
        let is_old = rule
            .older_than
            .is_some_and(|most| age.is_some_and(|age| age > most));
        let is_beyond = rule.keep.is_some_and(|keep| at >= keep)
            || rule.larger_than.is_some_and(|most| run.bytes > most);
        if stays || !(is_old || is_beyond) {
            sum = sum.saturating_add(run.bytes);
        }
        // Once a run exceeds the limit, all older ones are removed too, however small they are.
        let is_large = rule.most_bytes.is_some_and(|most| sum > most);
        if (is_old || is_beyond || is_large) && !stays {
            pruned.push(run);
        }
    }
    pruned
}

/// Removes runs that a rule chose, and returns those that were removed here: not those that another process removed or
/// began to write into, or that got a note meanwhile.
///
/// # Errors
/// When a run cannot be removed; those before it are removed then.
pub fn prune(runs: Vec<KeptRun>, rule: &PruneRule) -> Result<Vec<KeptRun>, Error> {
    let mut removed = Vec::new();
    for run in runs {
        let still = kept_run(&run.path).filter(|now| !rule.spares(now));
        if still.is_some() && run.try_remove()? == Removal::Done {
            removed.push(run);
        }
    }
    Ok(removed)
}

/// Removes what processes left that were killed while they removed or unpacked a run.
pub fn remove_leftovers(root: &Path, now: SystemTime) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let changed = entry.metadata().and_then(|about| about.modified());
        let is_old = || {
            let age = changed
                .ok()
                .and_then(|changed| now.duration_since(changed).ok());
            age.is_some_and(|age| age > LEFT_BEHIND)
        };
        if name.starts_with(REMOVING) || name.starts_with(crate::archive::UNPACKING) && is_old() {
            // What cannot be removed is another user's, and does no harm.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests;
