//! Two network namespaces joined by a veth pair with an MTU of 1500. They are held by descriptors alone, so they are gone
//! with the process, however it ends.

use crate::Failure;
use nix::sched::{CloneFlags, CpuSet, sched_setaffinity, setns, unshare};
use nix::unistd::Pid;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::thread;

/// Address of the receiving side.
pub(crate) const SERVER: &str = "10.55.0.2";

/// A pair of namespaces, the sender's first.
pub(crate) struct Pair([File; 2]);

/// Runs a program in a namespace.
fn run(space: &File, program: &str, words: &[&str]) -> Result<(), Failure> {
    let output = thread::scope(|scope| {
        let run = || -> Result<_, Failure> {
            setns(space, CloneFlags::CLONE_NEWNET)?;
            let output = Command::new(program).args(words).output();
            Ok(output.map_err(|error| format!("{program}: {error}"))?)
        };
        scope.spawn(run).join().map_err(|_| "a thread panicked")?
    })?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!(
        "{program} {}: {}",
        words.join(" "),
        String::from_utf8_lossy(&output.stderr).trim()
    )
    .into())
}

/// Runs `ip` in a namespace.
fn ip(space: &File, words: &str) -> Result<(), Failure> {
    run(space, "ip", &words.split_whitespace().collect::<Vec<_>>())
}

fn space() -> Result<File, Failure> {
    let make = || -> Result<File, Failure> {
        unshare(CloneFlags::CLONE_NEWNET)?;
        Ok(File::open("/proc/thread-self/ns/net")?)
    };
    thread::spawn(make)
        .join()
        .map_err(|_| "a thread panicked")?
}

impl Pair {
    /// Needs root.
    pub(crate) fn new() -> Result<Self, Failure> {
        let pair = Self([space()?, space()?]);
        let [a, b] = &pair.0;
        let there = format!("/proc/{}/fd/{}", std::process::id(), b.as_raw_fd());
        ip(
            a,
            &format!("link add v0 mtu 1500 type veth peer name v0 mtu 1500 netns {there}"),
        )?;
        for (space, address) in [(a, "10.55.0.1/24"), (b, "10.55.0.2/24")] {
            ip(space, "link set lo up")?;
            ip(space, &format!("address add {address} dev v0"))?;
            ip(space, "link set v0 up")?;
        }
        Ok(pair)
    }

    /// Runs a program in the namespace of a side.
    #[allow(dead_code, reason = "one of the benchmarks needs it")]
    pub(crate) fn run(&self, side: usize, program: &str, words: &[&str]) -> Result<(), Failure> {
        run(&self.0[side], program, words)
    }

    /// Puts the calling thread into a namespace and onto a core of its own.
    pub(crate) fn enter(&self, side: usize) -> Result<(), Failure> {
        setns(&self.0[side], CloneFlags::CLONE_NEWNET)?;
        let mut cores = CpuSet::new();
        cores.set(side)?;
        Ok(sched_setaffinity(Pid::from_raw(0), &cores)?)
    }
}
