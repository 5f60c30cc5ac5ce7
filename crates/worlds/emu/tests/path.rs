//! Real packets of real sockets through an emulated network. Where namespaces are forbidden, the tests print so and
//! check nothing.

#![allow(clippy::unwrap_used, reason = "all of it is a test")]

use nix::sched::{CloneFlags, setns};
use stackline_core::network::{
    Discipline, DualPi2Settings, LinkQueue, LinkRate, LossModel, Network, NetworkHost, NetworkLink,
    TokenBucket,
};
use stackline_core::random::Seed;
use stackline_core::time::Duration as Span;
use stackline_emu::engine::{EmulatorEngine, EmulatorOptions, EmulatorReport, Handle};
use stackline_emu::testbed::{self, Testbed};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Packets not received after this time are lost.
const PATIENCE: Duration = Duration::from_secs(120);

fn between_two_hosts(link: NetworkLink) -> Network {
    let host = |name: &str| NetworkHost {
        name: name.into(),
        ..NetworkHost::default()
    };
    let links = vec![NetworkLink {
        ends: ("a".into(), "b".into()),
        ..link
    }];
    Network {
        name: "test".into(),
        hosts: vec![host("a"), host("b")],
        links,
        ..Network::default()
    }
}

/// Runs `test` on the network, and returns the report after it.
fn emulate(
    link: NetworkLink,
    options: EmulatorOptions,
    test: impl FnOnce(&Testbed, &Handle) + Send,
) -> Option<EmulatorReport> {
    let network = between_two_hosts(link);
    let (testbed, ports) = match testbed::build(&network) {
        Ok(built) => built,
        Err(refusal) => {
            println!("not tested: {refusal:?}");
            return None;
        }
    };
    let mut engine = EmulatorEngine::new(ports, &network, Seed::root(7), options).unwrap();
    let handle = engine.handle();
    let (stop, stopped) = UnixStream::pair().unwrap();
    thread::scope(|scope| {
        let engine = scope.spawn(move || engine.run(stopped.as_fd()).unwrap());
        assert!(handle.started());
        // The engine is stopped even if the test fails.
        let test = scope.spawn(|| {
            awake(&testbed, &handle);
            test(&testbed, &handle);
        });
        let test = test.join();
        (&stop).write_all(b"x").unwrap();
        let report = engine.join().unwrap();
        if let Err(panic) = test {
            println!("{report:?}");
            std::panic::resume_unwind(panic);
        }
        Some(report)
    })
}

/// Interfaces just made send nothing for a moment: waits until they do, and restarts the network.
fn awake(testbed: &Testbed, handle: &Handle) {
    let sockets = [0, 1].map(|host| datagrams(testbed, host));
    for (socket, host) in sockets.iter().zip([0, 1]) {
        let before = handle.report().received.packets;
        until("a host's packets come", || {
            socket
                .send_to(b"?", (testbed.hosts[1 - host].address, 7000))
                .unwrap();
            handle.report().received.packets > before
        });
    }
    until("it is quiet", || settled(&handle.report()));
    handle.restart(Seed::root(7), None).unwrap();
}

/// Runs in a thread on that host.
fn on<T: Send>(testbed: &Testbed, host: usize, run: impl FnOnce() -> T + Send) -> T {
    let inside = || {
        setns(&testbed.hosts[host].net, CloneFlags::CLONE_NEWNET).unwrap();
        run()
    };
    thread::scope(|scope| scope.spawn(inside).join().unwrap())
}

fn datagrams(testbed: &Testbed, host: usize) -> UdpSocket {
    let socket = on(testbed, host, || {
        UdpSocket::bind((testbed.hosts[host].address, 7000)).unwrap()
    });
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_micros(200));
    }
}

fn drops(report: &EmulatorReport) -> u64 {
    report
        .ports
        .iter()
        .flat_map(|port| &port.drops)
        .map(|(_, count)| count)
        .sum()
}

/// Every packet that entered has left, was dropped, or was lost for lack of memory or room on the way out.
fn settled(report: &EmulatorReport) -> bool {
    let doubled: u64 = report.ports.iter().map(|port| port.duplicated).sum();
    let gone = drops(report) + report.lost.memory + report.lost.refused;
    report.received.packets + doubled == report.sent.packets + gone
}

#[test]
fn no_packet_is_early_with_stamps_and_without() {
    for stamps in [true, false] {
        let link = NetworkLink {
            delay: Span(2_000_000),
            ..NetworkLink::default()
        };
        let options = EmulatorOptions {
            stamps,
            ..EmulatorOptions::default()
        };
        let report = emulate(link, options, |testbed, _| {
            let (here, there) = (datagrams(testbed, 0), datagrams(testbed, 1));
            let mut buffer = [0; 100];
            for number in 0..40_u8 {
                let begin = Instant::now();
                here.send_to(&[number; 100], (testbed.hosts[1].address, 7000))
                    .unwrap();
                let (length, from) = there.recv_from(&mut buffer).unwrap();
                assert!(begin.elapsed() >= Duration::from_millis(2));
                there.send_to(&buffer[..length], from).unwrap();
                assert_eq!(here.recv(&mut buffer).unwrap(), 100);
                assert!(begin.elapsed() >= Duration::from_millis(4));
                assert_eq!(buffer, [number; 100]);
            }
        });
        let Some(report) = report else { return };
        assert_eq!((report.received.packets, report.sent.packets), (80, 80));
        assert_eq!(
            (report.lateness.count, report.waited.is_some()),
            (80, stamps)
        );
        assert_eq!(report.received.bytes, 80 * 128);
        assert_eq!(report.ports[0].packets, 40);
    }
}

/// Of many lengths, some longer than a slot of a ring: those wait in the socket.
#[test]
fn packets_short_and_long_keep_their_order_and_their_bytes() {
    const TOGETHER: usize = 50;
    const SENT: usize = 40 * TOGETHER;
    for pause in [EmulatorOptions::default().pause, Span::ZERO] {
        let link = NetworkLink {
            mtu_bytes: Some(9000),
            ..NetworkLink::default()
        };
        let report = emulate(
            link,
            EmulatorOptions {
                pause,
                ..EmulatorOptions::default()
            },
            |testbed, _| {
                let (here, there) = (datagrams(testbed, 0), datagrams(testbed, 1));
                let bytes = |number: usize| {
                    vec![
                        number as u8;
                        [36, 4000, 1400, 8900, 100, 36, 36][number * number % 7] + number % 3
                    ]
                };
                let mut buffer = [0; 9000];
                for first in (0..SENT).step_by(TOGETHER) {
                    for number in first..first + TOGETHER {
                        here.send_to(&bytes(number), (testbed.hosts[1].address, 7000))
                            .unwrap();
                    }
                    for number in first..first + TOGETHER {
                        let length = there.recv(&mut buffer).unwrap();
                        assert!(buffer[..length] == bytes(number), "packet {number}");
                    }
                }
            },
        );
        let Some(report) = report else { return };
        assert_eq!(
            (report.received.packets, report.sent.packets),
            (SENT as u64, SENT as u64)
        );
        assert_eq!(report.lost.all(), 0);
        assert!(
            report
                .mechanisms
                .iter()
                .any(|what| what.contains("through rings")),
            "{:?}",
            report.mechanisms
        );
    }
}

#[test]
fn a_transfer_is_intact_through_loss_a_short_queue_and_a_slow_link() {
    let queue = LinkQueue {
        limit_packets: Some(40),
        ..LinkQueue::default()
    };
    let link = NetworkLink {
        rate: LinkRate::Constant(200e6),
        delay: Span(500_000),
        loss: LossModel::Independent(0.01),
        duplicate: 0.005,
        queue: Some(queue),
        ..NetworkLink::default()
    };
    let data: Vec<u8> = (0..3_000_000_u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    let report = emulate(link, EmulatorOptions::default(), |testbed, _| {
        let to = testbed.hosts[1].address;
        let listener = on(testbed, 1, || TcpListener::bind((to, 7000)).unwrap());
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut stream = on(testbed, 0, || TcpStream::connect((to, 7000)).unwrap());
                stream.write_all(&data).unwrap();
            });
            let mut came = Vec::new();
            listener.accept().unwrap().0.read_to_end(&mut came).unwrap();
            assert!(
                came == data,
                "{} of {} bytes came, or others",
                came.len(),
                data.len()
            );
        });
    });
    let Some(report) = report else { return };
    assert!(drops(&report) > 0 && report.ports[0].duplicated > 0);
    assert!(
        report.received.packets > report.received.frames,
        "trains of segments travelled whole: {report:?}"
    );
    assert!(report.ports[0].bytes > 3_000_000);
}

/// Sends that much from the first host to the second over TCP with Reno.
fn transfer(testbed: &Testbed, bytes: usize) {
    let to = testbed.hosts[1].address;
    let listener = on(testbed, 1, || TcpListener::bind((to, 7000)).unwrap());
    let send = || {
        // Reno halves its window on a mark, whatever the default of this machine is.
        std::fs::write("/proc/sys/net/ipv4/tcp_congestion_control", "reno").unwrap();
        TcpStream::connect((to, 7000))
            .unwrap()
            .write_all(&vec![7; bytes])
            .unwrap();
    };
    thread::scope(|scope| {
        scope.spawn(|| on(testbed, 0, send));
        let mut came = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut came).unwrap();
        assert_eq!(came.len(), bytes);
    });
}

#[test]
fn where_a_queue_has_ecn_tcp_is_marked() {
    let discipline = Discipline::CoDel {
        target: Span(2_000_000),
        interval: Span(20_000_000),
    };
    for ecn in [true, false] {
        let queue = LinkQueue {
            discipline,
            ecn,
            ..LinkQueue::default()
        };
        let link = NetworkLink {
            rate: LinkRate::Constant(20e6),
            delay: Span(2_000_000),
            queue: Some(queue),
            ..NetworkLink::default()
        };
        let Some(report) = emulate(link, EmulatorOptions::default(), |testbed, _| {
            transfer(testbed, 1_000_000)
        }) else {
            return;
        };
        assert_eq!(report.ports[0].marked > 0, ecn, "{report:?}");
        // Packets without data are never marked, so a FIN may be dropped on either.
        assert!(ecn || drops(&report) > 0, "{report:?}");
    }
}

#[test]
fn dualpi2_marks_packets_of_the_kernels_tcp() {
    let settings = DualPi2Settings {
        target: Span(2_000_000),
        update: Span(2_000_000),
        ..DualPi2Settings::default()
    };
    let link = NetworkLink {
        rate: LinkRate::Constant(20e6),
        delay: Span(2_000_000),
        queue: Some(LinkQueue {
            discipline: Discipline::DualPi2(settings),
            ecn: true,
            ..LinkQueue::default()
        }),
        ..NetworkLink::default()
    };
    let report = emulate(link, EmulatorOptions::default(), |testbed, _| {
        transfer(testbed, 1_000_000)
    });
    let Some(report) = report else { return };
    assert!(report.ports[0].marked > 0, "{report:?}");
}

/// A bucket of four packets, then 1 Mbit/s: 8 ms for each of 1000 bytes.
#[test]
fn a_shaper_passes_its_burst_and_its_rate() {
    const BURST: u32 = 4;
    const SENT: u32 = 40;
    let link = NetworkLink {
        shaper: Some(TokenBucket {
            bit_s: 1e6,
            burst_bytes: 4000,
        }),
        mtu_bytes: Some(1000),
        ..NetworkLink::default()
    };
    let report = emulate(link, EmulatorOptions::default(), |testbed, _| {
        let (here, there) = (datagrams(testbed, 0), datagrams(testbed, 1));
        let begin = Instant::now();
        for number in 0..SENT {
            let datagram = [number as u8; 972];
            here.send_to(&datagram, (testbed.hosts[1].address, 7000))
                .unwrap();
        }
        let mut buffer = [0; 1000];
        for number in 0..SENT {
            assert_eq!(there.recv(&mut buffer).unwrap(), 972);
            assert_eq!(buffer[0], number as u8, "they stay in order");
            let waited = Duration::from_millis(8) * number.saturating_sub(BURST - 1);
            assert!(begin.elapsed() >= waited, "{number} is early");
        }
    });
    let Some(report) = report else { return };
    assert_eq!((report.sent.packets, drops(&report)), (u64::from(SENT), 0));
}

#[test]
fn losses_are_those_of_the_model_and_come_again_with_the_seed() {
    let link = NetworkLink {
        loss: LossModel::Independent(0.01),
        ..NetworkLink::default()
    };
    let mut lost = Vec::new();
    emulate(link, EmulatorOptions::default(), |testbed, handle| {
        let (here, there) = (datagrams(testbed, 0), datagrams(testbed, 1));
        there
            .set_read_timeout(Some(Duration::from_millis(10)))
            .unwrap();
        let (came, over) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                while over.load(Ordering::Relaxed) == 0 {
                    came.fetch_add(
                        u64::from(there.recv(&mut [0; 100]).is_ok()),
                        Ordering::Relaxed,
                    );
                }
            });
            for seed in [1, 2, 1] {
                handle.restart(Seed::root(seed), None).unwrap();
                came.store(0, Ordering::Relaxed);
                for batch in 1..=60 {
                    for _ in 0..50 {
                        here.send_to(&[0; 100], (testbed.hosts[1].address, 7000))
                            .unwrap();
                    }
                    // So few at once fit every socket on the way.
                    until("all come that the network does not lose", || {
                        let report = handle.report();
                        report.received.packets == 50 * batch
                            && settled(&report)
                            && came.load(Ordering::Relaxed) == report.sent.packets
                    });
                }
                let report = handle.report();
                assert_eq!(
                    report.ports[0].drops,
                    [("lost on the link".to_string(), drops(&report))]
                );
                lost.push(drops(&report));
            }
            over.store(1, Ordering::Relaxed);
        });
    });
    if let [first, other, again] = lost[..] {
        assert_eq!(first, again);
        assert!(
            (10..60).contains(&first) && (10..60).contains(&other),
            "{lost:?} of 3000"
        );
    }
}

#[test]
fn foreign_frames_are_counted_and_the_path_is_calibrated() {
    let network = between_two_hosts(NetworkLink::default());
    let Ok((testbed, ports)) = testbed::build(&network) else {
        println!("not tested: no namespaces here");
        return;
    };
    let mut engine =
        EmulatorEngine::new(ports, &network, Seed::root(1), EmulatorOptions::default()).unwrap();
    let round_trip = engine
        .calibrate()
        .unwrap()
        .expect("the host's kernel answers");
    assert!(round_trip.min.0 > 0 && round_trip.min <= round_trip.p50);
    let handle = engine.handle();
    assert_eq!(handle.report().round_trip, Some(round_trip));
    let (stop, stopped) = UnixStream::pair().unwrap();
    thread::scope(|scope| {
        let engine = scope.spawn(move || engine.run(stopped.as_fd()).unwrap());
        assert!(handle.started());
        let here = datagrams(&testbed, 0);
        here.send_to(b"hello", (Ipv4Addr::new(10, 71, 9, 9), 7000))
            .unwrap();
        let nobody = ("addressed to no host of this network".to_string(), 1);
        until("the frame is counted", || {
            handle.report().foreign == [nobody.clone()]
        });
        (&stop).write_all(b"x").unwrap();
        let report = engine.join().unwrap();
        assert_eq!(
            handle.report().foreign,
            report.foreign,
            "the last report is there afterwards"
        );
    });
}
