//! A watch: one thread that samples all monitors at an interval, and one thread for each switch, until it is stopped. A monitor
//! samples one thing of this machine.
//!
//! An interval is recorded as the event at its end, with its true length: a late sample makes a longer interval.

use crate::clock::thread_cpu_s;
use crate::event_buffer::EventBuffer;
use crate::monitors::sample::{Monitor, MonitorSetup};
use crate::monitors::{self, RunningMonitors};
use crate::switches::Poller;
use crate::watch_config::{Config, EVERY, Observed, WatchedPorts};
use stackline_events::{EventLog, EventSink};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A watch that runs until it is stopped or dropped.
#[derive(Debug)]
pub struct MonitorSession {
    stop: Arc<AtomicBool>,
    buffer: Arc<EventBuffer>,
    /// Ports to watch further, which the TCP monitor takes.
    more_ports: Arc<Mutex<WatchedPorts>>,
    thread: Option<JoinHandle<Observed>>,
    /// The threads of switches, or why they could not be started.
    pollers: Vec<Result<Poller, String>>,
}

impl MonitorSession {
    /// Starts the watch. When this returns, everything that can be watched is watched; the rest will be in [`Observed::absent`].
    #[must_use]
    pub fn start(config: Config) -> Self {
        Self::begin(config, None)
    }

    /// Starts the watch, and hands its events to a sink after every sample.
    #[must_use]
    pub fn start_into(config: Config, sink: impl EventSink + 'static) -> Self {
        Self::begin(config, Some(Box::new(sink)))
    }

    fn begin(config: Config, sink: Option<Box<dyn EventSink>>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let buffer = Arc::new(EventBuffer::new(&config.host));
        let more_ports = Arc::new(Mutex::new(WatchedPorts::default()));
        let interval = config.limited_interval();
        let poller =
            |switch| Poller::start(switch, interval, Arc::clone(&buffer), Arc::clone(&stop));
        let pollers = config.switches.iter().cloned().map(poller).collect();
        let (started, wait) = mpsc::sync_channel(1);
        let mut sampler =
            MonitorSampler::new(interval, Arc::clone(&stop), Arc::clone(&buffer), sink);
        let ports = Arc::clone(&more_ports);
        let work = move || {
            sampler.start(&MonitorSetup {
                config: &config,
                more_ports: ports,
            });
            // An error means that the owner is gone.
            let _ = started.send(());
            sampler.work()
        };
        let thread = std::thread::Builder::new()
            .name("watch".into())
            .spawn(work)
            .ok();
        if thread.is_some() {
            // An error means that the thread is gone, which its end reports.
            let _ = wait.recv();
        }
        Self {
            stop,
            buffer,
            more_ports,
            thread,
            pollers,
        }
    }

    /// Also watches connections with these ports: from their beginning, as far as their events are still held.
    pub fn follow(&self, ports: &WatchedPorts) {
        let mut more = self
            .more_ports
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        more.local.extend(&ports.local);
        more.remote.extend(&ports.remote);
    }

    /// Takes the events so far.
    #[must_use]
    pub fn take(&self) -> EventLog {
        self.buffer.take()
    }

    /// Takes a last sample and ends the watch.
    #[must_use]
    pub fn stop(mut self) -> Observed {
        self.end()
    }

    fn end(&mut self) -> Observed {
        self.stop.store(true, Ordering::Release);
        let nothing = |reason: &str| Observed {
            absent: BTreeMap::from([("monitors".to_owned(), reason.to_owned())]),
            ..Observed::default()
        };
        let Some(thread) = self.thread.take() else {
            return nothing("cannot start a thread for them");
        };
        thread.thread().unpark();
        let mut observed = thread
            .join()
            .unwrap_or_else(|_| nothing("the sampling thread panicked"));
        self.end_pollers(&mut observed);
        (observed.event_log, observed.lost) = self.buffer.close();
        observed
    }

    fn end_pollers(&mut self, observed: &mut Observed) {
        for poller in self.pollers.drain(..) {
            match poller {
                Ok(poller) => {
                    let name = poller.name.clone();
                    let (cost_s, reason) = poller.finish();
                    *observed.cost_s.entry("switches".into()).or_default() += cost_s;
                    observed.absent.extend(reason.map(|reason| (name, reason)));
                }
                Err(reason) => drop(observed.absent.insert("switches".into(), reason)),
            }
        }
    }
}

impl Drop for MonitorSession {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.end();
        }
    }
}

/// The state of the sampling thread.
struct MonitorSampler {
    interval: Duration,
    stop: Arc<AtomicBool>,
    buffer: Arc<EventBuffer>,
    sink: Option<Box<dyn EventSink>>,
    monitors: RunningMonitors,
    observed: Observed,
    began: Instant,
    /// How many samples were more than one interval late.
    late: u32,
}

impl MonitorSampler {
    fn new(
        interval: Duration,
        stop: Arc<AtomicBool>,
        buffer: Arc<EventBuffer>,
        sink: Option<Box<dyn EventSink>>,
    ) -> Self {
        let (monitors, observed) = (Vec::new(), Observed::default());
        Self {
            interval,
            stop,
            buffer,
            sink,
            monitors,
            observed,
            began: Instant::now(),
            late: 0,
        }
    }

    /// Starts the monitors and takes the first sample, with which the first interval begins.
    fn start(&mut self, setup: &MonitorSetup<'_>) {
        (self.monitors, self.observed.absent) = monitors::start(setup);
        self.began = Instant::now();
        self.sample();
    }

    fn work(&mut self) -> Observed {
        let mut due = Instant::now() + self.interval;
        loop {
            // Before the sample, so that what is stopped gets a last one.
            let last = self.stop.load(Ordering::Acquire);
            let now = Instant::now();
            if now >= due || last {
                self.sample();
                self.late += u32::from(now > due + self.interval);
                // Late samples are not caught up on: the next one follows half an interval later at the earliest.
                due = (due + self.interval).max(now + self.interval / 2);
            }
            if last {
                return self.finish();
            }
            std::thread::park_timeout(due.saturating_duration_since(Instant::now()).min(EVERY));
            if Instant::now() + EVERY / 2 < due {
                self.each(|monitor| monitor.drain());
            }
        }
    }

    /// Takes a sample of every monitor.
    fn sample(&mut self) {
        self.add(|this, log| this.each(|monitor| monitor.sample(log)));
    }

    /// Adds what `record` records to the buffer, and gives all events to the sink, if there is one.
    fn add(&mut self, record: impl FnOnce(&mut Self, &mut EventLog)) {
        let buffer = Arc::clone(&self.buffer);
        let Some(mut sink) = self.sink.take() else {
            return buffer.add(|log| record(self, log));
        };
        match buffer.add_into(sink.as_mut(), |log| record(self, log)) {
            Ok(count) => self.observed.handed_over += count,
            Err(error) => drop(
                self.observed
                    .sink_error
                    .get_or_insert_with(|| error.to_string()),
            ),
        }
        self.sink = Some(sink);
    }

    /// Calls every monitor and adds up its CPU time. A monitor that fails is removed, and its reason recorded.
    fn each(&mut self, mut act: impl FnMut(&mut dyn Monitor) -> Result<(), String>) {
        let Observed { absent, cost_s, .. } = &mut self.observed;
        let mut spent_s = thread_cpu_s();
        self.monitors.retain_mut(|(name, monitor)| {
            let done = act(monitor.as_mut());
            let now_s = thread_cpu_s();
            *cost_s.entry(monitor.cost_entry().into()).or_default() +=
                now_s - std::mem::replace(&mut spent_s, now_s);
            done.map_err(|reason| absent.insert((*name).into(), reason))
                .is_ok()
        });
    }

    fn finish(&mut self) -> Observed {
        self.add(|this, log| {
            for (_, mut monitor) in std::mem::take(&mut this.monitors) {
                monitor.finish(log, &mut this.observed);
            }
        });
        let mut observed = std::mem::take(&mut self.observed);
        if self.late > 0 {
            let samples = self.began.elapsed().as_secs_f64() / self.interval.as_secs_f64();
            observed.notes.push(format!(
                "monitor samples more than one interval late: {} of about {samples:.0}; events give the true intervals",
                self.late
            ));
        }
        observed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::{SockFilter, SockRef};
    use stackline_events::{EventRecord, clock};
    use stackline_os::tcp_info::TcpInfo;
    use std::collections::BTreeSet;
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd as _;

    /// A connection over loopback whose receiver drops that share of all packets, in a million, before TCP gets them.
    fn lossy(lost_ppm: u32) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let far = listener.accept().unwrap().0;
        let bound = (u64::from(lost_ppm) << 32) / 1_000_000;
        // Load a random number (SKF_AD_RANDOM); below the bound, accept no byte of the packet.
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

    /// Sends so many bytes, and returns the retransmissions that the sender's kernel counted.
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
        u64::from(TcpInfo::read(near.as_fd()).unwrap().total_retransmits)
    }

    fn number(record: &EventRecord<'_>, field: &str) -> Option<i64> {
        let at = stackline_events::catalogue::find(record.keyword)?.field(field)?;
        record.values.get(at)?.number()
    }

    fn text<'t>(record: &EventRecord<'t>, field: &str) -> &'t str {
        let at = stackline_events::catalogue::find(record.keyword)
            .and_then(|entry| entry.field(field))
            .unwrap();
        record.values[at].text().unwrap_or("")
    }

    #[test]
    fn every_retransmission_has_its_exact_time() {
        let watch = MonitorSession::start(Config {
            interval: Duration::from_millis(10),
            ..Config::new("khons")
        });
        let from_ns = clock::now_ns();
        let (mut near, mut far) = lossy(80_000);
        let retransmits = send(&mut near, &mut far, 16 << 20);
        let to_ns = clock::now_ns();
        let (local, peer) = (
            near.local_addr().unwrap().to_string(),
            far.local_addr().unwrap().to_string(),
        );
        let observed = watch.stop();
        if let Some(reason) = observed.absent.get("kernel") {
            stackline_testing::skip(format_args!(
                "kernel trace events are not available: {reason}"
            ));
            return;
        }
        let records: Vec<EventRecord<'_>> = observed.event_log.records().collect();
        let of = |keyword: &str, local: &str| -> Vec<&EventRecord<'_>> {
            records
                .iter()
                .filter(|r| r.keyword == keyword && text(r, "local") == local)
                .collect()
        };
        let retransmitted = of("TCP_RETRANSMIT", &local);
        assert!(
            retransmits > 5 && !retransmitted.is_empty(),
            "{retransmits} {:?}",
            observed.absent
        );
        // An event may cover several segments.
        assert!(
            retransmitted.len() as u64 <= retransmits,
            "{} records of {retransmits}",
            retransmitted.len()
        );
        let sum: i64 = of("TCP_INFO", &local)
            .iter()
            .filter_map(|r| number(r, "retransmits"))
            .sum();
        assert_eq!(sum as u64, retransmits, "the sum of all intervals");
        let counted: Option<i64> = retransmitted
            .iter()
            .map(|record| number(record, "segments"))
            .sum();
        if let Some(counted) = counted {
            assert_eq!(counted as u64, retransmits);
        }
        assert!(
            retransmitted
                .iter()
                .all(|record| (from_ns..to_ns).contains(&record.at_ns))
        );
        let causes: BTreeSet<&str> = retransmitted
            .iter()
            .map(|record| text(record, "cause"))
            .collect();
        assert!(
            causes.is_subset(&BTreeSet::from(["fast", "timeout", "probe"])),
            "{causes:?}"
        );
        let drops = of("TCP_DROP", &peer);
        assert!(
            drops
                .iter()
                .any(|record| text(record, "reason") == "socket_filter"),
            "{drops:?}"
        );
        assert!(records.iter().all(|record| record.keyword != "EVENTS_LOST"));
    }

    #[test]
    fn without_trace_events_intervals_count_retransmissions() {
        let config = Config {
            interval: Duration::from_millis(10),
            kernel: false,
            ..Config::new("khons")
        };
        let watch = MonitorSession::start(config);
        let (mut near, mut far) = lossy(80_000);
        let retransmits = send(&mut near, &mut far, 16 << 20);
        let local = near.local_addr().unwrap().to_string();
        let observed = watch.stop();
        assert!(observed.absent["kernel"].contains("per interval"));
        let rows = observed
            .event_log
            .records()
            .filter(|r| r.keyword == "TCP_INFO" && text(r, "local") == local);
        let sum: i64 = rows
            .filter_map(|record| number(&record, "retransmits"))
            .sum();
        assert_eq!(sum as u64, retransmits);
    }

    #[test]
    fn a_watch_records_this_machine_and_its_own_cost() {
        let watch = MonitorSession::start(Config {
            interval: Duration::from_millis(10),
            ..Config::new("khons")
        });
        std::thread::sleep(Duration::from_millis(60));
        let first = watch.take();
        let observed = watch.stop();
        for log in [&first, &observed.event_log] {
            let records: Vec<_> = log.records().collect();
            assert!(
                records.iter().any(|record| record.keyword == "NETSTAT_TCP"),
                "{:?}",
                observed.absent
            );
            assert!(records.iter().all(|record| record.host == "khons"));
        }
        let interval = |record: &EventRecord<'_>| record.values[0].number().unwrap();
        let memory: Vec<i64> = first
            .records()
            .filter(|r| r.keyword == "MEMORY")
            .map(|r| interval(&r))
            .collect();
        assert!(memory.iter().all(|interval| *interval > 0), "{memory:?}");
        assert!(observed.cost_s["monitors"] > 0.0);
    }

    /// A sink that takes logs until it is full.
    #[derive(Clone)]
    struct Store {
        bytes: Arc<Mutex<Vec<u8>>>,
        room: usize,
    }

    impl EventSink for Store {
        fn take(&mut self, log: &EventLog) -> std::io::Result<()> {
            let mut bytes = self.bytes.lock().unwrap();
            if bytes.len() > self.room {
                return Err(std::io::ErrorKind::StorageFull.into());
            }
            bytes.extend_from_slice(log.bytes());
            Ok(())
        }
    }

    #[test]
    fn a_sink_gets_all_events_and_those_it_refuses_are_recorded_as_lost() {
        let config = || Config {
            interval: Duration::from_millis(10),
            kernel: false,
            ..Config::new("khons")
        };
        for room in [usize::MAX, 1] {
            let store = Store {
                bytes: Arc::default(),
                room,
            };
            let watch = MonitorSession::start_into(config(), store.clone());
            std::thread::sleep(Duration::from_millis(60));
            assert_eq!(watch.take().records().count(), 0, "the sink has it");
            let observed = watch.stop();
            let taken = EventLog::from_bytes(store.bytes.lock().unwrap().clone());
            assert_eq!(taken.records().count() as u64, observed.handed_over);
            let left: Vec<&str> = observed
                .event_log
                .records()
                .map(|record| record.keyword)
                .collect();
            assert_eq!(
                left,
                if room == 1 {
                    vec!["EVENTS_LOST"]
                } else {
                    vec![]
                }
            );
            assert!(
                taken
                    .records()
                    .all(|record| record.host == "khons" && record.keyword != "UNKNOWN")
            );
            assert_eq!(
                (observed.lost > 0, observed.sink_error.is_some()),
                (room == 1, room == 1),
                "{observed:?}"
            );
        }
    }

    #[test]
    fn a_missing_interface_is_absent_with_its_reason() {
        let observed = MonitorSession::start(Config {
            interfaces: vec!["none".into()],
            ..Config::new("khons")
        })
        .stop();
        assert_eq!(observed.absent["interfaces"], "unknown interface none");
    }
}
