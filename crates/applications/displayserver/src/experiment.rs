//! Experiments with a display in virtual time: where it is and what lies between, as a person says it, and which of that matters.

mod carrier;
pub mod combinations;
pub mod factors;
mod next_steps;
pub mod testbed;
