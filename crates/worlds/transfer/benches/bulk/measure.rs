//! One transfer, or many, between the two ends of something that carries data: wall time and the processor time of both
//! threads, each on a core of its own.

use crate::net::Pair;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::error::Error;
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

/// Whatever went wrong.
pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// One end of a connection.
pub(crate) trait Side {
    /// Sends all and waits for the other side's confirmation.
    fn send(&mut self, data: &[u8]) -> Result<(), Failure>;
    /// Receives all and confirms it.
    fn receive(&mut self, into: &mut [u8]) -> Result<(), Failure>;
}

/// Whichever way that end was made.
pub(crate) type Made = Result<Box<dyn Side>, Failure>;

/// What carries data, and how both ends of it are made.
pub(crate) struct Mover {
    pub(crate) name: &'static str,
    pub(crate) listen: fn(&dyn Fn()) -> Made,
    pub(crate) connect: fn() -> Made,
}

/// Seconds: each transfer, and processor time of both sides in all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Measured {
    pub(crate) transfers: Vec<f64>,
    pub(crate) sender: f64,
    pub(crate) receiver: f64,
}

/// Processor time of this thread in seconds.
fn processor() -> Result<f64, Failure> {
    let usage = getrusage(UsageWho::RUSAGE_THREAD)?;
    Ok((usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6)
}

/// Sends `data` so many times over one connection.
pub(crate) fn measure(
    pair: &Pair,
    mover: &Mover,
    data: &[u8],
    into: &mut [u8],
    times: usize,
) -> Result<Measured, Failure> {
    thread::scope(|scope| {
        let (ready, is_ready) = mpsc::channel();
        let receiver = scope.spawn(move || -> Result<f64, Failure> {
            pair.enter(1)?;
            let mut side = (mover.listen)(&|| ready.send(()).unwrap_or_default())?;
            let before = processor()?;
            (0..times).try_for_each(|_| side.receive(into))?;
            Ok(processor()? - before)
        });
        let sender = scope.spawn(move || -> Result<Measured, Failure> {
            pair.enter(0)?;
            is_ready.recv()?;
            let mut side = (mover.connect)()?;
            let before = processor()?;
            let mut transfers = Vec::with_capacity(times);
            for _ in 0..times {
                let begin = Instant::now();
                side.send(data)?;
                transfers.push(begin.elapsed().as_secs_f64());
            }
            Ok(Measured {
                transfers,
                sender: processor()? - before,
                receiver: 0.0,
            })
        });
        let sender = sender.join().map_err(|_| "the sender panicked")?;
        let receiver = receiver.join().map_err(|_| "the receiver panicked")?;
        Ok(Measured {
            receiver: receiver?,
            ..sender?
        })
    })
}

/// The middle one.
pub(crate) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
