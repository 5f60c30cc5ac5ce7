//! Those who serve the same blocks.

pub(crate) mod bare;
pub(crate) mod nginx;
pub(crate) mod redis;

use std::time::Duration;

/// What a round took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub(crate) blocks: u64,
    pub(crate) wall: Duration,
    pub(crate) server_cpu_s: f64,
}

impl Figures {
    pub(crate) fn cpu_us_a_block(&self) -> f64 {
        self.server_cpu_s / self.blocks as f64 * 1e6
    }

    pub(crate) fn gigabytes_a_second(&self) -> f64 {
        (self.blocks * super::BLOCK as u64) as f64 / self.wall.as_secs_f64() / 1e9
    }
}

/// Somebody who serves blocks.
pub(crate) trait Peer {
    fn name(&self) -> &'static str;
    fn round(&mut self) -> Figures;
}

/// CPU seconds of a process, all of its threads.
pub(crate) fn cpu_of(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit_once(") ").map_or(Vec::new(), |(_, rest)| rest.split(' ').collect());
    let field = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (field(11) + field(12)) / 100.0
}
