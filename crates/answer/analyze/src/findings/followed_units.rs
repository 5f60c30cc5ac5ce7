//! Findings of a session: a run without measurements, whose units (blocks of a file, requests to a display) are followed from host to
//! host through their events.

pub(super) mod between;
pub(super) mod left_over;
pub(super) mod limits;
pub(super) mod monitored;
pub(super) mod network;
pub(super) mod session;
pub(super) mod transport;
pub(super) mod turns;
