//! What this machine's packet sockets can do, asked one by one; what is missing is said in words.

use super::options::Options;
use crate::leg::Leg;
use crate::sys::packet;
use crate::sys::packet_wait::Waiter;
use std::io;
use std::os::fd::AsFd;

/// Bytes of room asked for in each direction of a socket.
const ROOM: i32 = 16 << 20;

/// What was found.
pub(crate) struct Found {
    /// Whether the kernel puts a virtio-net header before every frame.
    pub(crate) header: bool,
    /// Whether to spin before a departure.
    pub(crate) spins: bool,
    /// All of it in words.
    pub(crate) words: Vec<String>,
}

/// Sets the sockets up as well as this machine allows.
pub(crate) fn probe(legs: &[Leg], waiter: &Waiter, options: &Options) -> io::Result<Found> {
    let mut words = Vec::new();
    let header = headers(legs, options, &mut words)?;
    note(&mut words, all(legs, packet::bypass_queue), "no queueing discipline between (PACKET_QDISC_BYPASS)");
    if options.stamps {
        note(&mut words, all(legs, packet::stamp_frames), "arrival is when the kernel had a frame (SO_TIMESTAMPNS)");
    } else {
        words.push("arrival is when a frame was read: stamps were declined".into());
    }
    words.push(room(legs)?);
    let (timer, spins) = timer(waiter, options);
    words.push(timer);
    words.push("not used: AF_XDP (carries no trains of segments in copy mode, and needs privileges), TUN (not open to every user)".into());
    words.push("not used: busy polling (a virtual Ethernet pair has no hardware queue to poll)".into());
    Ok(Found { header, spins, words })
}

fn all(legs: &[Leg], set: fn(std::os::fd::BorrowedFd<'_>) -> io::Result<()>) -> io::Result<()> {
    legs.iter().try_for_each(|leg| set(leg.socket.as_fd()))
}

fn note(words: &mut Vec<String>, done: io::Result<()>, what: &str) {
    words.push(match done {
        Ok(()) => what.into(),
        Err(error) => format!("without: {what}: {error}"),
    });
}

/// A virtio-net header before every frame of every leg, or of none.
fn headers(legs: &[Leg], options: &Options, words: &mut Vec<String>) -> io::Result<bool> {
    let put = |leg: &Leg| match packet::has_header(leg.socket.as_fd()) {
        Ok(true) => Ok(()),
        _ => packet::set_header(leg.socket.as_fd(), true),
    };
    let why = match (options.offload, legs.iter().try_for_each(put)) {
        (true, Ok(())) => {
            words.push(
                "af_packet with virtio-net header, recvmmsg and sendmmsg: trains of segments travel whole".into(),
            );
            return Ok(true);
        }
        (false, _) => "it was declined".into(),
        (true, Err(error)) => error.to_string(),
    };
    for leg in legs {
        if packet::has_header(leg.socket.as_fd()).unwrap_or(false) {
            packet::set_header(leg.socket.as_fd(), false)?;
        }
    }
    words.push(format!(
        "af_packet without virtio-net header ({why}), recvmmsg and sendmmsg: the hosts need segmentation and checksum \
         offload off"
    ));
    Ok(false)
}

fn room(legs: &[Leg]) -> io::Result<String> {
    let mut forced = true;
    for leg in legs {
        forced &= packet::make_room(leg.socket.as_fd(), ROOM)?;
    }
    let how = if forced { "" } else { ", as far as net.core.rmem_max and wmem_max allow" };
    Ok(format!("{} MiB of room in each socket{how}", ROOM >> 20))
}

fn timer(waiter: &Waiter, options: &Options) -> (String, bool) {
    let call = if waiter.is_fine() { "epoll_pwait2" } else { "ppoll and epoll_wait (no epoll_pwait2 here)" };
    let alone = std::thread::available_parallelism().is_ok_and(|processors| processors.get() == 1);
    let how = match options.spin.0 {
        0 => "no spinning, as asked".into(),
        _ if alone => "no spinning on a single processor".into(),
        _ => format!("spinning for the last {}", options.spin),
    };
    (format!("{call} with a timer slack of 1 ns, {how}"), options.spin.0 > 0 && !alone)
}
