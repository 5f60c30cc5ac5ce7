//! Sends a request to a server that may answer before it has received all of it, as with an error of HTTP: the answer is looked for
//! whenever sending has to wait.

use super::socket::FarEndSocket;
use crate::error::Result;
use std::io::IoSlice;
use std::time::Duration;

/// How far sending a request has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestSending {
    /// The kernel has taken everything.
    Whole,
    /// The server takes nothing more: it may have said why.
    Cut,
    /// Something of an answer has come before the request was sent whole.
    Answered,
}

/// The rest of the parts behind `done` bytes.
fn rest_of<'p, const N: usize>(parts: [&'p [u8]; N], mut done: usize) -> [IoSlice<'p>; N] {
    parts.map(|part| {
        let here = done.min(part.len());
        done -= here;
        IoSlice::new(&part[here..])
    })
}

/// Sends what is behind the first `done` bytes of the parts, and counts in `done` what the kernel has taken.
pub(super) fn send_until_answer<const N: usize>(
    socket: &mut FarEndSocket,
    parts: [&[u8]; N],
    done: &mut usize,
) -> Result<RequestSending> {
    let all = parts.iter().map(|part| part.len()).sum();
    let mut waited = Duration::ZERO;
    while *done < all {
        match socket.try_send_parts(&rest_of(parts, *done))? {
            Some(0) => return Ok(RequestSending::Cut),
            Some(sent) => {
                *done += sent;
                waited = Duration::ZERO;
            }
            None if socket.awaits_room_or_input(&mut waited)? => {
                return Ok(RequestSending::Answered);
            }
            None => {}
        }
    }
    Ok(RequestSending::Whole)
}
