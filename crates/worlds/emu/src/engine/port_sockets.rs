//! Sets up the ports' packet sockets: tries each feature that this machine may support, and describes what is used and what is
//! missing.

use super::options::EmulatorOptions;
use crate::veth_port::VethPort;
use stackline_os::epoll::EpollWaiter;
use stackline_os::packet_socket;
use std::io;
use std::os::fd::AsFd;

/// Buffer size requested for each direction of a socket, in bytes.
const ROOM: i32 = 16 << 20;

/// The features that are used on this machine.
pub(crate) struct PortSocketFeatures {
    /// Whether the kernel puts a virtio-net header before every frame.
    pub(crate) header: bool,
    /// Whether to spin before a frame is due, instead of sleeping until then.
    pub(crate) spins: bool,
    /// A phrase for each mechanism, for the report.
    pub(crate) descriptions: Vec<String>,
}

/// Sets up the ports' sockets as well as this machine allows, and finds out which mechanisms it has.
pub(crate) fn set_up(
    ports: &[VethPort],
    waiter: &EpollWaiter,
    options: &EmulatorOptions,
) -> io::Result<PortSocketFeatures> {
    let mut descriptions = Vec::new();
    let header = headers(ports, options, &mut descriptions)?;
    note(
        &mut descriptions,
        all(ports, packet_socket::bypass_queue),
        "bypass of the queueing discipline (PACKET_QDISC_BYPASS)",
    );
    if options.stamps {
        note(
            &mut descriptions,
            all(ports, packet_socket::stamp_frames),
            "kernel timestamps of arriving frames (SO_TIMESTAMPNS)",
        );
    } else {
        descriptions
            .push("frames are timestamped when they are read: kernel timestamps are off".into());
    }
    descriptions.push(room(ports)?);
    let (timer, spins) = timer(waiter, options);
    descriptions.push(timer);
    descriptions.push("not used: AF_XDP (carries no GSO packets in copy mode, and needs privileges), TUN (not available to every user)".into());
    descriptions.push(
        "not used: busy polling (a virtual Ethernet pair has no hardware queue to poll)".into(),
    );
    Ok(PortSocketFeatures {
        header,
        spins,
        descriptions,
    })
}

/// Sets an option on the socket of each port; stops at the first error.
fn all(
    ports: &[VethPort],
    set: fn(std::os::fd::BorrowedFd<'_>) -> io::Result<()>,
) -> io::Result<()> {
    ports.iter().try_for_each(|port| set(port.socket.as_fd()))
}

/// Adds `what` to the descriptions, with the error if it is unavailable.
fn note(descriptions: &mut Vec<String>, done: io::Result<()>, what: &str) {
    descriptions.push(match done {
        Ok(()) => what.into(),
        Err(error) => format!("unavailable: {what}: {error}"),
    });
}

/// Turns the virtio-net header on for every port, or off for all if one refuses it. Returns whether it is on.
fn headers(
    ports: &[VethPort],
    options: &EmulatorOptions,
    descriptions: &mut Vec<String>,
) -> io::Result<bool> {
    let put = |port: &VethPort| match packet_socket::has_virtio_header(port.socket.as_fd()) {
        Ok(true) => Ok(()),
        _ => packet_socket::set_virtio_header(port.socket.as_fd(), true),
    };
    let why = match (options.offload, ports.iter().try_for_each(put)) {
        (true, Ok(())) => {
            descriptions.push(
                "AF_PACKET with the virtio-net header, recvmmsg and sendmmsg: GSO packets are kept whole".into(),
            );
            return Ok(true);
        }
        (false, _) => "turned off".into(),
        (true, Err(error)) => error.to_string(),
    };
    for port in ports {
        if packet_socket::has_virtio_header(port.socket.as_fd()).unwrap_or(false) {
            packet_socket::set_virtio_header(port.socket.as_fd(), false)?;
        }
    }
    descriptions.push(format!(
        "AF_PACKET without the virtio-net header ({why}), recvmmsg and sendmmsg: segmentation and checksum offload must be off on the hosts"
    ));
    Ok(false)
}

/// Requests larger socket buffers; returns the description.
fn room(ports: &[VethPort]) -> io::Result<String> {
    let mut forced = true;
    for port in ports {
        forced &= packet_socket::widen_buffers(port.socket.as_fd(), ROOM)?;
    }
    let how = if forced {
        ""
    } else {
        ", or as much as net.core.rmem_max and wmem_max allow"
    };
    Ok(format!("{} MiB of buffer per socket{how}", ROOM >> 20))
}

/// Describes how the data path waits, and says whether it spins.
fn timer(waiter: &EpollWaiter, options: &EmulatorOptions) -> (String, bool) {
    let call = if waiter.is_fine() {
        "epoll_pwait2"
    } else {
        "ppoll and epoll_wait (no epoll_pwait2 here)"
    };
    let single = std::thread::available_parallelism().is_ok_and(|processors| processors.get() == 1);
    let how = match options.spin.0 {
        0 => "no spinning, as requested".into(),
        _ if single => "no spinning on a single processor".into(),
        _ => format!("spinning for the final {} of each wait", options.spin),
    };
    (
        format!("{call} with a timer slack of 1 ns, {how}"),
        options.spin.0 > 0 && !single,
    )
}
