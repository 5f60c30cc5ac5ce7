//! Servers for clients of other tools (`agent --serve`), asked by those clients and by ours.

use crate::support::daemons::free_port;
use crate::support::{Place, has_program, number, skip, wait_until};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Servers that run, with where each listens.
struct Services {
    child: Child,
    addresses: BTreeMap<String, String>,
    _place: Place,
}

impl Services {
    fn start(protocols: &[&str]) -> Self {
        let place = Place::new();
        let list = protocols.iter().map(|protocol| format!("{protocol}:0"));
        let list = list.collect::<Vec<_>>().join(",");
        let mut command = place.command(&["agent", "--serve", &list]);
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let addresses = lines
            .take(protocols.len())
            .map(|line| {
                let line = line.unwrap();
                let (name, address) = line.split_once(' ').unwrap();
                (name.to_owned(), address.to_owned())
            })
            .collect();
        Self {
            child,
            addresses,
            _place: place,
        }
    }

    fn address(&self, protocol: &str) -> &str {
        &self.addresses[protocol]
    }

    fn port(&self, protocol: &str) -> &str {
        self.address(protocol).rsplit(':').next().unwrap()
    }
}

impl Drop for Services {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn small_services_answer_over_tcp_and_udp() {
    let place = Place::new();
    let services = Services::start(&["echo", "discard", "chargen", "stamp"]);
    let mut echo = TcpStream::connect(services.address("echo")).unwrap();
    echo.write_all(b"hello").unwrap();
    let mut room = [0; 5];
    echo.read_exact(&mut room).unwrap();
    assert_eq!(&room, b"hello");
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let mut packet = [0; 100];
    socket.send_to(b"hi", services.address("echo")).unwrap();
    assert_eq!(socket.recv(&mut packet).unwrap(), 2);
    // STAMP: the number and the time of the sender come back, with those of the reflector before them.
    let sent: Vec<u8> = (0..44).collect();
    socket.send_to(&sent, services.address("stamp")).unwrap();
    assert_eq!(socket.recv(&mut packet).unwrap(), 44);
    assert_eq!((&packet[..4], &packet[24..38]), (&sent[..4], &sent[..14]));
    let text = format!(
        "2 to \"echo://{}\" rr 100*50; 1 to \"discard://{}\" bulk_put 64 KiB*20; 1 to \"chargen://{}\" bulk_get 740*100",
        services.address("echo"),
        services.address("discard"),
        services.address("chargen")
    );
    let rows = place.measure(&text);
    assert_eq!(number(&rows[0], "/response_s/n"), 100.0);
    assert_eq!(number(&rows[2], "/initiator/received_bytes"), 74_000.0);
}

#[test]
fn the_web_server_speaks_both_versions_and_counts_what_comes() {
    if !has_program("curl", "curl") {
        skip("no curl");
        return;
    }
    let place = Place::new();
    let services = Services::start(&["http"]);
    let address = services.address("http");
    let curl = |arguments: &[&str], path: &str| {
        let url = format!("http://{address}{path}");
        let output = Command::new("curl")
            .arg("-s")
            .args(arguments)
            .arg(url)
            .output();
        output.unwrap().stdout
    };
    assert_eq!(curl(&[], "/bytes/1000000").len(), 1_000_000);
    assert_eq!(curl(&["--http2-prior-knowledge"], "/"), b"stackline\n");
    assert_eq!(curl(&["-d", "0123456789"], "/anything"), b"10 bytes\n");
    assert_eq!(
        curl(&["-w", "%{http_code}", "-o", "/dev/null"], "/bytes/many"),
        b"400"
    );
    let text = format!(
        "1 to \"http://{address}/bytes/2000\" rr 0*20 over http, http(version = http2);
         1 to \"http://{address}/\" bulk_put 64 KiB*20 over http(version = http2);"
    );
    let rows = place.measure(&text);
    for row in &rows[..2] {
        assert_eq!(row["initiator"]["settings"]["body"], "2000 B", "{row}");
    }
    assert_eq!(rows[1]["initiator"]["settings"]["http"], "2", "{}", rows[1]);
    // The command line may list the versions, too.
    let text = format!("1 to \"http://{address}/\" rr 0*20");
    let words = [
        "run",
        "--json",
        "-e",
        &text,
        "--over",
        "http, http(version = http2)",
    ];
    let finished = place.stackline(&words);
    let rows = finished.succeeds().json()["measurements"].clone();
    assert_eq!(rows.as_array().unwrap().len(), 2);
    assert_eq!(rows[1]["initiator"]["settings"]["http"], "2");
}

/// The state with which a server asks for the parameters of a test.
const PARAM_EXCHANGE: u8 = 9;

/// What a client of iperf3 says of a test.
fn iperf3(services: &Services, arguments: &[&str]) -> serde_json::Value {
    let output = Command::new("iperf3")
        .args(["-J", "-c", "127.0.0.1", "-p", services.port("iperf3")])
        .args(arguments)
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn clients_of_iperf3_are_served_in_every_direction() {
    if !has_program("iperf3", "iperf3") {
        skip("no iperf3");
        return;
    }
    let services = Services::start(&["iperf3"]);
    let bytes = |said: &serde_json::Value, sum: &str| number(said, &format!("/end/{sum}/bytes"));
    let cases: [&[&str]; 4] = [
        &["-n", "20M"],
        &["-n", "20M", "-R"],
        &["-n", "20M", "-P", "3"],
        &["-t", "1", "--bidir"],
    ];
    for arguments in cases {
        let said = iperf3(&services, arguments);
        assert!(said.get("error").is_none(), "{arguments:?}: {said}");
        let (sent, received) = (bytes(&said, "sum_sent"), bytes(&said, "sum_received"));
        assert!(received > 19e6, "{arguments:?}: {said}");
        // What is under way at the end is sent and not received.
        assert!((received - sent).abs() < 0.5 * sent, "{sent} {received}");
    }
    for arguments in [
        &["-u", "-b", "10M", "-t", "1"][..],
        &["-u", "-b", "10M", "-t", "1", "-R"],
    ] {
        let said = iperf3(&services, arguments);
        assert!(said.get("error").is_none(), "{arguments:?}: {said}");
        let rate = number(&said, "/end/sum/bits_per_second");
        assert!((8e6..12e6).contains(&rate), "{arguments:?}: {said}");
    }
    // A second client during a test is refused, and the first one goes on.
    let mut held = TcpStream::connect(services.address("iperf3")).unwrap();
    held.write_all(&[b'x'; 37]).unwrap();
    let mut state = [0];
    held.read_exact(&mut state).unwrap();
    assert_eq!(state, [PARAM_EXCHANGE]);
    let said = iperf3(&services, &["-n", "1M"]);
    assert!(said["error"].as_str().unwrap().contains("busy"), "{said}");
    drop(held);
}

/// A server of iperf3's own for one test, with which it ends: one for several closes its port after each and opens it again, and whoever
/// connects between the two finds nobody.
struct Iperf3Server {
    process: Child,
    address: SocketAddrV4,
}

impl Iperf3Server {
    fn start() -> Self {
        let port = free_port();
        let mut command = Command::new("iperf3");
        let command = command.args(["-s", "-1", "-B", "127.0.0.1", "-p", &port.to_string()]);
        let child = command.stdout(Stdio::null()).spawn().unwrap();
        let mut server = Self {
            process: child,
            address: SocketAddrV4::new(Ipv4Addr::LOCALHOST, port),
        };
        // A connection would be its test.
        wait_until("iperf3 listens", || {
            let ended = server.process.try_wait().unwrap();
            assert!(ended.is_none(), "iperf3 ended: {ended:?}");
            listens_on(port)
        });
        server
    }
}

/// Whether a socket of IPv4 listens on a port, as `/proc/net/tcp` has it.
fn listens_on(port: u16) -> bool {
    const LISTENS: &str = "0A";
    let port = format!(":{port:04X}");
    let sockets = std::fs::read_to_string("/proc/net/tcp").unwrap();
    sockets.lines().any(|line| {
        let mut words = line.split_whitespace().skip(1);
        let (address, state) = (words.next(), words.nth(1));
        address.is_some_and(|address| address.ends_with(&port)) && state == Some(LISTENS)
    })
}

impl Drop for Iperf3Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The row of one measurement with one of our servers of iperf3, or with a stock one.
fn measure_iperf3(place: &Place, own: Option<&Services>, what: &str) -> serde_json::Value {
    let stock;
    let address = match own {
        Some(own) => own.address("iperf3").to_owned(),
        None => {
            stock = Iperf3Server::start();
            stock.address.to_string()
        }
    };
    let text = format!("1 to \"iperf3://{address}\" {what}");
    place.measure(&text).remove(0)
}

#[test]
fn servers_of_iperf3_are_measured_and_agree_about_what_was_moved() {
    if !has_program("iperf3", "iperf3") {
        skip("no iperf3");
        return;
    }
    let place = Place::new();
    let own = Services::start(&["iperf3"]);
    for own in [None, Some(&own)] {
        let measured = |what: &str| measure_iperf3(&place, own, what);
        let said = |row: &serde_json::Value, name: &str| -> f64 {
            let said = row["initiator"]["settings"][name].as_str().unwrap();
            said.trim_end_matches(" B").parse().unwrap()
        };
        let put = measured("bulk_put 64 KiB*200");
        // What its kernel has, its own server may not have read when the test ends.
        let received = said(&put, "server_received");
        assert!((6e6..=13_107_200.0).contains(&received), "{put}");
        let get = measured("bulk_get 64 KiB*200");
        assert_eq!(number(&get, "/initiator/received_bytes"), 13_107_200.0);
        assert!(said(&get, "server_sent") >= 13_107_200.0, "{get}");
        let timed = measured("bulk_put 128 KiB timelimit 1");
        assert!(number(&timed, "/throughput_bit_s/mean") > 1e6);
    }
    // It has one test at a time.
    let server = Iperf3Server::start();
    let busy = place.run(&format!(
        "1 parallel: 2 to \"iperf3://{}\" bulk_put 64 KiB*2000",
        server.address
    ));
    assert_eq!(busy.status.code(), Some(1), "{}", busy.err);
    busy.hints("use one pair");
}

/// What iperf3's own client sent in a test with these arguments, in bytes, and how many datagrams were lost.
fn moved_by_iperf3(arguments: &[&str]) -> (f64, f64) {
    let server = Iperf3Server::start();
    let port = server.address.port().to_string();
    let output = Command::new("iperf3")
        .args(["-J", "-c", "127.0.0.1", "-p", &port])
        .args(arguments)
        .output()
        .unwrap();
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(said.get("error").is_none(), "{said}");
    let lost = said.pointer("/end/sum/lost_packets");
    let bytes = number(&said, "/end/sum_sent/bytes");
    (
        bytes,
        lost.and_then(serde_json::Value::as_f64).unwrap_or(0.0),
    )
}

#[test]
fn tests_of_several_streams_and_of_datagrams_move_what_iperf3_moves() {
    if !has_program("iperf3", "iperf3") {
        skip("no iperf3");
        return;
    }
    let place = Place::new();
    let own = Services::start(&["iperf3"]);
    let measured = |own: Option<&Services>, what: &str| measure_iperf3(&place, own, what);
    let said = |row: &serde_json::Value, name: &str| -> f64 {
        let said = row["initiator"]["settings"][name].as_str().unwrap();
        said.split(' ').next().unwrap().parse().unwrap()
    };
    let (by_iperf3, _) = moved_by_iperf3(&["-P", "4", "-n", "20M"]);
    for own in [None, Some(&own)] {
        let put = measured(own, "bulk_put 64 KiB*320 over iperf3(streams = 4)");
        assert_eq!(put["initiator"]["settings"]["streams"], "4");
        assert_eq!(number(&put, "/initiator/sent_bytes"), 20_971_520.0);
        // What its kernel has, its own server may not have read when the test ends.
        let received = said(&put, "server_received");
        assert!((6e6..=20_971_520.0).contains(&received), "{put}");
        let get = measured(own, "bulk_get 64 KiB*320 over iperf3(streams = 4)");
        assert_eq!(number(&get, "/initiator/received_bytes"), 20_971_520.0);
        assert!(said(&get, "server_sent") >= 20_971_520.0, "{get}");
    }
    assert!((by_iperf3 / 20_971_520.0 - 1.0).abs() < 0.01, "{by_iperf3}");
    // 1000 datagrams of 1000 bytes, one each millisecond.
    let asked = ["-u", "-b", "8M", "-l", "1000", "-n", "1000000"];
    let (by_iperf3, lost) = moved_by_iperf3(&asked);
    let is_whole = (by_iperf3 / 1e6 - 1.0).abs() < 0.01 && lost < 100.0;
    assert!(is_whole, "{by_iperf3} {lost}");
    for own in [None, Some(&own)] {
        for streams in ["udp", "udp, streams = 3"] {
            let over = format!("over iperf3({streams}, length = 1000 B)");
            let put = measured(own, &format!("bulk_put 1000*1000 8 Mbit/s {over}"));
            assert_eq!(number(&put, "/initiator/sent_bytes"), 1e6);
            let (received, lost) = (said(&put, "server_received"), said(&put, "server_lost"));
            let known = received + 1000.0 * lost;
            // The last ones may come when the server has ended the test.
            assert!((0.95e6..=1.001e6).contains(&known), "{put}");
            assert!(lost < 100.0, "{put}");
            assert!(put["initiator"]["settings"]["server_jitter"].is_string());
            let get = measured(
                own,
                &format!(
                    "bulk_get 1000*1000 over iperf3({streams}, bandwidth = 8000000, length = 1000 B)"
                ),
            );
            assert_eq!(number(&get, "/initiator/received_bytes"), 1e6);
            let (sent, lost) = (said(&get, "server_sent"), said(&get, "lost"));
            assert!(sent >= 1e6 - 10_000.0 && lost <= 1000.0, "{get}");
            assert!(get["initiator"]["settings"]["jitter"].is_string());
        }
    }
    let server = Iperf3Server::start();
    place
        .run(&format!(
            "1 to \"iperf3://{}\" bulk_put 8*10 over iperf3(udp)",
            server.address
        ))
        .fails(
            2,
            &["a datagram of this test has 1448 B, and this data unit 8 B"],
        );
}

#[test]
fn what_cannot_be_served_is_refused() {
    let place = Place::new();
    for (words, code, expected) in [
        (&["--serve", "gopher"][..], 2, "`gopher` cannot be served"),
        (&["--serve", "http:many"], 2, "has no valid port"),
        (
            &["--serve", "http:0", "--at", "192.0.2.1"],
            3,
            "cannot serve http at 192.0.2.1",
        ),
        (&["--at", "127.0.0.1"], 2, "--serve"),
    ] {
        let finished = place.stackline(&[&["agent"], words].concat());
        finished.fails(code, &[expected]);
    }
}
