//! Captures, pcapng and pcap: each TCP segment with data becomes an event `NET_SEEN` with its stream and byte range, so that it
//! joins the data units whose bytes it carries; a range that the same capture saw before is a `TCP_RETRANSMIT` too.
//!
//! Of each connection there is one `TCP_CONNECTION` besides, with what all of its packets together say (`accounts`), and its requests
//! as `stackline-requests` tells them: each capture is a door of a host. Captures are read twice: a [`Survey`] of each tells whose door
//! it is and how its clock differs (`doors`, `clocks`), which makes a [`CapturePlan`]; then a [`CaptureEventReader`] reads all of them together, in the
//! order of time.
//!
//! Offsets count from the SYN. Where a capture begins later, they count from the first segment seen, which is reported. Of other
//! packets only that they were there is kept.

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
