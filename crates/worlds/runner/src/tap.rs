//! What happens in a network's machine, recorded.

mod captures;
mod events;
mod names;
mod packet;
mod recorder;
#[cfg(test)]
mod testing;

pub(crate) use captures::Site;
pub(crate) use events::Stamp;
pub(crate) use packet::Streams;
pub(crate) use recorder::Recorder;
