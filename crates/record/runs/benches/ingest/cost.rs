//! What a process costs: CPU seconds, wall and memory, and what it said.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// One process's cost.
#[derive(Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) cpu_s: f64,
    pub(crate) wall_s: f64,
    pub(crate) memory_mb: f64,
}

/// What a process and its threads cost, and what it said.
pub(crate) fn cost(command: &mut Command) -> Result<(Cost, String), Box<dyn std::error::Error>> {
    // The shell's `time` would round; GNU time is not everywhere. What children took is in /proc of this one.
    let (begin, before) = (Instant::now(), children()?);
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut memory_mb = 0.0_f64;
    while child.try_wait()?.is_none() {
        memory_mb = memory_mb.max(resident(child.id()));
        std::thread::sleep(Duration::from_millis(20));
    }
    let wall_s = begin.elapsed().as_secs_f64();
    let done = child.wait_with_output()?;
    assert!(done.status.success(), "{command:?}");
    Ok((
        Cost {
            cpu_s: children()? - before,
            wall_s,
            memory_mb,
        },
        String::from_utf8(done.stdout)?,
    ))
}

/// CPU seconds of all children that were waited for.
fn children() -> Result<f64, Box<dyn std::error::Error>> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or("").split(' ').collect();
    // cutime and cstime, in hundredths.
    Ok((fields[13].parse::<f64>()? + fields[14].parse::<f64>()?) / 100.0)
}

/// The most memory a process had, MB.
fn resident(process: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok())
        .unwrap_or(0.0)
        / 1e3
}

/// The least, the median and the most of a figure.
pub(crate) fn middle(costs: &[Cost], of: impl Fn(&Cost) -> f64) -> (f64, f64, f64) {
    let mut values: Vec<f64> = costs.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    (
        values[0],
        values[values.len() / 2],
        values[values.len() - 1],
    )
}
