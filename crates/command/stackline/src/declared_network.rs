//! Finds the declared network in which a command is to be carried out.

use crate::checked_plan::{Specification as _, source_of};
use crate::exit::Result;
use crate::flags::SpecTextFlags;
use stackline_core::network::Network;
use stackline_runner::network_stack::choose_one_network;
use std::path::Path;

/// The network to use: the only one of a specification, or the one named `name`.
pub(crate) fn network_of(spec: Option<&Path>, name: Option<&str>) -> Result<Network> {
    let text = SpecTextFlags {
        spec: spec.map(Path::to_path_buf),
        ..SpecTextFlags::default()
    };
    let source = source_of(&text)?;
    choose_one_network(source.declarations(&text)?.networks, &source.name, name)
}
