//! `stackline blocks master` and `blocks serve`: run a master or a disk server until Ctrl-C or SIGTERM, which are the
//! normal end.

use crate::exit::{Blame, Error, Exit, Result};
use crate::flags;
use crate::interrupt::listen_for_ctrl_c;
use crate::output;
use stackline_blocks::wire::handshake::BlockWriteKey;
use stackline_blockserver::connection_slots::BlockConnectionLimits;
use stackline_blockserver::disk::BlockDisk;
use stackline_blockserver::disk_time::parse_disk_time;
use stackline_blockserver::emulated::{MasterPart, ServerPart};
use stackline_blockserver::{connection, key, master, notices, server};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Interval at which it is checked whether the process was interrupted or its work has failed.
const LOOK: Duration = Duration::from_millis(50);

/// Runs a master.
pub(super) fn master(flags: &flags::BlocksMaster) -> Result {
    let key = key::find_key(flags.key.key.as_deref(), |note| output::say(&note))?;
    if key.is_none() {
        output::say(
            &"note: without a key, nothing can be written and no server can join (make one with `stackline blocks key`)",
        );
    }
    let data = flags.data.clone().or_else(usual_data).ok_or_else(|| {
        Error::environment("cannot store the master's data: there is no home directory")
            .hint("specify a directory with --data DIR")
    })?;
    run_master(flags.listen, key, &data, flags.with_stdin)
}

/// Runs the master of an emulated session.
pub(super) fn master_part(part: &MasterPart) -> Result {
    let key = key::read_key_file(&part.key)?;
    run_master(part.listen, Some(key), &part.data, true)
}

fn run_master(
    listen: SocketAddr,
    key: Option<BlockWriteKey>,
    data: &Path,
    with_stdin: bool,
) -> Result {
    let interrupted = Arc::new(AtomicBool::new(false));
    listen_for_ctrl_c([&interrupted])?;
    follow_stdin(&interrupted, with_stdin);
    let options = master::BlockMasterOptions {
        listen,
        key,
        places: BlockConnectionLimits::default(),
        say: notices::print_notice,
    };
    let running = master::start(options, data)?;
    say_who_may_read(running.address());
    output::print(&format!("{}\n", running.address()))?;
    wait(|| interrupted.load(Ordering::Relaxed) || running.failure().is_some());
    running.stop();
    running.failure().map_or(Ok(Exit::Done), Err)
}

/// The default directory of a master's data; `None` without a home directory.
fn usual_data() -> Option<PathBuf> {
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".local/share"));
    let data = std::env::var_os("XDG_DATA_HOME")
        .map(PathBuf::from)
        .or_else(home)?;
    Some(data.join("stackline").join("blocks"))
}

/// Runs a disk server.
pub(super) fn serve(flags: &flags::BlocksServe) -> Result {
    let key = key::find_key(flags.key.key.as_deref(), |note| output::say(&note))?
        .ok_or_else(connection::no_key)?;
    let options = server::DiskServerOptions {
        name: flags
            .name
            .clone()
            .unwrap_or_else(stackline_events::setting::host),
        listen: flags.listen,
        master: flags.at.master.clone(),
        key,
        cache: flags.cache,
        depth: usize::from(flags.depth),
        send_buffer: flags.send_buffer.map(in_memory),
        read_time: flags
            .disk_time
            .as_deref()
            .map(parse_disk_time)
            .transpose()?,
        adopt: flags.adopt,
        places: BlockConnectionLimits::default(),
        say: notices::print_notice,
    };
    run_server(options, disks(flags)?, flags.with_stdin)
}

/// Runs a disk server of an emulated session.
pub(super) fn server_part(part: &ServerPart) -> Result {
    let options = server::DiskServerOptions {
        name: part.name.clone(),
        listen: part.listen,
        master: part.master.clone(),
        key: key::read_key_file(&part.key)?,
        cache: part.cache,
        depth: 1,
        send_buffer: part.send_buffer.map(in_memory),
        read_time: part.disk_time.as_deref().map(parse_disk_time).transpose()?,
        adopt: false,
        places: BlockConnectionLimits::default(),
        say: notices::print_notice,
    };
    let disks = part
        .disks
        .iter()
        .map(|path| BlockDisk::open(path, false, None));
    run_server(options, disks.collect::<Result<_>>()?, true)
}

/// A number of bytes as `usize`.
fn in_memory(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn run_server(
    options: server::DiskServerOptions,
    disks: Vec<BlockDisk>,
    with_stdin: bool,
) -> Result {
    let interrupted = Arc::new(AtomicBool::new(false));
    listen_for_ctrl_c([&interrupted])?;
    follow_stdin(&interrupted, with_stdin);
    let running = server::start(options, disks)?;
    say_who_may_read(running.address());
    output::print(&format!("{}\n", running.address()))?;
    wait(|| interrupted.load(Ordering::Relaxed));
    running.stop();
    Ok(Exit::Done)
}

/// Opens the disks of a server. One that cannot be used at present is kept as missing, as long as another can be used.
fn disks(flags: &flags::BlocksServe) -> Result<Vec<BlockDisk>> {
    let opened: Vec<Result<BlockDisk>> = flags
        .disk
        .iter()
        .map(|path| BlockDisk::open(path, flags.direct, flags.size))
        .collect();
    let is_any_there = opened.iter().any(|disk| disk.is_ok());
    let disk = |(path, opened): (&PathBuf, Result<BlockDisk>)| match opened {
        Err(error) if is_any_there && error.blame == Blame::Environment => {
            output::say(&format!(
                "note: {}; only the other disks are served",
                error.message
            ));
            Ok(BlockDisk::missing(path))
        }
        Ok(disk) if !disk.is_writable() => {
            output::say(&format!(
                "note: the disk {} is read-only: no blocks are placed on it",
                path.display()
            ));
            Ok(disk)
        }
        opened => opened,
    };
    flags.disk.iter().zip(opened).map(disk).collect()
}

fn say_who_may_read(address: SocketAddr) {
    if !address.ip().is_loopback() {
        output::say(&format!(
            "note: anyone who can reach {address} can read the blocks; writing requires the key"
        ));
    }
}

/// With `with_stdin`, ends the process when standard input ends.
fn follow_stdin(interrupted: &Arc<AtomicBool>, with_stdin: bool) {
    if with_stdin {
        let interrupted = Arc::clone(interrupted);
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            interrupted.store(true, Ordering::Relaxed);
        });
    }
}

fn wait(is_over: impl Fn() -> bool) {
    while !is_over() {
        std::thread::sleep(LOOK);
    }
}
