//! A host's share of a processor: a control group of its own with a quota of CPU time, of version 1 (`cpu.cfs_quota_us`) or 2 (`cpu.max`).
//!
//! ```text
//! Group::make(name, share)   the group is there, with its quota; one of that name that is there already is joined
//! group.enter()              this process is in it, and whatever it starts
//! group.leave()              this process is where it was; the group goes with the last process
//! measured(share)            what a loop got of a processor
//! ```
//! A quota holds a processor still for a part of each period: on average the host is as slow as the share says, but each wait is as long
//! as the rest of a period, which a slow processor would not make. Nothing here pins, or changes priorities.

use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use stackline_core::error::{Error, Result};
use stackline_core::plan::ProcessorShare;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Length of a period where the quota allows it: short against what people measure.
const PERIOD_US: u64 = 10_000;
/// The kernel takes no quota and no period below this, and no period above.
const LEAST_US: u64 = 1_000;
const LONGEST_US: u64 = 1_000_000;
/// What groups of ours are called, before the number of a process of ours.
const PREFIX: &str = "stackline-";
/// How long a loop runs that measures a share.
const MEASURED_FOR: Duration = Duration::from_millis(250);
/// How often it is tried to remove a group whose processes are ending.
const LOOK: Duration = Duration::from_millis(5);

/// A control group of a host.
#[derive(Debug)]
pub struct ControlGroup {
    version: u8,
    directory: PathBuf,
    /// The group this process was in before.
    before: PathBuf,
    is_new: bool,
}

/// Quota and period of a share, us: the period is longer where the quota would be below the least.
#[must_use]
pub fn quota_us(share: ProcessorShare) -> (u64, u64) {
    let thousandths = u64::from(share.0.max(1));
    let period = (LEAST_US * 1000)
        .div_ceil(thousandths)
        .clamp(PERIOD_US, LONGEST_US);
    ((period * thousandths / 1000).max(LEAST_US), period)
}

impl ControlGroup {
    /// Makes the group of that name, or joins it. Groups that were left behind by processes that were killed go.
    ///
    /// # Errors
    /// An [`Error`] of the environment when no control group can be made here.
    pub fn make(name: &str, share: ProcessorShare) -> Result<Self> {
        let (version, own) =
            crate::own_control_groups::processor_groups().map_err(|why| refused(&why))?;
        let mut why = String::from("no control group here allows CPU quotas in its subgroups");
        for parent in own
            .iter()
            .filter(|directory| version == 1 || delegates(directory))
        {
            sweep(parent);
            match make_in(version, parent, name, share) {
                Ok((directory, is_new)) => {
                    let before = own.first().cloned().unwrap_or_else(|| parent.clone());
                    return Ok(Self {
                        version,
                        directory,
                        before,
                        is_new,
                    });
                }
                Err(error) => why = format!("{}: {error}", parent.join(group_name(name)).display()),
            }
        }
        Err(refused(&why))
    }

    /// Moves this process there.
    ///
    /// # Errors
    /// An [`Error`] of the environment.
    pub fn enter(&self) -> Result<()> {
        move_to(&self.directory)
            .map_err(|error| refused(&format!("{}: {error}", self.directory.display())))
    }

    /// Moves this process back to where it was, and removes the group if nobody else is in it.
    pub fn leave(&self) {
        let _ = move_to(&self.before);
        self.remove();
    }

    /// Removes the group if nobody is in it.
    pub fn remove(&self) {
        let _ = fs::remove_dir(&self.directory);
    }

    /// Whether it was not there before.
    #[must_use]
    pub const fn is_new(&self) -> bool {
        self.is_new
    }

    /// Version 1 or 2 of control groups.
    #[must_use]
    pub const fn version(&self) -> u8 {
        self.version
    }
}

/// The share of a processor that a loop gets here, from 0 to 1: how much CPU time it had in a quarter of a second. Of a whole
/// processor or more it cannot say anything.
#[must_use]
pub fn measured_share() -> Option<f64> {
    let cpu = || {
        clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)
            .ok()
            .map(Duration::from)
    };
    let (begun, before) = (Instant::now(), cpu()?);
    while begun.elapsed() < MEASURED_FOR {
        std::hint::spin_loop();
    }
    Some(cpu()?.saturating_sub(before).as_secs_f64() / begun.elapsed().as_secs_f64())
}

fn refused(why: &str) -> Error {
    Error::environment(format!(
        "cannot limit a host to a share of a processor here: {why}"
    ))
    .hint("run as root on a machine with writable control groups, or omit `share`")
}

/// Whether groups within a group of version 2 can have quotas.
fn delegates(directory: &Path) -> bool {
    let controllers =
        fs::read_to_string(directory.join("cgroup.subtree_control")).unwrap_or_default();
    controllers
        .split_ascii_whitespace()
        .any(|name| name == "cpu")
}

fn group_name(name: &str) -> String {
    format!("{PREFIX}{name}")
}

fn make_in(
    version: u8,
    parent: &Path,
    name: &str,
    share: ProcessorShare,
) -> io::Result<(PathBuf, bool)> {
    let directory = parent.join(group_name(name));
    let is_new = match fs::create_dir(&directory) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            return Ok((directory, false));
        }
        Err(error) => return Err(error),
    };
    let (quota, period) = quota_us(share);
    let written = if version == 2 {
        fs::write(directory.join("cpu.max"), format!("{quota} {period}"))
    } else {
        // The quota is of the period that stands there: first none, so that the new period takes no old quota amiss.
        fs::write(directory.join("cpu.cfs_quota_us"), "-1")
            .and_then(|()| fs::write(directory.join("cpu.cfs_period_us"), period.to_string()))
            .and_then(|()| fs::write(directory.join("cpu.cfs_quota_us"), quota.to_string()))
    };
    if written.is_err() {
        let _ = fs::remove_dir(&directory);
    }
    written.map(|()| (directory, is_new))
}

/// Removes the groups that processes that are gone left: how many.
#[must_use]
pub fn sweep_groups() -> usize {
    crate::own_control_groups::processor_groups().map_or(0, |(_, parents)| {
        parents.iter().map(|parent| sweep(parent)).sum()
    })
}

/// Removes the group of that name, when the last process in it has ended, which is waited for no longer than `patience`.
pub fn remove(name: &str, patience: Duration) {
    let Ok((_, parents)) = crate::own_control_groups::processor_groups() else {
        return;
    };
    let until = Instant::now() + patience;
    for directory in parents.iter().map(|parent| parent.join(group_name(name))) {
        while fs::remove_dir(&directory).is_err() && directory.exists() && Instant::now() < until {
            std::thread::sleep(LOOK);
        }
    }
}

/// Moves this process: `0` is whoever writes it.
fn move_to(directory: &Path) -> io::Result<()> {
    fs::write(directory.join("cgroup.procs"), "0")
}

/// Removes groups of ours whose process is gone: how many.
fn sweep(parent: &Path) -> usize {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let removed = entries.filter(|entry| {
        let name = entry.file_name();
        let number = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok());
        // One of another user's is there too.
        let is_gone = |number| kill(Pid::from_raw(number), None) == Err(Errno::ESRCH);
        number.is_some_and(is_gone) && fs::remove_dir(entry.path()).is_ok()
    });
    removed.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_shares_have_longer_periods() {
        let quota = |thousandths| quota_us(ProcessorShare(thousandths));
        assert_eq!(
            [quota(500), quota(100), quota(1500)],
            [(5_000, 10_000), (1_000, 10_000), (15_000, 10_000)]
        );
        assert_eq!([quota(50), quota(1)], [(1_000, 20_000), (1_000, 1_000_000)]);
    }

    /// Where control groups can be written; elsewhere it says so.
    #[test]
    fn a_loop_in_a_group_gets_its_share() {
        let group = match ControlGroup::make(
            &format!("{}-test", std::process::id()),
            ProcessorShare(250),
        ) {
            Ok(group) => group,
            Err(error) => {
                assert!(error.hint.is_some());
                return stackline_testing::skip(error.message);
            }
        };
        group.enter().unwrap();
        let share = measured_share().unwrap();
        group.leave();
        // At most its share and what one period more brings; a busy machine gives less.
        assert!(share < 0.25 + 0.05, "{share}");
        assert!(!group.directory.exists());
    }
}
