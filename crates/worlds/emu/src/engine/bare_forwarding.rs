//! The least work a data path can do on this machine: frames received on one port are sent on the other. Benchmarks of
//! the emulator compare with it; nothing else uses it.

use super::header::VIRTIO;
use super::probe::probe;
use super::receive_batch::ReceiveBatch;
use super::run_loop::raise_priority;
use super::{EmulatorOptions, buffer::PooledBuffer};
use crate::veth_port::VethPort;
use stackline_core::time::Duration;
use stackline_os::clock::{SystemClock, read_clock};
use stackline_os::epoll::EpollWaiter;
use stackline_os::frame_batch::BATCH;
use stackline_os::message_batch::MessageBatch;
use stackline_os::stream_socket::SendFlags;
use stackline_os::thread::schedule;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

const STOP: u64 = u64::MAX;

/// Forwards between two ports until `stop` is readable, scheduled as favourably as the emulator; returns the number of
/// frames and the processor time used.
pub fn forward(ports: &[VethPort; 2], stop: BorrowedFd<'_>) -> io::Result<(u64, Duration)> {
    let begin = read_clock(SystemClock::Thread);
    let mut total = 0;
    raise_priority(schedule().ok());
    let mut waiter = EpollWaiter::new()?;
    probe(
        ports,
        &waiter,
        &EmulatorOptions {
            stamps: false,
            ..EmulatorOptions::default()
        },
    )?;
    for (token, port) in (0..).zip(ports) {
        waiter.add(port.socket.as_fd(), token)?;
    }
    waiter.add(stop, STOP)?;
    let (mut batch, mut messages) = (ReceiveBatch::new(), MessageBatch::new(BATCH, BATCH));
    let mut frames: Vec<(PooledBuffer, usize)> = Vec::with_capacity(BATCH);
    loop {
        waiter.wait(None)?;
        for token in waiter.ready_tokens() {
            if token == STOP {
                return Ok((total, Duration(read_clock(SystemClock::Thread) - begin)));
            }
            let from = token as usize;
            let Ok(count) = batch.receive(ports[from].socket.as_fd(), true, BATCH) else {
                continue;
            };
            total += count as u64;
            frames.extend(
                batch
                    .frames
                    .drain(..)
                    .map(|arrived| (arrived.buffer, arrived.length)),
            );
            pass(&mut frames, &mut messages, &ports[1 - from])?;
        }
    }
}

fn pass(
    frames: &mut Vec<(PooledBuffer, usize)>,
    messages: &mut MessageBatch,
    to: &VethPort,
) -> io::Result<()> {
    for (frame, _) in frames.iter_mut() {
        frame[VIRTIO..VIRTIO + 6].copy_from_slice(&to.host_mac);
    }
    while !frames.is_empty() {
        let each = frames.iter().map(|(frame, length)| &frame[..*length]);
        match messages.send_each(to.socket.as_fd(), each, SendFlags::DONTWAIT) {
            Ok(sent) => drop(frames.drain(..sent)),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) => {}
            Err(error) if error.raw_os_error() == Some(nix::libc::ENOBUFS) => {
                drop(frames.remove(0))
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
