//! The cost of watching: CPU time of the sampling thread in percent of one core, with and without busy connections.
//!
//! `cargo bench -p stackline-monitor --bench watch`; `-- --rounds N` for more than 5 rounds.

use stackline_monitor::{Config, MonitorSession, WatchedConnections};
use stackline_testing::bench_arguments::BenchArguments;
use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const LASTS: Duration = Duration::from_secs(3);

fn main() {
    let rounds = BenchArguments::read()
        .take_number("--rounds", 5)
        .unwrap_or(5);
    println!("{rounds} rounds of {LASTS:?}; percent of one core: median (least..largest)");
    for (connections, interval_ms, kernel) in [
        (0, 100, true),
        (0, 100, false),
        (0, 10, true),
        (100, 100, true),
        (1_000, 100, true),
    ] {
        let busy = Busy::start(connections);
        let interval = Duration::from_millis(interval_ms);
        let shares: Vec<BTreeMap<String, f64>> =
            (0..rounds).map(|_| share(interval, kernel)).collect();
        drop(busy);
        let of = |what: &str| {
            let each = shares.iter().map(|round| {
                if what == "all" {
                    round.values().sum()
                } else {
                    round.get(what).copied().unwrap_or(0.0)
                }
            });
            spread(each.collect())
        };
        let events = if kernel {
            "with trace events"
        } else {
            "without"
        };
        println!(
            "{connections:>5} connections, every {interval_ms:>3} ms, {events}: {}; monitors {}, tcp {}",
            of("all"),
            of("monitors"),
            of("kernel")
        );
    }
}

/// Percent of one core, by consumer.
fn share(interval: Duration, kernel: bool) -> BTreeMap<String, f64> {
    let config = Config {
        interval,
        kernel,
        connections: WatchedConnections::All,
        ..Config::new("here")
    };
    let began = Instant::now();
    let watch = MonitorSession::start(config);
    std::thread::sleep(LASTS);
    let observed = watch.stop();
    for (what, reason) in &observed.absent {
        eprintln!("absent: {what}: {reason}");
    }
    let seconds = began.elapsed().as_secs_f64();
    observed
        .cost_s
        .into_iter()
        .map(|(what, cost)| (what, cost / seconds * 100.0))
        .collect()
}

fn spread(mut each: Vec<f64>) -> String {
    each.sort_by(f64::total_cmp);
    let (least, median, largest) = (each[0], each[each.len() / 2], each[each.len() - 1]);
    format!("{median:.3} ({least:.3}..{largest:.3})")
}

/// Connections over loopback, each of which sends 4 bytes every 20 ms.
struct Busy {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Busy {
    fn start(connections: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port of loopback");
        let address = listener.local_addr().expect("its address");
        let pair = |_| {
            let near = TcpStream::connect(address).expect("a connection over loopback");
            (near, listener.accept().expect("its other end").0)
        };
        let mut pairs: Vec<(TcpStream, TcpStream)> = (0..connections).map(pair).collect();
        let stop = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&stop);
        let work = move || {
            while !theirs.load(Ordering::Relaxed) {
                for (near, far) in &mut pairs {
                    let mut room = [0; 64];
                    let _ = near.write_all(b"word").and_then(|()| far.read(&mut room));
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        };
        Self {
            stop,
            thread: Some(std::thread::spawn(work)),
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map(std::thread::JoinHandle::join);
    }
}
