//! Servers outside the run in datagrams: what is lost, late or repeated is counted, and whose fault each error is.

use crate::support::daemons::served;
use crate::support::{Finished, Place, has_program, number, skip, wait_until};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::thread;

/// A server of the test: it sends what `answers` makes of each datagram.
fn server(mut answers: impl FnMut(&[u8]) -> Vec<Vec<u8>> + Send + 'static) -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    thread::spawn(move || {
        let mut room = [0; 2048];
        while let Ok((length, from)) = socket.recv_from(&mut room) {
            for answer in answers(&room[..length]) {
                let _ = socket.send_to(&answer, from);
            }
        }
    });
    address
}

fn run(text: &str) -> Finished {
    Place::new().stackline(&["run", "--json", "-e", text])
}

fn measured(text: &str) -> serde_json::Value {
    let output = run(text);
    output.succeeds();
    output.json()["measurements"][0].clone()
}

/// The answer to a query of DNS, with that code and without records.
fn dns_answer(query: &[u8], code: u8) -> Vec<u8> {
    let mut answer = query[..query.len() - 11].to_vec();
    answer[2..4].copy_from_slice(&[0x81, 0x80 | code]);
    answer[11] = 0;
    answer
}

#[test]
fn lost_late_and_repeated_answers_are_counted() {
    let mut calls = 0;
    let mut kept = Vec::new();
    let address = server(move |query| {
        calls += 1;
        let answer = dns_answer(query, 0);
        match calls % 10 {
            2 => Vec::new(),
            5 => vec![answer.clone(), answer],
            // This one comes with the next.
            7 => {
                kept = answer;
                Vec::new()
            }
            8 => vec![std::mem::take(&mut kept), answer],
            _ => vec![answer],
        }
    });
    for pace in ["", " 100/s"] {
        let row = measured(&format!(
            "1 to \"dns://{address}/a.test\" rr 0*40{pace} over dns(timeout = 20 ms)"
        ));
        assert_eq!(number(&row, "/response_s/n"), 32.0, "{row}");
        assert_eq!(number(&row, "/lost"), 8.0, "{row}");
        assert_eq!(number(&row, "/duplicated"), 4.0, "{row}");
        let flags = row["flags"].to_string();
        assert!(
            flags.contains("4 answers came after their calls had counted as lost"),
            "{flags}"
        );
    }
}

#[test]
fn what_a_name_server_says_is_measured_or_an_error_in_words() {
    let coded = |code| server(move |query| vec![dns_answer(query, code)]);
    let fails = |address: SocketAddr, message: &str| {
        run(&format!(
            "1 to \"dns://{address}/a.test\" rr 0*9 over dns(timeout = 20 ms)"
        ))
        .fails(1, &[message]);
    };
    fails(
        coded(3),
        "does not answer for a.test: there is no such name (NXDOMAIN)",
    );
    fails(coded(5), "it refuses to answer this client (REFUSED)");
    fails(
        server(|_| vec![vec![0; 5]]),
        "a datagram too short for an answer of DNS",
    );
    fails(
        server(|query| vec![query.to_vec()]),
        "a datagram that is not an answer of DNS",
    );
    fails(
        server(|_| Vec::new()),
        "answered none of 9 calls within 20.0 ms each",
    );
    let wrong_id = server(|query| {
        let mut answer = dns_answer(query, 0);
        answer[0] ^= 0x80;
        vec![answer]
    });
    fails(wrong_id, "answered none of 9 calls");
    let any = measured(&format!(
        "1 to \"dns://{}/a.test\" rr 0*9 over dns(any_answer)",
        coded(3)
    ));
    assert_eq!(number(&any, "/response_s/n"), 9.0);
    let settings = &any["initiator"]["settings"];
    assert_eq!([&settings["code"], &settings["records"]], ["NXDOMAIN", "0"]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let closed = socket.local_addr().unwrap();
    drop(socket);
    run(&format!("1 to \"dns://{closed}/a.test\" rr 0*9"))
        .fails(3, &[&format!("nothing listens at {closed}")])
        .hints("is the server running");
    Place::new()
        .run("1 to \"dns://127.0.0.1/a\" rr 9*9")
        .mistakes(&["carries data units of at most 0 bytes"]);
}

/// A name server over TCP that gives each connection to `serve`.
fn over_tcp(serve: fn(TcpStream, Vec<u8>)) -> SocketAddr {
    served(move |mut stream| {
        let mut length = [0; 2];
        if stream.read_exact(&mut length).is_ok() {
            let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
            stream.read_exact(&mut query).unwrap();
            serve(stream, query);
        }
    })
}

fn say(stream: &mut TcpStream, answer: &[u8]) {
    let length = (answer.len() as u16).to_be_bytes();
    stream.write_all(&[&length[..], answer].concat()).unwrap();
}

#[test]
fn a_name_server_over_tcp_may_leave_after_an_answer_and_not_within_one() {
    let leaving = over_tcp(|mut stream, query| say(&mut stream, &dns_answer(&query, 0)));
    let text =
        |address: SocketAddr| format!("1 to \"dns://{address}/a.test\" rr 0*9 over dns(tcp)");
    let row = measured(&text(leaving));
    assert_eq!(number(&row, "/response_s/n"), 9.0);
    let flags = row["flags"].to_string();
    assert!(
        flags.contains("the server closes the connection"),
        "{flags}"
    );
    let cut = over_tcp(|mut stream, _| stream.write_all(&[0, 50, 1]).unwrap());
    run(&text(cut)).fails(1, &["closed the connection within an answer"]);
    let other = over_tcp(|mut stream, mut query| {
        query[0] ^= 0x55;
        say(&mut stream, &dns_answer(&query, 0));
    });
    run(&text(other)).fails(1, &["answered another question"]);
    let short = over_tcp(|mut stream, _| say(&mut stream, b"x"));
    run(&text(short)).fails(1, &["too short for an answer of DNS"]);
    let unknown = over_tcp(|mut stream, query| say(&mut stream, &dns_answer(&query, 3)));
    run(&text(unknown))
        .fails(1, &["there is no such name (NXDOMAIN)"])
        .hints("check the name");
}

/// A running dnsmasq that knows one name, and its port.
struct Dnsmasq {
    process: Child,
    port: u16,
}

impl Drop for Dnsmasq {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn dnsmasq() -> Dnsmasq {
    let port = {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.local_addr().unwrap().port()
    };
    let process = Command::new("/usr/sbin/dnsmasq")
        .args([
            "--keep-in-foreground",
            "--conf-file=/dev/null",
            "--pid-file",
        ])
        .args([
            "--no-resolv",
            "--no-hosts",
            "--bind-interfaces",
            "--listen-address=127.0.0.1",
        ])
        .args(["--address=/a.test/192.0.2.7", "--local=/test/"])
        .arg(format!("--port={port}"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let dnsmasq = Dnsmasq { process, port };
    wait_until("dnsmasq listens", || {
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    dnsmasq
}

#[test]
fn a_real_name_server_answers() {
    if !has_program("/usr/sbin/dnsmasq", "dnsmasq-base") {
        skip("no dnsmasq");
        return;
    }
    let dnsmasq = dnsmasq();
    let port = dnsmasq.port;
    let row = measured(&format!(
        "2 to \"dns://127.0.0.1:{port}/a.test\" rr 0*50 over dns(tcp)"
    ));
    assert_eq!(number(&row, "/response_s/n"), 100.0, "{row}");
    assert_eq!(row["initiator"]["settings"]["records"], "1");
    let row = measured(&format!("2 to \"dns://127.0.0.1:{port}/a.test\" rr 0*50"));
    assert_eq!(number(&row, "/response_s/n"), 100.0);
    let settings = &row["initiator"]["settings"];
    assert_eq!(
        [&settings["records"], &settings["answer_ip_ttl"]],
        ["1", "64"]
    );
    run(&format!(
        "1 to \"dns://127.0.0.1:{port}/b.test?type=MX\" rr 0*9"
    ))
    .fails(1, &["there is no such name (NXDOMAIN)"]);
}

/// A reflector of STAMP that keeps state, 1 ms behind in time. Every fifth packet is lost on the way there, every seventh reflection on
/// the way back.
fn reflector() -> SocketAddr {
    let (mut came, mut reflected) = (0_u32, 0_u32);
    server(move |packet| {
        came += 1;
        if packet.len() < 44 || came.is_multiple_of(5) {
            return Vec::new();
        }
        let number = reflected;
        reflected += 1;
        if reflected.is_multiple_of(7) {
            return Vec::new();
        }
        let sent = u64::from_be_bytes(packet[4..12].try_into().unwrap());
        let now = (sent - (1 << 22)).to_be_bytes();
        let mut answer = number.to_be_bytes().to_vec();
        answer.extend_from_slice(&now);
        answer.extend_from_slice(&[0, 1, 0, 0]);
        answer.extend_from_slice(&now);
        answer.extend_from_slice(&packet[..14]);
        answer.extend_from_slice(&[0, 0, 64, 0, 0, 0]);
        answer.extend_from_slice(&packet[44..]);
        vec![answer]
    })
}

#[test]
fn a_reflector_says_on_which_way_packets_were_lost() {
    for (scheme, bytes) in [("stamp", 44), ("stamp", 200), ("twamp", 45)] {
        let address = reflector();
        let row = measured(&format!(
            "1 to \"{scheme}://{address}\" rr {bytes}*36 over {scheme}(timeout = 20 ms)"
        ));
        // Of 36 packets 7 are lost, of 29 reflections 4.
        assert_eq!(number(&row, "/lost"), 11.0, "{row}");
        assert_eq!(number(&row, "/response_s/n"), 25.0, "{row}");
        let flags = row["flags"].to_string();
        let divided = "of 11 losses, 7 happened on the way to the reflector and 4 on the way back";
        assert!(flags.contains(divided), "{flags}");
        assert!(
            flags.contains("the clocks of the two ends are about"),
            "{flags}"
        );
        let settings = &row["initiator"]["settings"];
        assert_eq!(settings["reflector_clock"], "not synchronised");
        assert_eq!(settings["request_ttl"], "64");
        assert_eq!(settings["answer"], format!("{bytes} B"));
        assert_eq!(settings["apparent_there"], serde_json::Value::Null);
    }
    let echo = server(|packet| vec![packet.to_vec()]);
    run(&format!("1 to \"stamp://{echo}\" rr 44*9")).fails(1, &["sends packets back as they are"]);
    run(&format!("1 to \"stamp://{echo}\" rr 46*9")).fails(2, &["44 B, or at least 48"]);
}

#[test]
fn a_host_answers_pings() {
    let output = run("2 to \"ping://127.0.0.1\" rr 56*50");
    if output.err.contains("may not send echo requests") {
        skip("no right to ping");
        return;
    }
    output.succeeds();
    let row = &output.json()["measurements"][0];
    assert_eq!(number(row, "/response_s/n"), 100.0);
    assert_eq!(number(row, "/lost"), 0.0);
    let settings = &row["initiator"]["settings"];
    assert_eq!(
        [&settings["answer"], &settings["answer_ip_ttl"]],
        ["64 B", "64"]
    );
    for (address, code, message) in [
        (
            "ping://127.0.0.1:7",
            2,
            "`ping` has no ports, but the address says 7",
        ),
        ("ping://127.0.0.1/a", 2, "`/a` means nothing to ping"),
        (
            "ping://nowhere.invalid",
            3,
            "cannot resolve the address nowhere.invalid: ",
        ),
    ] {
        run(&format!("1 to \"{address}\" rr 56*9")).fails(code, &[message]);
    }
    // Loopback takes packets of 65536 B.
    run("1 to \"ping://127.0.0.1\" rr 65507*3 over ping(df)").succeeds();
}

#[test]
fn echo_and_time_are_served_in_datagrams() {
    let echo = server(|request| vec![request.to_vec()]);
    let row = measured(&format!("2 to \"udpecho://{echo}\" rr 1000*50"));
    assert_eq!(number(&row, "/response_s/n"), 100.0);
    assert_eq!(row["initiator"]["settings"]["answer"], "1000 B");
    let time = server(|query| {
        let mut answer = vec![0x24, 2];
        answer.resize(24, 0);
        answer.extend_from_slice(&query[40..48]);
        answer.resize(48, 0);
        vec![answer]
    });
    let row = measured(&format!("1 to \"ntp://{time}\" rr 0*50"));
    assert_eq!(number(&row, "/response_s/n"), 50.0);
    let settings = &row["initiator"]["settings"];
    assert_eq!(
        [&settings["stratum"], &settings["server_clock"]],
        ["2", "synchronised"]
    );
    run(&format!("1 to \"ntp://{echo}\" rr 0*50")).fails(1, &["not a server's answer"]);
}
