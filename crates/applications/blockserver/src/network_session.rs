//! What an emulated and a simulated session on a declared network have in common: the roles of its hosts (client, master, disk servers) and
//! the set of blocks that is loaded.

use stackline_blocks::limits::USUAL_BLOCK;
use stackline_blocks::placement::BlockPlacementPolicy;
use stackline_blocks::pyramid::Pyramid;
use stackline_blocks::set::BlockSet;
use stackline_core::error::{Error, Result};
use stackline_core::network::Network;

/// Pixels of a tile's side, and bytes of a pixel: a tile is 128 * 128 * 3 bytes, a block of 48 KiB.
const TILE: (u16, u8) = (128, 3);

/// The roles that the user has assigned to hosts; the others follow from the network ([`Roles::assign`]).
#[derive(Clone, Debug, Default)]
pub struct WantedRoles {
    /// The client's.
    pub client: Option<String>,
    /// The master's.
    pub master: Option<String>,
    /// Those of disk servers.
    pub servers: Vec<String>,
}

/// The name of the host in each role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roles {
    /// The client's.
    pub client: String,
    /// The master's.
    pub master: String,
    /// Those of disk servers.
    pub servers: Vec<String>,
}

impl Roles {
    /// The wanted roles. By default, the client is the last host that is not named `master`; the master is the host named `master`, or else
    /// the client's host; all other hosts are servers.
    ///
    /// # Errors
    /// When a wanted host is not in the network, or no host is left for a server.
    pub fn assign(wanted: &WantedRoles, network: &Network) -> Result<Self> {
        let names: Vec<&str> = network
            .hosts
            .iter()
            .map(|host| host.name.as_str())
            .collect();
        let known = |name: &String| {
            let hint = format!("hosts are {}", names.join(", "));
            let found = names.contains(&name.as_str()).then(|| name.clone());
            found.ok_or_else(|| {
                Error::input(format!("the network {} has no host {name}", network.name)).hint(hint)
            })
        };
        let last = names
            .iter()
            .rev()
            .find(|name| **name != "master")
            .unwrap_or(&"");
        let client = wanted
            .client
            .as_ref()
            .map_or(Ok((*last).to_owned()), known)?;
        let master = match &wanted.master {
            Some(name) => known(name)?,
            None => names
                .iter()
                .find(|name| **name == "master")
                .map_or_else(|| client.clone(), |name| (*name).into()),
        };
        let servers: Vec<String> = if wanted.servers.is_empty() {
            let others = names
                .iter()
                .filter(|name| **name != client && **name != master);
            others.map(|name| (*name).to_owned()).collect()
        } else {
            wanted.servers.iter().map(known).collect::<Result<_>>()?
        };
        if servers.is_empty() {
            let hint = "declare a host for each disk server, or name one with --server HOST";
            return Err(Error::input(format!(
                "no host in the network {} is left for a server",
                network.name
            ))
            .hint(hint));
        }
        Ok(Self {
            client,
            master,
            servers,
        })
    }
}

/// The set that is loaded: a picture of this many pixels, with `replicas` copies of each block.
#[must_use]
pub fn picture_set(width: u32, height: u32, replicas: u8) -> BlockSet {
    let (tile, pixel_bytes) = TILE;
    let picture = Pyramid {
        width,
        height,
        tile,
        pixel_bytes,
    };
    BlockSet {
        name: "picture".into(),
        block_size: USUAL_BLOCK,
        bytes: picture.tiles() * u64::from(USUAL_BLOCK),
        replicas,
        placement: BlockPlacementPolicy::Tiles,
        picture: Some(picture),
    }
}
