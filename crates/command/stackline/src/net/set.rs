//! `stackline net set`: changes a link of a network that is up.

use super::host_network::declared_in;
use crate::checked_plan::mistake_shown;
use crate::exit::{Exit, Result};
use crate::flags::NetSet;
use crate::output;
use stackline_core::network::{Network, NetworkLink};
use stackline_runner::link_by_text::{self, LinkValues, link_name, link_named, link_with};
use stackline_runner::running_networks::join_network;

/// Changes a link of a network that is up.
pub(super) fn set(flags: &NetSet) -> Result {
    let (mut emulation, description) = join_network(&flags.network, declared_in)?;
    let network = &description.network;
    let link = link_named(network, &flags.link)?;
    let values = LinkValues {
        rate: flags.rate.clone(),
        delay: flags.delay.clone(),
        loss: flags.loss.clone(),
        queue: flags.queue.clone(),
    };
    let new = link_with(&values, network, &network.links[link]).map_err(mistake_shown)?;
    emulation.change(link, new)?;
    output::print(&format!(
        "link {} of network {} was changed\n",
        link_name(&network.links[link]),
        network.name
    ))?;
    Ok(Exit::Done)
}

/// The link that a text names, and the link with the changes of the text. Mistakes in the text are printed with their
/// places.
pub(crate) fn link_of_text(network: &Network, text: &str) -> Result<(usize, NetworkLink)> {
    link_by_text::link_of_text(network, text).map_err(mistake_shown)
}
