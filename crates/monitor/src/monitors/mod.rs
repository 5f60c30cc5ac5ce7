//! The list of monitors.

pub(crate) mod clock_steps;
pub(crate) mod memory;
pub(crate) mod network;
pub(crate) mod process;
pub(crate) mod processor;
pub(crate) mod sample;
pub(crate) mod tcp;
