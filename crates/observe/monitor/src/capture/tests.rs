//! Packets of network namespaces made here, counted and compared.

use super::*;
use nix::sched::{CloneFlags, unshare};
use stackline_events::clock::now_ns;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};

/// Headers of IPv4 and UDP.
const UDP_HEADERS: usize = 28;
/// What a pair of clock readings may be off by on a busy machine.
const CLOCK_ERROR_NS: u64 = 1_000;

/// A packet that was kept.
#[derive(Clone, Debug)]
struct Kept {
    at_ns: u64,
    interface: u32,
    outgoing: bool,
    length: u32,
    bytes: Vec<u8>,
}

impl Kept {
    fn from_packet(packet: Packet<'_>) -> Self {
        let Packet {
            at_ns,
            interface,
            outgoing,
            length,
            bytes,
        } = packet;
        Self {
            at_ns,
            interface,
            outgoing,
            length,
            bytes: bytes.to_vec(),
        }
    }

    /// Of TCP over IPv4: its source port, sequence number and what it carries.
    fn segment(&self) -> (u16, u32, &[u8]) {
        assert_eq!((self.bytes[0] >> 4, self.bytes[9]), (4, 6), "TCP over IPv4");
        let tcp = &self.bytes[usize::from(self.bytes[0] & 15) * 4..];
        let number = u32::from_be_bytes(*tcp[4..].first_chunk().unwrap());
        (
            u16::from_be_bytes([tcp[0], tcp[1]]),
            number,
            &tcp[usize::from(tcp[12] >> 4) * 4..],
        )
    }
}

fn drained(capture: &mut Capture) -> Vec<Kept> {
    let mut packets = Vec::new();
    let count = capture
        .drain_end(|packet| packets.push(Kept::from_packet(packet)))
        .unwrap();
    assert_eq!(count, packets.len());
    packets
}

fn ip(words: &str) {
    let status = Command::new("ip")
        .args(words.split_whitespace())
        .status()
        .unwrap();
    assert!(status.success(), "ip {words}");
}

fn namespace_of_thread() -> String {
    fs::read_link("/proc/thread-self/ns/net")
        .unwrap()
        .display()
        .to_string()
}

/// Does this on a thread with a network namespace of its own, in which the loopback interface is up.
fn in_new_network<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    if !Command::new("ip")
        .arg("-V")
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
    {
        eprintln!("passed over: there is no `ip`");
        return None;
    }
    let work = || {
        if let Err(error) = unshare(CloneFlags::CLONE_NEWNET) {
            eprintln!("passed over: no right to make network namespaces: {error}");
            return None;
        }
        ip("link set lo up");
        Some(work())
    };
    std::thread::scope(|scope| scope.spawn(work).join().unwrap())
}

/// A socket that sends to another, which is kept open.
fn udp_pair(address: impl ToSocketAddrs) -> [UdpSocket; 2] {
    let address = address.to_socket_addrs().unwrap().next().unwrap();
    let pair = [
        UdpSocket::bind(address).unwrap(),
        UdpSocket::bind(address).unwrap(),
    ];
    pair[0].connect(pair[1].local_addr().unwrap()).unwrap();
    pair
}

fn loopback_pair() -> [UdpSocket; 2] {
    udp_pair((Ipv4Addr::LOCALHOST, 0))
}

#[test]
fn every_datagram_comes_once_whole_and_with_its_time() {
    in_new_network(|| {
        let mut capture = Capture::open(&CaptureOptions::default()).unwrap();
        let [near, _far] = loopback_pair();
        let payloads: Vec<Vec<u8>> = [0, 1, 64, 1400, 9000, 65_507]
            .map(|size| (0..size).map(|at| (at % 251) as u8).collect())
            .into();
        let mut around = Vec::new();
        for payload in &payloads {
            let before = now_ns();
            near.send(payload).unwrap();
            around.push((before - CLOCK_ERROR_NS, now_ns() + CLOCK_ERROR_NS));
        }
        let packets = drained(&mut capture);
        assert_eq!(packets.len(), payloads.len());
        for ((packet, payload), (before, after)) in packets.iter().zip(&payloads).zip(around) {
            assert_eq!(&packet.bytes[UDP_HEADERS..], payload);
            assert_eq!(
                (packet.length as usize, packet.bytes[0]),
                (UDP_HEADERS + payload.len(), 0x45)
            );
            assert!(
                (before..=after).contains(&packet.at_ns),
                "{} in {before}..={after}",
                packet.at_ns
            );
            assert!(!packet.outgoing);
            assert_eq!(capture.name(packet.interface).as_deref(), Some("lo"));
        }
        assert!(packets.is_sorted_by_key(|packet| packet.at_ns));
        assert_eq!(
            (capture.lost().unwrap(), capture.seen()),
            (0, payloads.len() as u64)
        );
        assert_eq!(capture.name(99), None);
    });
}

/// Segments that TCP of this thread's network namespace has sent.
fn segments_sent() -> usize {
    let text = fs::read_to_string("/proc/thread-self/net/snmp").unwrap();
    let [names, values] = [0, 1].map(|at| {
        text.lines()
            .filter(|line| line.starts_with("Tcp:"))
            .nth(at)
            .unwrap()
    });
    let at = names.split(' ').position(|name| name == "OutSegs").unwrap();
    values.split(' ').nth(at).unwrap().parse().unwrap()
}

#[test]
fn every_segment_of_a_connection_comes_once() {
    in_new_network(|| {
        let before = segments_sent();
        let mut capture = Capture::open(&CaptureOptions::default()).unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let far = listener.accept().unwrap().0;
        let (mut word, port) = ([0; 64], near.local_addr().unwrap().port());
        for _ in 0..100 {
            for [mut from, mut to] in [[&near, &far], [&far, &near]] {
                from.write_all(&[7; 64]).unwrap();
                to.read_exact(&mut word).unwrap();
            }
        }
        drop((near, far));
        let packets = drained(&mut capture);
        let with_data: Vec<_> = packets
            .iter()
            .map(Kept::segment)
            .filter(|(_, _, data)| !data.is_empty())
            .collect();
        assert!(with_data.iter().all(|(_, _, data)| *data == [7; 64]));
        let sources: Vec<bool> = with_data
            .iter()
            .map(|(source, ..)| *source == port)
            .collect();
        assert_eq!(sources, [true, false].repeat(100), "they take turns");
        assert_eq!(packets.len(), segments_sent() - before);
        assert_eq!(capture.lost().unwrap(), 0);
    });
}

#[test]
fn segments_are_as_large_as_the_kernel_makes_them() {
    in_new_network(|| {
        let sent: Vec<u8> = (0..4_000_000_u32).map(|at| (at % 253) as u8).collect();
        let mut capture = Capture::open(&CaptureOptions::default()).unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, port) = (
            listener.accept().unwrap().0,
            near.local_addr().unwrap().port(),
        );
        std::thread::scope(|scope| {
            scope.spawn(|| near.write_all(&sent).unwrap());
            far.read_exact(&mut vec![0; sent.len()]).unwrap();
        });
        let packets = drained(&mut capture);
        assert!(
            packets
                .iter()
                .all(|packet| packet.length as usize == packet.bytes.len())
        );
        assert!(
            packets.iter().any(|packet| packet.length > 10_000),
            "larger than on any wire"
        );
        let of_near = || {
            packets
                .iter()
                .map(Kept::segment)
                .filter(|(source, _, data)| *source == port && !data.is_empty())
        };
        let (_, first, _) = of_near().next().unwrap();
        let mut seen = vec![0; sent.len()];
        for (_, number, data) in of_near() {
            let offset = number.wrapping_sub(first) as usize;
            seen[offset..offset + data.len()].copy_from_slice(data);
        }
        assert!(seen == sent, "what was sent is not what was seen");
    });
}

#[test]
fn what_a_full_ring_loses_is_counted() {
    in_new_network(|| {
        let mut capture = Capture::open(&CaptureOptions {
            ring_bytes: 1,
            ..CaptureOptions::default()
        })
        .unwrap();
        let [near, _far] = loopback_pair();
        (0..20_000).for_each(|_| assert_eq!(near.send(&[1; 64]).unwrap(), 64));
        let read = drained(&mut capture).len() as u64;
        let lost = capture.lost().unwrap();
        assert!(lost > 0 && read > 0, "{lost} lost, {read} read");
        assert_eq!((lost + capture.seen(), capture.seen()), (20_000, read));
        assert_eq!(capture.lost().unwrap(), 0, "each is counted once");
        // The ring goes on afterwards.
        near.send(&[2; 64]).unwrap();
        assert_eq!(drained(&mut capture).len(), 1);
        assert_eq!(capture.lost().unwrap(), 0);
    });
}

#[test]
fn a_ring_that_is_read_goes_round_and_loses_nothing() {
    in_new_network(|| {
        let mut capture = Capture::open(&CaptureOptions {
            ring_bytes: 1 << 20,
            ..CaptureOptions::default()
        })
        .unwrap();
        let [near, _far] = loopback_pair();
        let mut numbers = Vec::new();
        for number in 0..20_000_u32 {
            near.send(&number.to_be_bytes()).unwrap();
            if number % 256 == 0 {
                capture
                    .read(None, |packet| {
                        numbers.push(packet.bytes[UDP_HEADERS..].to_vec())
                    })
                    .unwrap();
            }
        }
        capture
            .drain_end(|packet| numbers.push(packet.bytes[UDP_HEADERS..].to_vec()))
            .unwrap();
        assert_eq!(capture.lost().unwrap(), 0);
        assert!(
            numbers.iter().eq((0..20_000_u32)
                .map(|number| number.to_be_bytes().to_vec())
                .collect::<Vec<_>>()
                .iter())
        );
    });
}

#[test]
fn a_few_packets_and_no_more_come_at_the_end() {
    in_new_network(|| {
        for retire_ms in [1, 20, 100] {
            let mut capture = Capture::open(&CaptureOptions {
                retire_ms,
                ..CaptureOptions::default()
            })
            .unwrap();
            let [near, _far] = loopback_pair();
            (0..5).for_each(|_| assert_eq!(near.send(b"word").unwrap(), 4));
            assert_eq!(drained(&mut capture).len(), 5);
            assert_eq!(drained(&mut capture).len(), 0);
        }
    });
}

#[test]
fn reading_waits_for_the_first_packets_and_no_longer_than_it_may() {
    in_new_network(|| {
        let mut capture = Capture::open(&CaptureOptions {
            retire_ms: 5,
            ..CaptureOptions::default()
        })
        .unwrap();
        let [near, _far] = loopback_pair();
        let began = Instant::now();
        assert_eq!(capture.read(None, |_| ()).unwrap(), 0);
        assert_eq!(
            capture
                .read(Some(Duration::from_millis(30)), |_| ())
                .unwrap(),
            0
        );
        assert!(began.elapsed() >= Duration::from_millis(30));
        near.send(b"word").unwrap();
        // A packet ends this wait; nothing else would before an hour has passed.
        assert_eq!(
            capture
                .read(Some(Duration::from_secs(3600)), |_| ())
                .unwrap(),
            1
        );
    });
}

#[test]
fn packets_are_cut_and_their_length_stays() {
    in_new_network(|| {
        let mut capture = Capture::open(&CaptureOptions {
            snaplen: 40,
            ..CaptureOptions::default()
        })
        .unwrap();
        let [near, _far] = loopback_pair();
        near.send(&[3; 1000]).unwrap();
        near.send(&[3; 5]).unwrap();
        let sizes: Vec<_> = drained(&mut capture)
            .iter()
            .map(|packet| (packet.length, packet.bytes.len()))
            .collect();
        assert_eq!(sizes, [(1028, 40), (33, 33)]);
    });
}

#[test]
fn other_protocols_come_only_when_they_are_wanted() {
    in_new_network(|| {
        let mut only = Capture::open(&CaptureOptions::default()).unwrap();
        let mut all = Capture::open(&CaptureOptions {
            tcp_udp_only: false,
            ..CaptureOptions::default()
        })
        .unwrap();
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let [near, far] = udp_pair(address);
            drop(far);
            // Nobody listens there, which is answered by ICMP.
            near.send(b"word").unwrap();
        }
        // A fragment of IPv6 has its protocol behind an extension header.
        let [near, _far] = udp_pair("[::1]:0");
        ip("link set lo mtu 1500");
        near.send(&[4; 2000]).unwrap();
        let protocols = |packets: Vec<Kept>| -> Vec<u8> {
            packets
                .iter()
                .map(|packet| packet.bytes[if packet.bytes[0] >> 4 == 4 { 9 } else { 6 }])
                .collect()
        };
        assert_eq!(protocols(drained(&mut all)), [17, 1, 17, 58, 44, 44]);
        assert_eq!(protocols(drained(&mut only)), [17, 17, 44, 44]);
    });
}

/// Does this in a network namespace with a link of Ethernet to another, in which one datagram is echoed.
fn with_a_neighbour(work: impl FnOnce(&UdpSocket) + Send) {
    let (sender, receiver) = std::sync::mpsc::channel();
    let (link, linked) = std::sync::mpsc::channel();
    let neighbour = move || {
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        sender.send(nix::unistd::gettid()).unwrap();
        linked.recv().unwrap();
        ip("addr add 10.9.9.2/24 dev far");
        ip("link set far up");
        let socket = UdpSocket::bind("10.9.9.2:7000").unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        let mut room = [0; 100];
        let (length, from) = socket.recv_from(&mut room).unwrap();
        socket.send_to(&room[..length], from).unwrap();
        // The link ends with this namespace.
        let _ = linked.recv();
    };
    in_new_network(move || {
        std::thread::scope(move |scope| {
            scope.spawn(neighbour);
            let thread = receiver.recv().unwrap();
            ip("link add near type veth peer name far");
            ip(&format!("link set far netns {thread}"));
            ip("addr add 10.9.9.1/24 dev near");
            ip("link set near up");
            link.send(()).unwrap();
            let socket = UdpSocket::bind("10.9.9.1:0").unwrap();
            socket.connect("10.9.9.2:7000").unwrap();
            socket
                .set_read_timeout(Some(Duration::from_millis(200)))
                .unwrap();
            work(&socket);
            drop(link);
        });
    });
}

/// Sends until it is echoed: the neighbour's interface may not be up yet.
fn echoed(socket: &UdpSocket) {
    let one = |_| socket.send(b"there and back").is_ok() && socket.recv(&mut [0; 100]).is_ok();
    assert!((0..100).any(one), "no echo");
}

#[test]
fn on_ethernet_bytes_begin_with_the_ip_header_in_both_directions() {
    with_a_neighbour(|socket| {
        let mut capture = Capture::open(&CaptureOptions::default()).unwrap();
        echoed(socket);
        let packets = drained(&mut capture);
        // It may have been sent again before it was echoed.
        assert!(packets[0].outgoing);
        assert_eq!(packets.iter().filter(|packet| !packet.outgoing).count(), 1);
        for packet in &packets {
            assert_eq!(
                (packet.bytes[0], &packet.bytes[UDP_HEADERS..]),
                (0x45, b"there and back".as_slice())
            );
            assert_eq!(packet.length as usize, packet.bytes.len());
            assert_eq!(capture.name(packet.interface).as_deref(), Some("near"));
        }
    });
}

#[test]
fn only_interfaces_that_are_named_are_captured() {
    with_a_neighbour(|socket| {
        let of = |names: &[&str]| {
            let interfaces = names.iter().map(|name| (*name).to_owned()).collect();
            Capture::open(&CaptureOptions {
                interfaces,
                ..CaptureOptions::default()
            })
        };
        let mut captures = [
            of(&["lo"]),
            of(&["near"]),
            of(&["near", "lo"]),
            of(&["lo", "near"]),
        ]
        .map(Result::unwrap);
        let [near, _far] = loopback_pair();
        near.send(b"word").unwrap();
        echoed(socket);
        let names = captures.each_mut().map(|capture| {
            let mut names: Vec<_> = drained(capture)
                .iter()
                .map(|packet| capture.name(packet.interface).unwrap())
                .collect();
            names.dedup();
            names.join(" ")
        });
        assert_eq!(names, ["lo", "near", "lo near", "lo near"]);
        let error = of(&["none"]).err().unwrap().to_string();
        assert!(error.starts_with("interface none: "), "{error}");
        assert!(of(&["a_name_that_is_too_long"]).is_err());
    });
}

#[test]
fn another_network_is_captured_from_here() {
    let (sender, receiver) = std::sync::mpsc::channel();
    let (send, until_sent) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            in_new_network(move || {
                let [near, _far] = loopback_pair();
                sender
                    .send(File::open("/proc/thread-self/ns/net").unwrap())
                    .unwrap();
                until_sent.recv().unwrap();
                near.send(b"from there").unwrap();
                until_sent.recv().unwrap();
            })
        });
        // Nobody tells where it was passed over.
        let Ok(net) = receiver.recv() else { return };
        let here = namespace_of_thread();
        let mut capture = Capture::open_in(net.as_fd(), None, &CaptureOptions::default()).unwrap();
        assert_eq!(namespace_of_thread(), here);
        send.send(()).unwrap();
        let mut packets = Vec::new();
        // Packets come when they are read by another thread too.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                capture
                    .read(Some(Duration::from_secs(10)), |packet| {
                        packets.push(Kept::from_packet(packet))
                    })
                    .unwrap()
            });
        });
        assert_eq!(packets.len(), 1);
        assert_eq!(&packets[0].bytes[UDP_HEADERS..], b"from there");
        assert_eq!(capture.name(packets[0].interface).as_deref(), Some("lo"));
        send.send(()).unwrap();
    });
}

fn open_descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn a_network_of_another_user_namespace_is_captured_from_here() {
    // It sends when it is told to.
    let script = "ip link set lo up && echo up && read word && echo -n word > /dev/udp/127.0.0.1/9 && read word";
    let child = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net", "bash", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        eprintln!("passed over: there is no `unshare`");
        return;
    };
    let (mut words, mut up) = (child.stdin.take().unwrap(), [0; 3]);
    if child.stdout.take().unwrap().read_exact(&mut up).is_ok() {
        let open = |kind: &str| {
            File::open(
                Path::new("/proc")
                    .join(child.id().to_string())
                    .join("ns")
                    .join(kind),
            )
            .unwrap()
        };
        let here = namespace_of_thread();
        let capture = Capture::open_in(
            open("net").as_fd(),
            Some(open("user").as_fd()),
            &CaptureOptions::default(),
        );
        let mut capture = capture.unwrap();
        assert_eq!(namespace_of_thread(), here);
        words.write_all(b"go\n").unwrap();
        let mut packets = Vec::new();
        capture
            .read(Some(Duration::from_secs(10)), |packet| {
                packets.push(Kept::from_packet(packet))
            })
            .unwrap();
        assert_eq!(&packets[0].bytes[UDP_HEADERS..], b"word");
    } else {
        eprintln!("passed over: no right to make user namespaces");
    }
    drop(words);
    child.wait().unwrap();
}

#[test]
fn what_cannot_be_joined_is_an_error() {
    let [net, user] =
        ["net", "user"].map(|kind| File::open(format!("/proc/self/ns/{kind}")).unwrap());
    let tries = 20;
    let before = open_descriptors();
    for _ in 0..tries {
        // A process cannot join the user namespace it is in.
        let error = Capture::open_in(net.as_fd(), Some(user.as_fd()), &CaptureOptions::default())
            .err()
            .unwrap();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error}");
    }
    // Other tests open some meanwhile.
    assert!(
        open_descriptors() < before + tries + 15,
        "none is left open"
    );
    assert!(
        Capture::open_in(
            File::open("/dev/null").unwrap().as_fd(),
            None,
            &CaptureOptions::default()
        )
        .is_err()
    );
}
