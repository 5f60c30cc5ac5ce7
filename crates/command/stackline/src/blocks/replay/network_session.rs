//! A session on a declared network, whatever the world: the network, which of its hosts is what, the set that is loaded, the stack.

use crate::exit::{Error, Result};
use crate::flags::Replay;
use crate::network_stack;
use stackline_blocks::limits::USUAL_BLOCK;
use stackline_blocks::placement::BlockPlacementPolicy;
use stackline_blocks::pyramid::Pyramid;
use stackline_blocks::set::BlockSet;
use stackline_core::network::Network;
use stackline_core::plan::{Stack, World};

/// Pixels of a tile's side, and bytes of a pixel: a tile is a block of 48 KiB.
const TILE: (u16, u8) = (128, 3);

/// Which host is what.
pub(super) struct Roles {
    pub(super) client: String,
    pub(super) master: String,
    pub(super) servers: Vec<String>,
}

impl Roles {
    /// As the flags say, else the last host is the client, `master` the master, and the others are servers.
    pub(super) fn of(flags: &Replay, network: &Network) -> Result<Self> {
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
        let client = flags
            .client
            .as_ref()
            .map_or(Ok((*last).to_owned()), known)?;
        let master = match &flags.master_host {
            Some(name) => known(name)?,
            None => names
                .iter()
                .find(|name| **name == "master")
                .map_or_else(|| client.clone(), |name| (*name).into()),
        };
        let servers: Vec<String> = if flags.server.is_empty() {
            let others = names
                .iter()
                .filter(|name| **name != client && **name != master);
            others.map(|name| (*name).to_owned()).collect()
        } else {
            flags.server.iter().map(known).collect::<Result<_>>()?
        };
        if servers.is_empty() {
            let hint = "declare a host for each disk server, or name one with --server HOST";
            return Err(Error::input(format!(
                "no host of the network {} is a server",
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

/// The network that is meant.
pub(super) fn network(flags: &Replay) -> Result<Network> {
    network_stack::network(flags.across.as_deref(), flags.network.as_deref())
}

/// The set that is loaded: a picture, or blocks of no picture where none is viewed.
pub(super) fn set(flags: &Replay) -> BlockSet {
    let (width, height) = flags.picture;
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
        replicas: flags.replicas,
        placement: BlockPlacementPolicy::Tiles,
        picture: Some(picture),
    }
}

/// The stack of `--over` as that world takes it, with the receive buffer that another flag asks for.
pub(super) fn stack(flags: &Replay, world: World) -> Result<Stack> {
    let stack = judged(&flags.over, world)?;
    let Some(bytes) = flags.receive_buffer else {
        return Ok(stack);
    };
    if stack.options.contains_key("receive_buffer") {
        let error =
            Error::input("--receive-buffer and --over both say how large receive buffers are");
        return Err(error.hint("leave one of them out"));
    }
    let option = format!("receive_buffer = {bytes} bytes");
    let over = flags.over.trim();
    judged(
        &match over.strip_suffix(')') {
            Some(others) => format!("{others}, {option})"),
            None => format!("{over}({option})"),
        },
        world,
    )
}

/// `tcp` as its table has it: what is not possible there is refused.
fn judged(over: &str, world: World) -> Result<Stack> {
    let stack = network_stack::stack(over, world)?;
    if stack.name != "tcp" {
        let error = Error::input(format!("--over {over}: lists and blocks go over tcp"));
        return Err(error.hint("its options are of use: --over 'tcp(receive_buffer = 128 KiB)'"));
    }
    Ok(stack)
}
