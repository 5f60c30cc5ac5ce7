//! `mptcp`: Multipath TCP of the kernel (RFC 8684); everything but the socket's protocol number is TCP's.

use super::{Dialer, Listener, Protocol, Terms, tcp};
use crate::fault::Result;
use crate::sys::socket::IPPROTO_MPTCP;
use stackline_core::catalogue::{FlowControl, OptionTable, StackFacts, StackTable};

const TABLE: StackTable = StackTable {
    name: "mptcp",
    summary: "the kernel's Multipath TCP (RFC 8684)",
    // MPTCP sockets take no MSG_ZEROCOPY.
    options: OPTIONS,
    mapping: tcp::MAPPING,
    facts: StackFacts { flow_control: FlowControl::KernelBuffers, ..StackTable::RELIABLE.facts },
    ..StackTable::RELIABLE
};

const OPTIONS: &[OptionTable] = tcp::OPTIONS.split_at(tcp::OPTIONS.len() - 1).0;

/// The stack.
pub(super) struct Mptcp;

impl Protocol for Mptcp {
    fn table(&self) -> &'static StackTable {
        &TABLE
    }

    fn listen(&self, terms: &Terms) -> Result<Box<dyn Listener>> {
        tcp::listen(terms, Some(IPPROTO_MPTCP.into()))
    }

    fn dial(&self, terms: &Terms, address: &str) -> Result<Box<dyn Dialer>> {
        tcp::dial(terms, address, Some(IPPROTO_MPTCP.into()))
    }
}
