//! What is around a run: clocks, processors, stopped processes, stages inside hosts, events that were lost.

pub(super) mod clock_trouble;
pub(super) mod cpu_limit;
pub(super) mod lost_events;
pub(super) mod paused_process;
pub(super) mod processors;
pub(super) mod stage_limited;
