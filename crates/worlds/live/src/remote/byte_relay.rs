//! Relays bytes between a secure channel and two local streams until either side ends. It sleeps in `poll` while nothing arrives, so it
//! takes no CPU time while a run is measured.

use super::secure_channel::SecureChannel;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::time::Duration;

/// Most bytes read at once, from the local input or the channel.
const PIECE: usize = 16 << 10;
/// How long the other side may stay silent, after the local input has ended, before the relay ends.
const CLOSING: Duration = Duration::from_secs(1);

/// Which side ended first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The local input.
    Here,
    /// The channel.
    There,
}

/// Relays from `input` to the channel and from the channel to `output`. After `input` has ended, what still comes from the channel is
/// passed on until it closes or is silent for [`CLOSING`].
pub(super) fn relay(
    channel: &mut SecureChannel,
    mut input: impl Read + AsFd,
    mut output: impl Write,
) -> io::Result<Ended> {
    channel.socket.set_nonblocking(true)?;
    // Bytes that arrived together with the other side's proof are already in the TLS buffer, where `poll` does not see them.
    if take(channel, &mut output)? {
        return Ok(Ended::There);
    }
    let mut ended = None;
    loop {
        // No input is read while TLS has bytes to send: if one side does not read, the other has to wait, and no memory fills up.
        let is_full = channel.tls.wants_write();
        let of_socket = if is_full {
            PollFlags::IN | PollFlags::OUT
        } else {
            PollFlags::IN
        };
        let mut waiting = vec![PollFd::new(&channel.socket, of_socket)];
        if ended.is_none() && !is_full {
            waiting.push(PollFd::new(&input, PollFlags::IN));
        }
        let most = ended.map(|_| Timespec {
            tv_sec: CLOSING.as_secs() as i64,
            tv_nsec: 0,
        });
        match poll(&mut waiting, most.as_ref()) {
            Ok(0) => return Ok(Ended::Here),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let is_input_ready = waiting
            .get(1)
            .is_some_and(|ready| !ready.revents().is_empty());
        let of_socket = waiting[0].revents();
        drop(waiting);
        if of_socket.contains(PollFlags::OUT) {
            unless_blocked(channel.tls.write_tls(&mut channel.socket))?;
        }
        if of_socket.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR)
            && take(channel, &mut output)?
        {
            return Ok(ended.unwrap_or(Ended::There));
        }
        if is_input_ready {
            let mut piece = [0; PIECE];
            match input.read(&mut piece)? {
                0 => {
                    ended = Some(Ended::Here);
                    channel.tls.send_close_notify();
                }
                got => channel.tls.writer().write_all(&piece[..got])?,
            }
        }
    }
}

/// Reads what has arrived on the channel and writes it to `output`. Returns whether the channel is closed.
fn take(channel: &mut SecureChannel, output: &mut impl Write) -> io::Result<bool> {
    let is_over = unless_blocked(channel.tls.read_tls(&mut channel.socket))? == Some(0);
    if let Err(error) = channel.tls.process_new_packets() {
        return Err(io::Error::new(ErrorKind::InvalidData, error));
    }
    let mut piece = [0; PIECE];
    loop {
        match channel.tls.reader().read(&mut piece) {
            Ok(0) => return Ok(true),
            Ok(got) => output.write_all(&piece[..got])?,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            // The TCP connection was closed without TLS's close_notify.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(true),
            Err(error) => return Err(error),
        }
    }
    output.flush()?;
    Ok(is_over)
}

/// `None` for a call that would have blocked or was interrupted.
fn unless_blocked(done: io::Result<usize>) -> io::Result<Option<usize>> {
    match done {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::secure_channel::{ChannelKey, accept, connect, server_keys};
    use stackline_guard::deadline::Deadline;
    use stackline_guard::secret::Secret;
    use std::net::{TcpListener, TcpStream};
    use std::thread;

    /// A path that hands over what one side sends in one piece, after it has rested.
    fn batched(to: TcpStream, mut from: TcpStream) {
        let mut piece = Vec::new();
        let mut buffer = [0; 4096];
        from.set_read_timeout(Some(Duration::from_millis(300)))
            .unwrap();
        loop {
            match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(got) => piece.extend_from_slice(&buffer[..got]),
                Err(_) => (&to).write_all(&std::mem::take(&mut piece)).unwrap(),
            }
        }
        let _ = (&to).write_all(&piece);
        let _ = to.shutdown(std::net::Shutdown::Write);
    }

    #[test]
    fn what_comes_with_the_proof_is_passed_on() {
        let key = || ChannelKey::derive(&Secret::new("a shared secret".into()).unwrap());
        let soon = || Deadline::within(Duration::from_secs(20));
        let agents = TcpListener::bind("127.0.0.1:0").unwrap();
        let path = TcpListener::bind("127.0.0.1:0").unwrap();
        let (agent, between) = (agents.local_addr().unwrap(), path.local_addr().unwrap());
        let serving = thread::spawn(move || {
            let (socket, _) = agents.accept().unwrap();
            let Ok(coordinator) = accept(socket, &server_keys().unwrap(), &key(), soon()).unwrap()
            else {
                panic!("the secret is the same")
            };
            let mut channel = coordinator.welcome(&key(), soon()).unwrap();
            let (greeting, writer) = io::pipe().unwrap();
            (&writer).write_all(b"hello").unwrap();
            drop(writer);
            relay(&mut channel, greeting, io::sink())
        });
        thread::spawn(move || {
            let (here, _) = path.accept().unwrap();
            let there = TcpStream::connect(agent).unwrap();
            let back = (here.try_clone().unwrap(), there.try_clone().unwrap());
            thread::spawn(move || batched(back.0, back.1));
            batched(there, here);
        });
        let socket = TcpStream::connect(between).unwrap();
        let mut channel = connect(socket, &key(), soon()).ok().unwrap();
        let (silent, _open) = io::pipe().unwrap();
        let mut heard = Vec::new();
        assert_eq!(
            relay(&mut channel, silent, &mut heard).unwrap(),
            Ended::There
        );
        assert_eq!(heard, b"hello");
        serving.join().unwrap().unwrap();
    }
}
