//! The stand-alone programs of Zwaenepoel 1985 (section 2.1.1): stop-and-wait, a sliding window and a blast at the data
//! link level, without a header, a check or a retransmission.
//!
//! Two busy-waiting sides, on a processor each where there are two, exchange frames: 1024 bytes of data behind an Ethernet
//! header, and acknowledgements of the shortest frame there is (60 bytes here, 64 with the check sequence on a wire), distinguished
//! by ethertype and length alone. Whatever goes wrong halts the transfer. Each packet is one call of `sendmmsg` in all
//! three programs, so that what differs between them is the protocol.
//!
//! **What is compared.** In 1985 two processors copied packets into and out of two interfaces beside a 10 Mbit/s network;
//! here two threads of one machine do so by system calls over a virtual link: `sender` and `receiver` are the two ends of a
//! veth pair in this network namespace, or `lo` twice. There the call that sends also carries the frame into the other
//! end's memory, most of the time on the sender's processor: C and T of the paper are one figure, so that a sliding window
//! and a blast overlap sending and receiving as then, with other shares. The order of the three and their ratios are what to
//! look at; the times are another machine's. The caller brings the network: its own thread's network namespace, in which it
//! may open packet sockets (the example of `stackline-papers` makes one, without any rights, in a process of its own).

mod cost;
mod halt;
mod setup;
mod station;

pub use cost::{StopAndWaitCosts, costs};
pub use halt::Halt;
pub use setup::{DATA, StandaloneProgram, StandaloneSample, StandaloneSetup};

use halt::StandaloneProgress;
use station::{Station, StationWait};
use std::iter;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The first transfers of each program, so many, are not counted, because they find cold caches.
pub const WARM_UP: u32 = 5;

/// Elapsed times of the transfers of the three programs: from just before the first packet is sent to the last acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Elapsed {
    /// The times of stop-and-wait.
    pub stop_and_wait: StandaloneSample,
    /// The times of the sliding window.
    pub sliding_window: StandaloneSample,
    /// The times of the blast.
    pub blast: StandaloneSample,
}

impl Elapsed {
    /// In the order of [`StandaloneProgram::ALL`].
    #[must_use]
    pub const fn all(&self) -> [&StandaloneSample; 3] {
        [&self.stop_and_wait, &self.sliding_window, &self.blast]
    }
}

/// Runs the three programs in turn, [`StandaloneSetup::runs`] times after the warm-up, and returns how long each took: the times of one
/// row of Table 1.
///
/// # Errors
/// [`Halt`]: an acknowledgement did not come, the data that came differs from what was sent, or raw frames cannot be used here.
pub fn elapsed(setup: &StandaloneSetup<'_>) -> Result<Elapsed, Halt> {
    let turns = setup.runs.saturating_add(WARM_UP) as usize;
    let programs = iter::repeat_n(StandaloneProgram::ALL, turns).flatten();
    let mut times = StandaloneProgram::ALL.map(|_| Vec::with_capacity(turns));
    let (near, far) = station::open_stations(setup)?;
    both(setup, near, far, programs, |program, time| {
        times[program as usize].push(time.as_secs_f64())
    })?;
    let [stop_and_wait, sliding_window, blast] =
        times.map(|times| StandaloneSample::new(times[WARM_UP as usize..].to_vec()));
    Ok(Elapsed {
        stop_and_wait,
        sliding_window,
        blast,
    })
}

/// What the two sides' threads share.
#[derive(Default)]
struct SharedStationState {
    /// Number of data packets that the receiver took, in all transfers.
    came: AtomicU64,
    /// Number of the transfer that the receiver is ready for, from 1 on.
    ready: AtomicU64,
    /// Whether one side has halted.
    over: AtomicBool,
}

impl SharedStationState {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Passes the result of this side on; if it is an error, the other side is notified that this one has halted.
    fn signal_halt(&self, done: Result<(), Halt>) -> Result<(), Halt> {
        done.inspect_err(|_| self.over.store(true, Ordering::Relaxed))
    }
}

/// Notifies the other side when this thread panics; otherwise the other side would wait for ever.
struct StationPanicAlarm<'a>(&'a SharedStationState);

impl Drop for StationPanicAlarm<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.over.store(true, Ordering::Relaxed);
        }
    }
}

/// Runs these programs in turn, each side in a thread of its own on a processor of its own. Calls `took` with the time of each transfer.
fn both(
    setup: &StandaloneSetup<'_>,
    mut near: Station,
    mut far: Station,
    programs: impl Iterator<Item = StandaloneProgram> + Clone + Send,
    mut took: impl FnMut(StandaloneProgram, Duration) + Send,
) -> Result<(Station, Station), Halt> {
    let shared = SharedStationState::default();
    let theirs = programs.clone();
    let [mut here, mut there] = StationWait::both();
    thread::scope(|scope| {
        let receiver = scope.spawn(|| {
            let _alarm = StationPanicAlarm(&shared);
            there.settle();
            let done = receive(&mut far, there, setup.packets, theirs, &shared);
            shared.signal_halt(done).map(|()| far)
        });
        let sender = scope.spawn(|| {
            let _alarm = StationPanicAlarm(&shared);
            here.settle();
            let sent = (1..).zip(programs).try_for_each(|(number, program)| {
                here.until(
                    || shared.ready.load(Ordering::Acquire) >= number,
                    || shared.is_over(),
                );
                let begin = Instant::now();
                transfer(&mut near, here, program, setup, &shared)?;
                took(program, begin.elapsed());
                Ok(())
            });
            shared.signal_halt(sent).map(|()| near)
        });
        let (near, far) = (sender.join(), receiver.join());
        let far = far.unwrap_or(Err(Halt::Panic))?;
        Ok((near.unwrap_or(Err(Halt::Panic))?, far))
    })
}

/// The sending side of one transfer.
fn transfer(
    station: &mut Station,
    wait: StationWait,
    program: StandaloneProgram,
    setup: &StandaloneSetup<'_>,
    shared: &SharedStationState,
) -> Result<(), Halt> {
    let (mut heard, before) = (0, shared.came.load(Ordering::Relaxed));
    let end = Instant::now() + setup.patience;
    for index in 0..setup.packets {
        station.send_data(index)?;
        let last = index + 1 == setup.packets;
        let wanted = match program {
            StandaloneProgram::StopAndWait => index + 1,
            StandaloneProgram::SlidingWindow if last => setup.packets,
            StandaloneProgram::Blast if last => 1,
            StandaloneProgram::SlidingWindow | StandaloneProgram::Blast => 0,
        };
        // Acknowledgements that have come are taken; those that the program needs before it goes on are waited for.
        while station.take_acknowledgement() {
            heard += 1;
        }
        while heard < wanted {
            if !wait.until(
                || station.take_acknowledgement(),
                || shared.is_over() || Instant::now() >= end,
            ) {
                let came = shared.came.load(Ordering::Relaxed) - before;
                return Err(Halt::Late(
                    StandaloneProgress {
                        program,
                        packets: setup.packets,
                        came,
                        heard,
                    },
                    setup.patience,
                ));
            }
            heard += 1;
        }
    }
    Ok(())
}

/// The receiving side of all transfers.
fn receive(
    station: &mut Station,
    wait: StationWait,
    packets: u32,
    programs: impl Iterator<Item = StandaloneProgram>,
    shared: &SharedStationState,
) -> Result<(), Halt> {
    for program in programs {
        station.forget_data();
        shared.ready.fetch_add(1, Ordering::Release);
        for index in 0..packets {
            if !wait.until(|| station.take_data(index), || shared.is_over()) {
                // The sender has halted and returns the reason.
                return Ok(());
            }
            shared.came.fetch_add(1, Ordering::Relaxed);
            if program.acknowledges(index, packets) {
                station.send_acknowledgement()?;
            }
        }
        if !station.has_all_data() {
            return Err(Halt::Altered(program));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
