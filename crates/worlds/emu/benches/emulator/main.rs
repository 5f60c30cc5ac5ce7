//! Accuracy and speed of the emulator on this machine, beside a bare forwarder between the same sockets, and beside one
//! of rings (`TPACKET_V3` to receive, `TPACKET_V2` to send): in turns in one run, medians printed.
//! `cargo bench -p stackline-emu`, on a quiet machine; a number as argument is the number of rounds, a word a part of the
//! names of cases.

mod bare_forwarding;
mod bare_rings;

use nix::sched::{CloneFlags, setns};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::socket::{MsgFlags, MultiHeaders, recvmmsg, sendmmsg};
use nix::sys::time::TimeVal;
use stackline_core::network::{LinkRate, Network, NetworkHost, NetworkLink};
use stackline_core::random::Seed;
use stackline_core::time::Duration as Span;
use stackline_emu::engine::{EmulatorEngine, EmulatorOptions, EmulatorReport, EmulatorTimeSpread};
use stackline_emu::testbed::{self, Testbed};
use stackline_testing::bench_arguments::BenchArguments;
use std::io::{IoSlice, IoSliceMut, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const PORT: u16 = 7000;
/// Datagrams handed over, and taken, in one call.
const BATCH: usize = 64;
/// Part of a transfer that is not counted: connections have to grow first.
const GROWTH: Duration = Duration::from_millis(700);
const COUNTED: Duration = Duration::from_millis(1300);

/// What forwards frames.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Carrier {
    Bare,
    Rings,
    Emulator(EmulatorOptions),
}

/// What is measured between hosts `a` and `b`.
#[derive(Clone, Copy)]
enum Workload {
    /// So many, with a pause of so many ms before each.
    RoundTrips(usize, u64),
    Tcp,
    Datagrams,
}

struct Case {
    name: &'static str,
    unit: &'static str,
    rate: LinkRate,
    delay_us: u64,
    workload: Workload,
    bare: &'static [Carrier],
}

fn cases() -> Vec<Case> {
    let gigabit = LinkRate::Constant(1e9);
    let case = |name, unit, rate, delay_us, workload, bare| Case {
        name,
        unit,
        rate,
        delay_us,
        workload,
        bare,
    };
    vec![
        case(
            "round trip, no delay",
            "us",
            LinkRate::Unlimited,
            0,
            Workload::RoundTrips(500, 1),
            &[Carrier::Bare],
        ),
        // With the idle time of the next one: the ends take the same time to wake up, so the difference is the path's.
        case(
            "round trip, no delay, rested",
            "us",
            LinkRate::Unlimited,
            0,
            Workload::RoundTrips(80, 21),
            &[Carrier::Bare],
        ),
        case(
            "round trip, 10 ms each way",
            "us",
            LinkRate::Unlimited,
            10_000,
            Workload::RoundTrips(80, 1),
            &[],
        ),
        case(
            "TCP, no limit",
            "Mbit/s",
            LinkRate::Unlimited,
            0,
            Workload::Tcp,
            &[Carrier::Bare],
        ),
        case(
            "TCP, 1 Gbit/s, 1 ms each way",
            "Mbit/s",
            gigabit,
            1_000,
            Workload::Tcp,
            &[],
        ),
        case(
            "64-byte UDP one way",
            "packets/s",
            LinkRate::Unlimited,
            0,
            Workload::Datagrams,
            &[Carrier::Bare, Carrier::Rings],
        ),
    ]
}

fn main() -> Result<()> {
    let mut arguments = BenchArguments::read();
    let rounds: usize = arguments.take_first_number().unwrap_or(3);
    let wanted = arguments.into_words()?;
    println!(
        "{:<30} {:<22} {:>10} {:>10} {:>10}",
        "", "median of rounds", "bare", "rings", "emulator"
    );
    for case in cases().iter().filter(|case| {
        wanted.is_empty() || wanted.iter().any(|word| case.name.contains(word.as_str()))
    }) {
        let carriers = [Carrier::Bare, Carrier::Rings, Carrier::Emulator(options())];
        let mut all: [Vec<Measured>; 3] = Default::default();
        for round in 0..rounds {
            // Every other round in the other order.
            for turn in 0..carriers.len() {
                let which = if round % 2 == 0 {
                    turn
                } else {
                    carriers.len() - 1 - turn
                };
                let carrier = carriers[which];
                if matches!(carrier, Carrier::Emulator(_)) || case.bare.contains(&carrier) {
                    all[which].push(measure(case, carrier)?);
                }
            }
        }
        print(case, &all);
    }
    Ok(())
}

/// `STAMPS=0`, `SPIN=0` and `PAUSE=0` show the effect of these options.
fn options() -> EmulatorOptions {
    let off = |name| std::env::var(name).is_ok_and(|value| value == "0");
    let spin = if off("SPIN") {
        Span::ZERO
    } else {
        EmulatorOptions::default().spin
    };
    let pause = if off("PAUSE") {
        Span::ZERO
    } else {
        EmulatorOptions::default().pause
    };
    EmulatorOptions {
        stamps: !off("STAMPS"),
        spin,
        pause,
        ..EmulatorOptions::default()
    }
}

fn print(case: &Case, all: &[Vec<Measured>; 3]) {
    let figures: [(&str, Figure); 3] = [
        (case.unit, |m| m.figure),
        ("ns of CPU a frame", |m| m.frame_ns),
        ("with the hosts' programs", |m| m.all_ns),
    ];
    for (unit, figure) in figures {
        let medians = all
            .each_ref()
            .map(|of| median(&mut of.iter().map(figure).collect::<Vec<_>>()));
        print!("{:<30} {unit:<22}", case.name);
        for median in medians {
            print!(
                " {:>10}",
                median.map_or("-".into(), |value| format!("{value:.1}"))
            );
        }
        for (name, of) in ["bare", "rings"].into_iter().zip(&medians) {
            if let Some(ratio) = of.zip(medians[2]).map(|(of, ours)| ours / of) {
                print!("  {ratio:.2} of {name}");
            }
        }
        println!();
    }
    if let Some(report) = all[2].last().and_then(|measured| measured.report.as_ref()) {
        describe(report);
    }
}

/// The interesting parts of the emulator's last report.
fn describe(report: &EmulatorReport) {
    let times = |what: &str, it: EmulatorTimeSpread| {
        print!(" {what} p50 {} p99 {} most {};", it.p50, it.p99, it.max)
    };
    print!("   ");
    times("late", report.lateness);
    if let Some(waited) = report.waited {
        times("unread for", waited);
    }
    print!(
        " {:.1} packets a frame;",
        report.received.packets as f64 / report.received.frames as f64
    );
    println!(
        " {:.0} % of a processor; {} frames lost",
        100.0 * report.cpu,
        report.lost.all()
    );
}

fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn network(case: &Case) -> Network {
    let host = |name: &str| NetworkHost {
        name: name.into(),
        ..NetworkHost::default()
    };
    let delay = Span(case.delay_us * 1000);
    let link = NetworkLink {
        ends: ("a".into(), "b".into()),
        rate: case.rate.clone(),
        delay,
        ..NetworkLink::default()
    };
    Network {
        name: "bench".into(),
        hosts: vec![host("a"), host("b")],
        links: vec![link],
        ..Network::default()
    }
}

struct Measured {
    figure: f64,
    /// Processor time of the carrier for each frame.
    frame_ns: f64,
    /// Processor time of everything, the hosts' programs too, for each frame.
    all_ns: f64,
    report: Option<EmulatorReport>,
}

/// One of its values.
type Figure = fn(&Measured) -> f64;

fn measure(case: &Case, carrier: Carrier) -> Result<Measured> {
    let network = network(case);
    let (testbed, ports) = testbed::build(&network)?;
    let (stop, stopped) = UnixStream::pair()?;
    let (started, is_started) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        let network = &network;
        let carrying = scope.spawn(move || -> Result<(f64, f64, Option<EmulatorReport>)> {
            match carrier {
                Carrier::Bare | Carrier::Rings => {
                    let ports = <[_; 2]>::try_from(ports).map_err(|_| "two hosts, two ports")?;
                    drop(started);
                    let forward = if carrier == Carrier::Rings {
                        bare_rings::forward
                    } else {
                        bare_forwarding::forward
                    };
                    let (frames, processor) = forward(&ports, stopped.as_fd())?;
                    Ok((frames as f64, processor.0 as f64, None))
                }
                Carrier::Emulator(options) => {
                    let mut engine = EmulatorEngine::new(ports, network, Seed::root(1), options)?;
                    started.send(engine.handle())?;
                    let report = engine.run(stopped.as_fd())?;
                    Ok((
                        report.received.frames as f64,
                        report.cpu * report.elapsed.0 as f64,
                        Some(report),
                    ))
                }
            }
        });
        if let Ok(handle) = is_started.recv() {
            let _ = handle.started();
        }
        let before = processor();
        let figure = work(case.workload, &testbed);
        let all = processor() - before;
        (&stop).write_all(b"x")?;
        let (frames, spent, report) = carrying.join().map_err(|_| "the carrier panicked")??;
        Ok(Measured {
            figure: figure?,
            frame_ns: spent / frames,
            all_ns: all / frames,
            report,
        })
    })
}

/// Processor time of this process, in ns.
fn processor() -> f64 {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else {
        return f64::NAN;
    };
    let seconds = |time: TimeVal| time.tv_sec() as f64 * 1e9 + time.tv_usec() as f64 * 1e3;
    seconds(usage.user_time()) + seconds(usage.system_time())
}

/// Runs in a thread on a host.
fn enter(testbed: &Testbed, host: usize) -> Result<()> {
    Ok(setns(&testbed.hosts[host].net, CloneFlags::CLONE_NEWNET)?)
}

fn work(workload: Workload, testbed: &Testbed) -> Result<f64> {
    let to = testbed.hosts[1].address;
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let (ready, is_ready) = std::sync::mpsc::channel();
        let server = scope.spawn(|| {
            enter(testbed, 1)?;
            serve(workload, ready, &done)
        });
        is_ready.recv()?;
        let client = scope.spawn(|| {
            enter(testbed, 0)?;
            let figure = ask(workload, to);
            done.store(true, Ordering::Relaxed);
            figure
        });
        let asked = client.join().map_err(|_| "the client panicked")??;
        let served = server.join().map_err(|_| "the server panicked")??;
        Ok(asked.or(served).ok_or("nothing was measured")?)
    })
}

/// Bytes or packets that came in the time that counts, or nothing where the client measures.
fn serve(
    workload: Workload,
    ready: std::sync::mpsc::Sender<()>,
    done: &AtomicBool,
) -> Result<Option<f64>> {
    if let Workload::Tcp = workload {
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT))?;
        ready.send(())?;
        return drain(listener.accept()?.0).map(Some);
    }
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT))?;
    socket.set_read_timeout(Some(Duration::from_millis(100)))?;
    ready.send(())?;
    if let Workload::Datagrams = workload {
        return count(&socket, done);
    }
    let mut buffer = [0; 2048];
    while !done.load(Ordering::Relaxed) {
        let Ok((length, from)) = socket.recv_from(&mut buffer) else {
            continue;
        };
        socket.send_to(&buffer[..length], from)?;
    }
    Ok(None)
}

/// Datagrams that come in a second, taken in batches. They are taken until the client is done: a closed port would be
/// answered by messages that nobody counts.
fn count(socket: &UdpSocket, done: &AtomicBool) -> Result<Option<f64>> {
    let mut room = [[0; 64]; BATCH];
    let mut headers = MultiHeaders::<()>::preallocate(BATCH, None);
    let (mut count, mut begin, mut figure) = (0_usize, None, None);
    while !done.load(Ordering::Relaxed) {
        let mut slices: Vec<[IoSliceMut<'_>; 1]> = room
            .iter_mut()
            .map(|place| [IoSliceMut::new(place)])
            .collect();
        let Ok(come) = recvmmsg(
            socket.as_raw_fd(),
            &mut headers,
            &mut slices,
            MsgFlags::MSG_WAITFORONE,
            None,
        ) else {
            continue;
        };
        count += come.count();
        let begin = *begin.get_or_insert_with(Instant::now);
        if figure.is_none() && begin.elapsed() > COUNTED {
            figure = Some(count as f64 / begin.elapsed().as_secs_f64());
        }
    }
    Ok(figure)
}

fn drain(mut stream: TcpStream) -> Result<f64> {
    let mut buffer = vec![0; 1 << 18];
    let begin = Instant::now();
    let mut counted = None;
    let mut bytes = 0;
    loop {
        let length = stream.read(&mut buffer)?;
        match counted {
            None if begin.elapsed() > GROWTH => counted = Some(Instant::now()),
            None => {}
            Some(since) => {
                bytes += length;
                if since.elapsed() > COUNTED || length == 0 {
                    return Ok(bytes as f64 * 8e-6 / since.elapsed().as_secs_f64());
                }
            }
        }
    }
}

fn ask(workload: Workload, to: Ipv4Addr) -> Result<Option<f64>> {
    match workload {
        Workload::RoundTrips(count, pause) => {
            round_trips(count, Duration::from_millis(pause), to).map(Some)
        }
        Workload::Tcp => {
            let mut stream = TcpStream::connect((to, PORT))?;
            let data = vec![0x5a; 1 << 17];
            while stream.write_all(&data).is_ok() {}
            Ok(None)
        }
        Workload::Datagrams => {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
            socket.connect((to, PORT))?;
            let begin = Instant::now();
            let data = [0x5a; 64 - 28];
            let batch: Vec<[IoSlice<'_>; 1]> = (0..BATCH).map(|_| [IoSlice::new(&data)]).collect();
            let mut headers = MultiHeaders::<()>::preallocate(BATCH, None);
            while begin.elapsed() < GROWTH + COUNTED {
                // A full queue on the way is what the other end counts.
                let nobody = [None; BATCH];
                let _ = sendmmsg(
                    socket.as_raw_fd(),
                    &mut headers,
                    &batch,
                    nobody,
                    [],
                    MsgFlags::empty(),
                );
            }
            Ok(None)
        }
    }
}

/// Median in us.
fn round_trips(count: usize, pause: Duration, to: Ipv4Addr) -> Result<f64> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    socket.connect((to, PORT))?;
    socket.set_read_timeout(Some(Duration::from_secs(1)))?;
    let mut times = Vec::new();
    let mut buffer = [0; 64];
    for _ in 0..count {
        thread::sleep(pause);
        let begin = Instant::now();
        socket.send(&[0; 32])?;
        socket.recv(&mut buffer)?;
        times.push(begin.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    median(&mut times).ok_or_else(|| "no round trip".into())
}
