//! What happens in a network's machine, recorded.

mod captures;
mod events;
mod frames;
mod names;
mod packet;
mod range;
mod recorder;
#[cfg(test)]
mod testing;

pub(crate) use events::Stamp;
pub(crate) use frames::{Carries, FlowAt, Frames};
pub(crate) use packet::Streams;
pub(crate) use recorder::Recorder;
