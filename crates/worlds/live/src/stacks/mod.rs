//! The communication operations of the language on each protocol stack: one file a stack, its line here.

use crate::error::{Error, Result};
use contract::Protocol;
use stackline_core::catalogue::StackTable;

mod authentication;
mod blast;
pub mod contract;
mod ikp;
mod ip;
mod mptcp;
mod stream;
mod tcp;
mod trace;
mod udp;
mod unix;

pub(crate) use trace::FlowTrace;
pub(crate) use unix::over as stream_over;

const ALL: &[&dyn Protocol] = &[
    &tcp::Tcp,
    &mptcp::Mptcp,
    &unix::Unix,
    &udp::Udp,
    &blast::SAW,
    &blast::WINDOW,
    &blast::BLAST,
    &ikp::Ikp,
];

/// The stack of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Protocol> {
    ALL.iter().copied().find(|stack| stack.table().name == name)
}

/// The stack of that name.
///
/// # Errors
/// An [`Error`] when there is none.
pub fn named(name: &str) -> Result<&'static dyn Protocol> {
    let failure = || {
        Error::input(format!("this agent has no stack named {name}"))
            .hint("`stackline stacks` lists them")
    };
    find(name).ok_or_else(failure)
}

/// The tables of all stacks.
#[must_use]
pub fn catalogue() -> Vec<StackTable> {
    ALL.iter().map(|stack| *stack.table()).collect()
}
