//! The least work a data path can do on this machine: frames received on one port are sent on the other, with the calls and
//! the scheduling of the emulator.

use stackline_core::time::Duration;
use stackline_emu::veth_port::VethPort;
use stackline_os::clock::{SystemClock, read_clock};
use stackline_os::epoll::EpollWaiter;
use stackline_os::frame_batch::{BATCH, ReceivedPacketInfo, receive_frames};
use stackline_os::message_batch::MessageBatch;
use stackline_os::packet_socket;
use stackline_os::stream_socket::SendFlags;
use stackline_os::thread::{schedule, set_schedule};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Bytes of the virtio-net header.
pub(crate) const VIRTIO: usize = 10;
/// Bytes of the longest frame with all headers before it.
const LONGEST: usize = 65_664;
/// Bytes that are received first: those of a frame of 1500 bytes with all headers before it.
const SMALL: usize = 2048;
const STOP: u64 = u64::MAX;
/// Scheduled as the emulator is: its niceness and the length of its turns in ns.
const NICE: i32 = -10;
const TURN: u64 = 100_000;

/// Waits for frames of two ports, and for `stop`.
pub(crate) struct PortWaiter {
    waiter: EpollWaiter,
    began: u64,
}

impl PortWaiter {
    /// Sets the sockets and this thread up as the emulator does.
    pub(crate) fn new(ports: &[VethPort; 2], stop: BorrowedFd<'_>) -> io::Result<Self> {
        let began = read_clock(SystemClock::Thread);
        if let Ok(before) = schedule() {
            // Without the right to a better niceness, shorter turns are granted.
            let nice = before.nice.min(NICE);
            let _ = set_schedule(before.with(nice, TURN))
                .or_else(|_| set_schedule(before.with(before.nice, TURN)));
        }
        let waiter = EpollWaiter::new()?;
        for (token, port) in (0..).zip(ports) {
            packet_socket::bypass_queue(port.socket.as_fd())?;
            waiter.add(port.socket.as_fd(), token)?;
        }
        waiter.add(stop, STOP)?;
        Ok(Self { waiter, began })
    }

    /// Lets `pass` take the frames of each port that has some, until the end; the number of frames and the processor time used.
    pub(crate) fn serve(
        mut self,
        mut pass: impl FnMut(usize) -> io::Result<u64>,
    ) -> io::Result<(u64, Duration)> {
        let mut total = 0;
        loop {
            self.waiter.wait(None)?;
            for token in self.waiter.ready_tokens() {
                if token == STOP {
                    let used = read_clock(SystemClock::Thread) - self.began;
                    return Ok((total, Duration(used)));
                }
                total += pass(token as usize)?;
            }
        }
    }
}

/// Forwards between two ports until `stop` is readable; the number of frames and the processor time used.
pub(crate) fn forward(ports: &[VethPort; 2], stop: BorrowedFd<'_>) -> io::Result<(u64, Duration)> {
    let waiter = PortWaiter::new(ports, stop)?;
    let mut buffers = vec![vec![0_u8; LONGEST]; BATCH];
    let mut messages = MessageBatch::new(BATCH, BATCH);
    let mut received = [ReceivedPacketInfo::default(); BATCH];
    waiter.serve(|from| {
        let rooms = buffers
            .iter_mut()
            .map(|buffer| buffer.split_at_mut(SMALL).into());
        let Ok(count) = receive_frames(ports[from].socket.as_fd(), rooms, &mut received) else {
            return Ok(0);
        };
        let to = &ports[1 - from];
        for buffer in &mut buffers[..count] {
            buffer[VIRTIO..VIRTIO + 6].copy_from_slice(&to.host_mac);
        }
        let frames: Vec<&[u8]> = buffers
            .iter()
            .zip(&received[..count])
            .map(|(buffer, info)| &buffer[..info.length.min(LONGEST)])
            .collect();
        pass(&frames, &mut messages, to)?;
        Ok(count as u64)
    })
}

fn pass(mut frames: &[&[u8]], messages: &mut MessageBatch, to: &VethPort) -> io::Result<()> {
    while !frames.is_empty() {
        let each = frames.iter().copied();
        match messages.send_each(to.socket.as_fd(), each, SendFlags::DONTWAIT) {
            Ok(sent) => frames = &frames[sent..],
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) => {}
            Err(error) if error.raw_os_error() == Some(nix::libc::ENOBUFS) => frames = &frames[1..],
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
