//! The stack `ftp` and peers that refuse, leave, or are no FTP at all: each is an error of one sentence that names the peer. What comes from
//! other hosts, or would go there, changes nothing.
#![allow(
    clippy::unwrap_used,
    reason = "what helpers of a test cannot do fails the test"
)]

use stackline_core::catalogue::OptionValue;
use stackline_core::error::Blame;
use stackline_core::plan::DataAccess;
use stackline_core::time::Instant;
use stackline_endpoint::BulkDirection;
use stackline_live::buffers::LiveThreadBuffers;
use stackline_live::error::{Error, Result};
use stackline_live::files::AgentFileDirectory;
use stackline_live::stacks::contract::{Connector, LiveConnectParameters};
use stackline_live::stacks::find_stack;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{JoinHandle, spawn};

/// What an initiator of the run with the tokens here says as its password.
const PASSWORD: &str = "07070707070707070707070707070707";
/// What a responder answers until it is asked for a file.
const LOGIN: [&str; 4] = ["220 hello", "331 and?", "230 in", "200 bytes"];

fn parameters(options: &[&str], bind: IpAddr) -> LiveConnectParameters {
    let written = options.iter().map(|option| match *option {
        "active" => ("mode".to_string(), OptionValue::Word("active".into())),
        flag => (flag.to_string(), OptionValue::Set),
    });
    LiveConnectParameters {
        stack: find_stack("ftp").unwrap().table().stack(written.collect()),
        token: [7; 16],
        carries_data: true,
        replica: 0,
        bind,
        member: None,
        foreign: Arc::default(),
    }
}

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn memory() -> LiveThreadBuffers {
    let (flags, files) = (Arc::default(), AgentFileDirectory::default());
    let memory = DataAccess::Memory;
    LiveThreadBuffers::new(flags, &files, &memory, &memory, 100).unwrap()
}

fn connector(options: &[&str], address: &str) -> Box<dyn Connector> {
    let stack = find_stack("ftp").unwrap();
    let parameters = parameters(options, LOOPBACK);
    stack.connector(&parameters, address).unwrap()
}

/// A responder that says the first answer on its own, and each of the others when a line has come; `asked` sees that line.
fn responder<R: Send + 'static>(
    answers: Vec<String>,
    mut asked: impl FnMut(&str) -> R + Send + 'static,
) -> (String, JoinHandle<Vec<R>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let thread = spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap());
        let mut kept = Vec::new();
        for (number, answer) in answers.into_iter().enumerate() {
            let mut line = String::new();
            if number > 0 {
                // An initiator that has an error leaves.
                if lines.read_line(&mut line).unwrap_or(0) == 0 {
                    break;
                }
                kept.push(asked(line.trim_end()));
            }
            stream.write_all(answer.as_bytes()).unwrap();
            stream.write_all(b"\r\n").unwrap();
        }
        kept
    });
    (address, thread)
}

/// The error of an initiator that gets a unit of 100 B from a responder which says that; its address is PEER in it.
fn against(options: &[&str], answers: &[&str]) -> Error {
    let answers = answers.iter().map(|answer| (*answer).to_string()).collect();
    let (address, thread) = responder(answers, |_| ());
    let mut buffers = memory();
    let error = gets(&mut *connector(options, &address), &mut buffers).unwrap_err();
    drop(thread);
    assert!(error.hint.is_some(), "{error:?}");
    Error {
        message: error.message.replace(&address, "PEER"),
        ..error
    }
}

fn gets(connector: &mut dyn Connector, buffers: &mut LiveThreadBuffers) -> Result<()> {
    let mut connection = connector.connect(buffers)?;
    connection.start_bulk(BulkDirection::Get, buffers)?;
    let got = connection.receive(100, 1, buffers)?;
    assert_eq!(got, 1);
    connection.stop_bulk(BulkDirection::Get, buffers)
}

fn with_login(more: &[&'static str]) -> Vec<&'static str> {
    [&LOGIN[..], more].concat()
}

#[test]
fn what_is_no_ftp_is_said_of_the_peer() {
    for (options, answers, message) in [
        (
            &[][..],
            vec!["HTTP/1.1 400 Bad Request"],
            "the peer at PEER sent a reply that is not of FTP",
        ),
        (
            &[],
            vec!["421 too many"],
            "the responder at PEER answers the connection with 421 too many",
        ),
        (
            &[],
            vec!["220 hello", "331 and?", "530 who are you"],
            "the responder at PEER answers PASS with 530 who are you",
        ),
        (
            &[],
            vec!["220 hello"],
            "the peer closed the connection before it had said all of FTP",
        ),
        (
            &[],
            with_login(&["500 EPSV?"]),
            "the responder at PEER answers EPSV with 500 EPSV?",
        ),
        (
            &[],
            with_login(&["229 (|||0|)"]),
            "the peer at PEER names no port for the file",
        ),
        (
            &["classic"],
            with_login(&["227 (1,2,3)"]),
            "the peer at PEER names no port for the file",
        ),
        (
            &["classic"],
            with_login(&["227 (10,0,0,1,9,9)"]),
            "the responder at PEER wants the file to go over another host, 10.0.0.1",
        ),
        (
            &["active"],
            with_login(&["501 not there"]),
            "the responder at PEER answers EPRT with 501 not there",
        ),
        (
            &["active", "classic"],
            with_login(&["200-so\r\n200 it is", "425 cannot connect"]),
            "the responder at PEER answers RETR with 425 cannot connect",
        ),
    ] {
        let error = against(options, &answers);
        assert_eq!(error.message, message);
        assert_eq!(error.blame, Blame::Measurement, "{message}");
    }
    let endless = "2".repeat(600);
    let error = against(&[], &[&endless]);
    assert_eq!(
        error.message,
        "the peer at PEER sent a line that is too long"
    );
}

#[test]
fn a_firewall_before_the_files_is_said_to_be_there() {
    let error = against(&[], &with_login(&["229 (|||1|)"]));
    let begun = "cannot connect to 127.0.0.1:1, where the responder listens for the file: ";
    assert!(error.message.starts_with(begun), "{error:?}");
    assert_eq!(error.blame, Blame::Environment);
    assert!(error.hint.unwrap().contains("`mode = active`"));
    // It announces to connect, and nothing of it comes through.
    let error = against(&["active"], &with_login(&["200 yes", "150 soon"]));
    let begun = "the responder at PEER did not connect to 127.0.0.1:";
    assert!(error.message.starts_with(begun), "{error:?}");
    assert!(error.hint.unwrap().contains("`mode = passive`"));
}

/// What a passive responder's file of so many bytes does to an initiator that gets 100.
fn file_of(bytes: usize) -> Result<()> {
    let files = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = files.local_addr().unwrap().port();
    let (address, thread) = responder(
        with_login(&[])
            .into_iter()
            .map(str::to_string)
            .chain([format!("229 (|||{port}|)"), "150 here".into()])
            .collect(),
        |_| (),
    );
    let sender = spawn(move || {
        let (mut file, _) = files.accept().unwrap();
        // An initiator that has had enough leaves.
        let _ = file.write_all(&vec![0; bytes]);
    });
    let got = gets(&mut *connector(&[], &address), &mut memory());
    drop((sender, thread));
    got
}

#[test]
fn files_of_another_length_are_errors() {
    let error = file_of(50).unwrap_err();
    assert_eq!(
        error.message,
        "the peer closed the connection in the middle of a data unit"
    );
    let error = file_of(101).unwrap_err();
    assert_eq!(error.message, "the peer sent data after the last data unit");
    // The file is whole, and the reply that says so never comes.
    let error = file_of(100).unwrap_err();
    assert_eq!(
        error.message,
        "the peer closed the connection before it had said all of FTP"
    );
}

#[test]
fn a_stranger_at_an_initiators_port_is_closed() {
    let mut answers: Vec<String> = LOGIN.map(str::to_string).to_vec();
    answers.extend(["200 yes", "150 here", "226 done"].map(str::to_string));
    let mut to = None;
    let (address, thread) = responder(answers, move |line| {
        if let Some(place) = line.strip_prefix("EPRT |1|127.0.0.1|") {
            let port: u16 = place.trim_end_matches('|').parse().unwrap();
            to = Some(SocketAddr::from((LOOPBACK, port)));
        }
        if !line.starts_with("RETR") {
            return None;
        }
        let stranger = connect_from([127, 0, 0, 2], to.unwrap());
        let mut file = TcpStream::connect(to.unwrap()).unwrap();
        file.write_all(&[0; 100]).unwrap();
        Some(stranger)
    });
    let mut buffers = memory();
    let mut connection = connector(&["active"], &address)
        .connect(&mut buffers)
        .unwrap();
    connection
        .start_bulk(BulkDirection::Get, &mut buffers)
        .unwrap();
    assert_eq!(connection.receive(100, 1, &mut buffers), Ok(1));
    // The reply to RETR follows the connections, that after the file has no command before it.
    drop(connection);
    let kept = thread.join().unwrap();
    let mut stranger = kept.into_iter().flatten().next().unwrap();
    assert!(matches!(stranger.read(&mut [0]), Ok(0) | Err(_)));
}

fn connect_from(host: [u8; 4], to: SocketAddr) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((host, 0)).into()).unwrap();
    socket.connect(&to.into()).unwrap();
    socket.into()
}

/// A responder of the stack, which sends a file of a unit of 100 B once it is asked for one.
fn serving(bind: IpAddr) -> (u16, JoinHandle<Result<()>>) {
    let stack = find_stack("ftp").unwrap();
    let mut listener = stack.listen(&parameters(&[], bind)).unwrap();
    let port = listener.address().parse().unwrap();
    let thread = spawn(move || {
        let mut buffers = memory();
        let mut connection = listener.accept(&mut buffers)?;
        if connection.await_start_bulk(BulkDirection::Get, &mut buffers)? {
            assert_eq!(connection.send(100, 1, &mut buffers), Ok(1));
            connection.await_stop_bulk(BulkDirection::Get, &mut buffers)?;
        }
        connection.await_disconnect(&mut buffers)
    });
    (port, thread)
}

/// A client that speaks with it line by line.
struct Client {
    stream: TcpStream,
    lines: BufReader<TcpStream>,
}

impl Client {
    fn connect(host: IpAddr, port: u16) -> Self {
        let stream = TcpStream::connect((host, port)).unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap());
        let mut client = Self { stream, lines };
        assert!(client.hear().starts_with("220 "));
        client
    }

    fn hear(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap_or(0);
        line
    }

    fn ask(&mut self, command: &str) -> String {
        let _ = self.stream.write_all(format!("{command}\r\n").as_bytes());
        self.hear()
    }

    fn asks(&mut self, dialogue: &[(&str, &str)]) {
        for (command, answer) in dialogue {
            let said = self.ask(command);
            assert!(said.starts_with(answer), "{command}: {said}");
        }
    }

    fn log_in(host: IpAddr, port: u16) -> Self {
        let mut client = Self::connect(host, port);
        let pass = format!("PASS {PASSWORD}");
        client.asks(&[("USER ann", "331 "), (&pass, "230 "), ("TYPE I", "200 ")]);
        client
    }

    /// Where the responder listens for a file.
    fn passive(&mut self, host: IpAddr) -> SocketAddr {
        let said = self.ask("EPSV");
        let (_, port) = said.split_once("(|||").unwrap();
        let (port, _) = port.split_once('|').unwrap();
        SocketAddr::from((host, port.parse().unwrap()))
    }

    /// Gets the file at last, and leaves.
    fn gets_and_quits(&mut self, host: IpAddr) {
        let to = self.passive(host);
        let mut file = TcpStream::connect(to).unwrap();
        self.asks(&[("RETR x", "150 ")]);
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len(), 100);
        assert!(self.hear().starts_with("226 "));
        self.asks(&[("QUIT", "221 ")]);
        self.stream.shutdown(std::net::Shutdown::Both).unwrap();
    }
}

#[test]
fn strangers_get_no_further_than_the_login() {
    let (port, thread) = serving(LOOPBACK);
    let silent = Client::connect(LOOPBACK, port);
    for dialogue in [
        &[("USER ann", "331 "), ("PASS sesame", "530 "), ("NOOP", "")][..],
        &[("USER ann", "331 "), ("PASS ", "530 "), ("NOOP", "")],
        &[
            ("PASS 07070707070707070707070707070707", "530 "),
            ("NOOP", ""),
        ],
        &[("GET / HTTP/1.1", "530 "), ("NOOP", "")],
        &[("RETR x", "530 "), ("NOOP", "")],
    ] {
        let mut stranger = Client::connect(LOOPBACK, port);
        stranger.asks(dialogue);
        assert_eq!(stranger.hear(), "", "it is closed");
    }
    let mut endless = Client::connect(LOOPBACK, port);
    assert_eq!(endless.ask(&"x".repeat(100)), "", "it is closed");
    Client::log_in(LOOPBACK, port).gets_and_quits(LOOPBACK);
    assert_eq!(thread.join().unwrap(), Ok(()));
    drop(silent);
}

#[test]
fn a_login_in_one_piece_or_byte_by_byte_is_a_login() {
    let login = format!("USER ann\r\nPASS {PASSWORD}\r\nTYPE I\r\n");
    for piece in [login.len(), 1] {
        let (port, thread) = serving(LOOPBACK);
        let mut client = Client::connect(LOOPBACK, port);
        client.stream.set_nodelay(true).unwrap();
        for bytes in login.as_bytes().chunks(piece) {
            client.stream.write_all(bytes).unwrap();
        }
        for code in ["331 ", "230 ", "200 "] {
            let said = client.hear();
            assert!(said.starts_with(code), "{said}");
        }
        client.gets_and_quits(LOOPBACK);
        assert_eq!(thread.join().unwrap(), Ok(()));
    }
}

#[test]
fn nothing_goes_to_another_host_and_what_is_not_served_is_refused() {
    let (port, thread) = serving(LOOPBACK);
    let mut client = Client::log_in(LOOPBACK, port);
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let nobody = format!("EPRT |1|127.0.0.1|{}|", closed.port());
    client.asks(&[
        ("EPRT |1|127.0.0.2|5000|", "501 "),
        ("EPRT |2|::1|5000|", "501 "),
        ("PORT 10,0,0,1,19,136", "501 "),
        ("EPRT |1|127.0.0.1|25|", "501 "),
        ("EPRT 1", "501 "),
        ("RETR x", "425 first EPSV"),
        (&nobody, "200 "),
        ("RETR x", "425 cannot connect to port"),
        ("RETR x", "425 first EPSV"),
        ("USER ann", "503 "),
        ("TYPE A", "501 "),
        ("MODE S", "200 "),
        ("LIST", "502 "),
        ("NOOP", "200 "),
    ]);
    client.gets_and_quits(LOOPBACK);
    assert_eq!(thread.join().unwrap(), Ok(()));
}

#[test]
fn a_stranger_at_a_responders_port_is_closed_and_a_file_waits_for_its_connection_only_so_long() {
    let (port, thread) = serving(LOOPBACK);
    let mut client = Client::log_in(LOOPBACK, port);
    client.passive(LOOPBACK);
    assert!(client.ask("RETR x").starts_with("425 no connection"));
    let to = client.passive(LOOPBACK);
    let mut stranger = connect_from([127, 0, 0, 2], to);
    let mut file = TcpStream::connect(to).unwrap();
    client.asks(&[("RETR x", "150 ")]);
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes.len(), 100);
    assert!(matches!(stranger.read(&mut [0]), Ok(0) | Err(_)));
    assert!(client.hear().starts_with("226 "));
    client.asks(&[("QUIT", "221 ")]);
    client.stream.shutdown(std::net::Shutdown::Both).unwrap();
    assert_eq!(thread.join().unwrap(), Ok(()));
}

#[test]
fn another_program_of_the_peers_host_is_an_error() {
    let (port, thread) = serving(LOOPBACK);
    let mut client = Client::log_in(LOOPBACK, port);
    let to = client.passive(LOOPBACK);
    let both = [(); 2].map(|()| TcpStream::connect(to).unwrap());
    assert!(client.ask("RETR x").starts_with("425 another program"));
    for mut closed in both {
        assert!(matches!(closed.read(&mut [0]), Ok(0) | Err(_)));
    }
    client.gets_and_quits(LOOPBACK);
    assert_eq!(thread.join().unwrap(), Ok(()));
    // The same where the responder connects.
    let mut answers: Vec<String> = LOGIN.map(str::to_string).to_vec();
    answers.extend(["200 yes", "150 here"].map(str::to_string));
    let mut to = None;
    let (address, thread) = responder(answers, move |line| {
        if let Some(place) = line.strip_prefix("EPRT |1|127.0.0.1|") {
            let port: u16 = place.trim_end_matches('|').parse().unwrap();
            to = Some(SocketAddr::from((LOOPBACK, port)));
        }
        line.starts_with("RETR")
            .then(|| [(); 2].map(|()| TcpStream::connect(to.unwrap()).unwrap()))
    });
    let error = gets(&mut *connector(&["active"], &address), &mut memory()).unwrap_err();
    let begun =
        format!("another program on the host of the responder at {address} has connected to ");
    assert!(error.message.starts_with(&begun), "{error:?}");
    assert!(error.hint.is_some());
    drop(thread.join().unwrap());
}

#[test]
fn initiators_of_the_stack_get_files_over_ipv6_too() {
    let host = IpAddr::V6(Ipv6Addr::LOCALHOST);
    if TcpListener::bind((host, 0)).is_err() {
        stackline_testing::skip("this host has no IPv6");
        return;
    }
    for options in [&[][..], &["active"], &["nagle"]] {
        let (port, thread) = serving(host);
        let mut buffers = memory();
        let address = format!("[::1]:{port}");
        let mut connection = connector(options, &address).connect(&mut buffers).unwrap();
        connection
            .start_bulk(BulkDirection::Get, &mut buffers)
            .unwrap();
        assert_eq!(connection.receive(100, 1, &mut buffers), Ok(1));
        connection
            .stop_bulk(BulkDirection::Get, &mut buffers)
            .unwrap();
        assert_eq!(connection.disconnect(&mut buffers), Ok(()));
        assert_eq!(thread.join().unwrap(), Ok(()));
    }
    for options in [&["classic"][..], &["classic", "active"]] {
        let (port, thread) = serving(host);
        let error = gets(
            &mut *connector(options, &format!("[::1]:{port}")),
            &mut memory(),
        );
        let error = error.unwrap_err();
        assert!(
            error.message.contains("has no room for addresses of IPv6"),
            "{error:?}"
        );
        assert_eq!(error.blame, Blame::Input);
        assert!(thread.join().unwrap().is_err(), "the initiator has left");
    }
    let (port, thread) = serving(host);
    let mut client = Client::log_in(host, port);
    client.asks(&[("PASV", "522 ")]);
    client.gets_and_quits(host);
    assert_eq!(thread.join().unwrap(), Ok(()));
}

#[test]
fn calls_are_refused_by_both_ends() {
    let (port, thread) = serving(LOOPBACK);
    let mut buffers = memory();
    let address = format!("127.0.0.1:{port}");
    let mut connection = connector(&[], &address).connect(&mut buffers).unwrap();
    let call = connection.call(1, 1, Instant(0), &mut buffers);
    assert_eq!(call.unwrap_err().blame, Blame::Input);
    assert_eq!(connection.disconnect(&mut buffers), Ok(()));
    assert_eq!(thread.join().unwrap(), Ok(()));
}
