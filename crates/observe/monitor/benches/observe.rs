//! What observing costs the observed program: a ping-pong of 64 bytes over loopback, with and without, in turn.
//!
//! Both ends are on one core, and their CPU time is counted, so that other programs matter less. The reader is counted by itself.
//!
//! `cargo bench -p stackline-monitor --bench observe`; `-- --rounds N` for more than 7 rounds. Without root it says why not.

use nix::sched::{CpuSet, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use stackline_monitor::clock::thread_cpu_s;
use stackline_monitor::observe::UndecodedTrace;
use stackline_monitor::observe::sockets::{SocketCoverage, SocketTrace};
use stackline_monitor::observe::threads::{Also, ThreadTrace, UndecodedThreads};
use stackline_testing::bench_arguments::BenchArguments;
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const TRIPS: u32 = 10_000;
const EVERY: Duration = Duration::from_millis(10);

/// What is observed meanwhile.
#[derive(Clone, Copy, Debug)]
enum Observed {
    Nothing,
    Transfers,
    Sockets,
    SocketsAndSegments,
    Threads,
    ThreadsAndReceives,
    ThreadsOfAnother,
}

const ALL: [Observed; 7] = [
    Observed::Nothing,
    Observed::Transfers,
    Observed::Sockets,
    Observed::SocketsAndSegments,
    Observed::Threads,
    Observed::ThreadsAndReceives,
    Observed::ThreadsOfAnother,
];

/// A round: CPU time of both ends, events, and CPU time of the reader, all for a round trip; and lost events.
#[derive(Clone, Copy)]
struct Round {
    trip_ns: f64,
    events: f64,
    lost: u64,
    reader_ns: f64,
}

fn main() {
    let rounds = BenchArguments::read()
        .take_number("--rounds", 7)
        .unwrap_or(7);
    let mut stream = ponger();
    let mut each: [Vec<Round>; ALL.len()] = Default::default();
    for _ in 0..rounds {
        for (observed, rounds) in ALL.into_iter().zip(&mut each) {
            match round(&mut stream, observed) {
                Ok(round) => rounds.push(round),
                Err(reason) => return println!("{observed:?} cannot be observed: {reason}"),
            }
        }
    }
    let nothing = least(&each[0]);
    println!("{rounds} rounds of {TRIPS} round trips; least of each");
    for (observed, rounds) in ALL.into_iter().zip(&each) {
        print(observed, rounds, nothing);
    }
}

/// CPU time of this process, ns.
fn process_cpu_ns() -> f64 {
    let spent = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).expect("a clock of the kernel");
    spent.tv_sec() as f64 * 1e9 + spent.tv_nsec() as f64
}

/// Keeps the calling thread on the first core.
fn on_one_core() {
    let mut cores = CpuSet::new();
    cores
        .set(0)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &cores))
        .expect("a core");
}

fn print(observed: Observed, rounds: &[Round], nothing: Round) {
    let Round {
        trip_ns,
        events,
        reader_ns,
        ..
    } = least(rounds);
    let lost: u64 = rounds.iter().map(|round| round.lost).sum();
    let a_event = if events > 0.5 {
        format!("{:.0} ns each", (trip_ns - nothing.trip_ns) / events)
    } else {
        String::new()
    };
    println!(
        "{:<20} {:.2} us a trip, x {:.2}; {events:.1} events a trip {a_event}; lost {lost}; reader {reader_ns:.0} ns a trip",
        format!("{observed:?}"),
        trip_ns / 1_000.0,
        trip_ns / nothing.trip_ns
    );
}

fn least(rounds: &[Round]) -> Round {
    *rounds
        .iter()
        .min_by(|one, other| one.trip_ns.total_cmp(&other.trip_ns))
        .expect("a round")
}

fn round(stream: &mut TcpStream, observed: Observed) -> Result<Round, String> {
    let done = Arc::new(AtomicBool::new(false));
    let reader = reader(observed, Arc::clone(&done))?;
    let began_ns = process_cpu_ns();
    // A thread of its own, so that readers are not kept on its core.
    std::thread::scope(|scope| scope.spawn(|| ping(stream)).join())
        .expect("the other end is there");
    done.store(true, Ordering::Relaxed);
    let (events, lost, reader_s) = reader.join().expect("the reader ends")?;
    let reader_ns = reader_s * 1e9 / f64::from(TRIPS);
    let trip_ns = (process_cpu_ns() - began_ns) / f64::from(TRIPS) - reader_ns;
    Ok(Round {
        trip_ns,
        events: events as f64 / f64::from(TRIPS),
        lost,
        reader_ns,
    })
}

fn ping(stream: &mut TcpStream) {
    on_one_core();
    let mut room = [0; 64];
    for _ in 0..TRIPS {
        stream
            .write_all(&room)
            .and_then(|()| stream.read_exact(&mut room))
            .expect("the other end is there");
    }
}

type Reader = std::thread::JoinHandle<Result<(usize, u64, f64), String>>;

/// Reads events until the round is done: their number, how many were lost, and its CPU time, s.
fn reader(observed: Observed, done: Arc<AtomicBool>) -> Result<Reader, String> {
    let also = |receives| Also {
        receives,
        ..Also::default()
    };
    let this = std::process::id();
    Ok(match observed {
        Observed::Nothing => read(done, || Ok((0, 0))),
        Observed::Transfers | Observed::Sockets | Observed::SocketsAndSegments => {
            let covers = match observed {
                Observed::Transfers => SocketCoverage::Transfers,
                _ => SocketCoverage::Everything,
            };
            let (mut trace, _) = SocketTrace::start(covers)?;
            if matches!(observed, Observed::SocketsAndSegments) {
                trace.probe(&BTreeSet::new())?;
            }
            let (mut records, mut events) = (UndecodedTrace::default(), Vec::new());
            let mut decoder = trace.decoder();
            read(done, move || {
                events.clear();
                trace.read(&mut records)?;
                decoder.decode(&records, &mut events);
                Ok((events.len(), records.lost))
            })
        }
        Observed::Threads => threads(done, this, also(false))?,
        Observed::ThreadsAndReceives => threads(done, this, also(true))?,
        Observed::ThreadsOfAnother => threads(done, 1, also(true))?,
    })
}

fn threads(done: Arc<AtomicBool>, pid: u32, also: Also) -> Result<Reader, String> {
    let (mut trace, _) = ThreadTrace::start(&[pid], also)?;
    let (mut records, mut events) = (UndecodedThreads::default(), Vec::new());
    let mut decoder = trace.decoder();
    Ok(read(done, move || {
        events.clear();
        trace.read(&mut records)?;
        decoder.decode(&records, &mut events);
        Ok((events.len(), records.lost()))
    }))
}

fn read(
    done: Arc<AtomicBool>,
    mut drain: impl FnMut() -> Result<(usize, u64), String> + Send + 'static,
) -> Reader {
    std::thread::spawn(move || {
        let (mut events, mut lost) = (0, 0);
        while !done.load(Ordering::Relaxed) {
            std::thread::sleep(EVERY);
            let (more, more_lost) = drain()?;
            events += more;
            lost += more_lost;
        }
        Ok((events, lost, thread_cpu_s()))
    })
}

/// A connection whose other end sends back what it gets.
fn ponger() -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port of loopback");
    let stream = TcpStream::connect(listener.local_addr().expect("its address"))
        .expect("a connection over loopback");
    let (mut far, _) = listener.accept().expect("its other end");
    for end in [&stream, &far] {
        end.set_nodelay(true).expect("an option of TCP");
    }
    std::thread::spawn(move || {
        on_one_core();
        let mut room = [0; 64];
        while far
            .read_exact(&mut room)
            .and_then(|()| far.write_all(&room))
            .is_ok()
        {}
    });
    stream
}
