//! Watching: what the machine and its kernel do while something is measured, as events.
//!
//! Monitors look at files of `/proc` every so often and tell what happened since they last looked; the kernel's own trace
//! events tell of TCP to the instant; switches are asked by SNMP. It never decides what any of it means, and it changes
//! nothing on the machine but one instance of the kernel's tracing, which goes with it.
//!
//! | module | one idea |
//! | --- | --- |
//! | `round` | one look of a monitor: what was, what is, how long lies between |
//! | `reader` | a file of the kernel, kept open and read again |
//! | `processor`, `memory`, `network`, `process` | the monitors: a parser and what it tells |
//! | `wall` | steps of the wall clock |
//! | `kernel` | the kernel's trace events of TCP, through an instance of its tracing of our own |
//! | `diag` | connections as the kernel tells of them when it is asked |
//! | `tcp` | what both tell, joined |
//! | [`switches`] | counters of switches by SNMP |
//! | `whose` | whether a connection is to be told of |
//!
//! Every interval ends with its event, and is the true one: a round that came late says so by being long.

use crate::clock::thread_cpu_s;
use crate::monitors::sample::{Monitor, Round};
use crate::monitors::{clock_steps, memory, network, process, processor, tcp};
use crate::switches;
use stackline_events::tape::Names;
use stackline_events::{Keyword, Sink, Tape, Value, clock};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often monitors look when nobody says.
pub const EVERY: Duration = Duration::from_millis(100);
/// The shortest and the longest interval.
pub const INTERVALS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(60));
/// Most bytes of events that wait to be taken; what comes behind is counted as lost.
pub(crate) const MOST_BYTES: usize = 256 << 20;

/// Ports that make a connection ours, by the end they are at: two processes of one machine that talk to each other each
/// tell of their own end then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ports {
    /// At this end: what is listened on here.
    pub local: BTreeSet<u16>,
    /// At the other end: what is connected to.
    pub remote: BTreeSet<u16>,
}

/// Whose TCP is watched. What other network namespaces do is never told, as far as addresses tell them apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Connections {
    /// That of this process: ports are learned from its sockets whenever monitors look, so a connection that comes and goes
    /// in between is known by the port its process listens on or has connected to before.
    Process,
    /// Connections with these ports; the kernel leaves all others out. See also [`Watch::follow`].
    Ports(Ports),
    /// Every connection of this network namespace.
    All,
}

/// What to watch, and how often.
#[derive(Clone, Debug)]
pub struct Config {
    /// Whose events these are.
    pub host: String,
    /// How often monitors look; brought within [`INTERVALS`].
    pub interval: Duration,
    /// Whose TCP is watched.
    pub connections: Connections,
    /// Interfaces by name; none means all.
    pub interfaces: Vec<String>,
    /// Whether the kernel's trace events are asked for; else, and where it refuses, connections are polled only.
    pub kernel: bool,
    /// Switches that are asked for the counters of their ports.
    pub switches: Vec<switches::Switch>,
}

impl Config {
    /// Everything, every 100 ms, of this process's own connections.
    #[must_use]
    pub fn of(host: &str) -> Self {
        Self {
            host: host.into(),
            interval: EVERY,
            connections: Connections::Process,
            interfaces: Vec::new(),
            kernel: true,
            switches: Vec::new(),
        }
    }
}

/// What was seen.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The events that were not taken before, sorted by nothing; behind a sink, a tape that goes on with its names.
    pub tape: Tape,
    /// How many events the sink took.
    pub handed_over: u64,
    /// How many there was no room for, or the sink did not take; they are told of by `EVENTS_LOST` too.
    pub lost: u64,
    /// Why the sink did not take something, when it first did not.
    pub fault: Option<String>,
    /// CPU seconds it took, by what took them.
    pub cost_s: BTreeMap<String, f64>,
    /// What could not be watched, and why.
    pub absent: BTreeMap<String, String>,
    /// Things worth telling.
    pub notes: Vec<String>,
}

/// Watches until it is stopped or dropped.
#[derive(Debug)]
pub struct Watch {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Seen>>,
    switches: Vec<Result<switches::Asking, String>>,
}

/// What the watching thread and its owner share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) stop: AtomicBool,
    pub(crate) tape: Mutex<Tape>,
    /// Events there was no room for that were not told of yet.
    pub(crate) lost: AtomicU64,
    follow: Arc<Mutex<Ports>>,
}

impl Watch {
    /// Starts. When it returns, everything that can be watched is; the rest will stand in [`Seen::absent`].
    #[must_use]
    pub fn start(config: Config) -> Self {
        Self::begin(config, None)
    }

    /// Starts, and gives a sink what was seen after every look.
    #[must_use]
    pub fn start_into(config: Config, sink: impl Sink + 'static) -> Self {
        Self::begin(config, Some(Box::new(sink)))
    }

    fn begin(config: Config, sink: Option<Box<dyn Sink>>) -> Self {
        let shared = Arc::new(Shared::default());
        let every = config.interval.clamp(INTERVALS.0, INTERVALS.1);
        let asking = |switch| switches::start(switch, every, Arc::clone(&shared), config.host.clone());
        let switches = config.switches.iter().cloned().map(asking).collect();
        let (ready, wait) = mpsc::sync_channel(1);
        let theirs = Arc::clone(&shared);
        let work = move || {
            let mut watcher = Watcher::new(config, theirs, sink);
            // Nobody waits when the owner is gone already.
            let _ = ready.send(());
            watcher.work()
        };
        let thread = std::thread::Builder::new().name("watch".into()).spawn(work).ok();
        if thread.is_some() {
            // An error means that the thread is gone: its end says the rest.
            let _ = wait.recv();
        }
        Self { shared, thread, switches }
    }

    /// Connections with these ports are ours too: of what happened before, what was seen at all ([`Connections::Process`]).
    pub fn follow(&self, ports: &Ports) {
        let mut follow = self.shared.follow.lock().unwrap_or_else(PoisonError::into_inner);
        follow.local.extend(&ports.local);
        follow.remote.extend(&ports.remote);
    }

    /// The events so far, which are then forgotten here.
    #[must_use]
    pub fn take(&self) -> Tape {
        std::mem::take(&mut *self.shared.tape.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Looks a last time and ends.
    #[must_use]
    pub fn stop(mut self) -> Seen {
        self.end()
    }

    fn end(&mut self) -> Seen {
        self.shared.stop.store(true, Ordering::Release);
        let nothing = |reason: &str| Seen {
            absent: BTreeMap::from([("monitors".to_owned(), reason.to_owned())]),
            ..Seen::default()
        };
        let Some(thread) = self.thread.take() else { return nothing("no thread was to be had for them") };
        thread.thread().unpark();
        let mut seen = thread.join().unwrap_or_else(|_| nothing("the thread that watches failed"));
        self.end_switches(&mut seen);
        tell_lost(&self.shared, &mut self.shared.tape.lock().unwrap_or_else(PoisonError::into_inner), &mut seen);
        seen.tape = self.take();
        seen
    }
}

impl Watch {
    fn end_switches(&mut self, seen: &mut Seen) {
        for switch in self.switches.drain(..) {
            let (name, thread) = match switch {
                Ok(asking) => asking,
                Err(reason) => {
                    seen.absent.insert("switches".into(), reason);
                    continue;
                }
            };
            thread.thread().unpark();
            let (cost_s, fault) = thread.join().unwrap_or_else(|_| (0.0, Some("what it answers is no SNMP".into())));
            *seen.cost_s.entry("switches".into()).or_default() += cost_s;
            seen.absent.extend(fault.map(|reason| (name, reason)));
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.end();
        }
    }
}

/// The thread that watches.
struct Watcher {
    shared: Arc<Shared>,
    host: String,
    every: Duration,
    monitors: Vec<Box<dyn Monitor>>,
    sink: Option<Box<dyn Sink>>,
    seen: Seen,
    began: Instant,
    late: u32,
}

impl Watcher {
    fn new(config: Config, shared: Arc<Shared>, sink: Option<Box<dyn Sink>>) -> Self {
        let tcp = tcp::Tcp::start(&config, Arc::clone(&shared.follow));
        let every = config.interval.clamp(INTERVALS.0, INTERVALS.1);
        let mut seen = Seen::default();
        let mut monitors: Vec<Box<dyn Monitor>> = Vec::new();
        let all = [
            processor::all(),
            memory::all(),
            network::all(&config.interfaces),
            process::all(every),
            clock_steps::all(),
        ];
        for (name, monitor) in all.into_iter().flatten() {
            match monitor {
                Ok(monitor) => monitors.push(monitor),
                Err(reason) => drop(seen.absent.insert(name.into(), reason)),
            }
        }
        monitors.push(Box::new(tcp));
        let began = Instant::now();
        let mut watcher = Self { shared, host: config.host, every, monitors, sink, seen, began, late: 0 };
        // The first look has nothing to compare with: it is where the first interval begins.
        watcher.look();
        watcher
    }

    fn work(&mut self) -> Seen {
        let mut due = Instant::now() + self.every;
        loop {
            let last = self.shared.stop.load(Ordering::Acquire);
            let now = Instant::now();
            if now >= due || last {
                self.look();
                self.late += u32::from(now > due + self.every);
                // A late round is not made up for: the next comes a whole interval later.
                due = (due + self.every).max(now + self.every / 2);
            }
            if last {
                return self.finish();
            }
            std::thread::park_timeout(due.saturating_duration_since(Instant::now()).min(EVERY));
            if Instant::now() + EVERY / 2 < due {
                self.between();
            }
        }
    }

    /// Every monitor looks once; one that fails is given up, with its reason.
    fn look(&mut self) {
        let shared = Arc::clone(&self.shared);
        let mut kept = shared.tape.lock().unwrap_or_else(PoisonError::into_inner);
        let mut nowhere = Tape::default();
        let full = kept.bytes().len() > MOST_BYTES;
        let tape = if full { &mut nowhere } else { &mut *kept };
        if tape.bytes().is_empty() {
            tape.host(&self.host);
        }
        if !full {
            tell_lost(&shared, tape, &mut self.seen);
        }
        let mut round = Round { tape };
        self.each(|monitor| monitor.look(&mut round));
        shared.lost.fetch_add(nowhere.records().count() as u64, Ordering::Relaxed);
        self.hand_over(&mut kept);
    }

    /// Gives the sink what there is, where there is one.
    fn hand_over(&mut self, tape: &mut Tape) {
        let Some(sink) = &mut self.sink else { return };
        let mut count = 0;
        tape.each(&mut Names::default(), |_, _, _, _| count += 1);
        match sink.take(tape) {
            Ok(()) => {
                self.seen.handed_over += count;
                tape.clear();
            }
            Err(error) => {
                self.seen.fault.get_or_insert_with(|| error.to_string());
                self.shared.lost.fetch_add(count, Ordering::Relaxed);
                tape.begin_again(&self.host);
            }
        }
    }

    /// What cannot wait for the next look.
    fn between(&mut self) {
        self.each(|monitor| monitor.between());
    }

    fn each(&mut self, mut act: impl FnMut(&mut dyn Monitor) -> Result<(), String>) {
        let (absent, cost_s) = (&mut self.seen.absent, &mut self.seen.cost_s);
        let mut spent_s = thread_cpu_s();
        self.monitors.retain_mut(|monitor| {
            let done = act(monitor.as_mut());
            let now_s = thread_cpu_s();
            *cost_s.entry(monitor.costs().into()).or_default() += now_s - std::mem::replace(&mut spent_s, now_s);
            done.map_err(|reason| absent.insert(monitor.name().into(), reason)).is_ok()
        });
    }

    fn finish(&mut self) -> Seen {
        let shared = Arc::clone(&self.shared);
        let mut kept = shared.tape.lock().unwrap_or_else(PoisonError::into_inner);
        for mut monitor in self.monitors.drain(..) {
            monitor.finish(&mut Round { tape: &mut kept }, &mut self.seen);
        }
        tell_lost(&shared, &mut kept, &mut self.seen);
        self.hand_over(&mut kept);
        drop(kept);
        let mut seen = std::mem::take(&mut self.seen);
        if self.late > 0 {
            let share = self.began.elapsed().as_secs_f64() / self.every.as_secs_f64();
            seen.notes.push(format!(
                "{} of some {share:.0} rounds of the monitors came more than an interval late; their intervals are the true ones",
                self.late
            ));
        }
        seen
    }
}

/// Tells of what there was no room for.
fn tell_lost(shared: &Shared, tape: &mut Tape, seen: &mut Seen) {
    static LOST: Keyword = Keyword::new("EVENTS_LOST");
    let lost = shared.lost.swap(0, Ordering::Relaxed);
    if lost > 0 {
        tape.push(LOST.id(), clock::now_ns(), &[Value::from(lost)]);
        seen.lost += lost;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::{SockFilter, SockRef};
    use stackline_events::Record;
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    /// A connection over loopback whose receiver loses that share of all packets, in a million, before TCP sees them.
    fn lossy(lost_ppm: u32) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let far = listener.accept().unwrap().0;
        let bound = (u64::from(lost_ppm) << 32) / 1_000_000;
        // Load a random number (SKF_AD_RANDOM); below the bound, accept nothing of the packet.
        let (load, less, give) = (0x20, 0x35, 0x06);
        let filter = [
            SockFilter::new(load, 0, 0, (-0x1000_i32 + 56) as u32),
            SockFilter::new(less, 1, 0, bound as u32),
            SockFilter::new(give, 0, 0, 0),
            SockFilter::new(give, 0, 0, u32::MAX),
        ];
        SockRef::from(&far).attach_filter(&filter).unwrap();
        (near, far)
    }

    /// Sends so many bytes one way, and how often the sender's kernel then says that it sent something again.
    fn send(near: &mut TcpStream, far: &mut TcpStream, bytes: usize) -> u64 {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut room = vec![0; 1 << 16];
                let mut left = bytes;
                while left > 0 {
                    left -= far.read(&mut room).unwrap();
                }
            });
            let data = vec![7; 1 << 16];
            (0..bytes / data.len()).for_each(|_| near.write_all(&data).unwrap());
        });
        let mut sockets = crate::monitors::tcp::sock_diag::Diag::open().unwrap().sockets().unwrap();
        sockets.retain(|socket| Ok(socket.ends.local) == near.local_addr().map_err(drop));
        sockets[0].info.unwrap().retransmits
    }

    fn number(record: &Record<'_>, field: &str) -> Option<i64> {
        let at = stackline_events::catalogue::find(record.keyword)?.field(field)?;
        record.values.get(at)?.number()
    }

    fn text<'t>(record: &Record<'t>, field: &str) -> &'t str {
        let at = stackline_events::catalogue::find(record.keyword).and_then(|entry| entry.field(field)).unwrap();
        record.values[at].text().unwrap_or("")
    }

    #[test]
    fn every_retransmission_is_seen_at_its_instant() {
        let watch = Watch::start(Config { interval: Duration::from_millis(10), ..Config::of("khons") });
        let from_ns = clock::now_ns();
        let (mut near, mut far) = lossy(80_000);
        let retransmits = send(&mut near, &mut far, 16 << 20);
        let to_ns = clock::now_ns();
        let (local, peer) = (near.local_addr().unwrap().to_string(), far.local_addr().unwrap().to_string());
        let seen = watch.stop();
        if let Some(reason) = seen.absent.get("kernel") {
            eprintln!("SKIPPED: the kernel's trace events are not to be had here: {reason}");
            return;
        }
        let records: Vec<Record<'_>> = seen.tape.records().collect();
        let of = |keyword: &str, end: &str| -> Vec<&Record<'_>> {
            records.iter().filter(|r| r.keyword == keyword && text(r, "local") == end).collect()
        };
        let again = of("TCP_RETRANSMIT", &local);
        assert!(retransmits > 5 && !again.is_empty(), "{retransmits} {:?}", seen.absent);
        // Only as long as no record covers more than one segment are there as many.
        assert!(again.len() as u64 <= retransmits, "{} records of {retransmits}", again.len());
        let told: i64 = of("TCP_INFO", &local).iter().filter_map(|r| number(r, "retransmits")).sum();
        assert_eq!(told as u64, retransmits, "what its intervals count");
        let counted: Option<i64> = again.iter().map(|record| number(record, "segments")).sum();
        if let Some(counted) = counted {
            assert_eq!(counted as u64, retransmits);
        }
        assert!(again.iter().all(|record| (from_ns..to_ns).contains(&record.at_ns)));
        let causes: BTreeSet<&str> = again.iter().map(|record| text(record, "cause")).collect();
        assert!(causes.is_subset(&BTreeSet::from(["fast", "timeout", "probe"])), "{causes:?}");
        let drops = of("TCP_DROP", &peer);
        assert!(drops.iter().any(|record| text(record, "reason") == "socket_filter"), "{drops:?}");
        assert!(records.iter().all(|record| record.keyword != "EVENTS_LOST"));
    }

    #[test]
    fn where_the_kernel_does_not_tell_intervals_do() {
        let config = Config { interval: Duration::from_millis(10), kernel: false, ..Config::of("khons") };
        let watch = Watch::start(config);
        let (mut near, mut far) = lossy(80_000);
        let retransmits = send(&mut near, &mut far, 16 << 20);
        let local = near.local_addr().unwrap().to_string();
        let seen = watch.stop();
        assert!(seen.absent["kernel"].contains("intervals"));
        let rows = seen.tape.records().filter(|r| r.keyword == "TCP_INFO" && text(r, "local") == local);
        let told: i64 = rows.filter_map(|record| number(&record, "retransmits")).sum();
        assert_eq!(told as u64, retransmits);
    }

    #[test]
    fn a_watch_tells_of_this_machine_and_what_it_cost() {
        let watch = Watch::start(Config { interval: Duration::from_millis(10), ..Config::of("khons") });
        std::thread::sleep(Duration::from_millis(60));
        let first = watch.take();
        let seen = watch.stop();
        for tape in [&first, &seen.tape] {
            let records: Vec<_> = tape.records().collect();
            assert!(records.iter().any(|record| record.keyword == "NETSTAT_TCP"), "{:?}", seen.absent);
            assert!(records.iter().all(|record| record.host == "khons"));
        }
        let interval = |record: &Record<'_>| record.values[0].number().unwrap();
        let memory: Vec<i64> = first.records().filter(|r| r.keyword == "MEMORY").map(|r| interval(&r)).collect();
        assert!(memory.iter().all(|interval| *interval > 0), "{memory:?}");
        assert!(seen.cost_s["monitors"] > 0.0);
    }

    /// Takes tapes until it is full.
    #[derive(Clone)]
    struct Into {
        bytes: Arc<Mutex<Vec<u8>>>,
        room: usize,
    }

    impl Sink for Into {
        fn take(&mut self, tape: &Tape) -> std::io::Result<()> {
            let mut bytes = self.bytes.lock().unwrap();
            if bytes.len() > self.room {
                return Err(std::io::ErrorKind::StorageFull.into());
            }
            bytes.extend_from_slice(tape.bytes());
            Ok(())
        }
    }

    #[test]
    fn a_sink_has_what_was_seen_and_what_it_does_not_take_is_told() {
        let config = || Config { interval: Duration::from_millis(10), kernel: false, ..Config::of("khons") };
        for room in [usize::MAX, 1] {
            let into = Into { bytes: Arc::default(), room };
            let watch = Watch::start_into(config(), into.clone());
            std::thread::sleep(Duration::from_millis(60));
            assert_eq!(watch.take().records().count(), 0, "the sink has it");
            let seen = watch.stop();
            let taken = Tape::from_bytes(into.bytes.lock().unwrap().clone());
            assert_eq!(taken.records().count() as u64, seen.handed_over);
            let left: Vec<&str> = seen.tape.records().map(|record| record.keyword).collect();
            assert_eq!(left, if room == 1 { vec!["EVENTS_LOST"] } else { vec![] });
            assert!(taken.records().all(|record| record.host == "khons" && record.keyword != "UNKNOWN"));
            assert_eq!((seen.lost > 0, seen.fault.is_some()), (room == 1, room == 1), "{seen:?}");
        }
    }

    #[test]
    fn what_is_not_there_is_absent_with_its_reason() {
        let seen = Watch::start(Config { interfaces: vec!["none".into()], ..Config::of("khons") }).stop();
        assert_eq!(seen.absent["interfaces"], "there is no interface none");
    }
}
