//! The emulator's process: makes the hosts of one network, moves their frames, answers its clients, ends with the last.
//!
//! ```text
//! main thread      the data path
//! clients' thread  requests, leases; when the last lease closes, it tells the data path to stop
//! ```
//! Everything it makes belongs to its file descriptors, so that nothing is left however it ends.

mod clients;

use crate::engine::{Engine, Handle, Record};
use crate::house::{self, House};
use crate::protocol::{Answer, Opening, Request};
use crate::refusal::{self, Refusal, Result};
use crate::seat::Seat;
use clients::Clients;
use nix::sys::eventfd::EventFd;
use stackline_core::network::Network;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// How long the data path may take to stop.
const PATIENCE: Duration = Duration::from_secs(2);

/// How clients reach this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// One client, by the pipes that are its stdin and stdout.
    Pipe,
    /// Any number, by the listening socket that is its stdin; the first has already connected.
    Socket,
}

/// Makes what is told of everything that happens in a network, from what a client asked to be recorded.
pub type Recorders = dyn Fn(&Network, &serde_json::Value) -> std::result::Result<Box<dyn Record>, String> + Send + Sync;

/// Serves until the last client has gone. The process is fresh and has one thread. What is refused was told the clients.
pub fn serve(door: Door, recorders: &'static Recorders) -> Result<()> {
    let mut clients = open(door).map_err(|error| refusal::call("reaching the client", error))?;
    // No directory is kept from being unmounted.
    std::env::set_current_dir("/").map_err(|error| refusal::call("leaving the directory", error))?;
    let (id, opening) = loop {
        match clients.next() {
            None => return Ok(()),
            Some((id, Request::Open(opening))) => break (id, *opening),
            Some((id, _)) => clients.answer(id, &Answer::Refused(Refusal::input("no network has been opened"))),
        }
    };
    let prepared = prepare(&opening);
    if let Err(refusal) = &prepared {
        clients.answer(id, &Answer::Refused(refusal.clone()));
    }
    let (house, mut engine) = prepared?;
    let seats = seats(&house);
    let stop = EventFd::new().map(Arc::new).map_err(|error| refusal::call("making an event", error))?;
    let mut desk = Desk { clients, opening, seats, handle: engine.handle(), recorders };
    let told = Arc::clone(&stop);
    thread::spawn(move || {
        desk.attend(id);
        let _ = told.write(1);
        thread::sleep(PATIENCE);
        std::process::exit(1);
    });
    engine.run(stop.as_fd()).map(drop).map_err(|error| Refusal::measurement(format!("the data path failed: {error}")))
}

fn open(door: Door) -> io::Result<Clients> {
    let stdin = io::stdin().as_fd().try_clone_to_owned()?;
    match door {
        Door::Pipe => Ok(Clients::piped(stdin, io::stdout().as_fd().try_clone_to_owned()?)),
        Door::Socket => Clients::listening(UnixListener::from(stdin)),
    }
}

fn prepare(opening: &Opening) -> Result<(House, Engine)> {
    let (house, legs) = house::build(&opening.network)?;
    let failed = |error| refusal::call("preparing the data path", error);
    let mut engine = Engine::new(legs, &opening.network, opening.seed, opening.options).map_err(failed)?;
    engine.calibrate().map_err(failed)?;
    Ok((house, engine))
}

fn seats(house: &House) -> Vec<Seat> {
    let path = |fd: &dyn AsRawFd| PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), fd.as_raw_fd()));
    let user = house.user.as_ref().map(|user| path(user));
    let seat = |host: &house::Host| Seat {
        name: host.name.clone(),
        address: host.address,
        user: user.clone(),
        net: path(&host.net),
    };
    house.hosts.iter().map(seat).collect()
}

/// Answers clients while frames move.
struct Desk {
    clients: Clients,
    opening: Opening,
    seats: Vec<Seat>,
    handle: Handle,
    recorders: &'static Recorders,
}

impl Desk {
    /// The first client, who opened the network, is answered when frames are carried; then all others.
    fn attend(&mut self, first: u64) {
        if !self.handle.started() {
            return;
        }
        self.clients.answer(first, &Answer::Open(self.seats.clone()));
        while let Some((id, request)) = self.clients.next() {
            let answer = self.answer(request).unwrap_or_else(Answer::Refused);
            self.clients.answer(id, &answer);
        }
    }

    fn differs_by_seed(&self, asked: &Opening) -> bool {
        (&asked.network, &asked.options) == (&self.opening.network, &self.opening.options)
    }

    fn answer(&self, request: Request) -> Result<Answer> {
        match request {
            Request::Open(opening) if *opening == self.opening => Ok(Answer::Open(self.seats.clone())),
            Request::Open(opening) if self.differs_by_seed(&opening) => {
                let message = format!("the network {} is there already, with another seed", self.opening.network.name);
                let hint =
                    "give the seed that its first program was given, or wait until all programs on it have ended";
                Err(Refusal::input(message).hint(hint))
            }
            Request::Open(_) => Err(Refusal::input("another network is being emulated here")),
            Request::Restart(seed, record) => {
                let record = record.map(|asked| (self.recorders)(&self.opening.network, &asked)).transpose();
                let record = record.map_err(refusal::environment)?;
                self.handle.restart(seed, record).map_err(refusal::environment)?;
                Ok(Answer::Restarted)
            }
            Request::Report => Ok(Answer::Report(Box::new(self.handle.report()))),
        }
    }
}
