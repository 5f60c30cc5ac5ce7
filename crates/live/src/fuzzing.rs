//! Doors to what is private, for the fuzz targets; nothing else uses them and nothing is promised.

use crate::stacks::{self, Losses};

/// What a datagram says that may be control: its kind and its value.
#[must_use]
pub fn control_datagram(bytes: &[u8], token: &stacks::Token) -> Option<(u8, u64)> {
    stacks::read_control(bytes, token)
}

/// Which of the numbers are new, and what is known when the sender says it sent `sent`.
#[must_use]
pub fn arrivals(numbers: &[u64], sent: u64) -> (Vec<bool>, Losses) {
    let mut sequence = stacks::Sequence::new();
    let new = numbers.iter().map(|number| sequence.arrived(*number)).collect();
    (new, sequence.losses(sent))
}
