//! Block servers, their master and the gateway on loopback; sessions in virtual time and what is found in them. One file a subject, all
//! in one program, so that what waits does so side by side.
#![allow(
    clippy::unwrap_used,
    reason = "what helpers of a test cannot do fails the test"
)]

mod common;
mod http;

mod findings;
mod gateway;
mod hostile;
mod ownership;
mod replay;
mod simulated;
mod site;
mod slow;
mod view;
