//! What the kinds of findings share about one measurement: its parts and paths, how its endpoints spent their time, which events explain
//! which waits.

pub(super) mod account;
pub(super) mod answered_time;
pub(super) mod context;
pub(super) mod correlate;
pub(super) mod endpoints;
pub(super) mod kernel_account;
pub(super) mod link_outages;
pub(super) mod loss_cost;
pub(super) mod measurement;
pub(super) mod needless_resends;
pub(super) mod outage_costs;
pub(super) mod parallel_parts;
pub(super) mod part;
pub(super) mod path;
pub(super) mod receive_backlog;
pub(super) mod turns;
