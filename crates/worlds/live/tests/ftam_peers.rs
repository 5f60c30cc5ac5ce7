//! The stack `ftam` and peers that refuse, abort, or are no FTAM at all: each is an error of one sentence that names the peer.
#![allow(
    clippy::unwrap_used,
    reason = "what helpers of a test cannot do fails the test"
)]

use stackline_core::catalogue::OptionValue;
use stackline_core::plan::DataAccess;
use stackline_core::time::Instant;
use stackline_endpoint::BulkDirection;
use stackline_live::buffers::LiveThreadBuffers;
use stackline_live::error::{Error, Result};
use stackline_live::files::AgentFileDirectory;
use stackline_live::stacks::contract::{LiveConnectParameters, LiveConnection};
use stackline_live::stacks::find_stack;
use stackline_proto::papers::ftam::pdu::FtamDiagnostic;
use stackline_proto::papers::ftam::{CotpConnect, FtamMessage, FtamOutcome, FtamPdu, TpduSize};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;

fn parameters(tpdu: Option<u64>) -> LiveConnectParameters {
    let written = tpdu.map(|bytes| ("tpdu".to_string(), OptionValue::Number(bytes)));
    LiveConnectParameters {
        stack: find_stack("ftam")
            .unwrap()
            .table()
            .stack(written.into_iter().collect()),
        token: [7; 16],
        carries_data: true,
        replica: 0,
        bind: IpAddr::V4(Ipv4Addr::LOCALHOST),
        member: None,
        foreign: Arc::default(),
    }
}

fn memory() -> LiveThreadBuffers {
    let (flags, files) = (Arc::default(), AgentFileDirectory::default());
    let memory = DataAccess::Memory;
    LiveThreadBuffers::new(flags, &files, &memory, &memory, 100).unwrap()
}

/// The error of an initiator that connects and starts a get, when its peer says this, each time something has come.
fn against(answers: Vec<Vec<u8>>) -> Error {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let peer = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut said = [0; 4096];
        for answer in answers {
            assert!(stream.read(&mut said).unwrap() > 0);
            stream.write_all(&answer).unwrap();
        }
    });
    let mut buffers = memory();
    let stack = find_stack("ftam").unwrap();
    let mut connector = stack.connector(&parameters(None), &address).unwrap();
    let mut attempt = || -> Result<()> {
        let mut connection = connector.connect(&mut buffers)?;
        connection.start_bulk(BulkDirection::Get, &mut buffers)
    };
    let error = attempt().unwrap_err();
    peer.join().unwrap();
    assert!(error.hint.is_some(), "{error:?}");
    Error {
        message: error.message.replace(&address, "PEER"),
        ..error
    }
}

fn confirm() -> Vec<u8> {
    let mut tpkt = Vec::new();
    let confirm = CotpConnect {
        destination: 1,
        source: 1,
        size: TpduSize::default(),
        calling: Vec::new(),
        called: Vec::new(),
    };
    confirm.write_confirm(&mut tpkt);
    tpkt
}

fn tpkts(message: &FtamMessage) -> Vec<u8> {
    let mut tpkts = Vec::new();
    message.write(TpduSize::default(), &mut tpkts);
    tpkts
}

#[test]
fn a_peer_that_refuses_is_named_with_its_layer_and_reason() {
    let no_such_file = FtamOutcome {
        failed: true,
        action: 2,
        diagnostic: Some(FtamDiagnostic {
            kind: 2,
            identifier: 3000,
            details: "no such file".into(),
        }),
    };
    let refused = FtamPdu::InitializeResponse {
        outcome: FtamOutcome::default(),
        functional_units: 0,
    };
    let not_opened = FtamMessage::Data(vec![FtamPdu::OpenResponse {
        outcome: no_such_file.clone(),
    }]);
    let accepted = || vec![confirm(), tpkts(&FtamMessage::accept())];
    let then = |mut before: Vec<Vec<u8>>, message: &FtamMessage| {
        before.push(tpkts(message));
        before
    };
    for (answers, expected) in [
        (
            vec![b"\x03\0\0\x0b\x06\x80\0\x01\0\0\x02".to_vec()],
            "COTP of the peer PEER ended the connection: nothing listens at that TSAP-ID (reason 2)",
        ),
        (
            vec![b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()],
            "the peer PEER sent what is malformed as TPKT: the version is not 3",
        ),
        (vec![], "the peer closed the connection"),
        (
            then(vec![confirm()], &FtamMessage::Refuse(refused)),
            "ACSE of the peer PEER ended the connection: the association is rejected",
        ),
        (
            then(accepted(), &not_opened),
            "FTAM of the peer PEER ended the connection: F-OPEN response says a permanent error 3000: no such file",
        ),
        (
            then(accepted(), &FtamMessage::Abort(no_such_file)),
            "ACSE of the peer PEER ended the connection: its user aborts, a permanent error 3000: no such file",
        ),
        (
            then(accepted(), &FtamMessage::Disconnect),
            "the peer PEER sent another message where F-BEGIN-GROUP response was expected",
        ),
    ] {
        let said = against(answers).message;
        assert!(said.starts_with(expected), "{said}");
    }
}

/// Two ends that connect, each in a thread.
fn ends(tpdu: [Option<u64>; 2]) -> [Box<dyn LiveConnection>; 2] {
    let stack = find_stack("ftam").unwrap();
    let [initiator, responder] = tpdu.map(parameters);
    let mut listener = stack.listen(&responder).unwrap();
    let address = format!("127.0.0.1:{}", listener.address());
    let accepting = std::thread::spawn(move || listener.accept(&mut memory()).unwrap());
    let mut connector = stack.connector(&initiator, &address).unwrap();
    let connected = connector.connect(&mut memory()).unwrap();
    [connected, accepting.join().unwrap()]
}

#[test]
fn the_smaller_tpdu_is_agreed_on() {
    for (tpdu, agreed) in [
        ([Some(4096), Some(512)], "512 B"),
        ([Some(128), None], "128 B"),
        ([None, Some(2048)], "2048 B"),
    ] {
        let settings = ends(tpdu).map(|end| end.settings()["tpdu"].clone());
        assert_eq!(settings, [agreed; 2], "{tpdu:?}");
    }
}

#[test]
fn sides_that_disagree_on_the_direction_are_refused() {
    let [mut initiator, mut responder] = ends([None, None]);
    let answering = std::thread::spawn(move || {
        let waits = responder.await_start_bulk(BulkDirection::Put, &mut memory());
        waits.unwrap_err()
    });
    initiator
        .start_bulk(BulkDirection::Get, &mut memory())
        .unwrap();
    let error = answering.join().unwrap();
    assert!(
        error.message.contains("moves data the other way"),
        "{error:?}"
    );
    let called = initiator.call(10, 10, Instant::default(), &mut memory());
    assert!(called.is_err(), "the peer is gone");
}

#[test]
fn a_stranger_with_another_token_is_closed_and_the_peer_still_comes_in() {
    let stack = find_stack("ftam").unwrap();
    let mut listener = stack.listen(&parameters(None)).unwrap();
    let address = format!("127.0.0.1:{}", listener.address());
    let accepting = std::thread::spawn(move || listener.accept(&mut memory()).map(drop));
    let mut request = Vec::new();
    let stranger = CotpConnect {
        destination: 0,
        source: 1,
        size: TpduSize::default(),
        calling: vec![8; 16],
        called: b"ftam".to_vec(),
    };
    stranger.write_request(&mut request);
    let mut stranger = TcpStream::connect(&address).unwrap();
    stranger.write_all(&request).unwrap();
    let mut silent = TcpStream::connect(&address).unwrap();
    let mut connector = stack.connector(&parameters(None), &address).unwrap();
    let connected = connector.connect(&mut memory());
    assert!(connected.is_ok() && accepting.join().unwrap().is_ok());
    // Closed with bytes unread, or with none.
    assert!(matches!(stranger.read(&mut [0; 9]), Ok(0) | Err(_)));
    assert!(matches!(silent.read(&mut [0; 9]), Ok(0) | Err(_)));
}
