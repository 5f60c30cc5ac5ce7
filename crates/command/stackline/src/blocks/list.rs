//! `stackline blocks list`: prints sets, servers and disks as tables or JSON.

use crate::exit::{Exit, Result};
use crate::flags::BlocksList;
use crate::output;
use stackline_blockserver::client::{BlockClient, BlockClientOptions};
use stackline_blockserver::listing::{listing_json, listing_text};

/// Prints the sets and servers of a master.
pub(super) fn list(flags: &BlocksList) -> Result {
    let client = BlockClient::connect(&flags.at.master, BlockClientOptions::default())?;
    let (sets, servers) = client.list()?;
    match flags.json {
        true => output::json(&listing_json(&sets, &servers), true)?,
        false => output::print(&listing_text(&sets, &servers))?,
    }
    Ok(Exit::Done)
}
