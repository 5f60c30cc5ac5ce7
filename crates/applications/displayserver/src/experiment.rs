//! Experiments with a display in virtual time: the testbed as a person describes it, and which of its factors matter.

mod carrier;
pub mod combinations;
pub mod factors;
mod next_steps;
pub mod testbed;
pub mod two_clients;
