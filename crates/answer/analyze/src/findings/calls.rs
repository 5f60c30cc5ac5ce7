//! Kinds of findings about calls: requests whose sender waits for the answer before it goes on.

pub(super) mod connection_per_call;
pub(super) mod far_end_takes;
pub(super) mod head_of_line_blocking;
mod held_arrivals;
pub(super) mod nagle_delayed_ack;
pub(super) mod serial_round_trips;
