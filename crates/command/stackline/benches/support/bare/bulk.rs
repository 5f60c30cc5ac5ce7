//! One way over TCP: write in units, read what is there. The initiator's clock runs until everything has arrived.

use super::{Both, Meter, cut, receive, said, send_units, tcp_pair};
use crate::support::figure::Figure;
use crate::support::place::Place;
use crate::support::process::End;
use crate::support::sys;
use serde_json::Value;
use std::io;
use std::os::fd::RawFd;

/// What is read at once.
const READ: usize = 128 << 10;

/// A transfer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bulk {
    /// Bytes a write.
    pub(crate) unit: usize,
    /// Writes.
    pub(crate) count: u64,
    /// From the responder to the initiator.
    pub(crate) get: bool,
    /// `TCP_NODELAY` on both ends.
    pub(crate) nodelay: bool,
    /// Receives without copying.
    pub(crate) truncate: bool,
    /// Cores.
    pub(crate) place: Place,
}

impl Bulk {
    /// All bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.unit as u64 * self.count
    }
}

/// Runs a transfer.
pub(crate) fn bulk(bulk: Bulk) -> Result<Figure, String> {
    let both = Both(tcp_pair().map_err(|error| error.to_string())?);
    let [initiator, responder] = both.0;
    if bulk.nodelay {
        for fd in both.0 {
            sys::option(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)
                .map_err(|error| error.to_string())?;
        }
    }
    let far = End::fork(bulk.place.responder(), || {
        respond(responder, initiator, bulk)
    })?;
    let near = End::fork(bulk.place.initiator(), || {
        initiate(initiator, responder, bulk)
    })?;
    drop(both); // so that an end sees it when the other one dies
    let (near, far) = (near.join()?, far.join()?);
    Ok(Figure::throughput(
        bulk.bytes(),
        said(&near, "wall_s"),
        said(&near, "cpu_s") + said(&far, "cpu_s"),
    ))
}

fn initiate(mine: RawFd, other: RawFd, bulk: Bulk) -> io::Result<Value> {
    sys::close(other);
    let unit = vec![1; bulk.unit];
    let mut buffer = vec![1; READ];
    receive(mine, &mut [0])?; // the responder is ready
    let meter = Meter::start();
    if bulk.get {
        sys::write(mine, &[1])?;
        drain(mine, &mut buffer, bulk)?;
    } else {
        send_units(mine, &unit, bulk.count)?;
        receive(mine, &mut [0])?;
    }
    Ok(meter.stop(bulk.bytes()))
}

fn respond(mine: RawFd, other: RawFd, bulk: Bulk) -> io::Result<Value> {
    sys::close(other);
    let unit = vec![1; bulk.unit];
    let mut buffer = vec![1; READ];
    let meter = Meter::start();
    sys::write(mine, &[1])?;
    if bulk.get {
        receive(mine, &mut [0])?;
        send_units(mine, &unit, bulk.count)?;
    } else {
        drain(mine, &mut buffer, bulk)?;
        sys::write(mine, &[1])?;
    }
    Ok(meter.stop(bulk.bytes()))
}

fn drain(fd: RawFd, buffer: &mut [u8], bulk: Bulk) -> io::Result<()> {
    let mut left = bulk.bytes();
    while left > 0 {
        let got = if bulk.truncate {
            sys::discard(fd, READ)?
        } else {
            sys::read(fd, buffer)?
        };
        left = left
            .checked_sub(got as u64)
            .filter(|_| got > 0)
            .ok_or_else(cut)?;
    }
    Ok(())
}
