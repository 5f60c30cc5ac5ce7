//! Measures what being observed costs programs: the CPU time of a message and its answer between two threads, while sources observe
//! and while they do not. It uses UDP over loopback; the observer has to leave these threads and ports out of what it reports.

use crate::clock::thread_cpu_s;
use nix::sched::CpuSet;
use std::io;
use std::net::UdpSocket;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The number of round trips of a batch, which is measured as a whole.
const TRIPS: usize = 25;
/// The number of batches.
const BATCHES: usize = 40;
/// The size of a message, bytes.
const BYTES: usize = 64;
/// A datagram that does not arrive within this is lost; then there is no result.
const LOST: Duration = Duration::from_secs(1);

/// Two threads that exchange messages. They wait until they are started.
#[derive(Debug)]
pub struct PingPong {
    /// The IDs of the threads, so that they can be followed, and left out.
    pub threads: [u32; 2],
    /// Their ports.
    pub ports: [u16; 2],
    ends: [PingPongEnd; 2],
}

#[derive(Debug)]
struct PingPongEnd {
    go: SyncSender<()>,
    /// CPU seconds and elapsed seconds of each batch.
    spent: JoinHandle<io::Result<Vec<(f64, f64)>>>,
}

impl PingPong {
    /// Starts both threads, which then wait.
    ///
    /// # Errors
    /// Where there is no loopback, or no thread can be started.
    pub fn start() -> io::Result<Self> {
        let sockets = [
            UdpSocket::bind("127.0.0.1:0")?,
            UdpSocket::bind("127.0.0.1:0")?,
        ];
        let addresses = [sockets[0].local_addr()?, sockets[1].local_addr()?];
        let [asks, answers] = sockets;
        asks.connect(addresses[1])?;
        answers.connect(addresses[0])?;
        asks.set_read_timeout(Some(LOST))?;
        answers.set_read_timeout(Some(LOST))?;
        let core = one_core();
        let (first, asking) = end(core, move || {
            asks.send(&[0; BYTES])
                .and_then(|_| asks.recv(&mut [0; BYTES]))
        })?;
        let (second, answering) = end(core, move || {
            answers
                .recv(&mut [0; BYTES])
                .and_then(|_| answers.send(&[0; BYTES]))
        })?;
        Ok(Self {
            threads: [first, second],
            ports: addresses.map(|address| address.port()),
            ends: [asking, answering],
        })
    }

    /// Runs the exchange: returns the CPU time of a round trip of both threads together, ns, for each batch.
    ///
    /// # Errors
    /// When a datagram is lost.
    pub fn run(self) -> io::Result<Vec<f64>> {
        let [asking, answering] = self.batches()?;
        Ok(asking
            .into_iter()
            .zip(answering)
            .map(|(one, other)| (one.0 + other.0) * 1e9 / TRIPS as f64)
            .collect())
    }

    /// Runs the exchange: returns the elapsed time of a round trip, ns, for each batch. It is used for stopped programs, where the
    /// time is spent in other processes.
    ///
    /// # Errors
    /// When a datagram is lost.
    pub fn elapsed(self) -> io::Result<Vec<f64>> {
        let [asking, _] = self.batches()?;
        Ok(asking
            .into_iter()
            .map(|(_, elapsed)| elapsed * 1e9 / TRIPS as f64)
            .collect())
    }

    fn batches(self) -> io::Result<[Vec<(f64, f64)>; 2]> {
        let Self { ends, .. } = self;
        for end in &ends {
            end.go.send(()).map_err(io::Error::other)?;
        }
        let [asking, answering] = ends.map(|end| end.spent.join());
        let panicked = || io::Error::other("a thread panicked");
        Ok([
            asking.map_err(|_| panicked())??,
            answering.map_err(|_| panicked())??,
        ])
    }
}

/// The first core on which this thread may run.
fn one_core() -> CpuSet {
    let allowed = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0)).unwrap_or_default();
    let first = (0..CpuSet::count())
        .find(|core| allowed.is_set(*core).unwrap_or(false))
        .unwrap_or(0);
    let mut one = CpuSet::new();
    let _ = one.set(first);
    one
}

/// Starts a thread that does its half of each round trip and measures its time. Returns the thread's ID.
fn end(
    core: CpuSet,
    mut half: impl FnMut() -> io::Result<usize> + Send + 'static,
) -> io::Result<(u32, PingPongEnd)> {
    let (go, wait) = mpsc::sync_channel(1);
    let (sender, receiver) = mpsc::sync_channel(1);
    let spent = std::thread::Builder::new()
        .name("cost".into())
        .spawn(move || {
            // Both threads run on one core: between cores, a message also costs the wake-up of the other core. An error is ignored.
            let _ = nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &core);
            let _ = sender.send(nix::unistd::gettid().as_raw().unsigned_abs());
            batches(&wait, &mut half)
        })?;
    let thread = receiver.recv().map_err(io::Error::other)?;
    Ok((thread, PingPongEnd { go, spent }))
}

fn batches(
    wait: &Receiver<()>,
    half: &mut impl FnMut() -> io::Result<usize>,
) -> io::Result<Vec<(f64, f64)>> {
    wait.recv().map_err(io::Error::other)?;
    let mut spent = Vec::with_capacity(BATCHES);
    for _ in 0..BATCHES {
        let (before, began) = (thread_cpu_s(), Instant::now());
        for _ in 0..TRIPS {
            half()?;
        }
        spent.push((thread_cpu_s() - before, began.elapsed().as_secs_f64()));
    }
    Ok(spent)
}

/// What a round trip costs without and with observation, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ObservationCost {
    /// The numbers of batches without and with observation.
    pub batches: (usize, usize),
    /// The medians without and with observation, ns.
    pub medians_ns: (f64, f64),
    /// Half the distance of the quartiles, the larger of both, ns.
    pub spread_ns: f64,
}

impl ObservationCost {
    /// Computes the cost from batches without and with observation; `None` if there are none.
    #[must_use]
    pub fn compare(without: &[f64], with: &[f64]) -> Option<Self> {
        let [(one, one_spread), (other, other_spread)] = [quartiles(without)?, quartiles(with)?];
        Some(Self {
            batches: (without.len(), with.len()),
            medians_ns: (one, other),
            spread_ns: one_spread.max(other_spread),
        })
    }
}

/// The median, and half the distance of the quartiles.
fn quartiles(samples: &[f64]) -> Option<(f64, f64)> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |part: usize| sorted.get(sorted.len() * part / 4).copied();
    Some((at(2)?, (at(3)? - at(1)?) / 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_batch_has_a_cost() {
        let probe = PingPong::start().unwrap();
        assert!(probe.threads[0] != probe.threads[1] && probe.ports[0] != probe.ports[1]);
        let batches = probe.run().unwrap();
        assert_eq!(batches.len(), BATCHES);
        assert!(batches.iter().all(|ns| *ns > 100.0), "{batches:?}");
    }

    #[test]
    fn the_cost_is_the_difference_of_medians() {
        let cost =
            ObservationCost::compare(&[1.0, 2.0, 3.0, 100.0], &[5.0, 6.0, 7.0, 8.0]).unwrap();
        assert_eq!(cost.medians_ns, (3.0, 7.0));
        assert!((cost.spread_ns - 49.0).abs() < 1e-9);
        assert_eq!(ObservationCost::compare(&[], &[1.0]), None);
    }
}
