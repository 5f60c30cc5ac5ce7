//! One direction of a link, in parts that know nothing of each other: what puts bits onto it, what it does to packets.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`transmitter`] | when the last bit of a packet has gone onto the link |
//! | [`loss`] | which packets it loses |
//! | [`wander`] | what it adds to their delay, and which arrive twice |

pub mod loss;
pub mod transmitter;
pub mod wander;
