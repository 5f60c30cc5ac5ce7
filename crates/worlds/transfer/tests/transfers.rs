//! Transfers between two ends over real sockets on loopback, every byte compared.
#![allow(
    clippy::unwrap_used,
    reason = "what helpers of a test cannot do fails the test"
)]

mod support;

use stackline_core::time::Duration;
use stackline_proto::blast;
use stackline_transfer::udp::{self, Udp};
use stackline_transfer::{
    BlastChannel, BlastChannelListener, BlastChannelOptions, Error, PacketWaiting, SealKey,
};
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use support::{
    Manners, Rough, Tapped, bytes, carriers, ethernet, loopback, over, strategies,
    through_a_listener,
};

const MANY: usize = 10_000_000;

/// Data of every size each way, then the end.
fn all_sizes(options: &BlastChannelOptions, sizes: &[usize]) {
    let serve = |mut channel: BlastChannel| {
        for size in sizes {
            let mut into = vec![0; *size];
            assert_eq!(channel.receive_into(&mut into)?, *size);
            channel.send(&into)?;
        }
        assert_eq!(channel.receive_into(&mut [0; 10])?, 0);
        Ok(())
    };
    let ask = |mut channel: BlastChannel| {
        for size in sizes {
            let data = bytes(*size);
            channel.send(&data)?;
            let mut back = vec![0; *size];
            assert_eq!(channel.receive_into(&mut back)?, *size);
            assert!(back == data, "{size} B came back changed");
        }
        channel.close()
    };
    through_a_listener(options, serve, ask);
}

#[test]
fn data_of_every_size_arrives_with_every_strategy() {
    for (name, options) in strategies() {
        eprintln!("{name}");
        all_sizes(&options, &[0, 1, 1408, 1409, 2816, 100_000, MANY]);
    }
}

#[test]
fn packets_of_the_path_and_spinning_work_as_well() {
    all_sizes(
        &BlastChannelOptions::default(),
        &[0, 1, 65_475, 65_476, MANY],
    );
    all_sizes(
        &ethernet(BlastChannelOptions {
            waiting: PacketWaiting::Spin,
            ..BlastChannelOptions::default()
        }),
        &[0, 1, 200_000],
    );
}

#[test]
fn checked_and_sealed_transfers_arrive() {
    let key = Some(SealKey::new(b"a secret of both"));
    for (name, options) in strategies() {
        eprintln!("{name}");
        let blast = blast::BlastOptions {
            checked: name != "saw",
            packet: 0,
            ..options.blast
        };
        all_sizes(
            &BlastChannelOptions {
                key: key.clone(),
                blast,
                ..options
            },
            &[0, 1, 1344, 1345, 100_000, 1_000_000],
        );
    }
}

#[test]
fn without_offload_everything_arrives() {
    let options = ethernet(BlastChannelOptions::default());
    let udp = udp::UdpCarrierOptions {
        offload: false,
        ..options.udp
    };
    all_sizes(&BlastChannelOptions { udp, ..options }, &[1, 100_000, MANY]);
}

/// One direction over a bad path, and an answer back.
fn over_a_bad_path(
    options: &BlastChannelOptions,
    manners: Manners,
    length: usize,
) -> (stackline_transfer::BlastChannelFacts, u64) {
    let [left, right] = carriers(options);
    let (left, right) = (Rough::new(left, manners, 1), Rough::new(right, manners, 2));
    let data = bytes(length);
    let mut facts = None;
    let serve = |mut channel: BlastChannel<Rough<Udp>>| {
        let mut into = vec![0; length];
        assert_eq!(channel.receive_into(&mut into)?, length);
        assert!(into == data, "other bytes came");
        channel.send(&into[..length / 10])?;
        facts = Some((channel.facts(), channel.carrier().lost));
        // The other end may never learn that its answer arrived: it closes after a while by itself.
        assert_eq!(channel.receive_into(&mut [0])?, 0);
        Ok(())
    };
    let ask = |mut channel: BlastChannel<Rough<Udp>>| {
        channel.send(&data)?;
        let mut into = vec![0; length / 10];
        channel.receive_into(&mut into)?;
        assert!(into == data[..length / 10], "other bytes came back");
        channel.close()
    };
    over(left, right, options, serve, ask);
    facts.unwrap()
}

#[test]
fn nothing_is_lost_where_packets_are() {
    let manners = Manners {
        loses: 50,
        repeats: 30,
        ..Manners::default()
    };
    for (name, options) in strategies() {
        eprintln!("{name}");
        let length = if name == "saw" { 100_000 } else { 1_000_000 };
        let size = options.blast.size.min(16 << 10);
        let blast = blast::BlastOptions {
            size,
            ..options.blast
        };
        let (facts, _) =
            over_a_bad_path(&BlastChannelOptions { blast, ..options }, manners, length);
        assert!(facts.connection.received.duplicates > 0);
    }
}

#[test]
fn large_blasts_survive_losses_too() {
    let options = ethernet(BlastChannelOptions::default());
    let (facts, _) = over_a_bad_path(
        &options,
        Manners {
            loses: 100,
            ..Manners::default()
        },
        8_000_000,
    );
    assert!(facts.moved > 0, "what came in the wrong place was moved");
}

#[test]
fn changed_bits_are_found_where_blasts_are_checked() {
    let options = ethernet(BlastChannelOptions::default());
    let blast = blast::BlastOptions {
        checked: true,
        size: 20_000,
        ..options.blast
    };
    let manners = Manners {
        flips: 200,
        ..Manners::default()
    };
    let (facts, _) = over_a_bad_path(
        &BlastChannelOptions { blast, ..options },
        manners,
        1_000_000,
    );
    assert!(facts.connection.received.failed_checks > 0);
}

#[test]
fn sealed_packets_are_refused_when_forged_or_replayed() {
    let options = ethernet(BlastChannelOptions {
        key: Some(SealKey::new(b"a secret of both")),
        ..BlastChannelOptions::default()
    });
    let manners = Manners {
        loses: 200,
        repeats: 100,
        flips: 100,
        replays: 50,
        forges: 50,
    };
    let (facts, _) = over_a_bad_path(&options, manners, 3_000_000);
    assert!(
        facts.dropped.forged > 0 && facts.dropped.replayed > 0,
        "{:?}",
        facts.dropped
    );
    assert_eq!(
        facts.connection.received.violations, 0,
        "the machine never saw them"
    );
}

#[test]
fn a_secret_that_is_token_and_key_never_travels_where_it_is_sealed() {
    let secret = *b"what both know..";
    let data = [secret, secret].concat();
    let travelled = |key: Option<SealKey>| {
        let options = ethernet(BlastChannelOptions {
            token: secret,
            key,
            ..BlastChannelOptions::default()
        });
        let [left, right] = carriers(&options).map(Tapped::new);
        let heard = [left.heard.clone(), right.heard.clone()];
        let serve = |mut channel: BlastChannel<Tapped>| {
            let mut into = vec![0; data.len()];
            channel.receive_into(&mut into)?;
            channel.send(&into)?;
            channel.await_close().map(drop)
        };
        let ask = |mut channel: BlastChannel<Tapped>| {
            assert_eq!(channel.is_sealed(), options.key.is_some());
            channel.send(&data)?;
            channel.receive_into(&mut vec![0; data.len()])?;
            channel.close()
        };
        over(left, right, &options, serve, ask);
        heard.map(|heard| {
            heard
                .lock()
                .unwrap()
                .windows(secret.len())
                .any(|window| window == secret)
        })
    };
    assert_eq!(
        travelled(None),
        [true, true],
        "what is looked for is found where it is"
    );
    assert_eq!(travelled(Some(SealKey::new(&secret))), [false, false]);
}

#[test]
fn both_ends_send_at_once() {
    let options = ethernet(BlastChannelOptions::default());
    let both = |mut channel: BlastChannel, first: usize| {
        // As much as is granted needs no receive call.
        let room = usize::try_from(channel.options().buffer)
            .unwrap()
            .min(1 << 20);
        let data = bytes(room);
        channel.send(&data)?;
        let mut into = vec![0; room];
        // In two parts, neither of them whole packets.
        let (one, two) = into.split_at_mut(first);
        assert_eq!(
            channel.receive_into(one)? + channel.receive_into(two)?,
            room
        );
        assert!(into == data);
        // More than that goes in one exchange.
        let data = bytes(3 * MANY);
        let mut into = vec![0; data.len()];
        assert_eq!(channel.exchange(&data, &mut into)?, data.len());
        assert!(into == data);
        Ok(channel)
    };
    let serve = |channel| {
        both(channel, 5000)
            .map(|mut channel| assert_eq!(channel.receive_into(&mut [0]).unwrap(), 0))
    };
    let ask = |channel| both(channel, 200_001).and_then(BlastChannel::close);
    through_a_listener(&options, serve, ask);
}

#[test]
fn a_stream_that_is_finished_ends_short_and_the_other_goes_on() {
    let serve = |mut channel: BlastChannel| {
        let mut into = [0; 100];
        assert_eq!(channel.receive_into(&mut into)?, 70);
        channel.send(&into[..70])
    };
    let ask = |mut channel: BlastChannel| {
        channel.send(&bytes(70))?;
        channel.finish()?;
        let mut into = [0; 70];
        assert_eq!(channel.receive_into(&mut into)?, 70);
        assert_eq!(into[..], bytes(70));
        channel.close()
    };
    through_a_listener(&BlastChannelOptions::default(), serve, ask);
}

#[test]
fn a_listener_gives_each_peer_a_channel_and_strangers_nothing() {
    let options = ethernet(BlastChannelOptions {
        token: [9; 16],
        ..BlastChannelOptions::default()
    });
    let listener = BlastChannelListener::bind(loopback(), &options).unwrap();
    let address = listener.local().unwrap();
    let stranger = UdpSocket::bind(loopback()).unwrap();
    let noise = |stranger: &UdpSocket| {
        for length in [0, 1, 31, 32, 88, 1472] {
            for kind in 0..20 {
                let mut packet = bytes(length);
                packet.first_mut().into_iter().for_each(|byte| *byte = kind);
                stranger.send_to(&packet, address).unwrap();
            }
        }
    };
    noise(&stranger);
    let data = bytes(300_000);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut channel = BlastChannel::connect(address, &options).unwrap();
                channel.send(&data).unwrap();
                noise(&stranger);
                channel.send(&data).unwrap();
                channel.close().unwrap();
            });
        }
        for _ in 0..3 {
            let mut channel = listener.accept().unwrap();
            let data = &data;
            scope.spawn(move || {
                let mut into = vec![0; 2 * data.len()];
                assert_eq!(channel.receive_into(&mut into).unwrap(), into.len());
                assert!(into[..data.len()] == data[..] && into[data.len()..] == data[..]);
                assert_eq!(
                    channel.facts().dropped,
                    stackline_transfer::Dropped::default()
                );
                assert_eq!(channel.receive_into(&mut [0]).unwrap(), 0);
            });
        }
    });
    // The stranger's packets had no effect and got no answer.
    stranger.set_nonblocking(true).unwrap();
    assert!(stranger.recv(&mut [0; 10]).is_err());
}

#[test]
fn different_parameters_are_refused() {
    let options = BlastChannelOptions::default();
    let listener = BlastChannelListener::bind(loopback(), &options).unwrap();
    let address = listener.local().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| listener.accept().map(drop).unwrap());
        let other = BlastChannelOptions::new(blast::BlastStrategy::Full);
        assert!(matches!(
            BlastChannel::connect(address, &other),
            Err(Error::Refused(_))
        ));
        drop(BlastChannel::connect(address, &options).unwrap());
    });
}

fn impatient(options: BlastChannelOptions) -> BlastChannelOptions {
    BlastChannelOptions {
        blast: blast::BlastOptions {
            patience: Duration(100_000_000),
            ..options.blast
        },
        ..options
    }
}

/// Patient enough to be connected on a busy host.
fn rather_impatient(options: BlastChannelOptions) -> BlastChannelOptions {
    BlastChannelOptions {
        blast: blast::BlastOptions {
            patience: Duration(2_000_000_000),
            ..options.blast
        },
        ..options
    }
}

#[test]
fn another_token_and_another_key_are_not_answered() {
    let options = BlastChannelOptions {
        key: Some(SealKey::new(b"a secret of both")),
        ..BlastChannelOptions::default()
    };
    let listener = BlastChannelListener::bind(loopback(), &options).unwrap();
    let address = listener.local().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| listener.accept().map(drop).unwrap());
        for other in [
            BlastChannelOptions {
                token: [1; 16],
                ..options.clone()
            },
            BlastChannelOptions {
                key: Some(SealKey::new(b"another")),
                ..options.clone()
            },
            BlastChannelOptions {
                key: None,
                ..options.clone()
            },
        ] {
            assert!(matches!(
                BlastChannel::connect(address, &impatient(other)),
                Err(Error::Silent(_))
            ));
        }
        drop(BlastChannel::connect(address, &options).unwrap());
    });
}

#[test]
fn a_missing_listener_is_reported_at_once() {
    let gone = UdpSocket::bind(loopback()).unwrap().local_addr().unwrap();
    assert!(matches!(
        BlastChannel::connect(gone, &BlastChannelOptions::default()),
        Err(Error::Gone)
    ));
}

/// Two ends that are open.
fn open(options: &BlastChannelOptions) -> [BlastChannel; 2] {
    let listener = BlastChannelListener::bind(loopback(), options).unwrap();
    let address = listener.local().unwrap();
    thread::scope(|scope| {
        let server = scope.spawn(|| listener.accept().unwrap());
        let client = BlastChannel::connect(address, options).unwrap();
        [server.join().unwrap(), client]
    })
}

#[test]
fn a_dead_peer_is_noticed_in_every_operation() {
    for sends in [true, false] {
        let [server, mut client] = open(&rather_impatient(BlastChannelOptions::default()));
        // Its socket disappears without a message.
        nix::unistd::close(std::os::fd::AsFd::as_fd(server.carrier()).as_raw_fd()).unwrap();
        std::mem::forget(server);
        let result = if sends {
            client.send(&[1; 1000])
        } else {
            client.receive_into(&mut [0]).map(drop)
        };
        assert!(matches!(result, Err(Error::Gone)), "{result:?}");
        assert!(matches!(client.send(&[1]), Err(Error::Broken)));
    }
}

#[test]
fn data_before_the_peers_end_is_received() {
    let [mut server, mut client] = open(&ethernet(BlastChannelOptions::default()));
    let data = bytes(100_000);
    thread::scope(|scope| {
        let sender = scope.spawn(|| server.send(&data));
        assert!(client.await_data().unwrap());
        let mut into = vec![0; data.len()];
        assert_eq!(client.receive_into(&mut into).unwrap(), data.len());
        assert!(into == data);
        sender.join().unwrap().unwrap();
    });
    // Its last message waits in this end's socket when its host reports a closed port.
    drop(server);
    let socket = std::os::fd::AsFd::as_fd(client.carrier());
    nix::sys::socket::send(
        socket.as_raw_fd(),
        b"anybody there?",
        nix::sys::socket::MsgFlags::empty(),
    )
    .unwrap();
    assert_eq!(
        client.receive_into(&mut [0]).unwrap(),
        0,
        "the end of the stream, not an error"
    );
}

#[test]
fn a_silent_peer_is_given_up_in_every_operation() {
    for sends in [true, false] {
        let [server, mut client] = open(&rather_impatient(BlastChannelOptions::default()));
        let result = if sends {
            client.send(&[1; 1000])
        } else {
            client.receive_into(&mut [0]).map(drop)
        };
        assert!(matches!(result, Err(Error::Silent(_))), "{result:?}");
        drop(server);
    }
}

#[test]
fn a_channel_that_is_dropped_ends_the_stream_of_its_peer() {
    let [server, mut client] = open(&BlastChannelOptions::default());
    drop(server);
    assert_eq!(client.receive_into(&mut [0]).unwrap(), 0);
    assert!(matches!(client.send(&[1]), Err(Error::Closed)));
}

#[test]
fn a_broken_channel_notifies_its_peer_when_dropped() {
    use stackline_transfer::{Interrupt, TAIL};
    for key in [None, Some(SealKey::new(b"a secret of both"))] {
        let (data, mut into) = (vec![7; (1 << 20) + TAIL], [0; 10]);
        for does in 0..4 {
            let options = BlastChannelOptions {
                key: key.clone(),
                ..BlastChannelOptions::default()
            };
            let mut listener = BlastChannelListener::bind(loopback(), &options).unwrap();
            let ended = Arc::new(AtomicBool::new(false));
            let asked = Arc::clone(&ended);
            listener.interrupted_by(Interrupt::new(move || asked.load(Ordering::Relaxed)));
            let address = listener.local().unwrap();
            thread::scope(|scope| {
                let server = scope.spawn(|| {
                    let mut server = listener.accept().unwrap();
                    ended.store(true, Ordering::Relaxed);
                    assert!(matches!(
                        server.receive_round(&mut vec![0; 1 << 20], u64::MAX),
                        Err(Error::Interrupted)
                    ));
                });
                let mut client = BlastChannel::connect(address, &options).unwrap();
                // It has come before the server waits, or while it does.
                let result = match does {
                    0 => client.send_round(&data, u64::MAX, 1, || false).map(drop),
                    1 => client.receive_into(&mut into).map(drop),
                    2 => client.await_data().map(drop),
                    _ => client.await_close().map(drop),
                };
                // The listener still exists: only the channel itself can notify the peer.
                assert!(matches!(result, Err(Error::Closed)), "{does}: {result:?}");
                server.join().unwrap();
            });
            drop(listener);
        }
    }
}

#[test]
fn interrupts_end_every_operation() {
    use stackline_transfer::Interrupt;
    let flag = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&flag);
    let options = BlastChannelOptions {
        interrupt: Some(Interrupt::new(move || asked.load(Ordering::Relaxed))),
        ..BlastChannelOptions::default()
    };
    let [mut server, client] = open(&options);
    flag.store(true, Ordering::Relaxed);
    assert!(matches!(
        server.receive_into(&mut [0]),
        Err(Error::Interrupted)
    ));
    let listener = BlastChannelListener::bind(loopback(), &options).unwrap();
    assert!(matches!(listener.accept(), Err(Error::Interrupted)));
    drop(client);
}

#[test]
fn a_transfer_without_an_end_is_ended_on_both_sides() {
    use stackline_transfer::{Interrupt, TAIL};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    // Asked every 20 ms by each side: some time passes first.
    let looks = Arc::new(AtomicU32::new(0));
    let asked = Arc::clone(&looks);
    let interrupt = Interrupt::new(move || asked.fetch_add(1, Ordering::Relaxed) > 10);
    let [mut server, mut client] = open(&ethernet(BlastChannelOptions {
        interrupt: Some(interrupt),
        ..BlastChannelOptions::default()
    }));
    thread::scope(|scope| {
        let receiver =
            scope.spawn(move || server.receive_round(&mut vec![0; 1 << 20], u64::MAX / 2));
        let sent = client.send_round(&vec![7; (1 << 20) + TAIL], u64::MAX / 2, 1, || false);
        drop(client);
        // The end interrupted second may find the other one gone.
        let ends = [sent, receiver.join().unwrap()];
        assert!(
            ends.iter()
                .all(|end| matches!(end, Err(Error::Interrupted | Error::Gone))),
            "{ends:?}"
        );
        assert!(
            ends.iter()
                .any(|end| matches!(end, Err(Error::Interrupted))),
            "{ends:?}"
        );
    });
}
