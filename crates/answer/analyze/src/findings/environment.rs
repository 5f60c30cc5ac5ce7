//! Kinds of findings about the hosts of a run: clocks, processors, stopped processes, busy stages inside hosts, lost events.

pub(super) mod clock_trouble;
pub(super) mod cpu_limit;
pub(super) mod lost_events;
pub(super) mod paused_process;
pub(super) mod processors;
pub(super) mod stage_limited;
