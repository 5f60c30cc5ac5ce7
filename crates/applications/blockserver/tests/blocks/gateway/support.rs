//! What a set holds, and a master that is started again.

use crate::common::{self, Site, content};
use stackline_blocks::set::BlockSet;

/// All bytes of a set of [`common::set`].
pub(crate) fn all(about: &BlockSet) -> Vec<u8> {
    (0..about.blocks())
        .flat_map(|number| content(number, about.length(number) as usize))
        .collect()
}

/// The master of a site at that address, after it was stopped.
pub(crate) fn restarted(
    site: &Site,
    address: std::net::SocketAddr,
) -> stackline_blockserver::master::RunningMaster {
    let data = site.directory.path().join("master");
    common::master_again(&data, &site.key, address)
}
