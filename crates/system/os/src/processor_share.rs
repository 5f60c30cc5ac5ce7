//! Limits a host to a share of a processor by a control group with a quota of CPU time, of version 1 (`cpu.cfs_quota_us`) or 2
//! (`cpu.max`).
//!
//! ```text
//! ControlGroup::make(name, share)   creates the group with its quota, or takes the existing group of that name as it is
//! group.enter()                     moves this process, and so all that it starts, into the group
//! group.leave()                     moves this process back; removes the group if no other process is in it
//! measured_share()                  measures the share of a processor that a loop gets
//! ```
//! A quota stops a group's processes for the rest of each period: on average the host is as slow as the share says, but each wait is as
//! long as the rest of a period, which a slow processor would not cause. Nothing here pins threads or changes priorities.

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

/// Usual length of a period, us: short compared with the times that people measure.
const PERIOD_US: u64 = 10_000;
/// The least quota and the least period that the kernel accepts, us.
const LEAST_US: u64 = 1_000;
/// The longest period that the kernel accepts, us.
const LONGEST_US: u64 = 1_000_000;
/// Prefix of the names of stackline's groups, followed by the ID of the process that made the group.
const PREFIX: &str = "stackline-";
/// How long the loop runs that measures a share.
const MEASURED_FOR: Duration = Duration::from_millis(250);
/// Time between two attempts to remove a group whose processes are ending.
const LOOK: Duration = Duration::from_millis(5);

/// A control group that limits a host's processes.
#[derive(Debug)]
pub struct ControlGroup {
    /// 1 or 2.
    version: u8,
    directory: PathBuf,
    /// The group that this process was in before.
    before: PathBuf,
    /// Whether it was created here, rather than existing already.
    is_new: bool,
}

/// Quota and period of a share, us. For a small share the period is longer, so that the quota is not below the kernel's least.
#[must_use]
pub fn quota_us(share: ProcessorShare) -> (u64, u64) {
    let thousandths = u64::from(share.0.max(1));
    let period = (LEAST_US * 1000)
        .div_ceil(thousandths)
        .clamp(PERIOD_US, LONGEST_US);
    ((period * thousandths / 1000).max(LEAST_US), period)
}

impl ControlGroup {
    /// Creates the group of that name with its quota, or takes the existing one with the quota that it has. Also removes groups that killed
    /// processes left behind.
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

    /// Moves this process into the group.
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

    /// Whether the group was created by [`Self::make`], rather than existing before.
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

/// Measures the share of a processor that a loop gets in a quarter of a second, from 0 to 1. One loop cannot measure a share of more than
/// one processor.
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

/// The error, with a hint, when a share cannot be set on this host.
fn refused(why: &str) -> Error {
    Error::environment(format!(
        "cannot limit a host to a share of a processor here: {why}"
    ))
    .hint("run as root on a machine with writable control groups, or omit `share`")
}

/// Whether the subgroups of a group of version 2 can have quotas: whether the `cpu` controller is enabled for them.
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

/// Creates the group in a parent directory, or finds it there. Returns its directory and whether it is new.
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
        // Remove the quota before changing the period: the kernel checks each value against the other one's present value.
        fs::write(directory.join("cpu.cfs_quota_us"), "-1")
            .and_then(|()| fs::write(directory.join("cpu.cfs_period_us"), period.to_string()))
            .and_then(|()| fs::write(directory.join("cpu.cfs_quota_us"), quota.to_string()))
    };
    if written.is_err() {
        let _ = fs::remove_dir(&directory);
    }
    written.map(|()| (directory, is_new))
}

/// Removes the groups that processes which no longer exist left behind. Returns how many.
#[must_use]
pub fn sweep_groups() -> usize {
    crate::own_control_groups::processor_groups().map_or(0, |(_, parents)| {
        parents.iter().map(|parent| sweep(parent)).sum()
    })
}

/// Removes the group of that name; waits up to `patience` until the last process in it has ended.
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

/// Moves this process to a group: in `cgroup.procs`, 0 stands for the process that writes it.
fn move_to(directory: &Path) -> io::Result<()> {
    fs::write(directory.join("cgroup.procs"), "0")
}

/// Removes stackline's groups in a directory whose process no longer exists. Returns how many.
fn sweep(parent: &Path) -> usize {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let removed = entries.filter(|entry| {
        let name = entry.file_name();
        let number = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok());
        // Only ESRCH means that there is no such process: for another user's process the error is EPERM.
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
