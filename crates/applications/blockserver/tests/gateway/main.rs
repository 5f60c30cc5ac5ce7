//! The gateway as HTTP clients meet it, good and bad ones, one file a subject.
#![allow(
    clippy::unwrap_used,
    reason = "what helpers of a test cannot do fails the test"
)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../http/mod.rs"]
mod http;
mod support;

mod bad_clients;
mod changed_sets;
mod failures;
mod lists;
mod pictures;
mod reads;
