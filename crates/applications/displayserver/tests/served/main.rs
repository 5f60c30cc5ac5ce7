//! A display on sockets: its clients, browsers that look on, whoever is sent away, one file a subject.
#![allow(
    clippy::unwrap_used,
    reason = "what helpers of a test cannot do fails the test"
)]

#[path = "../common/mod.rs"]
mod common;
mod support;

mod browsers;
mod clients;
mod page;
mod strangers;
