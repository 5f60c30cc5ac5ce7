//! A session on the hosts of an emulated network: master, disk servers and client are real processes there. The picture is loaded before,
//! over loopback. Everything ends with this process, and nothing is left behind.

mod parts;
mod ports;

pub use parts::{BlockPart, MasterPart, ServerPart, SessionPart};
pub use ports::emit_watched_events;

use crate::block_session::BlockSessionRequest;
use crate::block_source::terrain::Terrain;
use crate::client::{BlockClient, BlockClientOptions};
use crate::connection_slots::BlockConnectionLimits;
use crate::disk::BlockDisk;
use crate::network_session::Roles;
use crate::{key, load, master, server};
use parts::PartProcess;
use stackline_blocks::set::BlockSet;
use stackline_blocks::wire::handshake::BlockWriteKey;
use stackline_core::error::{Error, Result};
use stackline_core::network::Network;
use stackline_core::random::Seed;
use stackline_emu::client::Emulation;
use stackline_guard::scratch::{self, ScratchDirectory};
use stackline_net::NodeIndex;
use stackline_net::packet::host_address;
use std::fs::DirBuilder;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The master's port on its host, and the port of each disk server on its host.
const PORTS: (u16, u16) = (7480, 7490);
/// How long threads and servers may take to start and to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// A session on an emulated network.
#[derive(Debug)]
pub struct EmulatedSession<'s> {
    /// The specification that declares the network.
    pub specification: &'s Path,
    /// The network.
    pub network: &'s Network,
    /// The host of each role.
    pub roles: Roles,
    /// The number of disks of each server.
    pub disks: u16,
    /// How long a read takes, in words; `None`: as long as it does.
    pub disk_time: Option<String>,
    /// Bytes of the memory cache of each server.
    pub cache: u64,
    /// The send buffer of each client's connection, bytes.
    pub send_buffer: Option<u64>,
    /// The picture that is loaded.
    pub set: BlockSet,
    /// What the client requests; the addresses are filled in here.
    pub request: BlockSessionRequest,
    /// Whether the figures are printed as JSON.
    pub json: bool,
}

/// Starts everything, replays the session, and ends everything. Returns the exit code of the client, which prints the figures.
///
/// # Errors
/// If a part cannot be started (with its own words), or the picture cannot be loaded.
pub fn replay_emulated(session: &EmulatedSession<'_>, interrupted: &AtomicBool) -> Result<u8> {
    let roles = &session.roles;
    if roles.servers.contains(&roles.client) || roles.servers.contains(&roles.master) {
        return Err(
            Error::input("a server must not share a host with the client or the master")
                .hint("choose other hosts with --client, --master-host and --server"),
        );
    }
    // However it is ended: what was started ends, and the directory with the key goes, before this process does.
    let scratch = scratch::create_directory("blocks").map_err(|error| {
        Error::environment(format!("cannot create a temporary directory: {error}"))
            .hint("set TMPDIR to another directory for the servers' disks")
    })?;
    let failed =
        |error: std::io::Error| Error::environment(format!("cannot create the key: {error}"));
    let made = key::generate_key().map_err(failed)?;
    let key_file = scratch.path().join("key");
    key::write_key_file(&key_file, &made).map_err(failed)?;
    fill(session, &scratch, &made, interrupted)?;
    goes_on(interrupted)?;
    let program = std::env::current_exe().map_err(|error| {
        Error::environment(format!("cannot find the path of this program: {error}"))
    })?;
    let network = session.network;
    let seed = Seed::root(session.request.seed)
        .child("network")
        .child(&network.name);
    let mut emulation =
        Emulation::shared(&program, &network.name, network, seed, &Default::default())?;
    let site = EmulatedReplay {
        session,
        program: &program,
        scratch: &scratch,
        key: key_file,
        interrupted,
    };
    let servers = site.start_servers()?;
    let code = site.run_client(&mut emulation);
    drop(servers);
    drop(emulation);
    let code = code?;
    goes_on(interrupted)?;
    Ok(code)
}

/// The directory of a server's disk.
fn disk_path(scratch: &ScratchDirectory, server: usize, disk: u16) -> PathBuf {
    scratch
        .path()
        .join(format!("server{server}"))
        .join(format!("disk{disk}"))
}

/// Loads the picture over loopback onto the disks that the servers will have.
fn fill(
    session: &EmulatedSession<'_>,
    scratch: &ScratchDirectory,
    made: &BlockWriteKey,
    interrupted: &AtomicBool,
) -> Result<()> {
    let anywhere = ([127, 0, 0, 1], 0).into();
    let say: fn(&str) = |_| {};
    let options = master::BlockMasterOptions {
        listen: anywhere,
        key: Some(made.clone()),
        places: BlockConnectionLimits::default(),
        say,
    };
    let master = master::start(options, &scratch.path().join("master"))?;
    let mut servers = Vec::new();
    for (number, host) in session.roles.servers.iter().enumerate() {
        let options = server::DiskServerOptions {
            name: host.clone(),
            listen: anywhere,
            master: master.address().to_string(),
            key: made.clone(),
            cache: 0,
            depth: 1,
            send_buffer: None,
            read_time: None,
            adopt: false,
            places: BlockConnectionLimits::default(),
            say,
        };
        let disks = (0..session.disks).map(|disk| new_disk(&disk_path(scratch, number, disk)));
        servers.push(server::start(options, disks.collect::<Result<_>>()?)?);
    }
    let options = BlockClientOptions {
        key: Some(made.clone()),
        ..BlockClientOptions::default()
    };
    let client = BlockClient::connect(&master.address().to_string(), options)?;
    wait(interrupted, || {
        let up = client.list()?.1.iter().filter(|server| server.up).count();
        Ok(up == session.roles.servers.len())
    })?;
    let (width, height) = session
        .set
        .picture
        .as_ref()
        .map_or((0, 0), |picture| (picture.width, picture.height));
    let text = format!("terrain:{width}x{height}:{}", session.request.seed);
    let mut terrain =
        Terrain::parse(&text).ok_or_else(|| Error::input(format!("invalid terrain {text}")))??;
    load::load(&client, made, &session.set, &mut terrain, None, |_| {
        goes_on(interrupted)
    })?;
    drop(client);
    servers.iter().for_each(server::RunningDiskServer::stop);
    master.stop();
    // The disks and the master's file are free only when the last thread has ended.
    wait(interrupted, || {
        Ok(master.is_over() && servers.iter().all(server::RunningDiskServer::is_over))
    })
}

fn new_disk(path: &Path) -> Result<BlockDisk> {
    let failed =
        |error: std::io::Error| Error::environment(format!("cannot create a disk: {error}"));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(failed)?;
    BlockDisk::open(path, false, None)
}

/// Fails if the session was interrupted.
fn goes_on(interrupted: &AtomicBool) -> Result<()> {
    match interrupted.load(Ordering::Relaxed) {
        true => Err(Error::interrupted()),
        false => Ok(()),
    }
}

fn wait(interrupted: &AtomicBool, done: impl Fn() -> Result<bool>) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    while !done()? {
        goes_on(interrupted)?;
        if Instant::now() > until {
            return Err(Error::environment(
                "timed out waiting for the servers to start or to stop",
            ));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// A session while its processes run.
struct EmulatedReplay<'s> {
    session: &'s EmulatedSession<'s>,
    program: &'s Path,
    scratch: &'s ScratchDirectory,
    key: PathBuf,
    interrupted: &'s AtomicBool,
}

impl EmulatedReplay<'_> {
    /// The address of a port on a host.
    fn at(&self, host: &str, port: u16) -> Result<SocketAddr> {
        let hosts = &self.session.network.hosts;
        let at = hosts.iter().position(|known| known.name == host);
        let at = at.ok_or_else(|| Error::input(format!("unknown host {host}")))?;
        let node = NodeIndex(u32::try_from(at).unwrap_or(u32::MAX));
        Ok((Ipv4Addr::from(host_address(node)), port).into())
    }

    /// The command for a process on a host that carries out the part in a file.
    fn command(&self, host: &str, part: &BlockPart, name: &str) -> Result<Command> {
        let file = self.scratch.path().join(format!("{name}.json"));
        part.write(&file)?;
        let mut command = Command::new(self.program);
        command
            .args(["net", "exec", "--join", "--network"])
            .arg(&self.session.network.name)
            .arg(self.session.specification)
            .args([host, "--"])
            .arg(self.program)
            .args(["blocks", "part"])
            .arg(file);
        Ok(command)
    }

    /// Starts the master and all disk servers.
    fn start_servers(&self) -> Result<Vec<PartProcess>> {
        let (session, roles) = (self.session, &self.session.roles);
        let master = self.at(&roles.master, PORTS.0)?;
        let part = BlockPart::Master(MasterPart {
            listen: ([0, 0, 0, 0], PORTS.0).into(),
            data: self.scratch.path().join("master"),
            key: self.key.clone(),
        });
        let mut started = vec![self.start(&roles.master, &part, "master")?];
        for (number, host) in roles.servers.iter().enumerate() {
            let part = BlockPart::Server(ServerPart {
                name: host.clone(),
                listen: self.at(host, PORTS.1 + number as u16)?,
                master: master.to_string(),
                key: self.key.clone(),
                disks: (0..session.disks)
                    .map(|disk| disk_path(self.scratch, number, disk))
                    .collect(),
                disk_time: session.disk_time.clone(),
                cache: session.cache,
                send_buffer: session.send_buffer,
            });
            started.push(self.start(host, &part, &format!("server{number}"))?);
        }
        Ok(started)
    }

    /// Starts a part, and waits until it listens.
    fn start(&self, host: &str, part: &BlockPart, name: &str) -> Result<PartProcess> {
        let command = self.command(host, part, name)?;
        goes_on(self.interrupted)?;
        PartProcess::start(command, host)
    }

    /// Runs the session itself on the client's host, and returns its exit code.
    fn run_client(&self, emulation: &mut Emulation) -> Result<u8> {
        let (session, roles) = (self.session, &self.session.roles);
        let ports = self.scratch.path().join("ports");
        let request = BlockSessionRequest {
            master: self.at(&roles.master, PORTS.0)?.to_string(),
            sets: vec![session.set.name.clone()],
            servers: Some(roles.servers.len()),
            client_name: Some(roles.client.clone()),
            master_name: Some(roles.master.clone()),
            ports: Some(ports.clone()),
            ..session.request.clone()
        };
        let part = BlockPart::Session(Box::new(SessionPart {
            request,
            json: session.json,
        }));
        let failed =
            |error: std::io::Error| Error::environment(format!("cannot start the client: {error}"));
        let mut command = self.command(&roles.client, &part, "client")?;
        let mut child = command.stdin(Stdio::null()).spawn().map_err(failed)?;
        let status = ports::until_over(
            &mut child,
            emulation,
            session.network,
            &ports,
            self.interrupted,
        )?;
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        Ok(code.unwrap_or(1))
    }
}
