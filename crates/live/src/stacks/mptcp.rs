//! `mptcp`: Multipath TCP of the kernel (RFC 8684); everything but the socket's protocol number is TCP's.

use super::{Dialer, Listener, Protocol, Terms, tcp};
use crate::fault::Result;
use crate::sys::socket::IPPROTO_MPTCP;
use stackline_core::catalogue::{OptionTable, StackTable};

const TABLE: StackTable = StackTable {
    name: "mptcp",
    summary: "the kernel's Multipath TCP (RFC 8684)",
    least_unit: 1,
    largest_unit: 1 << 30,
    least_bulk_unit: 1,
    reliable: true,
    one_host: false,
    files: true,
    // MPTCP sockets take no MSG_ZEROCOPY.
    options: OPTIONS,
    mapping: tcp::MAPPING,
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
