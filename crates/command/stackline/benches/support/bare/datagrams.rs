//! Many datagrams a call over UDP: the kernel cuts what is sent (GSO) and joins what is received (GRO).

use super::calls::udp_pair;
use super::{Both, Meter, said};
use crate::support::figure::Figure;
use crate::support::place::Place;
use crate::support::process::End;
use crate::support::sys;
use serde_json::Value;
use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

const SOL_UDP: i32 = 17;
const UDP_SEGMENT: i32 = 103;
const UDP_GRO: i32 = 104;
/// The longest payload IPv4 allows.
const LONGEST: usize = 65_507;
/// Socket buffers of both ends.
const BUFFER: i32 = 4 << 20;

/// Sends `count` datagrams of `size` bytes as fast as it goes; the figure is what was received.
pub(crate) fn datagrams(size: usize, count: u64, place: Place) -> Result<Figure, String> {
    let both = Both(udp_pair().map_err(|error| error.to_string())?);
    let [initiator, responder] = both.0;
    options(both.0, size).map_err(|error| error.to_string())?;
    let far = End::fork(place.responder(), || respond(responder, initiator))?;
    let near = End::fork(place.initiator(), || {
        initiate(initiator, responder, size, count)
    })?;
    drop(both); // so that an end sees it when the other one dies
    let (near, far) = (near.join()?, far.join()?);
    let (sent, received) = (said(&near, "bytes"), said(&far, "bytes"));
    let cpu_s = said(&near, "cpu_s") + said(&far, "cpu_s");
    let note = format!("{:.2} % lost", (sent - received) / sent * 100.0);
    Ok(Figure::throughput(received as u64, said(&near, "wall_s"), cpu_s).noting(note))
}

fn options([initiator, responder]: [RawFd; 2], size: usize) -> io::Result<()> {
    sys::buffers(initiator, BUFFER)?;
    sys::buffers(responder, BUFFER)?;
    sys::option(initiator, SOL_UDP, UDP_SEGMENT, size as i32)?;
    sys::option(responder, SOL_UDP, UDP_GRO, 1)
}

/// Sends all, then one datagram of one byte again and again until the responder answers it.
fn initiate(mine: RawFd, other: RawFd, size: usize, count: u64) -> io::Result<Value> {
    sys::close(other);
    let each = (LONGEST / size).min(64);
    let unit = vec![1; each * size];
    let calls = count.div_ceil(each as u64);
    sys::read(mine, &mut [0])?; // the responder is ready
    let meter = Meter::start();
    for _ in 0..calls {
        sys::write(mine, &unit)?;
    }
    for _ in 0..1000 {
        sys::write(mine, &[1])?;
        if sys::readable(mine, Duration::from_millis(20))? {
            return Ok(meter.stop(calls * unit.len() as u64));
        }
    }
    Err(io::Error::new(
        io::ErrorKind::TimedOut,
        "the responder never saw the end",
    ))
}

fn respond(mine: RawFd, other: RawFd) -> io::Result<Value> {
    sys::close(other);
    let mut buffer = vec![1; 1 << 16];
    let mut bytes = 0;
    let meter = Meter::start();
    sys::write(mine, &[1])?;
    loop {
        match sys::read(mine, &mut buffer)? {
            1 => break,
            n => bytes += n as u64,
        }
    }
    sys::write(mine, &[1])?;
    Ok(meter.stop(bytes))
}
