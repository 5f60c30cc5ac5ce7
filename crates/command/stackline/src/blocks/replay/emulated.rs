//! A session on the hosts of an emulated network: master, disk servers and client are real processes there. The picture is
//! loaded before over loopback. Everything ends with this process, and nothing is left behind.

use super::super::disk_time;
use super::super::terrain::Terrain;
use super::network_session::{Roles, network, set, stack};
use super::port_watcher;
use crate::exit::{Error, Exit, Result};
use crate::flags::{BlockTransport, Replay, ViewerPath};
use crate::run::listen_for_ctrl_c;
use stackline_blocks::wire::handshake::BlockWriteKey;
use stackline_blockserver::client::{BlockClient, BlockClientOptions};
use stackline_blockserver::connection_slots::BlockConnectionLimits;
use stackline_blockserver::disk::BlockDisk;
use stackline_blockserver::{key, load, master, server};
use stackline_core::network::Network;
use stackline_core::plan::World;
use stackline_core::random::Seed;
use stackline_emu::client::Emulation;
use stackline_guard::scratch::{self, ScratchDirectory};
use stackline_net::NodeIndex;
use stackline_net::packet::host_address;
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::net::Ipv4Addr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The master's port on its host, and those of the servers on theirs.
const PORTS: (u16, u16) = (7480, 7490);
/// How long threads and servers may take to come and go.
const PATIENCE: Duration = Duration::from_secs(20);

/// What of `--over` the parts can set: the buffers of the connections that blocks go over.
#[derive(Clone, Copy)]
struct BlockBufferSizes {
    send: Option<u64>,
    receive: Option<u64>,
}

impl BlockBufferSizes {
    fn of(flags: &Replay) -> Result<Self> {
        let stack = stack(flags, World::Emulated)?;
        let known = ["send_buffer", "receive_buffer"];
        match stack.options.keys().find(|option| !known.contains(&option.as_str())) {
            Some(option) => Err(Error::input(format!("--over sets {option}, which real servers do not set")).hint(
                "with --in emulated it sets send_buffer and receive_buffer; --in simulated has all options of tcp",
            )),
            None => Ok(Self { send: stack.number(known[0]), receive: stack.number(known[1]) }),
        }
    }
}

/// Where a disk of a server is.
fn disk_path(scratch: &ScratchDirectory, server: usize, disk: u16) -> PathBuf {
    scratch
        .path()
        .join(format!("server{server}"))
        .join(format!("disk{disk}"))
}

/// A process on a host; it ends when its standard input does.
struct EmulatedBlocksProcess(Child);

impl Drop for EmulatedBlocksProcess {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let until = Instant::now() + PATIENCE;
        while matches!(self.0.try_wait(), Ok(None)) {
            if Instant::now() > until {
                let _ = self.0.kill();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Starts everything, replays, ends everything.
pub(super) fn replay(flags: &Replay) -> Result {
    let buffers = BlockBufferSizes::of(flags)?;
    flags
        .disk
        .as_deref()
        .map(disk_time::parse_disk_time)
        .transpose()?;
    let network = network(flags)?;
    stackline_emu::CAPABILITIES.accepts(&network)?;
    let roles = Roles::of(flags, &network)?;
    if roles.servers.contains(&roles.client) || roles.servers.contains(&roles.master) {
        return Err(
            Error::input("a server shares its host with the client or the master")
                .hint("name other hosts with --client, --master-host and --server"),
        );
    }
    // However it is ended: what was started ends, and the directory with the key goes, before this process does.
    let interrupted = Arc::new(AtomicBool::new(false));
    listen_for_ctrl_c([&interrupted])?;
    let scratch = scratch::create_directory("blocks").map_err(|error| {
        Error::environment(format!("no temporary directory can be made: {error}"))
            .hint("TMPDIR names another place for the disks of the servers")
    })?;
    let failed =
        |error: std::io::Error| Error::environment(format!("the key cannot be made: {error}"));
    let made = key::generate_key().map_err(failed)?;
    let key_file = scratch.path().join("key");
    key::write_key_file(&key_file, &made).map_err(failed)?;
    fill(flags, &roles, &scratch, &made, &interrupted)?;
    goes_on(&interrupted)?;
    let program = std::env::current_exe().map_err(|error| {
        Error::environment(format!("this program's own file cannot be found: {error}"))
    })?;
    let seed = Seed::root(flags.seed).child("network").child(&network.name);
    let mut emulation =
        Emulation::shared(&program, &network.name, &network, seed, &Default::default())?;
    let site = EmulatedReplay {
        flags,
        network: &network,
        program: &program,
        buffers,
        interrupted: &interrupted,
    };
    let at = |host: &str, port: u16| Ok::<String, Error>(format!("{}:{port}", site.address(host)?));
    let master_address = at(&roles.master, PORTS.0)?;
    let mut parts = Vec::new();
    let words = [
        "master",
        "--with-stdin",
        "--listen",
        &format!("0.0.0.0:{}", PORTS.0),
        "--data",
    ];
    let mut command: Vec<OsString> = words.iter().map(OsString::from).collect();
    command.extend([
        scratch.path().join("master").into(),
        "--key".into(),
        key_file.clone().into(),
    ]);
    parts.push(site.start(&roles.master, &command)?);
    for (number, host) in roles.servers.iter().enumerate() {
        let listen = at(host, PORTS.1 + number as u16)?;
        let cache = flags.cache.to_string();
        let words = [
            "serve",
            "--with-stdin",
            "--name",
            host,
            "--master",
            &master_address,
            "--listen",
            &listen,
            "--cache",
        ];
        let mut command: Vec<OsString> = words.iter().map(OsString::from).collect();
        command.extend([cache.into(), "--key".into(), key_file.clone().into()]);
        if let Some(time) = &flags.disk {
            command.extend(["--disk-time".into(), time.into()]);
        }
        if let Some(bytes) = buffers.send {
            command.extend(["--send-buffer".into(), bytes.to_string().into()]);
        }
        command.push("--disk".into());
        command.extend((0..flags.disks).map(|disk| disk_path(&scratch, number, disk).into()));
        parts.push(site.start(host, &command)?);
    }
    let code = site.client(
        &roles,
        &master_address,
        &mut emulation,
        &scratch.path().join("ports"),
    );
    drop(parts);
    drop(emulation);
    let code = code?;
    goes_on(&interrupted)?;
    Ok(Exit::Program(code))
}

/// Loads the picture over loopback, onto the disks that the servers will have.
fn fill(
    flags: &Replay,
    roles: &Roles,
    scratch: &ScratchDirectory,
    made: &BlockWriteKey,
    interrupted: &AtomicBool,
) -> Result<()> {
    let failed =
        |error: std::io::Error| Error::environment(format!("a disk cannot be made: {error}"));
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
    for (number, host) in roles.servers.iter().enumerate() {
        let mut disks = Vec::new();
        for disk in 0..flags.disks {
            let path = disk_path(scratch, number, disk);
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&path)
                .map_err(failed)?;
            disks.push(BlockDisk::open(&path, false, None)?);
        }
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
        servers.push(server::start(options, disks)?);
    }
    let client = BlockClient::connect(
        &master.address().to_string(),
        BlockClientOptions {
            key: Some(made.clone()),
            ..BlockClientOptions::default()
        },
    )?;
    wait(interrupted, || {
        Ok(client.list()?.1.iter().filter(|server| server.up).count() == roles.servers.len())
    })?;
    let (width, height) = flags.picture;
    let text = format!("terrain:{width}x{height}:{}", flags.seed);
    let mut terrain =
        Terrain::of(&text).ok_or_else(|| Error::input(format!("{text} is no terrain")))??;
    load::load(&client, made, &set(flags), &mut terrain, None, |_| {
        goes_on(interrupted)
    })?;
    drop(client);
    servers.iter().for_each(server::RunningDiskServer::stop);
    master.stop();
    // Their disks, and the master's file, are free when the last thread has gone.
    wait(interrupted, || {
        Ok(master.is_over() && servers.iter().all(server::RunningDiskServer::is_over))
    })
}

/// That nobody has ended it.
fn goes_on(interrupted: &AtomicBool) -> Result<()> {
    if interrupted.load(Ordering::Relaxed) {
        Err(Error::interrupted())
    } else {
        Ok(())
    }
}

fn wait(interrupted: &AtomicBool, done: impl Fn() -> Result<bool>) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    while !done()? {
        goes_on(interrupted)?;
        if Instant::now() > until {
            return Err(Error::environment(
                "the servers do not come up, or do not end",
            ));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

struct EmulatedReplay<'s> {
    flags: &'s Replay,
    network: &'s Network,
    program: &'s Path,
    buffers: BlockBufferSizes,
    interrupted: &'s AtomicBool,
}

impl EmulatedReplay<'_> {
    fn address(&self, host: &str) -> Result<Ipv4Addr> {
        let at = self
            .network
            .hosts
            .iter()
            .position(|known| known.name == host);
        let at = at.ok_or_else(|| Error::input(format!("there is no host {host}")))?;
        Ok(Ipv4Addr::from(host_address(NodeIndex(
            u32::try_from(at).unwrap_or(u32::MAX),
        ))))
    }

    /// `stackline blocks ...` on a host.
    fn command(&self, host: &str) -> Command {
        let mut command = Command::new(self.program);
        command.args(["net", "exec", "--join", "--network", &self.network.name]);
        command
            .args(self.flags.across.as_deref().map(Path::as_os_str))
            .args([host, "--"])
            .arg(self.program);
        command.arg("blocks");
        command
    }

    /// Starts a part, and waits until it listens.
    fn start(&self, host: &str, words: &[OsString]) -> Result<EmulatedBlocksProcess> {
        let failed = |error: std::io::Error| {
            Error::environment(format!("nothing can be started on {host}: {error}"))
        };
        let mut command = self.command(host);
        // What master and servers say of themselves is for those who run them by hand.
        command
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        goes_on(self.interrupted)?;
        let mut part = EmulatedBlocksProcess(command.spawn().map_err(failed)?);
        let mut line = String::new();
        if let Some(out) = part.0.stdout.take() {
            std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line)
                .map_err(failed)?;
        }
        if line.is_empty() {
            return Err(Error::environment(format!(
                "what was started on {host} ended at once"
            )));
        }
        Ok(part)
    }

    /// The session itself, on the client's host; its exit code.
    fn client(
        &self,
        roles: &Roles,
        master: &str,
        emulation: &mut Emulation,
        ports: &Path,
    ) -> Result<u8> {
        let flags = self.flags;
        let mut command = self.command(&roles.client);
        let us = |time: Duration| format!("{}us", time.as_micros());
        let servers = roles.servers.len().to_string();
        command.args([
            "replay",
            "picture",
            "--master",
            master,
            "--servers",
            &servers,
            "--as-host",
            &roles.client,
        ]);
        command.args([
            "--master-name",
            &roles.master,
            "--interval",
            &us(flags.interval),
            "--for",
            &us(flags.duration),
        ]);
        command.args([
            "--seed",
            &flags.seed.to_string(),
            "--most",
            &flags.most.to_string(),
        ]);
        match flags.blocks {
            Some(blocks) => {
                command.args(["--blocks", &blocks.to_string()]);
                command.args(flags.random.then_some("--random"));
            }
            None => {
                let path = match flags.path {
                    ViewerPath::Pan => "pan",
                    ViewerPath::Zoom => "zoom",
                    ViewerPath::Flight => "flight",
                };
                let window = format!("{}x{}", flags.window.0, flags.window.1);
                command.args([
                    "--path",
                    path,
                    "--speed",
                    &flags.speed.to_string(),
                    "--window",
                    &window,
                ]);
            }
        }
        if let Some(keep) = flags.keep {
            command.args(["--keep", &keep.to_string()]);
        }
        if let Some(age) = flags.age {
            command.args(["--age", &us(age)]);
        }
        if let Some(bytes) = self.buffers.receive {
            command.args(["--receive-buffer", &bytes.to_string()]);
        }
        if let Some(bytes) = flags.pace {
            command.args(["--pace", &format!("{}bit/s", 8 * bytes)]);
        }
        let transport = match flags.transport {
            BlockTransport::Tcp => "tcp",
            BlockTransport::Udp => "udp",
            BlockTransport::Rtp => "rtp",
            BlockTransport::Blast => "blast",
        };
        command.args(["--transport", transport]);
        command.args(flags.append.then_some("--append"));
        match flags.no_history {
            true => command.arg("--no-history"),
            false => command.args(["--name", &flags.name]),
        };
        command.args(flags.json.then_some("--json"));
        let failed = |error: std::io::Error| {
            Error::environment(format!("the client cannot be started: {error}"))
        };
        command.arg("--watched").arg(ports);
        let mut child = command.stdin(Stdio::null()).spawn().map_err(failed)?;
        let status =
            port_watcher::until_over(&mut child, emulation, self.network, ports, self.interrupted)?;
        Ok(status
            .code()
            .and_then(|code| u8::try_from(code).ok())
            .unwrap_or(1))
    }
}
