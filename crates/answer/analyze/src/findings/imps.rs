//! What holds messages up within a network of IMPs.

pub(super) mod processors;
pub(super) mod waits;
