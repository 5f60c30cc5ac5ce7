//! Sessions that clients have left while the server's tickets were under way. A socket that is closed before they come would reset its
//! connection, and what was sent last would be lost; a client that waited for them would wait a round trip. So they are kept until the server
//! has closed them, and what comes is taken when the next connection is opened.

use super::tls_session::OpenTls;
use crate::stacks::ip;
use stackline_os::stream_socket::RecvFlags;
use std::io::{self, Read};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Most sessions that are kept; one more waits for the oldest.
const FAREWELLS_MOST: usize = 16;
/// How long the servers of the last sessions may take to close them, in all.
const LAST_PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of room for what comes: tickets are no data.
const ROOM_BYTES: usize = 256;

/// The sessions that the client of a pair has left.
#[derive(Default)]
pub(super) struct TlsFarewells(Mutex<Vec<OpenTls>>);

impl TlsFarewells {
    /// Keeps a session that was left, and finished.
    pub(super) fn keep(&self, mut open: OpenTls) {
        let socket = open.socket();
        socket.receives_with(RecvFlags::DONTWAIT);
        // No driver waits for it any more.
        socket
            .shared()
            .is_waited_for
            .store(false, Ordering::Relaxed);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == FAREWELLS_MOST {
            await_end(&mut kept.remove(0), ip::PATIENCE);
        }
        kept.push(open);
    }

    /// Takes what has come, and forgets the sessions that their servers have closed.
    pub(super) fn take(&self) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain_mut(|open| !has_ended(open));
    }
}

impl Drop for TlsFarewells {
    fn drop(&mut self) {
        let kept = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        let begun = Instant::now();
        for open in kept {
            await_end(open, LAST_PATIENCE.saturating_sub(begun.elapsed()));
        }
    }
}

/// Reads until the peer has closed the connection, or is silent for that long.
fn await_end(open: &mut OpenTls, patience: Duration) {
    if patience.is_zero() {
        return;
    }
    let socket = open.socket();
    socket.receives_with(RecvFlags::empty());
    let shared = &socket.shared().socket;
    let waits = shared
        .set_nonblocking(false)
        .and_then(|()| shared.set_read_timeout(Some(patience)));
    if waits.is_ok() {
        has_ended(open);
    }
}

/// Whether the peer has closed the connection, after what has come was taken.
fn has_ended(open: &mut OpenTls) -> bool {
    loop {
        match open.read(&mut [0; ROOM_BYTES]) {
            Ok(1..) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
            Ok(0) | Err(_) => return true,
        }
    }
}
