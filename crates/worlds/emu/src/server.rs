//! The emulator's process (`stackline emulate`): makes the hosts of one network, forwards their frames, answers its clients, and ends
//! when the last client has gone. A client holds a lease of the network while its connection is open.
//!
//! ```text
//! main thread      the data path
//! clients' thread  requests, leases; it stops the data path when the last lease closes
//! ```
//! Everything it makes belongs to its file descriptors, so that nothing is left when it ends.

mod clients;
mod request_handler;

use crate::engine::{EmulatorEngine, NetworkEventRecorder};
use crate::error::{self, Error, Result};
use crate::protocol::{EmulationOpening, EmulatorReply, EmulatorRequest, HostHandle};
use crate::testbed::{self, Testbed};
use clients::EmulatorClients;
use nix::sys::eventfd::EventFd;
use request_handler::EmulatorRequestHandler;
use stackline_core::network::Network;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// How long the data path may take to stop after the last client has gone; then the process exits anyway.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long programs that were killed may take to leave the control group of their host, which can be removed only when it is empty.
const GROUP_EMPTIES: Duration = Duration::from_secs(1);

/// How clients reach this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientChannel {
    /// One client, by the pipes that are its stdin and stdout.
    Pipe,
    /// Any number, by the listening socket that is its stdin; the first has already connected.
    Socket,
}

/// A function that makes the recorder of a network's events from what a client asks for. It returns one sentence when it cannot.
pub type Recorders = dyn Fn(&Network, &serde_json::Value) -> std::result::Result<Box<dyn NetworkEventRecorder>, String>
    + Send
    + Sync;

/// Makes the network that the first client opens, and serves its clients until the last has gone. Called at the start of the process,
/// while it has one thread. If the network cannot be made, the client receives that error too.
pub fn serve(channel: ClientChannel, recorders: &'static Recorders) -> Result<()> {
    let mut clients =
        open(channel).map_err(|error| error::call_failed("reaching the client", error))?;
    // The process may run for long: it must not keep the caller's directory from being unmounted.
    std::env::set_current_dir("/")
        .map_err(|error| error::call_failed("leaving the directory", error))?;
    let (id, opening) = loop {
        match clients.next() {
            None => return Ok(()),
            Some((id, EmulatorRequest::Open(opening))) => break (id, *opening),
            Some((id, _)) => clients.answer(
                id,
                &EmulatorReply::Refused(Error::input("no network has been opened")),
            ),
        }
    };
    let prepared = prepare(&opening);
    if let Err(refusal) = &prepared {
        clients.answer(id, &EmulatorReply::Refused(refusal.clone()));
    }
    let (testbed, mut engine) = prepared?;
    let host_handles = host_handles(&testbed);
    let groups: Vec<String> = host_handles
        .iter()
        .filter_map(|host| host.share.as_ref().map(|(_, group)| group.clone()))
        .collect();
    let stop = EventFd::new()
        .map(Arc::new)
        .map_err(|error| error::call_failed("creating an event", error))?;
    let mut handler = EmulatorRequestHandler {
        clients,
        network: opening.network.clone(),
        opening,
        host_handles,
        handle: engine.handle(),
        recorders,
        since: Instant::now(),
    };
    let stop_writer = Arc::clone(&stop);
    thread::spawn(move || {
        handler.run(id);
        let _ = stop_writer.write(1);
        thread::sleep(PATIENCE);
        std::process::exit(1);
    });
    let done = engine.run(stop.as_fd()).map(drop);
    // The last program of a host removes its group, unless it was killed.
    groups
        .iter()
        .for_each(|group| stackline_os::processor_share::remove(group, GROUP_EMPTIES));
    done.map_err(|error| Error::measurement(format!("the data path failed: {error}")))
}

/// The clients of this channel.
fn open(channel: ClientChannel) -> io::Result<EmulatorClients> {
    let stdin = io::stdin().as_fd().try_clone_to_owned()?;
    match channel {
        ClientChannel::Pipe => Ok(EmulatorClients::piped(
            stdin,
            io::stdout().as_fd().try_clone_to_owned()?,
        )),
        ClientChannel::Socket => EmulatorClients::listening(UnixListener::from(stdin)),
    }
}

/// Makes the hosts and the data path of a network, and measures the round trip to a host.
fn prepare(opening: &EmulationOpening) -> Result<(Testbed, EmulatorEngine)> {
    let (testbed, ports) = testbed::build(&opening.network)?;
    let failed = |error| error::call_failed("preparing the data path", error);
    let mut engine = EmulatorEngine::new(ports, &opening.network, opening.seed, opening.options)
        .map_err(failed)?;
    engine.calibrate().map_err(failed)?;
    Ok((testbed, engine))
}

/// What clients need to enter the hosts: the paths of their namespaces, which are descriptors of this process.
fn host_handles(testbed: &Testbed) -> Vec<HostHandle> {
    let path = |fd: &dyn AsRawFd| {
        PathBuf::from(format!(
            "/proc/{}/fd/{}",
            std::process::id(),
            fd.as_raw_fd()
        ))
    };
    let user = testbed.user.as_ref().map(|user| path(user));
    let host_handle = |host: &testbed::TestbedHost| HostHandle {
        name: host.name.clone(),
        address: host.address,
        address_v6: host.address_v6,
        further: host.further.clone(),
        user: user.clone(),
        net: path(&host.net),
        share: host
            .share
            .map(|share| (share, format!("{}-{}", std::process::id(), host.name))),
    };
    testbed.hosts.iter().map(host_handle).collect()
}
