//! What delays messages in a network of IMPs (Interface Message Processors, the packet switches of the ARPANET).

pub(super) mod processors;
pub(super) mod waits;
