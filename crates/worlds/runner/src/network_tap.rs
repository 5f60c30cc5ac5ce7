//! Records the events of a network model: as event logs and as packet captures.

mod captures;
mod events;
mod names;
mod packet;
mod recorder;
#[cfg(test)]
mod testing;

pub(crate) use captures::{CapturePoint, CaptureSite, CapturedPorts};
pub(crate) use events::TraceClockStamp;
pub(crate) use packet::PacketStreams;
pub(crate) use recorder::RunTapRecorder;
