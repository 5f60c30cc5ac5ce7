//! Reads captures (pcapng and pcap). Each TCP segment with data becomes an event `NET_SEEN` with its stream and byte range, which joins
//! it to the data units whose bytes it carries; a range that the same capture saw before becomes a `TCP_RETRANSMIT` too.
//!
//! Each connection also gets one `TCP_CONNECTION` event, which sums up all its packets (`connection_accounts`), and its requests as
//! `stackline-requests` finds them. Captures are read twice: a [`Survey`] of each finds out which host it was taken at and how its clock
//! differs (`host_addresses`, `clocks`), which makes a [`CapturePlan`]; then a [`CaptureEventReader`] reads all of them together in the
//! order of time. A capture counts as a door of its host: a place where its packets enter and leave.
//!
//! Offsets count from the SYN; where a capture begins later, they count from the first segment seen, which is reported. Packets that are
//! neither TCP nor UDP are only counted.

mod captured_request;
mod clock_steps;
mod clocks;
mod connection_accounts;
mod host_addresses;
mod host_names;
mod packet_copies;
mod packet_words;
mod reading;
mod survey;

pub use captured_request::CapturedRequest;
pub use host_addresses::CapturePlan;
pub use reading::{CaptureEventReader, CaptureReadOptions, FIRST_LOOKUP, Finished};
pub use stackline_dissect::connections::StreamRegistry;
pub use survey::Survey;

#[cfg(test)]
mod bounds_tests;
#[cfg(test)]
mod quic_tests;
#[cfg(test)]
mod tests;
