//! Channels over loopback: memory used in rounds, what is refused, silence, a sender that is stopped.

use super::*;
use socket2::{Domain, Socket, Type};
use stackline_core::time::Duration;
use stackline_os::socket_option;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::thread;

/// Both ends of a channel over loopback, each in a thread of its own.
fn both(first: impl FnOnce(BlastChannel) + Send, second: impl FnOnce(BlastChannel)) {
    let options = BlastChannelOptions::default();
    let listener =
        crate::BlastChannelListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), &options)
            .unwrap();
    let address = listener.local().unwrap();
    thread::scope(|scope| {
        let server = scope.spawn(move || first(listener.accept().unwrap()));
        second(BlastChannel::connect(address, &options).unwrap());
        server.join().unwrap();
    });
}

#[test]
fn memory_used_round_and_round_is_a_stream_like_any_other() {
    let round = 100_000;
    let mut data: Vec<u8> = (0..round as u32).map(|i| (i ^ (i >> 7)) as u8).collect();
    data.extend_from_within(..TAIL);
    let total = 3_000_000;
    both(
        |mut channel| {
            let mut into = vec![0; total];
            assert_eq!(channel.receive_into(&mut into).unwrap(), total);
            assert!(
                into.iter()
                    .enumerate()
                    .all(|(at, byte)| *byte == data[at % round])
            );
            let mut small = vec![0; 200_000 + TAIL];
            assert_eq!(
                channel.receive_round(&mut small, u64::MAX / 2).unwrap(),
                2_500_000
            );
            assert!(!channel.await_data().unwrap());
            assert!(channel.await_close().unwrap());
        },
        |mut channel| {
            assert_eq!(
                channel
                    .send_round(&data, total as u64, 1000, || false)
                    .unwrap(),
                total as u64
            );
            assert_eq!(
                channel
                    .send_round(&data, 2_500_000, 500_000, || false)
                    .unwrap(),
                2_500_000
            );
            channel.finish().unwrap();
            channel.close().unwrap();
        },
    );
}

#[test]
fn memory_too_short_for_rounds_is_refused_and_numbers_beyond_all_streams_are_not() {
    let data = vec![7; 1000 + TAIL];
    both(
        |mut channel| {
            for short in [0, 1, TAIL] {
                let refused = channel.receive_round(&mut data.clone()[..short], 1);
                assert!(
                    matches!(refused, Err(Error::Options(_))),
                    "{short}: {refused:?}"
                );
            }
            // Behind what has been taken, the end is beyond the last position of all.
            assert_eq!(channel.receive_into(&mut [0; 10]).unwrap(), 10);
            assert_eq!(
                channel.receive_round(&mut data.clone(), u64::MAX).unwrap(),
                99_990
            );
            assert!(channel.await_close().unwrap());
        },
        |mut channel| {
            for short in [0, 1, TAIL] {
                let refused = channel.send_round(&data[..short], 1, 1, || false);
                assert!(
                    matches!(refused, Err(Error::Options(_))),
                    "{short}: {refused:?}"
                );
            }
            assert_eq!(
                channel
                    .send_round(&data, 100_000, u64::MAX, || false)
                    .unwrap(),
                100_000
            );
            channel.close().unwrap();
        },
    );
    let mut memory = [0; 10];
    assert_eq!(Posted::round(&mut memory, 7, u64::MAX).end(), u64::MAX);
    assert_eq!(whole_units(u64::MAX - 1, 10, u64::MAX), u64::MAX);
    assert_eq!(
        [
            whole_units(71, 10, 100),
            whole_units(71, 10, 75),
            whole_units(71, 0, 75)
        ],
        [80, 75, 71]
    );
}

#[test]
fn waiting_packets_are_handled_before_the_peer_counts_as_silent() {
    let of = |patience| {
        let mut options = BlastChannelOptions::default();
        options.blast = blast::BlastOptions {
            packet: 500,
            size: 20_000,
            flight: 8,
            patience,
            ..options.blast
        };
        options
    };
    let (patient, hasty) = (Duration(10_000_000_000), Duration(400_000_000));
    let listener =
        crate::BlastChannelListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), &of(hasty))
            .unwrap();
    let address = listener.local().unwrap();
    thread::scope(|scope| {
        let server = scope.spawn(move || {
            let mut channel = listener.accept().unwrap();
            let mut into = vec![0; 400_000];
            for piece in into.chunks_mut(99_999) {
                channel.receive_into(piece).unwrap();
                // Longer than its own patience.
                thread::sleep(std::time::Duration::from_millis(450));
            }
            assert!(into.iter().all(|byte| *byte == 7));
            channel.await_close().unwrap()
        });
        let mut channel = BlastChannel::connect(address, &of(patient)).unwrap();
        channel.send(&vec![7; 400_000]).unwrap();
        channel.close().unwrap();
        assert!(server.join().unwrap());
    });
}

#[test]
fn a_sender_that_is_stopped_ends_with_a_whole_unit() {
    let data = vec![7; 64 + TAIL];
    both(
        |mut channel| {
            let mut into = vec![0; 100_000 + TAIL];
            let got = channel.receive_round(&mut into, u64::MAX / 2).unwrap();
            assert!(got > 0 && got % 70_001 == 0, "{got}");
            assert!(channel.await_close().unwrap());
        },
        |mut channel| {
            let mut looks = 0;
            let stop = || {
                looks += 1;
                looks > 2
            };
            let unit = 70_001;
            let sent = channel
                .send_round(&data, unit * 100_000, unit, stop)
                .unwrap();
            assert_eq!(sent % unit, 0);
            assert!(sent < unit * 100_000);
            channel.finish().unwrap();
            channel.close().unwrap();
        },
    );
}

#[test]
fn packets_refused_as_one_are_sent_singly() {
    let sockets = [0, 1].map(|_| {
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        socket
            .bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())
            .unwrap();
        // Without checksums the kernel cuts nothing: EINVAL.
        socket_option::set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_NO_CHECK, 1).unwrap();
        socket
    });
    sockets[0]
        .connect(&sockets[1].local_addr().unwrap())
        .unwrap();
    sockets[1]
        .connect(&sockets[0].local_addr().unwrap())
        .unwrap();
    let udp = crate::udp::UdpCarrierOptions {
        packet: 1472,
        ..crate::udp::UdpCarrierOptions::new()
    };
    let options = BlastChannelOptions {
        udp,
        ..BlastChannelOptions::default()
    };
    let [left, right] = sockets.map(|socket| Udp::over(socket, udp).unwrap());
    let data: Vec<u8> = (0..2_000_000_u32).map(|i| (i ^ (i >> 8)) as u8).collect();
    thread::scope(|scope| {
        let server = scope.spawn(|| {
            let mut channel = BlastChannel::answer(left, &options).unwrap();
            let mut into = vec![0; data.len()];
            channel.receive_into(&mut into).unwrap();
            assert!(into == data);
        });
        let mut channel = BlastChannel::connect_over(right, &options).unwrap();
        channel.send(&data).unwrap();
        let facts = channel.facts();
        assert_eq!((facts.counters.fallbacks, facts.carrier.joined_out), (1, 1));
        server.join().unwrap();
    });
}
