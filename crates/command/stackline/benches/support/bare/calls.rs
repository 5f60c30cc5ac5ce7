//! There and back: one write, one read, one clock reading a call, samples in memory that was touched before.

use super::{Both, Meter, receive, said, tcp_pair};
use crate::support::figure::{Figure, quantile};
use crate::support::place::Place;
use crate::support::process::End;
use crate::support::sys;
use serde_json::Value;
use std::io;
use std::net::UdpSocket;
use std::os::fd::{IntoRawFd as _, RawFd};
use std::os::unix::net::UnixStream;

/// What the two ends talk over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Socket {
    /// TCP on loopback.
    Tcp,
    /// A Unix stream.
    Unix,
    /// Connected UDP on loopback.
    Udp,
}

impl Socket {
    /// Its name in a specification.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Unix => "unix",
            Self::Udp => "udp",
        }
    }

    fn pair(self) -> io::Result<[RawFd; 2]> {
        match self {
            Self::Tcp => tcp_pair(),
            Self::Unix => UnixStream::pair().map(|(a, b)| [a.into_raw_fd(), b.into_raw_fd()]),
            Self::Udp => udp_pair(),
        }
    }
}

/// Two UDP sockets connected to each other.
pub(crate) fn udp_pair() -> io::Result<[RawFd; 2]> {
    let (a, b) = (
        UdpSocket::bind(("127.0.0.1", 0))?,
        UdpSocket::bind(("127.0.0.1", 0))?,
    );
    a.connect(b.local_addr()?)?;
    b.connect(a.local_addr()?)?;
    Ok([a.into_raw_fd(), b.into_raw_fd()])
}

/// Makes `count` calls of `size` bytes each way; the figure is the median.
pub(crate) fn calls(
    socket: Socket,
    size: usize,
    count: u64,
    place: Place,
) -> Result<Figure, String> {
    let both = Both(socket.pair().map_err(|error| error.to_string())?);
    let [initiator, responder] = both.0;
    let far = End::fork(place.responder(), || {
        respond(responder, initiator, size, count)
    })?;
    let near = End::fork(place.initiator(), || {
        initiate(initiator, responder, size, count)
    })?;
    drop(both); // so that an end sees it when the other one dies
    let (near, far) = (near.join()?, far.join()?);
    let cpu_s = said(&near, "cpu_s") + said(&far, "cpu_s");
    let note = format!(
        "mean {:.2}, p99 {:.2} us",
        said(&near, "mean_s") * 1e6,
        said(&near, "p99_s") * 1e6
    );
    Ok(Figure {
        value: said(&near, "median_s"),
        cpu: Some(cpu_s / count as f64),
        note,
    })
}

fn initiate(mine: RawFd, other: RawFd, size: usize, count: u64) -> io::Result<Value> {
    sys::close(other);
    let (request, mut response) = (vec![1; size], vec![0; size]);
    let mut samples = vec![1_u64; count as usize];
    receive(mine, &mut [0])?; // the responder is ready
    let meter = Meter::start();
    let mut last = sys::now_ns();
    for sample in &mut samples {
        sys::write(mine, &request)?;
        receive(mine, &mut response)?;
        let now = sys::now_ns();
        *sample = now - last;
        last = now;
    }
    let mut said = meter.stop(0);
    summarise(&mut said, samples);
    Ok(said)
}

/// Adds median, mean and p99 of samples in ns.
pub(crate) fn summarise(said: &mut Value, mut samples: Vec<u64>) {
    samples.sort_unstable();
    let mean = samples.iter().sum::<u64>() as f64 / samples.len() as f64;
    said["median_s"] = Value::from(quantile(&samples, 0.5) as f64 / 1e9);
    said["p99_s"] = Value::from(quantile(&samples, 0.99) as f64 / 1e9);
    said["mean_s"] = Value::from(mean / 1e9);
}

fn respond(mine: RawFd, other: RawFd, size: usize, count: u64) -> io::Result<Value> {
    sys::close(other);
    let mut unit = vec![0; size];
    let meter = Meter::start();
    sys::write(mine, &[1])?;
    for _ in 0..count {
        receive(mine, &mut unit)?;
        sys::write(mine, &unit)?;
    }
    Ok(meter.stop(0))
}
