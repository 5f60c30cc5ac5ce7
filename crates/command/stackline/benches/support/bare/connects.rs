//! Connect and close: the client opens a socket, connects, perhaps makes a call of one byte, and closes; the server accepts,
//! answers, reads to the end and closes.

use super::calls::summarise;
use super::{Meter, said};
use crate::support::figure::Figure;
use crate::support::place::Place;
use crate::support::process::End;
use crate::support::sys;
use serde_json::Value;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsRawFd as _, RawFd};

/// Connections the kernel keeps for a server that is slow to accept. A client that fills it waits a second for the SYN
/// to be sent again, which says nothing about connecting; so `count` stays below.
pub(crate) const BACKLOG: i32 = 4096;

/// Makes `count` connections; the figure is the median time of `socket`, `connect` and `close`.
pub(crate) fn connects(count: u64, place: Place) -> Result<Figure, String> {
    let (near, far) = both(count, place, false)?;
    let cycle_s = said(&near, "wall_s") / count as f64;
    let note = format!(
        "mean {:.2}, with close {:.2} us",
        said(&near, "mean_s") * 1e6,
        cycle_s * 1e6
    );
    let cpu_s = said(&near, "cpu_s") + said(&far, "cpu_s");
    Ok(Figure {
        value: said(&near, "median_s"),
        cpu: Some(cpu_s / count as f64),
        note,
    })
}

/// The same with a call over each; the figure is the time from one connection to the next.
pub(crate) fn called(count: u64, place: Place) -> Result<Figure, String> {
    let (near, far) = both(count, place, true)?;
    let cpu_s = said(&near, "cpu_s") + said(&far, "cpu_s");
    let value = said(&near, "wall_s") / count as f64;
    Ok(Figure {
        value,
        cpu: Some(cpu_s / count as f64),
        note: String::new(),
    })
}

fn both(count: u64, place: Place, calls: bool) -> Result<(Value, Value), String> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(|error| error.to_string())?;
    sys::listen(listener.as_raw_fd(), BACKLOG).map_err(|error| error.to_string())?;
    let port = listener
        .local_addr()
        .map_err(|error| error.to_string())?
        .port();
    let far = End::fork(place.responder(), || {
        respond(listener.as_raw_fd(), count, calls)
    })?;
    let near = End::fork(place.initiator(), || initiate(port, count, calls))?;
    Ok((near.join()?, far.join()?))
}

fn initiate(port: u16, count: u64, calls: bool) -> io::Result<Value> {
    let mut samples = vec![1_u64; count as usize];
    let meter = Meter::start();
    for sample in &mut samples {
        let start = sys::now_ns();
        let fd = sys::connect(port)?;
        if calls {
            sys::write(fd, &[1])?;
            sys::read(fd, &mut [0])?;
        }
        sys::close(fd);
        *sample = sys::now_ns() - start;
    }
    let mut said = meter.stop(0);
    summarise(&mut said, samples);
    Ok(said)
}

fn respond(listener: RawFd, count: u64, calls: bool) -> io::Result<Value> {
    let mut buffer = [0; 64];
    let meter = Meter::start();
    for _ in 0..count {
        let fd = sys::accept(listener)?;
        if calls {
            sys::read(fd, &mut buffer)?;
            sys::write(fd, &[1])?;
        }
        while sys::read(fd, &mut buffer)? > 0 {}
        sys::close(fd);
    }
    Ok(meter.stop(0))
}
