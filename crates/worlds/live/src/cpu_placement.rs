//! Pins threads to cores, lists the permitted cores, raises the limit of open files, and measures how long waking a thread takes.

use crate::clock;
use crate::error::{Error, Result};
use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::Pid;
use stackline_core::run_record::WakeUp;

/// Pins the calling thread to one core.
///
/// # Errors
/// An [`Error`] when the host has no such core or does not permit it.
pub fn pin(cpu: usize) -> Result<()> {
    let mut set = CpuSet::new();
    let refused = |why: String| {
        Error::environment(format!("cannot use core {cpu}: {why}"))
            .hint(format!("this host has cores {}", shown()))
    };
    set.set(cpu).map_err(|e| refused(e.to_string()))?;
    sched_setaffinity(Pid::from_raw(0), &set).map_err(|e| refused(e.to_string()))
}

/// The core that the calling thread runs on, and whether it is pinned to it.
#[must_use]
pub fn current_core() -> (usize, bool) {
    (sched_getcpu().unwrap_or(0), allowed_cores().len() == 1)
}

/// The cores the calling thread may use.
#[must_use]
pub fn allowed_cores() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(Pid::from_raw(0)) else {
        return Vec::new();
    };
    (0..CpuSet::count())
        .filter(|cpu| set.is_set(*cpu).unwrap_or(false))
        .collect()
}

/// The permitted cores as text.
fn shown() -> String {
    allowed_cores()
        .iter()
        .map(usize::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// Lets this process open as many files as its hard limit permits; a thousand pairs need two thousand sockets.
pub fn raise_file_limit() {
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // A failure is ignored: opening one socket too many reports it.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// Round trips in one measurement; their median is taken.
const ROUND_TRIPS: usize = 40;

/// Measures how long waking a thread on the same core and on another core takes. This takes a few milliseconds.
#[must_use]
pub fn wake_up() -> WakeUp {
    let cpus = allowed_cores();
    let pair = |a: Option<&usize>, b: Option<&usize>| Some(half_round_trip(*a?, *b?)).flatten();
    WakeUp {
        same_core_s: pair(cpus.first(), cpus.first()),
        other_core_s: pair(cpus.first(), cpus.get(1)),
    }
}

/// Half the median round trip, in seconds, of two threads on these cores that wake each other through event descriptors.
fn half_round_trip(first: usize, second: usize) -> Option<f64> {
    let there = EventFd::from_flags(EfdFlags::EFD_CLOEXEC).ok()?;
    let back = EventFd::from_flags(EfdFlags::EFD_CLOEXEC).ok()?;
    std::thread::scope(|scope| {
        let answerer = scope.spawn(|| {
            let placed = pin(second).is_ok();
            for _ in 0..ROUND_TRIPS {
                if there.read().is_err() || back.write(1).is_err() {
                    return false;
                }
            }
            placed
        });
        let caller = scope.spawn(|| {
            let placed = pin(first).is_ok();
            let mut times: Vec<u64> = Vec::with_capacity(ROUND_TRIPS);
            for _ in 0..ROUND_TRIPS {
                let before = clock::now();
                there.write(1).ok()?;
                back.read().ok()?;
                times.push((clock::now() - before).0);
            }
            times.sort_unstable();
            placed.then(|| stackline_core::time::Duration(times[ROUND_TRIPS / 2]).seconds() / 2.0)
        });
        let half = caller.join().ok().flatten();
        // Where either thread ran elsewhere, the figure would be of other cores.
        half.filter(|_| answerer.join().unwrap_or(false))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_that_is_not_there_is_refused_with_those_that_are() {
        let failure = pin(1023).unwrap_err();
        assert!(failure.hint.unwrap().contains("cores 0"));
    }

    #[test]
    fn waking_takes_time() {
        assert!(wake_up().same_core_s.unwrap() > 0.0);
    }
}
