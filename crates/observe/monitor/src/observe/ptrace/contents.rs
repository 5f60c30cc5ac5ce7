//! Reads the bytes that a system call sent or received from the memory of the thread that made it, which is stopped at the call's
//! exit.

use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use std::io::IoSliceMut;

/// The most bytes of one call that are read; no request or answer needs more to be recognised.
const MOST: usize = 1 << 18;
/// The most pieces of memory that a call may name (`UIO_MAXIOV`).
const MOST_PIECES: u64 = 1_024;
/// The size of `struct iovec`, bytes.
const PIECE: usize = 16;
/// The offset in `struct msghdr` of the address of its pieces; their number follows.
const PIECES_AT: usize = 16;

/// A system call with its arguments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SystemCall {
    pub(super) number: i64,
    pub(super) arguments: [u64; 6],
}

/// The first of the `bytes` that a call sent or received; empty if they are not in memory (`sendfile`), or cannot be read.
pub(super) fn contents_of(thread: Pid, made: SystemCall, bytes: u64) -> Vec<u8> {
    let arguments = made.arguments;
    let most = usize::try_from(bytes).unwrap_or(MOST).min(MOST);
    match made.number {
        libc::SYS_read | libc::SYS_write | libc::SYS_recvfrom | libc::SYS_sendto => {
            memory(thread, arguments[1], most)
        }
        libc::SYS_readv | libc::SYS_writev => pieces(thread, arguments[1], arguments[2], most),
        libc::SYS_recvmsg | libc::SYS_sendmsg => {
            let header = memory(thread, arguments[1], PIECES_AT + PIECE);
            let (Some(at), Some(count)) = (word(&header, PIECES_AT), word(&header, PIECES_AT + 8))
            else {
                return Vec::new();
            };
            pieces(thread, at, count, most)
        }
        _ => Vec::new(),
    }
}

/// Reads `count` pieces of memory, whose list is at `at`, one after the other, up to `most` bytes.
fn pieces(thread: Pid, at: u64, count: u64, most: usize) -> Vec<u8> {
    let count = usize::try_from(count.min(MOST_PIECES)).unwrap_or(0);
    let list = memory(thread, at, count * PIECE);
    let mut all = Vec::new();
    for piece in list.chunks_exact(PIECE) {
        let (Some(from), Some(length)) = (word(piece, 0), word(piece, 8)) else {
            break;
        };
        let length = usize::try_from(length).unwrap_or(MOST);
        let wanted = length.min(most - all.len());
        let got = memory(thread, from, wanted);
        let is_whole = got.len() == wanted;
        all.extend(got);
        if !is_whole || all.len() == most {
            break;
        }
    }
    all
}

/// The word of 8 bytes at an offset.
fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_ne_bytes(*bytes))
}

/// Reads memory of a thread, as much as is there.
fn memory(thread: Pid, at: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let Ok(base) = usize::try_from(at) else {
        return Vec::new();
    };
    let there = [RemoteIoVec { base, len: length }];
    let got = process_vm_readv(thread, &mut [IoSliceMut::new(&mut bytes)], &there);
    bytes.truncate(got.unwrap_or(0));
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This process may read its own memory so.
    fn own(number: i64, arguments: [u64; 6], bytes: u64) -> Vec<u8> {
        let made = SystemCall { number, arguments };
        contents_of(nix::unistd::gettid(), made, bytes)
    }

    #[test]
    fn what_a_call_sent_is_read() {
        let (one, other) = (b"GET / HT".to_vec(), b"TP/1.1".to_vec());
        let at = |bytes: &[u8]| bytes.as_ptr() as u64;
        let sent = own(libc::SYS_write, [3, at(&one), 8, 0, 0, 0], 5);
        assert_eq!(sent, b"GET /");
        let list: Vec<u8> = [at(&one), 8, at(&other), 6]
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        let sent = own(libc::SYS_writev, [3, at(&list), 2, 0, 0, 0], 12);
        assert_eq!(sent, b"GET / HTTP/1");
        let header: Vec<u8> = [0, 0, at(&list), 2]
            .iter()
            .flat_map(|word: &u64| word.to_ne_bytes())
            .collect();
        let sent = own(libc::SYS_sendmsg, [3, at(&header), 0, 0, 0, 0], 14);
        assert_eq!(sent, b"GET / HTTP/1.1");
    }

    #[test]
    fn what_is_not_in_memory_is_nothing() {
        assert!(own(libc::SYS_sendfile, [3, 4, 0, 9, 0, 0], 9).is_empty());
        assert!(own(libc::SYS_write, [3, 8, 9, 0, 0, 0], 9).is_empty());
        assert!(own(libc::SYS_writev, [3, 8, u64::MAX, 0, 0, 0], 9).is_empty());
    }
}
