//! The list of the simulated stacks; each stack has a file or folder of its own here.

use crate::error::{Error, Result};
use pair::SimStack;
use stackline_core::catalogue::StackTable;
use stackline_core::plan;
use stackline_proto::tcp::TcpOptions;

mod blast;
mod byte_stream;
mod discard;
mod ikp;
pub(crate) mod ip_options;
mod layered;
mod linux_tcp;
mod ncp;
mod packet_end;
mod packet_pair;
pub(crate) mod packet_wire;
pub(crate) mod pair;
mod quic;
mod segments;
mod send_credit;
mod smol;
mod stream;
mod tcp;
mod tcp_wire;
mod time_accounting;
mod udp;
mod udp_socket;

static ALL: &[&SimStack] = &[
    &tcp::LINUX,
    &tcp::SMOLTCP,
    &layered::TLS,
    &layered::HTTP1,
    &layered::HTTP2,
    &udp::STACK,
    &discard::STACK,
    &quic::STACK,
    &blast::SAW,
    &blast::WINDOW,
    &blast::BLAST,
    &ikp::STACK,
    &ncp::STACK,
];

/// The tables of all simulated stacks.
#[must_use]
pub fn stack_tables() -> Vec<StackTable> {
    ALL.iter().map(|stack| *stack.table).collect()
}

/// The options of the `tcp` machine, for packets of at most `mtu` bytes.
///
/// # Errors
/// An [`Error`] when the stack is not `tcp`, or does not accept its options.
pub(crate) fn tcp_options(stack: &plan::Stack, mtu: u32, ecn: bool) -> Result<TcpOptions> {
    if stack.name != linux_tcp::TABLE.name {
        return Err(Error::input(format!(
            "application messages are carried over tcp, not over {}",
            stack.name
        )));
    }
    linux_tcp::TABLE.accepts(stack)?;
    Ok(linux_tcp::linux_tcp_options(stack, mtu, ecn))
}

/// Finds a stack by its name.
///
/// # Errors
/// An [`Error`] when it is not simulated.
pub(crate) fn find_stack(name: &str) -> Result<&'static SimStack> {
    ALL.iter()
        .copied()
        .find(|stack| stack.table.name == name)
        .ok_or_else(|| {
            let known: Vec<&str> = ALL.iter().map(|stack| stack.table.name).collect();
            Error::input(format!("the stack {name} is not simulated"))
                .hint(format!("the simulated stacks are {}", known.join(", ")))
        })
}
