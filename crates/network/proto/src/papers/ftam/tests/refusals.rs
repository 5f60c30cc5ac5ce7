//! What a peer says that cannot go on is one sentence with the layer and the reason.

use super::*;
use crate::papers::ftam::pdu::FtamDiagnostic;
use crate::papers::ftam::session::{Spdu, SpduKind};
use alloc::string::{String, ToString};

fn said(error: &OsiError) -> String {
    error.to_string()
}

fn of_message(tsdu: &[u8]) -> String {
    said(&FtamMessage::read(tsdu).unwrap_err())
}

fn no_such_file() -> FtamOutcome {
    FtamOutcome {
        failed: true,
        action: 2,
        diagnostic: Some(FtamDiagnostic {
            kind: 2,
            identifier: 3000,
            details: "no such file".into(),
        }),
    }
}

#[test]
fn transport_refuses_or_disconnects() {
    let opening = |text: &str| said(&CotpOpening::read(&hex(text)).unwrap_err());
    assert_eq!(
        opening("0300 000b 06 80 0001 0000 02"),
        "COTP: nothing listens at that TSAP-ID (reason 2)"
    );
    assert_eq!(
        opening("0300 000b 06 e0 0000 0001 40"),
        "COTP: the class is not 0"
    );
    assert_eq!(opening("4854 5450"), "TPKT: the version is not 3");
    let mut receiver = FtamReceiver::new(TpduSize::default());
    let tpkt = hex("0300 000b 06 80 0001 0002 80");
    assert_eq!(receiver.take(&tpkt[..8]), Ok((0, FtamReceived::Nothing)));
    assert_eq!(
        said(&receiver.take(&tpkt).unwrap_err()),
        "COTP: its user wants it (reason 128)"
    );
}

#[test]
fn session_refuses_or_aborts() {
    assert_eq!(
        of_message(&hex("0c 06 110101 320181")),
        "session: the session selector is unknown (reason 129)"
    );
    assert_eq!(of_message(&hex("19 03 110101")), "session: it aborts");
    assert_eq!(of_message(&hex("0f 00")), "session: an unknown SPDU");
    let spdu = Spdu::new(SpduKind::Connect, &[]).write();
    let half_duplex: Vec<u8> = spdu
        .iter()
        .enumerate()
        .map(|(at, byte)| if at == 13 { 1 } else { *byte })
        .collect();
    assert_eq!(
        of_message(&half_duplex),
        "session: the peer cannot send in both directions"
    );
}

#[test]
fn an_association_is_rejected_by_the_layer_that_knows_why() {
    let answer = |outcome| FtamPdu::InitializeResponse {
        outcome,
        functional_units: pdu::FUNCTIONAL_UNITS,
    };
    assert_eq!(
        of_message(&FtamMessage::Refuse(answer(no_such_file())).tsdu()),
        "FTAM: F-INITIALIZE response says a permanent error 3000: no such file"
    );
    assert_eq!(
        of_message(&FtamMessage::Refuse(answer(FtamOutcome::default())).tsdu()),
        "ACSE: the association is rejected, it gives no reason (result 1, diagnostic 0)"
    );
    let limited = FtamPdu::InitializeResponse {
        outcome: FtamOutcome::default(),
        functional_units: 0x2000,
    };
    assert_eq!(
        of_message(&FtamMessage::Accept(limited).tsdu()),
        "FTAM: it lacks reading, writing or grouping"
    );
}

#[test]
fn ftam_says_what_failed_and_aborts() {
    let failed = FtamPdu::OpenResponse {
        outcome: no_such_file(),
    };
    assert_eq!(
        of_message(&FtamMessage::Data(vec![failed]).tsdu()),
        "FTAM: F-OPEN response says a permanent error 3000: no such file"
    );
    assert_eq!(
        of_message(&FtamMessage::Abort(no_such_file()).tsdu()),
        "ACSE: its user aborts, a permanent error 3000: no such file"
    );
}
