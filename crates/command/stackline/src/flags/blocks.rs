//! The command line of `blocks`: the parallel block server started, filled, read. Nothing here touches the machine.

#![allow(
    rustdoc::broken_intra_doc_links,
    reason = "brackets in the help are not links"
)]

mod gateway;
mod replay;

use clap::{Args, Subcommand};
use stackline_blocks::limits;
use stackline_core::quantity::{parse_size, parse_size_or_none};
use std::net::SocketAddr;
use std::path::PathBuf;

pub(crate) use gateway::BlocksGateway;
pub(crate) use replay::{NetworkWorld, Replay};

pub(super) const AFTER: &str = "\
Examples:
  # once; copy the key to the other hosts
  stackline blocks key
  stackline blocks master &
  stackline blocks serve --master 127.0.0.1:7480 --disk /srv/a /srv/b &
  stackline blocks load kansas terrain:8192x8192
  # reads all of it and compares checksums
  stackline blocks get kansas

docs/BLOCKS.md describes the commands, the limits and the messages.";

#[derive(Args, Debug)]
pub(crate) struct BlocksFlags {
    #[command(subcommand)]
    pub(crate) command: BlocksCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BlocksCommand {
    /// Create the key needed to write blocks and to join as a server
    Key(BlocksKey),
    /// Run a master, which tracks the sets, where their blocks are, and which servers are up
    #[command(after_help = AFTER_MASTER)]
    Master(BlocksMaster),
    /// Run a disk server
    #[command(after_help = AFTER_SERVE)]
    Serve(BlocksServe),
    /// Store a file, a directory, a picture or generated terrain on the servers
    #[command(after_help = AFTER_LOAD)]
    Load(BlocksLoad),
    /// Read a set back at full speed and verify its checksums
    #[command(after_help = AFTER_GET)]
    Get(BlocksGet),
    /// List sets, servers and disks
    List(BlocksList),
    /// Delete a set
    Delete(BlocksDelete),
    /// Serve sets to HTTP clients: blocks, ranges, tiles, and a page that shows pictures
    #[command(after_help = gateway::AFTER)]
    Gateway(BlocksGateway),
    /// Request lists of blocks on a schedule, as a viewer does, and show what arrived in time
    #[command(after_help = replay::AFTER)]
    Replay(Box<Replay>),
    /// Run part of a session on a host of an emulated network (started by `replay`)
    #[command(hide = true)]
    Part(BlocksPart),
}

/// A part of a session.
#[derive(Args, Debug)]
pub(crate) struct BlocksPart {
    /// Its task, as JSON
    pub(crate) file: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct BlocksKey {
    /// The file to create; by default in the user's configuration directory
    pub(crate) file: Option<PathBuf>,
}

/// The file of a key.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct KeyFile {
    /// File with the key made by `stackline blocks key`; by default $STACKLINE_BLOCKS_KEY, else ~/.config/stackline/blocks.key
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,
}

/// The address of the master.
#[derive(Args, Clone, Debug)]
pub(crate) struct MasterFlags {
    /// The master's address
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "STACKLINE_BLOCKS_MASTER",
        default_value = "127.0.0.1:7480"
    )]
    pub(crate) master: String,
}

const AFTER_MASTER: &str = "\
Examples:
  # for this machine only
  stackline blocks master
  stackline blocks master --listen 10.0.0.5:7480 --data \\
      /var/lib/stackline-blocks

The master's address, printed once it is listening, is the only line on stdout; port 0 picks a free port. The master runs \
until Ctrl-C or TERM. Anyone who can reach it can read; writing and joining need the key. Without \
a key, it only serves the existing sets.";

#[derive(Args, Debug)]
pub(crate) struct BlocksMaster {
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7480")]
    pub(crate) listen: SocketAddr,
    /// Exit when standard input ends
    #[arg(long, hide = true)]
    pub(crate) with_stdin: bool,
    /// Directory for the master's data; by default $XDG_DATA_HOME/stackline/blocks
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) key: KeyFile,
}

const AFTER_SERVE: &str = "\
Examples:
  stackline blocks serve --master 10.0.0.5:7480 --disk /srv/a /srv/b \\
      --listen 10.0.0.6:0
  stackline blocks serve --disk /dev/nvme1n1 --direct --depth 32 --cache 4GiB \\
      --name rack1

A disk is a directory (one file is created in it), a file, or a block device; nothing else on the \
machine can be read or written. Restart a server with the same name and the same disks in the same \
order; append new disks. A disk belongs to the master that filled it: another master, or one that \
lost its records, is refused unless --adopt takes the disk over. A disk that cannot be \
written to is served read-only.";

#[derive(Args, Debug)]
pub(crate) struct BlocksServe {
    #[command(flatten)]
    pub(crate) at: MasterFlags,
    /// The disks to serve
    #[arg(long, value_name = "PATH", required = true, num_args = 1..)]
    pub(crate) disk: Vec<PathBuf>,
    /// Address for clients; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,
    /// Server name, kept across restarts; by default the host name
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Memory for cached blocks
    #[arg(long, value_name = "SIZE", value_parser = parse_size_or_none, default_value = "256MiB")]
    pub(crate) cache: u64,
    /// Size limit of each disk; by default the free space of a directory, or a whole device
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) size: Option<u64>,
    /// Take over disks that belong to another master; its blocks on them are lost
    #[arg(long)]
    pub(crate) adopt: bool,
    /// Bypass the system's page cache (O_DIRECT)
    #[arg(long)]
    pub(crate) direct: bool,
    /// Concurrent reads per disk
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256), default_value = "1")]
    pub(crate) depth: u16,
    /// Minimum time for a read, such as 10ms or 'bivalue(8 ms, 22 ms)', to imitate a slower disk
    #[arg(long, value_name = "TIME")]
    pub(crate) disk_time: Option<String>,
    /// Exit when standard input ends
    #[arg(long, hide = true)]
    pub(crate) with_stdin: bool,
    /// Send buffer of each client's connection; by default, the system sizes it for data in flight, and no block is started while 16 KiB or more is
    /// waiting to be sent
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) send_buffer: Option<u64>,
    #[command(flatten)]
    pub(crate) key: KeyFile,
}

const AFTER_LOAD: &str = "\
Examples:
  stackline blocks load backup big.tar
  # a directory; `get` restores it
  stackline blocks load photos ~/photos --replicas 2
  stackline blocks load kansas kansas.tif --placement tiles
  stackline blocks load demo terrain:2048x2048:7        # width, height, seed

A picture (PNG, JPEG, TIFF, GeoTIFF) becomes a pyramid of tiles of 128 by 128 pixels, 48 KiB each, \
first built in an unnamed file in $TMPDIR that is as large as the set. Several sources are loaded like a \
directory. An interrupted load, when started again, resumes where it stopped.";

#[derive(Args, Clone, Debug)]
pub(crate) struct BlocksLoad {
    /// The set's name: letters, digits, dots, dashes
    pub(crate) set: String,
    /// A file, a directory, a picture, or terrain:WIDTHxHEIGHT[:SEED]
    #[arg(required = true)]
    pub(crate) source: Vec<String>,
    #[command(flatten)]
    pub(crate) at: MasterFlags,
    /// Block size; for a picture, the size of its tiles
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) block: Option<u64>,
    /// Copies of each block, on different servers if there are enough
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=i64::from(limits::MOST_REPLICAS)), default_value = "1")]
    pub(crate) replicas: u8,
    /// Which block goes on which disk: round-robin, random[:SEED], hash, tiles, given:DISK,DISK... or given:FILE
    #[arg(long, value_name = "HOW")]
    pub(crate) placement: Option<String>,
    /// Load a picture's file unchanged
    #[arg(long)]
    pub(crate) plain: bool,
    /// Write this many bytes to disk before acknowledging them; an interrupted load repeats at most that many
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "16MiB")]
    pub(crate) batch: u64,
    #[command(flatten)]
    pub(crate) key: KeyFile,
}

const AFTER_GET: &str = "\
Examples:
  stackline blocks get backup -o big.tar
  # restores a directory that was loaded
  stackline blocks get photos -o restored
  stackline blocks get kansas --tile 0/3/5 -o tile.png
  # reads and verifies, writes nothing
  stackline blocks get backup --blocks 0..99";

#[derive(Args, Debug)]
pub(crate) struct BlocksGet {
    /// The set
    pub(crate) set: String,
    /// The file to write, or the directory to restore; without it, nothing is written
    #[arg(short = 'o', long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
    /// Only this range of blocks, both ends included
    #[arg(long, value_name = "FIRST..LAST", value_parser = range)]
    pub(crate) blocks: Option<(u64, u64)>,
    /// One tile of a picture, as PNG
    #[arg(long, value_name = "LEVEL/ROW/COLUMN", value_parser = tile, conflicts_with = "blocks", requires = "output")]
    pub(crate) tile: Option<(u8, u32, u32)>,
    #[command(flatten)]
    pub(crate) at: MasterFlags,
}

/// Numbers of blocks, both ends included.
fn range(text: &str) -> Result<(u64, u64), String> {
    let ends = text
        .split_once("..")
        .and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
    ends.filter(|(first, last)| first <= last)
        .ok_or_else(|| "expected two numbers in ascending order, such as 0..99".to_owned())
}

fn tile(text: &str) -> Result<(u8, u32, u32), String> {
    let mut parts = text.split('/');
    let mut next = || parts.next();
    let tile = (|| {
        Some((
            next()?.parse().ok()?,
            next()?.parse().ok()?,
            next()?.parse().ok()?,
        ))
    })();
    let rest = next();
    tile.filter(|_| rest.is_none())
        .ok_or_else(|| "expected three numbers, such as 0/12/40; level 0 is the finest".to_owned())
}

#[derive(Args, Debug)]
pub(crate) struct BlocksList {
    #[command(flatten)]
    pub(crate) at: MasterFlags,
    /// Print JSON on stdout
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct BlocksDelete {
    /// The set
    pub(crate) set: String,
    #[command(flatten)]
    pub(crate) at: MasterFlags,
    #[command(flatten)]
    pub(crate) key: KeyFile,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_and_tiles() {
        assert_eq!(range("3..9"), Ok((3, 9)));
        assert!(
            ["9..3", "3", "..", "a..b", "-1..2"]
                .iter()
                .all(|text| range(text).is_err())
        );
        assert_eq!(tile("1/2/3"), Ok((1, 2, 3)));
        assert!(
            ["1/2", "1/2/3/4", "300/0/0", "a/b/c"]
                .iter()
                .all(|text| tile(text).is_err())
        );
    }

    #[test]
    fn every_command_finds_the_master_by_the_same_variable() {
        let commands = BlocksCommand::augment_subcommands(clap::Command::new("blocks"));
        for command in commands.get_subcommands() {
            let master = command
                .get_arguments()
                .find(|argument| argument.get_id() == "master");
            let variable = master.map(|argument| argument.get_env());
            assert!(
                variable
                    .is_none_or(|name| name.is_some_and(|name| name == "STACKLINE_BLOCKS_MASTER")),
                "{command}"
            );
        }
    }
}
