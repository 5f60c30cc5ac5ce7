//! The coordinator's side of a remote agent: a process that connects to an agent that listens, and relays bytes between its own standard
//! streams and the connection.

use super::PATIENCE;
use super::byte_relay::{Ended, relay};
use super::secure_channel::{self, ChannelKey, NoChannel};
use super::socket_keeping::keep_alive;
use crate::error::{Error, Result};
use stackline_guard::deadline::Deadline;
use stackline_guard::secret::Secret;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::AsFd;

/// Connects to the agent at `HOST:PORT` and relays bytes until either side ends.
///
/// # Errors
/// An [`Error`] of the environment that says why the agent cannot be reached, or that it closed the connection.
pub fn connect(
    address: &str,
    secret: &Secret,
    input: impl Read + AsFd,
    output: impl Write,
) -> Result<()> {
    let key = ChannelKey::derive(secret);
    let deadline = Deadline::within(PATIENCE);
    let socket = socket(address, deadline)?;
    keep_alive(&socket)
        .map_err(|error| Error::environment(format!("cannot set options of a socket: {error}")))?;
    let mut channel =
        secure_channel::connect(socket, &key, deadline).map_err(|why| no_channel(address, &why))?;
    match relay(&mut channel, input, output) {
        Ok(Ended::Here) => Ok(()),
        Ok(Ended::There) => Err(Error::environment(format!(
            "the agent at {address} closed the connection"
        ))
        .hint(
            "its own output says why: the terminal or the journal of `stackline agent --listen`",
        )),
        Err(error) => Err(Error::environment(format!(
            "the connection to the agent at {address} failed: {error}"
        ))),
    }
}

/// A TCP connection to the first address of the name that answers.
fn socket(address: &str, deadline: Deadline) -> Result<TcpStream> {
    let found = address.to_socket_addrs().map_err(|error| {
        Error::environment(format!("cannot resolve the address {address}: {error}"))
            .hint("check the host name of `via tcp \"HOST:PORT\"`")
    })?;
    let mut last = io::Error::from(ErrorKind::AddrNotAvailable);
    let found: Vec<_> = found.collect();
    for (tried, candidate) in found.iter().enumerate() {
        let Some(rest) = deadline.rest() else { break };
        // Each address gets an equal share of the remaining time, so that one that does not answer leaves time for the others.
        let share = u32::try_from(found.len() - tried).unwrap_or(u32::MAX);
        match TcpStream::connect_timeout(candidate, rest / share) {
            Ok(socket) => return Ok(socket),
            Err(error) => last = error,
        }
    }
    let failure = Error::environment(format!("cannot connect to the agent at {address}: {last}"));
    Err(match last.kind() {
        ErrorKind::ConnectionRefused => failure
            .hint("start it there: `stackline agent --listen 0.0.0.0:PORT`; or the port is wrong"),
        ErrorKind::TimedOut | ErrorKind::WouldBlock => {
            failure.hint("no answer: a firewall blocks the port, or the address is wrong")
        }
        _ => failure.hint("check the address of `via tcp \"HOST:PORT\"`"),
    })
}

/// The error for the user, with a hint, when no secure channel could be made.
fn no_channel(address: &str, why: &NoChannel) -> Error {
    match why {
        NoChannel::WrongSecret => Error::environment(format!(
            "the agent at {address} has another secret"
        ))
        .hint("copy its secret to ~/.config/stackline/agent.secret on this machine, or set STACKLINE_AGENT_SECRET"),
        NoChannel::Busy => Error::environment(format!(
            "the agent at {address} already serves as many hosts as it can"
        ))
        .hint("wait for other runs to end, or start another agent on another port"),
        NoChannel::Failed(error) if matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock) => {
            Error::environment(format!("the program at {address} accepted the connection and does not answer"))
                .hint("is it `stackline agent --listen`? Check the port")
        }
        NoChannel::Failed(error) if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => {
            Error::environment(format!("the program at {address} closed the connection at once"))
                .hint("too many others connect to that agent, or it is another program; check the port and try again")
        }
        NoChannel::Failed(error) => Error::environment(format!(
            "the program at {address} does not answer as an agent: {error}"
        ))
        .hint("is it `stackline agent --listen`, in the same version? Check the port"),
    }
}
