//! What it costs a server to be traced: a keep-alive server of HTTP and a generator of load, both here, without a trace, with `--see
//! packets` and with the trace as it is by default, in turns; ratios within a round. The server has core 0 and the generator core 1; the
//! trace has no core of its own. CPU seconds of both programs are reported beside the rate, since others on the machine change them less.
//!
//! `cargo bench -p stackline --bench tracing`; `-- --rounds N --seconds N --connections N`; `--rate N` asks so many requests a second
//! instead of as many as are answered. `STACKLINE_BIN` names another program to measure. Without root there is nothing to trace here.

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use nix::unistd::Pid;
use stackline_os::epoll::EpollWaiter;
use stackline_testing::bench_arguments::BenchArguments;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

type Result<T> = std::result::Result<T, String>;

const REQUEST: &[u8] = b"GET /item/7 HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n";
/// Bytes of the body of an answer.
const BODY: usize = 612;
/// How long the server has to say what it took when nobody asks any more.
const ENDS: Duration = Duration::from_millis(100);
/// How long the server and the trace have to begin.
const BEGINS: Duration = Duration::from_secs(10);

/// What of the programs is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Looked {
    NotAtAll,
    AtPackets,
    ByDefault,
}

const ALL: [Looked; 3] = [Looked::NotAtAll, Looked::AtPackets, Looked::ByDefault];

/// How it is measured.
struct Load {
    seconds: f64,
    connections: usize,
    rate: f64,
}

/// What the generator saw, and the CPU of both programs and of the trace, s.
#[derive(Clone, Copy, Default)]
struct Seen {
    requests: f64,
    rate: f64,
    p50_us: f64,
    p99_us: f64,
    programs_s: f64,
    trace_s: f64,
}

fn main() -> ExitCode {
    let mut arguments = BenchArguments::read();
    let done = match arguments.take_word("--serve") {
        Ok(Some(port)) => port
            .parse()
            .map_err(|_| "a port".to_owned())
            .and_then(serve),
        _ => match arguments.take_word("--ask") {
            Ok(Some(port)) => ask(&port, &mut arguments),
            _ => compare(&mut arguments),
        },
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("skipped: {why}");
            ExitCode::SUCCESS
        }
    }
}

fn load(arguments: &mut BenchArguments) -> Result<Load> {
    Ok(Load {
        seconds: arguments.take_number("--seconds", 4.0)?,
        connections: arguments.take_number("--connections", 50)?,
        rate: arguments.take_number("--rate", f64::INFINITY)?,
    })
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Keeps this process on a core, where there is one of that number.
fn on_core(core: usize) {
    let mut cores = CpuSet::new();
    let _ = cores
        .set(core)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &cores));
}

/// The CPU of this process, s.
fn own_cpu_s() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).map_err(text)?;
    Ok((usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6)
}

/// Reads what is there: how many bytes; none at the end of the stream.
fn read(stream: &mut TcpStream, room: &mut [u8]) -> Option<usize> {
    match stream.read(room) {
        Ok(0) => None,
        Ok(count) => Some(count),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            Some(0)
        }
        Err(_) => None,
    }
}

/// Answers whatever is asked, until it is ended; prints its CPU when the last client has gone.
fn serve(port: u16) -> Result<()> {
    on_core(0);
    let listener = TcpListener::bind(("127.0.0.1", port)).map_err(text)?;
    listener.set_nonblocking(true).map_err(text)?;
    let mut waiter = EpollWaiter::new().map_err(text)?;
    waiter.add(listener.as_fd(), 0).map_err(text)?;
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY}\r\n\r\n");
    let answer = [head.as_bytes(), &[b'a'; BODY]].concat();
    let (mut clients, mut next) = (BTreeMap::<u64, (TcpStream, usize)>::new(), 1);
    let mut room = [0; 4096];
    loop {
        waiter.wait(None).map_err(text)?;
        let ready: Vec<u64> = waiter.ready_tokens().collect();
        for token in ready {
            if token == 0 {
                while let Ok((stream, _)) = listener.accept() {
                    let added = stream
                        .set_nonblocking(true)
                        .and_then(|()| waiter.add(stream.as_fd(), next));
                    added.map_err(text)?;
                    clients.insert(next, (stream, 0));
                    next += 1;
                }
                continue;
            }
            let Some((stream, pending)) = clients.get_mut(&token) else {
                continue;
            };
            let Some(count) = read(stream, &mut room) else {
                clients.remove(&token);
                if clients.is_empty() {
                    println!("served {}", own_cpu_s()?);
                }
                continue;
            };
            *pending += count;
            let asked = *pending / REQUEST.len();
            *pending %= REQUEST.len();
            if (0..asked).any(|_| stream.write_all(&answer).is_err()) {
                clients.remove(&token);
            }
        }
    }
}

/// A connection of the generator.
struct Asking {
    stream: TcpStream,
    asked: Option<Instant>,
    got: usize,
    /// When it may ask again.
    due: Instant,
}

impl Asking {
    fn open(port: u16, due: Instant) -> Result<Self> {
        let until = Instant::now() + BEGINS;
        let stream = loop {
            match TcpStream::connect(("127.0.0.1", port)) {
                Ok(stream) => break stream,
                Err(error) if Instant::now() > until => return Err(text(error)),
                Err(_) => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        stream
            .set_nonblocking(true)
            .and_then(|()| stream.set_nodelay(true))
            .map_err(text)?;
        Ok(Self {
            stream,
            asked: None,
            got: 0,
            due,
        })
    }

    fn ask(&mut self, now: Instant, every: Duration) -> io::Result<()> {
        (self.asked, self.got) = (Some(now), 0);
        self.due = (self.due + every).max(now);
        self.stream.write_all(REQUEST)
    }

    /// Takes what has come: how long the answer took, if it is whole.
    fn answered(&mut self, room: &mut [u8], length: usize) -> Result<Option<Duration>> {
        let count = read(&mut self.stream, room).ok_or("the server closed a connection")?;
        self.got += count;
        let is_whole = self.got >= length;
        Ok(is_whole
            .then(|| self.asked.take())
            .flatten()
            .map(|asked| asked.elapsed()))
    }
}

/// Asks on all connections, one request on each at a time, and prints what came of it.
fn ask(port: &str, arguments: &mut BenchArguments) -> Result<()> {
    on_core(1);
    let port: u16 = port.parse().map_err(|_| "a port".to_owned())?;
    let load = load(arguments)?;
    let every = Duration::from_secs_f64(load.connections as f64 / load.rate);
    let mut waiter = EpollWaiter::new().map_err(text)?;
    let mut all = Vec::new();
    for number in 0..load.connections {
        let due = Instant::now() + every.mul_f64(number as f64 / load.connections as f64);
        let asking = Asking::open(port, due)?;
        waiter
            .add(asking.stream.as_fd(), number as u64)
            .map_err(text)?;
        all.push(asking);
    }
    let length = format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY}\r\n\r\n").len() + BODY;
    let (mut took, mut room) = (Vec::<f64>::new(), vec![0; 1 << 16]);
    let began = Instant::now();
    while began.elapsed().as_secs_f64() < load.seconds {
        let now = Instant::now();
        let mut first = now + Duration::from_millis(100);
        for asking in &mut all {
            if asking.asked.is_none() && asking.due <= now {
                asking.ask(now, every).map_err(text)?;
            }
            if asking.asked.is_none() {
                first = first.min(asking.due);
            }
        }
        let wait = first.saturating_duration_since(Instant::now());
        waiter.wait(Some(wait.as_nanos() as u64)).map_err(text)?;
        for token in waiter.ready_tokens() {
            let answered = all[token as usize].answered(&mut room, length)?;
            took.extend(answered.map(|took| took.as_secs_f64() * 1e6));
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    took.sort_by(f64::total_cmp);
    let at = |part: f64| took.get((took.len() as f64 * part) as usize).copied();
    let (p50, p99) = (at(0.5).unwrap_or(0.0), at(0.99).unwrap_or(0.0));
    let rate = took.len() as f64 / seconds;
    println!("asked {} {rate} {p50} {p99} {}", took.len(), own_cpu_s()?);
    drop(all);
    std::thread::sleep(ENDS);
    Ok(())
}

/// A child that is ended with its owner.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn compare(arguments: &mut BenchArguments) -> Result<()> {
    let rounds: usize = arguments.take_number("--rounds", 5)?;
    let load = load(arguments)?;
    let place = tempfile::tempdir().map_err(text)?;
    let mut each: [Vec<Seen>; ALL.len()] = Default::default();
    for round in 0..rounds {
        eprintln!("round {} of {rounds}", round + 1);
        for (looked, seen) in ALL.into_iter().zip(&mut each) {
            seen.push(measure(looked, &load, place.path())?);
        }
    }
    println!(
        "{rounds} rounds of {} s, {} connections; medians, and medians of ratios within a round",
        load.seconds, load.connections
    );
    for (looked, seen) in ALL.into_iter().zip(&each) {
        print(looked, seen, &each[0]);
    }
    Ok(())
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

fn print(looked: Looked, seen: &[Seen], without: &[Seen]) {
    let of = |value: fn(&Seen) -> f64| median(seen.iter().map(value));
    let ratio = |value: fn(&Seen) -> f64| {
        median(
            seen.iter()
                .zip(without)
                .map(|(one, other)| value(one) / value(other)),
        )
    };
    println!(
        "{:<10} {:>7.0} a second, x {:.3}; p50 {:.0} us, x {:.2}; p99 {:.0} us, x {:.2}; programs {:.1} us of CPU a request, x {:.3}; the trace {:.1}",
        format!("{looked:?}"),
        of(|seen| seen.rate),
        ratio(|seen| seen.rate),
        of(|seen| seen.p50_us),
        ratio(|seen| seen.p50_us),
        of(|seen| seen.p99_us),
        ratio(|seen| seen.p99_us),
        of(|seen| seen.programs_s * 1e6 / seen.requests),
        ratio(|seen| seen.programs_s / seen.requests),
        of(|seen| seen.trace_s * 1e6 / seen.requests),
    );
}

/// One turn.
fn measure(looked: Looked, load: &Load, place: &std::path::Path) -> Result<Seen> {
    let own = std::env::current_exe().map_err(text)?;
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let port = free.map_err(text)?.port().to_string();
    let serves = [own.as_os_str(), "--serve".as_ref(), port.as_ref()];
    let mut asks = vec![own.as_os_str().to_owned()];
    let numbers =
        [load.seconds, load.connections as f64, load.rate].map(|number| number.to_string());
    let [seconds, connections, rate] = &numbers;
    let flags = [
        "--ask",
        &port,
        "--seconds",
        seconds,
        "--connections",
        connections,
        "--rate",
        rate,
    ];
    asks.extend(flags.map(Into::into));
    if looked == Looked::NotAtAll {
        let mut server = Command::new(serves[0]);
        server.args(&serves[1..]).stdout(Stdio::piped());
        let mut server = Ended(server.spawn().map_err(text)?);
        let output = Command::new(&asks[0]).args(&asks[1..]).output();
        let mut said = output.map_err(text)?.stdout;
        server.0.kill().map_err(text)?;
        if let Some(mut of_server) = server.0.stdout.take() {
            of_server.read_to_end(&mut said).map_err(text)?;
        }
        return seen(&said, &[]);
    }
    let program = std::env::var("STACKLINE_BIN")
        .unwrap_or_else(|_| env!("CARGO_BIN_EXE_stackline").to_owned());
    let mut trace = Command::new(program);
    trace.arg("trace").current_dir(place).stdin(Stdio::null());
    if looked == Looked::AtPackets {
        trace.args(["--see", "packets"]);
    }
    trace.args(["here", "--"]).args(serves);
    trace.args(["here", "--"]).args(&asks);
    let output = trace.output().map_err(text)?;
    let seen = seen(&output.stdout, &output.stderr);
    std::fs::remove_dir_all(place.join("runs")).map_err(text)?;
    seen
}

/// What the programs and the trace say.
fn seen(programs: &[u8], trace: &[u8]) -> Result<Seen> {
    let (said, trace) = (
        String::from_utf8_lossy(programs),
        String::from_utf8_lossy(trace),
    );
    let words = ["asked ", "served "];
    let numbers: Vec<f64> = words
        .into_iter()
        .filter_map(|word| said.lines().find_map(|line| line.strip_prefix(word)))
        .flat_map(str::split_whitespace)
        .filter_map(|word| word.parse().ok())
        .collect();
    let [requests, rate, p50_us, p99_us, generator_s, server_s] = numbers[..] else {
        return Err(format!("nothing was measured: {said}{trace}"));
    };
    let took = trace.split("tracing took ").nth(1).unwrap_or_default();
    let mut words = took.split_whitespace();
    let number = words.next().and_then(|word| word.parse::<f64>().ok());
    let unit = match words.next() {
        Some("s") => 1.0,
        Some("ms") => 1e-3,
        _ => 1e-6,
    };
    Ok(Seen {
        requests,
        rate,
        p50_us,
        p99_us,
        programs_s: generator_s + server_s,
        trace_s: number.unwrap_or(0.0) * unit,
    })
}
