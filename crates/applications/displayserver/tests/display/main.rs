//! A display on sockets: its clients and transports, programs on terminals, browsers that look on, whoever is disconnected, and the
//! benchmark in virtual time. One file a subject, all in one program, so that what waits does so side by side.
#![allow(
    clippy::unwrap_used,
    reason = "what helpers of a test cannot do fails the test"
)]

mod common;
mod support;

mod agent;
mod blast;
mod browser;
mod browsers;
mod clients;
mod internet;
mod messages;
mod ngp;
mod page;
mod pup;
mod simulated;
mod strangers;
mod terminal;
