//! Message passing through real sockets: what arrives is compared byte by byte, what is counted is one packet each way.
#![allow(
    clippy::unwrap_used,
    reason = "what helpers of a test cannot do fails the test"
)]

mod support;

use stackline_core::time::Duration;
use stackline_proto::blast::{BlastHeader, BlastPacketKind, BlastStrategy, HEADER};
use stackline_transfer::carrier::PacketCarrier;
use stackline_transfer::ikp::{
    IkpClientSegments, IkpRequest, IkpTransferError, IkpTransferOptions, IkpUdpClient,
    IkpUdpServer, Protocol,
};
use stackline_transfer::udp::{self, Udp};
use std::net::{SocketAddr, UdpSocket};
use std::thread::{self, JoinHandle};
use std::time;
use support::{Manners, Rough, bytes, loopback};

const SIZES: [usize; 8] = [0, 1, 1024, 1043, 1044, 65_536, 65_537, 1 << 20];

/// A running server. Messages may be delivered more than once, so it is stopped explicitly.
struct Serving {
    address: SocketAddr,
    thread: JoinHandle<IkpUdpServer>,
}

impl Serving {
    fn start(
        options: &IkpTransferOptions,
        mut serve: impl FnMut(IkpRequest<'_>) -> Result<(), IkpTransferError> + Send + 'static,
    ) -> Self {
        let mut server = IkpUdpServer::bind(loopback(), options).unwrap();
        let address = server.local().unwrap();
        let thread = thread::spawn(move || {
            loop {
                let request = server.receive().unwrap();
                if request.message() == b"end" {
                    request.reply(b"").unwrap();
                    return server;
                }
                serve(request).unwrap();
            }
        });
        Self { address, thread }
    }

    fn end(self) -> IkpUdpServer {
        let mut client =
            IkpUdpClient::connect(self.address, &IkpTransferOptions::default()).unwrap();
        client
            .send(b"end", IkpClientSegments::none(), &mut [])
            .unwrap();
        self.thread.join().unwrap()
    }
}

/// Moves everything it may read here and everything it may write there, and returns how much.
fn mirror(mut request: IkpRequest<'_>) -> Result<(), IkpTransferError> {
    let mut data = vec![0; request.readable()];
    request.move_from(0, &mut data)?;
    data.reverse();
    let room = request.writable().min(data.len());
    request.move_to(0, &data[..room])?;
    request.reply(&(data.len() as u64).to_le_bytes())
}

fn protocols() -> Vec<Protocol> {
    let strategies = [
        BlastStrategy::Full,
        BlastStrategy::FullNak,
        BlastStrategy::Partial,
        BlastStrategy::Selective,
    ];
    let mut all: Vec<_> = strategies
        .map(|strategy| Protocol {
            strategy,
            ..Protocol::once()
        })
        .into();
    all.push(Protocol {
        flight: 4,
        size: 16 << 10,
        strategy: BlastStrategy::Selective,
        ..Protocol::v()
    });
    all.push(Protocol {
        packet: 1440,
        ..Protocol::v()
    });
    all
}

fn exchange<C: PacketCarrier>(client: &mut IkpUdpClient<C>, sent: &[u8]) {
    let (mut back, mut reply) = (vec![0; sent.len()], [0; 8]);
    let segments = IkpClientSegments {
        readable: sent,
        writable: &mut back,
    };
    let length = client.send(b"turn it round", segments, &mut reply).unwrap();
    assert_eq!((length, u64::from_le_bytes(reply)), (8, sent.len() as u64));
    assert!(
        back.iter().rev().eq(sent),
        "{} B came back wrong",
        sent.len()
    );
}

#[test]
fn segments_of_all_sizes_are_moved_both_ways_by_every_strategy() {
    let all = protocols();
    let server = IkpTransferOptions::new(Protocol {
        packet: 1440,
        ..Protocol::v()
    });
    let serving = Serving::start(&server, mirror);
    for protocol in all {
        let mut client =
            IkpUdpClient::connect(serving.address, &IkpTransferOptions::new(protocol)).unwrap();
        SIZES
            .iter()
            .for_each(|size| exchange(&mut client, &bytes(*size)));
    }
    serving.end();
}

#[test]
fn a_path_that_loses_doubles_and_reorders_brings_everything() {
    let serving = Serving::start(&IkpTransferOptions::v(), mirror);
    for (seed, strategy) in [
        BlastStrategy::Full,
        BlastStrategy::Partial,
        BlastStrategy::Selective,
    ]
    .into_iter()
    .enumerate()
    {
        for once in [true, false] {
            let protocol = Protocol {
                strategy,
                once,
                size: 16 << 10,
                ..Protocol::v()
            };
            let manners = Manners {
                loses: 30,
                repeats: 20,
                replays: 25,
                ..Manners::default()
            };
            let carrier = Rough::new(
                Udp::connect(serving.address, udp::UdpCarrierOptions::new()).unwrap(),
                manners,
                77 + seed as u64,
            );
            let mut client =
                IkpUdpClient::over(carrier, &IkpTransferOptions::new(protocol)).unwrap();
            SIZES
                .iter()
                .for_each(|size| exchange(&mut client, &bytes(*size)));
            // The server's replies are not lost: nothing is delivered twice.
            assert!(client.counters().violations == 0 && client.carrier().lost > 0);
        }
    }
    serving.end();
}

#[test]
fn a_small_call_is_one_packet_and_one_system_call_each_way() {
    let serving = Serving::start(&IkpTransferOptions::v(), |request| {
        let message: Vec<u8> = request.message().to_vec();
        request.reply(&message)
    });
    let mut client = IkpUdpClient::connect(serving.address, &IkpTransferOptions::v()).unwrap();
    let mut reply = [0; 32];
    for n in 0..100 {
        assert_eq!(
            client
                .send(&[n; 32], IkpClientSegments::none(), &mut reply)
                .unwrap(),
            32
        );
        assert_eq!(reply, [n; 32]);
    }
    let repeated = client.counters().repeated;
    let counters = client.carrier().counters();
    assert_eq!(
        (counters.sent - repeated, counters.send_calls - repeated),
        (100, 100)
    );
    serving.end();
}

#[test]
fn data_comes_and_goes_with_the_messages_where_it_fits() {
    let serving = Serving::start(&IkpTransferOptions::v(), |request| {
        assert_eq!((request.carried(), request.room()), (&bytes(700)[..], 1056));
        let turned: Vec<u8> = request.carried().iter().rev().copied().collect();
        request.reply_with(b"turned", 100, &turned)
    });
    let mut client = IkpUdpClient::connect(serving.address, &IkpTransferOptions::v()).unwrap();
    let (mut back, mut reply) = (vec![0; 800], [0; 32]);
    let segments = IkpClientSegments {
        readable: &bytes(700),
        writable: &mut back,
    };
    assert_eq!(client.send(b"turn it", segments, &mut reply).unwrap(), 6);
    assert!(&reply[..6] == b"turned" && back[100..].iter().rev().eq(&bytes(700)));
    serving.end();
}

#[test]
fn many_clients_have_one_server() {
    let serving = Serving::start(&IkpTransferOptions::default(), mirror);
    let clients: Vec<_> = (0..12)
        .map(|number| {
            thread::spawn(move || {
                let mut client =
                    IkpUdpClient::connect(serving.address, &IkpTransferOptions::default()).unwrap();
                (0..30).for_each(|n| exchange(&mut client, &bytes(number * 1000 + n * 100)));
            })
        })
        .collect();
    clients
        .into_iter()
        .for_each(|client| client.join().unwrap());
    assert_eq!(serving.end().clients() - 1, 12);
}

#[test]
fn replies_may_come_in_another_order() {
    let mut server = IkpUdpServer::bind(loopback(), &IkpTransferOptions::default()).unwrap();
    let address = server.local().unwrap();
    let ask = move |what: &'static [u8]| {
        let mut client = IkpUdpClient::connect(address, &IkpTransferOptions::default()).unwrap();
        let mut reply = [0; 32];
        let bytes = client
            .send(what, IkpClientSegments::none(), &mut reply)
            .unwrap();
        reply[..bytes].to_vec()
    };
    let first = thread::spawn(move || ask(b"first"));
    let waits = server.receive().unwrap().later();
    let second = thread::spawn(move || ask(b"second"));
    server.receive().unwrap().reply(b"2").unwrap();
    assert_eq!(second.join().unwrap(), b"2");
    let request = server.again(waits).unwrap();
    assert_eq!(request.message(), b"first");
    request.reply(b"1").unwrap();
    assert_eq!(first.join().unwrap(), b"1");
    assert!(server.again(waits).is_none());
}

#[test]
fn nothing_goes_beyond_the_grants() {
    let serving = Serving::start(&IkpTransferOptions::default(), |mut request| {
        assert!(matches!(
            request.move_to(1, &[0; 100]),
            Err(IkpTransferError::Outside { granted: 100 })
        ));
        assert!(matches!(
            request.move_to(usize::MAX, &[0; 100]),
            Err(IkpTransferError::Outside { granted: 100 })
        ));
        assert!(matches!(
            request.move_from(0, &mut [0; 51]),
            Err(IkpTransferError::Outside { granted: 50 })
        ));
        // What was wrong does no harm to what follows.
        request.move_to(50, &[5; 50])?;
        request.reply(&[1; 40])
    });
    let mut client =
        IkpUdpClient::connect(serving.address, &IkpTransferOptions::default()).unwrap();
    let mut back = [0; 100];
    let segments = IkpClientSegments {
        readable: &[9; 50],
        writable: &mut back,
    };
    let replied = client.send(b"", segments, &mut [0; 32]);
    assert!(matches!(
        replied,
        Err(IkpTransferError::Reply { bytes: 40 })
    ));
    assert_eq!(back[50..], [5; 50]);
    assert!(matches!(
        client.send(&[0; 1057], IkpClientSegments::none(), &mut []),
        Err(IkpTransferError::Long { room: 1056 })
    ));
    serving.end();
}

#[test]
fn a_reply_too_long_for_its_packet_is_reported() {
    let serving = Serving::start(&IkpTransferOptions::default(), |request| {
        assert!(matches!(
            request.reply_with(&[0; 1000], 0, &[0; 100]),
            Err(IkpTransferError::Long { room: 1056 })
        ));
        Ok(())
    });
    let patience = Duration(50_000_000);
    let options = IkpTransferOptions::new(Protocol {
        patience,
        ..Protocol::once()
    });
    let mut client = IkpUdpClient::connect(serving.address, &options).unwrap();
    // The request is dropped without a reply, so the client gives up.
    let replied = client.send(b"", IkpClientSegments::writable(&mut [0; 2000]), &mut []);
    assert!(matches!(replied, Err(IkpTransferError::Silent(waited)) if waited == patience));
    serving.end();
}

#[test]
fn missing_and_silent_servers_are_reported() {
    let closed = UdpSocket::bind(loopback()).unwrap().local_addr().unwrap();
    let mut client = IkpUdpClient::connect(closed, &IkpTransferOptions::default()).unwrap();
    assert!(matches!(
        client.send(b"hello", IkpClientSegments::none(), &mut []),
        Err(IkpTransferError::Nobody)
    ));
    let silent = UdpSocket::bind(loopback()).unwrap();
    let options = IkpTransferOptions::new(Protocol {
        patience: Duration(500_000_000),
        ..Protocol::v()
    });
    let mut client = IkpUdpClient::connect(silent.local_addr().unwrap(), &options).unwrap();
    assert!(matches!(
        client.send(b"hello", IkpClientSegments::none(), &mut []),
        Err(IkpTransferError::Silent(_))
    ));
    assert!(client.counters().repeated > 0);
}

#[test]
fn a_client_that_is_gone_ends_the_move_to_it() {
    let options = IkpTransferOptions::new(Protocol {
        patience: Duration(50_000_000),
        ..Protocol::once()
    });
    let serving = Serving::start(&options, |mut request| {
        assert!(matches!(
            request.move_to(0, &[1; 5000]),
            Err(IkpTransferError::Silent(_))
        ));
        assert!(matches!(
            request.move_to(0, &[1; 5000]),
            Err(IkpTransferError::Failed)
        ));
        assert!(matches!(
            request.move_from(0, &mut [0; 5000]),
            Err(IkpTransferError::Failed)
        ));
        Ok(())
    });
    // It sends one message and nothing more.
    let socket = UdpSocket::bind(loopback()).unwrap();
    let header = sent(&options);
    let mut packet = header.write().to_vec();
    packet.resize(HEADER + 1056, 0);
    socket.send_to(&packet, serving.address).unwrap();
    serving.end();
}

/// The header of a Send without a message that grants 5000 B each way.
fn sent(options: &IkpTransferOptions) -> BlastHeader {
    let mut machine = stackline_proto::ikp::IkpClient::new(&options.protocol, 1, 0);
    let now = stackline_core::time::Instant(1);
    let grants = stackline_proto::ikp::Grants {
        readable: 5000,
        writable: 5000,
    };
    machine.send(now, 0, grants).unwrap();
    match machine.poll(now, 1) {
        Some(stackline_proto::ikp::IkpOutput::Message(header)) => header,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_full_server_refuses_newcomers_unless_an_entry_may_be_replaced() {
    for once in [true, false] {
        let options = IkpTransferOptions {
            clients: 1,
            ..IkpTransferOptions::new(Protocol {
                once,
                ..Protocol::v()
            })
        };
        let mut server = IkpUdpServer::bind(loopback(), &options).unwrap();
        let address = server.local().unwrap();
        let clients = thread::spawn(move || {
            let mut clients = [0, 1].map(|_| IkpUdpClient::connect(address, &options).unwrap());
            clients.each_mut().map(|client| {
                client
                    .send(b"", IkpClientSegments::none(), &mut [])
                    .map_err(|error| error.to_string())
            })
        });
        server.receive().unwrap().reply(b"").unwrap();
        if once {
            while server.refused().full == 0 {
                assert!(
                    server
                        .receive_within(time::Duration::from_millis(10))
                        .unwrap()
                        .is_none()
                );
            }
        } else {
            server.receive().unwrap().reply(b"").unwrap();
        }
        let [first, second] = clients.join().unwrap();
        assert_eq!(first, Ok(0));
        assert!(if once {
            second.is_err_and(|error| error.contains("cannot accept another client"))
        } else {
            second == Ok(0)
        });
        assert_eq!((server.clients(), server.refused().full > 0), (1, once));
    }
}

#[test]
fn strangers_do_no_harm() {
    let serving = Serving::start(&IkpTransferOptions::default(), mirror);
    let stranger = UdpSocket::bind(loopback()).unwrap();
    let noise = bytes(4000);
    let mut client =
        IkpUdpClient::connect(serving.address, &IkpTransferOptions::default()).unwrap();
    for n in 0..20 {
        for part in noise.chunks(100) {
            let mut packet = part.to_vec();
            // Kinds that are known, with anything behind them; a sound Send would be received.
            packet[0] = [1, 2, 3, 17, 18, 19, 6, 99][n % 8];
            stranger.send_to(&packet, serving.address).unwrap();
        }
        let bad = BlastHeader {
            start: 7,
            ..BlastHeader::new(BlastPacketKind::Send, 1)
        };
        stranger.send_to(&bad.write(), serving.address).unwrap();
        exchange(&mut client, &bytes(3000));
    }
    let server = serving.end();
    assert!(server.refused().unknown > 0 && server.refused().strange > 0);
}

#[test]
fn a_move_that_was_interrupted_is_over_and_its_request_is_not() {
    use stackline_transfer::Interrupt;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    for to in [true, false] {
        let ended = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&ended);
        let interrupt = Interrupt::new(move || asked.load(Ordering::Relaxed));
        let mut server = IkpUdpServer::bind(
            loopback(),
            &IkpTransferOptions {
                interrupt: Some(interrupt),
                ..IkpTransferOptions::default()
            },
        )
        .unwrap();
        let address = server.local().unwrap();
        let client = thread::spawn(move || {
            let mut client =
                IkpUdpClient::connect(address, &IkpTransferOptions::default()).unwrap();
            let (mut into, from) = (vec![0; 1 << 24], vec![7; 1 << 24]);
            let segments = IkpClientSegments {
                readable: &from,
                writable: &mut into,
            };
            client.send(b"both", segments, &mut [0; 32]).unwrap()
        });
        let mut request = server.receive().unwrap();
        ended.store(true, Ordering::Relaxed);
        let mut memory = vec![1; 1 << 24];
        let moved = if to {
            request.move_to(0, &memory)
        } else {
            request.move_from(0, &mut memory)
        };
        assert!(
            matches!(moved, Err(IkpTransferError::Interrupted)),
            "{moved:?}"
        );
        let ticket = request.later();
        ended.store(false, Ordering::Relaxed);
        // The rest of the move is abandoned: the server continues, and only the reply is missing.
        for _ in 0..20 {
            assert!(
                server
                    .receive_within(time::Duration::from_millis(2))
                    .unwrap()
                    .is_none()
            );
        }
        server.again(ticket).unwrap().reply(b"no").unwrap();
        while !client.is_finished() {
            server
                .receive_within(time::Duration::from_millis(2))
                .unwrap();
        }
        assert_eq!(client.join().unwrap(), 2);
    }
}
