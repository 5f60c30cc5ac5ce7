//! One direction of a link, in parts that know nothing of each other: what puts bits onto it, what it does to packets.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`transmitter`] | when the last bit of a packet has gone onto the link |

pub mod transmitter;
