//! The data path: frames of real programs through the network model in real time.

pub(crate) mod buffer;
pub(crate) mod frame;
pub(crate) mod header;
#[cfg(test)]
pub(crate) mod samples;
