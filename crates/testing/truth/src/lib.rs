//! Random specifications whose limits are known, for testing what names limits.
//!
//! A [`Scenario`] is drawn at random: a network, a transfer or calls over it, and perhaps planted causes. It can be written as a
//! specification, and each [`LimitCause`] takes one possible cause away from it. Whoever runs both knows how much time the cause
//! cost: that is what findings are compared with. This crate draws and writes; it runs nothing.
//!
//! | module | one idea |
//! | --- | --- |
//! | `scenario` | what is drawn, and from which ranges |
//! | `specification_text` | a scenario as a specification |
//! | `link_conduct` | what the narrow link does besides: disciplines, jitter, changing rates, outages |
//! | `limit_cause` | what can be taken away |
//! | `dice` | random numbers in ranges |
//! | `judge` | what is true by removal |

pub mod dice;
pub mod judge;
pub mod limit_cause;
pub mod link_conduct;
pub mod scenario;
mod specification_text;

pub use limit_cause::LimitCause;
pub use scenario::Scenario;
