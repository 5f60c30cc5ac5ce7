//! Units that events follow over hosts where nothing was measured: blocks, requests of a display.

pub(super) mod between;
pub(super) mod left_over;
pub(super) mod limits;
pub(super) mod monitored;
pub(super) mod network;
pub(super) mod session;
pub(super) mod transport;
pub(super) mod turns;
