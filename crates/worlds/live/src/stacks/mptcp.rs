//! `mptcp`: Multipath TCP of the kernel (RFC 8684); everything but the socket's protocol number is TCP's.

use super::{ip, tcp};
use crate::error::Result;
use crate::stacks::contract::{Connector, LiveConnectParameters, LiveListener, LiveStack};
use socket2::{Domain, Socket, Type};
use stackline_core::catalogue::{
    FlowControl, OptionTable, StackFacts, StackTable, least_mtu_of_family,
};
use stackline_os::stream_socket::IPPROTO_MPTCP;

const TABLE: StackTable = StackTable {
    name: "mptcp",
    ecn: true,
    summary: "the kernel's Multipath TCP (RFC 8684)",
    // MPTCP sockets take no MSG_ZEROCOPY.
    options: OPTIONS,
    mapping: tcp::MAPPING,
    facts: StackFacts {
        flow_control: FlowControl::KernelBuffers,
        ..StackTable::RELIABLE.facts
    },
    exclusive: tcp::EXCLUSIVE.split_at(1).0,
    least_mtu: least_mtu_of_family,
    ..StackTable::RELIABLE
};

/// TCP's options without the first two, `zerocopy` and `fastopen`, and the last one, `ttl`, which its sockets refuse.
const OPTIONS: &[OptionTable] = {
    let without_first = tcp::OPTIONS.split_at(2).1;
    without_first.split_at(without_first.len() - 1).0
};

/// The stack `mptcp`.
pub(super) struct Mptcp;

impl LiveStack for Mptcp {
    fn table(&self) -> &'static StackTable {
        &TABLE
    }

    fn probe(&self) -> Result<()> {
        Socket::new(Domain::IPV4, Type::STREAM, Some(IPPROTO_MPTCP.into()))
            .map(drop)
            .map_err(|e| ip::socket_unavailable(TABLE.name, &e))
    }

    fn listen(&self, parameters: &LiveConnectParameters) -> Result<Box<dyn LiveListener>> {
        tcp::listen(parameters, Some(IPPROTO_MPTCP.into()))
    }

    fn connector(
        &self,
        parameters: &LiveConnectParameters,
        address: &str,
    ) -> Result<Box<dyn Connector>> {
        tcp::connector(parameters, address, Some(IPPROTO_MPTCP.into()))
    }
}
