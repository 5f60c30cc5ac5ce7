//! The cost of capturing: CPU time of the thread that reads, for each packet, and how many were lost. The packets are
//! datagrams over the loopback interface of a network namespace of its own.
//!
//! `cargo bench -p stackline-monitor --bench capture`; `-- --rounds N` for more than 5 rounds.

use nix::sched::{CloneFlags, unshare};
use stackline_monitor::capture::{Capture, CaptureOptions, Packet};
use stackline_monitor::clock::thread_cpu_s;
use stackline_testing::bench_arguments::BenchArguments;
use std::error::Error;
use std::hint::black_box;
use std::net::UdpSocket;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const LASTS: Duration = Duration::from_secs(1);

fn main() -> Result<(), Box<dyn Error>> {
    let rounds = BenchArguments::read().take_number("--rounds", 5)?;
    unshare(CloneFlags::CLONE_NEWNET)?;
    if !Command::new("ip")
        .args(["link", "set", "lo", "up"])
        .status()?
        .success()
    {
        return Err("the loopback interface cannot be brought up".into());
    }
    println!("{rounds} rounds of {LASTS:?}, median (least..largest)");
    for size in [64, 1400, 60_000] {
        for (snaplen, copies) in [(96, false), (65_535, false), (65_535, true)] {
            let each = (0..rounds)
                .map(|_| round(size, snaplen, copies))
                .collect::<Result<Vec<Round>, _>>()?;
            let kept = if snaplen == 96 { "96 bytes" } else { "whole" };
            let what = if copies { "copied" } else { "seen" };
            let of = |value: fn(&Round) -> f64| spread(each.iter().map(value).collect());
            let lost: u64 = each.iter().map(|round| round.lost).sum();
            let total: u64 = each.iter().map(|round| round.seen).sum::<u64>() + lost;
            println!(
                "{size:>6} B, {kept:>8}, {what:>6}: {} ns CPU a packet, {} thousand a second, {lost} of {total} lost",
                of(|round| round.cpu_s * 1e9 / round.seen as f64),
                of(|round| round.seen as f64 / LASTS.as_secs_f64() / 1e3),
            );
        }
    }
    Ok(())
}

struct Round {
    cpu_s: f64,
    seen: u64,
    lost: u64,
}

/// Reads while another thread sends as fast as it can.
fn round(size: usize, snaplen: u32, copies: bool) -> Result<Round, Box<dyn Error>> {
    let far = UdpSocket::bind("127.0.0.1:0")?;
    let near = UdpSocket::bind("127.0.0.1:0")?;
    near.connect(far.local_addr()?)?;
    let mut capture = Capture::open(&CaptureOptions {
        snaplen,
        ..CaptureOptions::default()
    })?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let payload = vec![1; size];
            while !stop.load(Ordering::Relaxed) {
                let _ = near.send(&payload);
            }
        });
        let read = reader(&mut capture, copies);
        stop.store(true, Ordering::Relaxed);
        let cpu_s = read?;
        // What has come since the reader's time was over counts as lost or seen, not as its work.
        let seen = capture.seen();
        capture.drain_end(|_| ())?;
        Ok(Round {
            cpu_s,
            seen,
            lost: capture.lost()?,
        })
    })
}

/// CPU seconds of reading for a while.
fn reader(capture: &mut Capture, copies: bool) -> Result<f64, Box<dyn Error>> {
    let mut memory = Vec::new();
    let mut sum = 0_u64;
    let (began, cpu) = (Instant::now(), thread_cpu_s());
    while began.elapsed() < LASTS {
        if copies {
            memory.clear();
        }
        capture.read(Some(Duration::from_millis(100)), |packet: Packet<'_>| {
            // What a dissector looks at first: the addresses and the time.
            sum = sum.wrapping_add(
                packet.at_ns + u64::from(packet.bytes[9]) + u64::from(packet.bytes[19]),
            );
            if copies {
                memory.extend_from_slice(packet.bytes);
            }
        })?;
    }
    black_box((sum, &memory));
    Ok(thread_cpu_s() - cpu)
}

fn spread(mut each: Vec<f64>) -> String {
    each.sort_by(f64::total_cmp);
    let (least, median, largest) = (each[0], each[each.len() / 2], each[each.len() - 1]);
    format!("{median:.0} ({least:.0}..{largest:.0})")
}
