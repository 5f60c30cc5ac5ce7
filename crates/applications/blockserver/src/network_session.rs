//! A session on a declared network, whatever the world: which of its hosts is what, and the set that is loaded.

use stackline_blocks::limits::USUAL_BLOCK;
use stackline_blocks::placement::BlockPlacementPolicy;
use stackline_blocks::pyramid::Pyramid;
use stackline_blocks::set::BlockSet;
use stackline_core::error::{Error, Result};
use stackline_core::network::Network;

/// Pixels of a tile's side, and bytes of a pixel: a tile is a block of 48 KiB.
const TILE: (u16, u8) = (128, 3);

/// Which host is what, as far as that is said.
#[derive(Clone, Debug, Default)]
pub struct WantedRoles {
    /// The client's.
    pub client: Option<String>,
    /// The master's.
    pub master: Option<String>,
    /// Those of disk servers.
    pub servers: Vec<String>,
}

/// Which host is what.
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
    /// As it is said, else the last host is the client, `master` the master, and the others are servers.
    ///
    /// # Errors
    /// When the network has not such hosts.
    pub fn of(wanted: &WantedRoles, network: &Network) -> Result<Self> {
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

/// The set that is loaded: a picture of so many pixels, with so many copies of each block.
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
