//! `stackline blocks replay`: replays a session (timed requests for blocks) against existing servers, or with all
//! programs started on the hosts of an emulated or simulated network.

mod flag_checks;

use crate::declared_network::network_of;
use crate::exit::{Error, Exit, Result};
use crate::flags::Replay;
use crate::interrupt::listen_for_ctrl_c;
use crate::output;
use flag_checks::BlocksReplayMode;
use stackline_blocks::session_record::BlockSessionRecord;
use stackline_blockserver::block_session::{
    BlockSessionFigures, BlockSessionRequest, OpenSession, SessionRun, SimulatedSession,
    replay_simulated,
};
use stackline_blockserver::disk_time::parse_disk_time;
use stackline_blockserver::emulated::{EmulatedSession, replay_emulated};
use stackline_blockserver::network_session::{Roles, WantedRoles, picture_set};
use stackline_core::distribution::Distribution;
use stackline_core::plan::{Stack, World};
use stackline_core::units::format_rate;
use stackline_runner::network_stack::parse_stack;
use std::io::{IsTerminal, stderr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Replays a session.
pub(crate) fn replay(flags: &Replay) -> Result {
    let mode = BlocksReplayMode::from_flags(flags);
    flag_checks::check(flags, mode)?;
    match mode {
        BlocksReplayMode::Live => against(&request(flags), flags.json),
        BlocksReplayMode::Simulated => simulated(flags),
        BlocksReplayMode::Emulated => emulated(flags),
    }
}

/// The session that the flags describe.
fn request(flags: &Replay) -> BlockSessionRequest {
    let run = SessionRun {
        name: flags.name.clone(),
        shared: flags.sharing.is_shared(),
    };
    BlockSessionRequest {
        master: flags.master.clone(),
        sets: flags.sets.clone(),
        captured_lists: flags.trace.clone(),
        blocks: flags.blocks,
        random: flags.random,
        motion: flags.path,
        window: flags.window,
        speed: flags.speed,
        interval: flags.interval,
        duration: flags.duration,
        keep: flags.keep,
        most: flags.most,
        append: flags.append,
        transport: flags.transport,
        age: flags.age,
        receive_buffer: flags.receive_buffer,
        pace: flags.pace,
        capture: flags.capture.clone(),
        seed: flags.seed,
        run: (!flags.no_history).then_some(run),
        client_name: None,
        master_name: None,
        ports: None,
        servers: None,
    }
}

/// Replays against an existing master and servers.
pub(super) fn against(request: &BlockSessionRequest, json: bool) -> Result {
    let session = OpenSession::open(request)?;
    let interrupted = Arc::new(AtomicBool::new(false));
    listen_for_ctrl_c([&interrupted])?;
    let mut session = session.replay(&interrupted, running)?;
    show(&mut session.figures, json)?;
    match session.interrupted {
        true => Err(Error::interrupted()),
        false => Ok(Exit::Done),
    }
}

/// Starts all programs on the hosts of an emulated network and replays there.
fn emulated(flags: &Replay) -> Result {
    let buffers = Buffers::from_flags(flags)?;
    flags.disk.as_deref().map(parse_disk_time).transpose()?;
    let network = network_of(flags.across.as_deref(), flags.network.as_deref())?;
    stackline_emu::CAPABILITIES.accepts(&network)?;
    let interrupted = Arc::new(AtomicBool::new(false));
    listen_for_ctrl_c([&interrupted])?;
    let (width, height) = flags.picture;
    let session = EmulatedSession {
        specification: flags.across.as_deref().unwrap_or(Path::new("-")),
        roles: Roles::assign(&wanted_roles(flags), &network)?,
        network: &network,
        disks: flags.disks,
        disk_time: flags.disk.clone(),
        cache: flags.cache,
        send_buffer: buffers.send,
        set: picture_set(width, height, flags.replicas),
        request: BlockSessionRequest {
            receive_buffer: buffers.receive,
            ..request(flags)
        },
        json: flags.json,
    };
    replay_emulated(&session, &interrupted).map(Exit::Program)
}

/// Replays in virtual time.
fn simulated(flags: &Replay) -> Result {
    let network = network_of(flags.across.as_deref(), flags.network.as_deref())?;
    let disk_time = flags.disk.as_deref().map(parse_disk_time).transpose()?;
    let (width, height) = flags.picture;
    let session = SimulatedSession {
        roles: Roles::assign(&wanted_roles(flags), &network)?,
        network: &network,
        stack: stack(flags, World::Simulated)?,
        disks: flags.disks,
        disk_time: disk_time.unwrap_or(Distribution::Constant(0.0)),
        cache: flags.cache,
        set: picture_set(width, height, flags.replicas),
        request: request(flags),
    };
    show(&mut replay_simulated(&session)?, flags.json)?;
    Ok(Exit::Done)
}

fn wanted_roles(flags: &Replay) -> WantedRoles {
    WantedRoles {
        client: flags.client.clone(),
        master: flags.master_host.clone(),
        servers: flags.server.clone(),
    }
}

/// The options of `--over` that real servers support: buffer sizes of the connections that carry blocks, in bytes.
struct Buffers {
    send: Option<u64>,
    receive: Option<u64>,
}

impl Buffers {
    fn from_flags(flags: &Replay) -> Result<Self> {
        let stack = stack(flags, World::Emulated)?;
        let known = ["send_buffer", "receive_buffer"];
        match stack.options.keys().find(|option| !known.contains(&option.as_str())) {
            Some(option) => Err(Error::input(format!("--over sets {option}, which real servers do not support")).hint(
                "with --in emulated, set only send_buffer and receive_buffer; --in simulated supports all tcp options",
            )),
            None => Ok(Self { send: stack.number(known[0]), receive: stack.number(known[1]) }),
        }
    }
}

/// The stack of `--over` in that world, with the receive buffer of `--receive-buffer` added to it.
fn stack(flags: &Replay, world: World) -> Result<Stack> {
    let stack = judged(&flags.over, world)?;
    let Some(bytes) = flags.receive_buffer else {
        return Ok(stack);
    };
    if stack.options.contains_key("receive_buffer") {
        let error = Error::input("--receive-buffer and --over both set the receive buffer size");
        return Err(error.hint("omit one of them"));
    }
    let option = format!("receive_buffer = {bytes} bytes");
    let over = flags.over.trim();
    let over = match over.strip_suffix(')') {
        Some(others) => format!("{others}, {option})"),
        None => format!("{over}({option})"),
    };
    judged(&over, world)
}

/// Parses `over` for that world. Only `tcp` with permitted options is accepted.
fn judged(over: &str, world: World) -> Result<Stack> {
    let stack = parse_stack(over, world)?;
    if stack.name != "tcp" {
        let error = Error::input(format!(
            "--over {over}: lists and blocks can only be sent over tcp"
        ));
        return Err(
            error.hint("use tcp and its options, as in --over 'tcp(receive_buffer = 128 KiB)'")
        );
    }
    Ok(stack)
}

/// Prints the results of a session.
fn show(figures: &mut BlockSessionFigures, json: bool) -> Result<()> {
    match json {
        true => output::json(&figures.json(), true),
        false => output::print(&figures.text()),
    }
}

/// Prints a running summary, on a terminal only.
fn running(record: &BlockSessionRecord) {
    if stderr().is_terminal() {
        let score = &record.score;
        let last = score
            .by_second
            .len()
            .checked_sub(2)
            .and_then(|at| score.by_second.get(at))
            .copied()
            .unwrap_or(0);
        output::say(&format_args!(
            "lists: {}, blocks: {}, useful: {}",
            score.lists,
            score.requested,
            format_rate(last as f64 * 8.0)
        ));
    }
}
