//! A master and servers in this process, on loopback, with disks in a temporary directory.
use stackline_blocks::placement::BlockPlacementPolicy;
use stackline_blocks::set::BlockSet;
use stackline_blocks::wire::handshake::BlockWriteKey;
use stackline_blockserver::client::{BlockClient, BlockClientOptions};
use stackline_blockserver::connection_slots::BlockConnectionLimits;
use stackline_blockserver::disk::BlockDisk;
use stackline_blockserver::load::{self, BlockLoadCounts, BlockSource};
use stackline_blockserver::{key, master, server};
use stackline_core::error::Result;
use stackline_testing::{wait_for, wait_until};
use std::net::SocketAddr;
use std::path::PathBuf;
use tempfile::TempDir;

pub(crate) const ANYWHERE: ([u8; 4], u16) = ([127, 0, 0, 1], 0);

pub(crate) struct Site {
    pub(crate) directory: TempDir,
    pub(crate) key: BlockWriteKey,
    pub(crate) master: master::RunningMaster,
    pub(crate) servers: Vec<server::RunningDiskServer>,
}

impl Site {
    /// With so many servers of two disks each.
    pub(crate) fn new(servers: usize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let key = key::generate_key().unwrap();
        let master = start_master(&directory.path().join("master"), &key, ANYWHERE.into());
        let mut site = Self {
            directory,
            key,
            master,
            servers: Vec::new(),
        };
        for number in 0..servers {
            let server = site.start_server(number);
            site.servers.push(server);
            // One after the other, so that the master numbers them as they are numbered here.
            site.wait_for(number + 1);
        }
        site
    }

    pub(crate) fn disk(&self, server: usize, disk: usize) -> PathBuf {
        self.directory
            .path()
            .join(format!("server{server}/disk{disk}"))
    }

    pub(crate) fn start_server(&self, number: usize) -> server::RunningDiskServer {
        self.start_server_with(number, |options| options)
    }

    pub(crate) fn start_server_with(
        &self,
        number: usize,
        change: impl FnOnce(server::DiskServerOptions) -> server::DiskServerOptions,
    ) -> server::RunningDiskServer {
        let disks = (0..2).map(|disk| {
            let path = self.disk(number, disk);
            std::fs::create_dir_all(&path).unwrap();
            BlockDisk::open(&path, false, Some(1 << 30)).unwrap()
        });
        server::start(change(self.options(number)), disks.collect()).unwrap()
    }

    /// How a server is unless a test says otherwise.
    pub(crate) fn options(&self, number: usize) -> server::DiskServerOptions {
        server::DiskServerOptions {
            name: format!("server{number}"),
            listen: ANYWHERE.into(),
            master: self.master.address().to_string(),
            key: self.key.clone(),
            cache: 64 << 20,
            depth: 1,
            send_buffer: None,
            read_time: None,
            adopt: false,
            places: BlockConnectionLimits::default(),
            say: |_| {},
        }
    }

    pub(crate) fn client(&self, options: BlockClientOptions) -> BlockClient {
        BlockClient::connect(&self.master.address().to_string(), options).unwrap()
    }

    pub(crate) fn loader(&self) -> BlockClient {
        self.client(BlockClientOptions {
            key: Some(self.key.clone()),
            ..BlockClientOptions::default()
        })
    }

    /// Waits until the master knows of so many servers that are up.
    pub(crate) fn wait_for(&self, servers: usize) {
        let client = self.client(BlockClientOptions::default());
        wait_until(format_args!("{servers} servers are up"), || {
            let (_, known) = client.list().unwrap();
            known.iter().filter(|server| server.up).count() == servers
        });
    }

    pub(crate) fn load(&self, about: &BlockSet) -> Result<BlockLoadCounts> {
        load::load(&self.loader(), &self.key, about, &mut Drawn, None, |_| {
            Ok(())
        })
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.servers
            .iter()
            .for_each(server::RunningDiskServer::stop);
        self.master.stop();
    }
}

pub(crate) fn start_master(
    data: &std::path::Path,
    key: &BlockWriteKey,
    listen: SocketAddr,
) -> master::RunningMaster {
    try_master(data, key, listen).unwrap()
}

pub(crate) fn try_master(
    data: &std::path::Path,
    key: &BlockWriteKey,
    listen: SocketAddr,
) -> Result<master::RunningMaster> {
    let (key, places) = (Some(key.clone()), BlockConnectionLimits::default());
    master::start(
        master::BlockMasterOptions {
            listen,
            key,
            places,
            say: |_| {},
        },
        data,
    )
}

/// A master where another was: that lets go of its file and its address when its last thread has gone.
pub(crate) fn master_again(
    data: &std::path::Path,
    key: &BlockWriteKey,
    address: SocketAddr,
) -> master::RunningMaster {
    wait_for("the old master has gone", || {
        try_master(data, key, address).ok()
    })
}

pub(crate) fn set(name: &str, blocks: u64, replicas: u8) -> BlockSet {
    let (block_size, placement, picture) = (8192, BlockPlacementPolicy::RoundRobin, None);
    BlockSet {
        name: name.into(),
        block_size,
        bytes: blocks * 8192 - 100,
        replicas,
        placement,
        picture,
    }
}

/// What a block holds: its number, and something that depends on it.
pub(crate) fn content(number: u64, length: usize) -> Vec<u8> {
    let first = number.to_be_bytes();
    (0..length)
        .map(|at| {
            first
                .get(at)
                .copied()
                .unwrap_or((at as u64 * (number + 3)) as u8)
        })
        .collect()
}

/// Blocks whose content is known.
pub(crate) struct Drawn;

impl BlockSource for Drawn {
    fn block(&mut self, number: u64, into: &mut Vec<u8>) -> Result<()> {
        into.extend(content(number, 8192));
        Ok(())
    }
}
