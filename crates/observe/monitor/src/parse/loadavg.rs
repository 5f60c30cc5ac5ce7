//! Parses `/proc/loadavg`.

/// The mean numbers of tasks that run or wait for a disk, and the present numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct LoadAverage {
    /// The means over 1, 5 and 15 minutes.
    pub(crate) means: [f64; 3],
    /// Tasks able to run now.
    pub(crate) running: u64,
    /// Tasks that exist.
    pub(crate) tasks: u64,
}

/// Reads the line; `None` when it is incomplete.
pub(crate) fn parse(text: &str) -> Option<LoadAverage> {
    let mut words = text.split_ascii_whitespace();
    let mut means = [0.0; 3];
    for mean in &mut means {
        *mean = super::parse_finite(words.next()?)?;
    }
    let (running, tasks) = words.next()?.split_once('/')?;
    Some(LoadAverage {
        means,
        running: running.parse().ok()?,
        tasks: tasks.parse().ok()?,
    })
}
