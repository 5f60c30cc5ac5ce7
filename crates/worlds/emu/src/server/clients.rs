//! The emulator's clients, connected by pipes or a socket: reads their requests and writes the answers. Each holds a lease of the network
//! as long as its connection is open.

use crate::protocol::{EmulatorReply, EmulatorRequest};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{getsockopt, sockopt};
use nix::unistd::geteuid;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};

/// Longest request in bytes; so long because a network's description may contain traces of rates.
const LONGEST: usize = 256 << 20;

/// The clients, and the socket on which new ones connect.
#[derive(Debug)]
pub(super) struct EmulatorClients {
    /// Where new clients connect; `None` for the one client of a private network.
    listener: Option<UnixListener>,
    clients: Vec<EmulatorClient>,
    /// The id of the next new client.
    next: u64,
    /// Whether the network stays up without clients.
    pub(super) kept: bool,
    /// The client that asked for the recording in progress: when it goes, the recording is ended.
    pub(super) records: Option<u64>,
}

/// One client.
#[derive(Debug)]
struct EmulatorClient {
    id: u64,
    from: File,
    to: File,
    /// Bytes that were read and are not yet taken as requests.
    read: Vec<u8>,
    /// Whether it uses the network, beyond looking at it.
    uses: bool,
    /// Whether its connection is closed, or was given up because it sent something that is not a request.
    ended: bool,
}

impl EmulatorClients {
    /// One client, connected by a pair of pipes.
    pub(super) fn piped(from: OwnedFd, to: OwnedFd) -> Self {
        let client = EmulatorClient {
            id: 0,
            from: from.into(),
            to: to.into(),
            read: Vec::new(),
            uses: false,
            ended: false,
        };
        Self {
            listener: None,
            clients: vec![client],
            next: 1,
            kept: false,
            records: None,
        }
    }

    /// All clients that connect to a socket; the first has connected already.
    pub(super) fn listening(listener: UnixListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener: Some(listener),
            clients: Vec::new(),
            next: 0,
            kept: false,
            records: None,
        })
    }

    /// Waits for the next request; returns it with its client's id, `None` when the last client has gone. When the client that records
    /// goes, the request is an end of the recording.
    pub(super) fn next(&mut self) -> Option<(u64, EmulatorRequest)> {
        loop {
            self.accept();
            for client in &mut self.clients {
                if let Some(request) = client.request() {
                    return Some((client.id, request));
                }
            }
            // The last connection stays open until the process ends, so that its client can wait for that.
            if !self.kept && self.clients.iter().all(|client| client.ended) {
                return None;
            }
            self.clients.retain(|client| !client.ended);
            if let Some(gone) = self
                .records
                .take_if(|id| !self.clients.iter().any(|client| client.id == *id))
            {
                return Some((gone, EmulatorRequest::EndRecording));
            }
            self.wait();
        }
    }

    /// Number of clients that use the network, other than the one with this id.
    pub(super) fn others(&self, id: u64) -> usize {
        self.clients
            .iter()
            .filter(|client| client.id != id && client.uses && !client.ended)
            .count()
    }

    /// From now on the client counts as one that uses the network.
    pub(super) fn uses(&mut self, id: u64) {
        self.clients
            .iter_mut()
            .filter(|client| client.id == id)
            .for_each(|client| client.uses = true);
    }

    /// Answers a client; does nothing if it has gone.
    pub(super) fn answer(&mut self, id: u64, answer: &EmulatorReply) {
        let Some(client) = self.clients.iter_mut().find(|client| client.id == id) else {
            return;
        };
        let line = serde_json::to_vec(answer).map(|mut line| {
            line.push(b'\n');
            line
        });
        if line
            .map_or(Ok(()), |line| client.to.write_all(&line))
            .is_err()
        {
            client.ended = true;
        }
    }

    /// Accepts the clients that have connected.
    fn accept(&mut self) {
        while let Some(Ok((stream, _))) = self.listener.as_ref().map(UnixListener::accept) {
            let Ok(Some((from, to))) = own(stream) else {
                continue;
            };
            self.clients.push(EmulatorClient {
                id: self.next,
                from,
                to,
                read: Vec::new(),
                uses: false,
                ended: false,
            });
            self.next += 1;
        }
    }

    /// Sleeps until a client sends, goes or connects; reads what came from those connected.
    fn wait(&mut self) {
        let fds = self.clients.iter().map(|client| client.from.as_fd());
        let fds = fds.chain(self.listener.iter().map(AsFd::as_fd));
        let mut fds: Vec<PollFd<'_>> = fds.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        if let Err(error) = poll(&mut fds, PollTimeout::NONE) {
            debug_assert_eq!(error, Errno::EINTR);
        }
        let ready: Vec<bool> = fds.iter().map(|fd| fd.any() == Some(true)).collect();
        for (client, _) in self
            .clients
            .iter_mut()
            .zip(ready)
            .filter(|(_, ready)| *ready)
        {
            client.receive();
        }
    }
}

/// Both directions of a connection, if the peer is the same user.
fn own(stream: UnixStream) -> io::Result<Option<(File, File)>> {
    if getsockopt(&stream, sockopt::PeerCredentials)?.uid() != geteuid().as_raw() {
        return Ok(None);
    }
    let to = OwnedFd::from(stream.try_clone()?);
    Ok(Some((File::from(OwnedFd::from(stream)), File::from(to))))
}

impl EmulatorClient {
    /// Reads what has come.
    fn receive(&mut self) {
        let mut room = [0; 64 << 10];
        match self.from.read(&mut room) {
            Ok(length) if length > 0 && self.read.len() < LONGEST => {
                self.read.extend_from_slice(&room[..length])
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            _ => self.ended = true,
        }
    }

    /// Takes a complete request (a line), if one has been read. A client that sends anything else is treated as gone.
    fn request(&mut self) -> Option<EmulatorRequest> {
        let end = self.read.iter().position(|byte| *byte == b'\n')?;
        let line: Vec<u8> = self.read.drain(..=end).collect();
        let request = serde_json::from_slice(&line).ok();
        self.ended |= request.is_none();
        request
    }
}
