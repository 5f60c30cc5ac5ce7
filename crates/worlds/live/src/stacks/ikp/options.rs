//! The options of the stack `ikp`: parsed from a job's parameters, and reported in its record.

use crate::error::{Error, Result};
use crate::stacks::contract::LiveConnectParameters;
use crate::stacks::ip_options::carried_marks;
use crate::stacks::stream::Receive;
use stackline_proto::ikp::IkpOptions as Machine;
use stackline_proto::ikp::stack;
use stackline_transfer::PacketWaiting;
use stackline_transfer::ikp::IkpTransferOptions;
use stackline_transfer::udp::UdpCarrierOptions;
use std::collections::BTreeMap;

/// The options of a client or a server.
pub(super) fn parse_options(parameters: &LiveConnectParameters) -> Result<IkpTransferOptions> {
    let machine = stack::options(&parameters.stack, 0).map_err(|what| {
        Error::input(what)
            .hint("omit the option, or see `stackline stacks` for what the stack supports")
    })?;
    let spins = Receive::new(&parameters.stack) == Receive::Spin;
    Ok(IkpTransferOptions {
        waiting: if spins {
            PacketWaiting::Spin
        } else {
            PacketWaiting::Block
        },
        udp: carried_marks(&parameters.stack, UdpCarrierOptions::new()),
        ..IkpTransferOptions::new(machine)
    })
}

/// The settings in force, by option name.
pub(super) fn settings(machine: &Machine) -> BTreeMap<String, String> {
    stack::settings(machine)
        .into_iter()
        .map(|(name, value)| (name.to_string(), value))
        .collect()
}
