//! Clients in other languages: their own tests are run, and what they write is read back by this crate.
#![allow(
    clippy::unwrap_used,
    reason = "what helpers of a test cannot do fails the test"
)]

mod c;
mod common;
mod documents;
mod python;
