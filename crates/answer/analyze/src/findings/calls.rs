//! What limits calls, each of which waits for an answer.

pub(super) mod connection_per_call;
mod held_arrivals;
pub(super) mod nagle_delayed_ack;
pub(super) mod serial_round_trips;
