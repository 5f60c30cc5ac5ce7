//! What goes over the wire, from the layouts of the standards.

use super::*;
use crate::papers::ftam::cotp::{CALLING_SELECTOR_AT, write_tsdu};
use crate::papers::ftam::data_unit::{UnitHead, read_unit_head, write_unit_head};
use alloc::format;

/// `1.0.8571.5.3`, the document type FTAM-3, as an application-wide type 14.
const FTAM_3: &str = "4e05 28c27b0503";

fn assert_tsdu(message: &FtamMessage, expected: &str) {
    assert_eq!(message.tsdu(), hex(expected), "{message:?}");
    assert_eq!(FtamMessage::read(&hex(expected)).as_ref(), Ok(message));
}

/// PDUs of FTAM behind the P-DATA that carries them, each with its length there.
fn assert_data(pdus: Vec<FtamPdu>, expected: &[&str]) {
    let mut list = Vec::new();
    for pdu in expected {
        let pdu = hex(pdu);
        list.extend_from_slice(&[0x30, pdu.len() as u8 + 5, 2, 1, 3, 0xA0, pdu.len() as u8]);
        list.extend_from_slice(&pdu);
    }
    let mut tsdu = hex("01000100 61");
    if list.len() > 127 {
        tsdu.push(0x81);
    }
    tsdu.push(list.len() as u8);
    tsdu.extend_from_slice(&list);
    let message = FtamMessage::Data(pdus);
    assert_eq!(message.tsdu(), tsdu, "{message:?}");
    assert_eq!(FtamMessage::read(&tsdu), Ok(message));
}

#[test]
fn a_transport_connection_is_opened() {
    let request = CotpConnect {
        destination: 0,
        source: 1,
        size: TpduSize::within(Some(2048)),
        calling: (0..16).collect(),
        called: b"ftam".to_vec(),
    };
    let mut tpkt = Vec::new();
    request.write_request(&mut tpkt);
    let expected = "0300 0026  21 e0 0000 0001 00  c110 000102030405060708090a0b0c0d0e0f  c204 6674616d  c001 0b";
    assert_eq!(tpkt, hex(expected));
    assert_eq!(tpkt[CALLING_SELECTOR_AT..][..16], request.calling);
    let read = CotpOpening::read(&tpkt);
    assert_eq!(read, Ok(Some((CotpOpening::Request(request), 38))));

    let confirm = CotpConnect {
        destination: 1,
        source: 7,
        size: TpduSize::default(),
        calling: Vec::new(),
        called: Vec::new(),
    };
    let mut tpkt = Vec::new();
    confirm.write_confirm(&mut tpkt);
    assert_eq!(tpkt, hex("0300 000f  0a d0 0001 0007 00  c100 c200"));
    let read = CotpOpening::read(&tpkt);
    assert_eq!(read, Ok(Some((CotpOpening::Confirm(confirm), 15))));
}

#[test]
fn sizes_of_tpdus_are_powers_of_two_or_none_is_proposed() {
    let bytes = |written| TpduSize::within(written).bytes();
    assert_eq!(
        [128, 255, 256, 2048, 8191, 8192].map(|written| bytes(Some(written))),
        [128, 128, 256, 2048, 4096, 8192]
    );
    assert_eq!(bytes(None), 65_531);
    let (small, none) = (TpduSize::within(Some(512)), TpduSize::within(None));
    assert_eq!([small.smaller(none), none.smaller(small)], [small, small]);
}

#[test]
fn a_tsdu_is_cut_into_data_tpdus() {
    let mut out = Vec::new();
    write_tsdu(&[9; 126], TpduSize::within(Some(128)), &mut out);
    let expected = [
        hex("0300 0084 02f000"),
        vec![9; 125],
        hex("0300 0008 02f080 09"),
    ]
    .concat();
    assert_eq!(out, expected);
    out.clear();
    write_tsdu(&[], TpduSize::default(), &mut out);
    assert_eq!(out, hex("0300 0007 02f080"));
}

#[test]
fn an_association_is_asked_for_and_accepted() {
    let regime = format!("8109 737461636b6c696e65 83020520 84020031 860100 a707 {FTAM_3}");
    let contexts = "a435 \
        300f 020101 060452010001 3004 06025101 \
        3010 020103 060528c27b0201 3004 06025101 \
        3010 020105 060528c27b0204 3004 06025101";
    let aarq = format!("6033 a107 060528c27b0101 be28 2826 020103 a021 a01f {regime}");
    let cp = format!("317c a003 800101 a275 {contexts} 613c 303a 020101 a035 {aarq}");
    let connect = format!("0d8c 0506 130100 160102 1402 0002 c17e {cp}");
    assert_tsdu(&FtamMessage::connect(), &connect);

    let results = "a51b 3007 800100 81025101 3007 800100 81025101 3007 800100 81025101";
    let accepted = "a203 020100 a305 a103 020100";
    let aare = format!("613f a107 060528c27b0101 {accepted} be28 2826 020103 a021 a11f {regime}");
    let cpa = format!("316e a003 800101 a267 {results} 6148 3046 020101 a041 {aare}");
    let accept = format!("0e7e 0506 130100 160102 1402 0002 c170 {cpa}");
    assert_tsdu(&FtamMessage::accept(), &accept);
}

#[test]
fn an_association_is_released() {
    assert_tsdu(
        &FtamMessage::Finish,
        "091b c119 6117 3015 020101 a010 620e 800100 be09 2807 020103 a002 a200",
    );
    assert_tsdu(
        &FtamMessage::Disconnect,
        "0a1b c119 6117 3015 020101 a010 630e 800100 be09 2807 020103 a002 a300",
    );
}

#[test]
fn a_file_is_opened_and_closed_in_groups() {
    let outcome = FtamOutcome::default;
    let filename = alloc::string::String::from("stackline");
    let name = "730d a00b 1909 737461636b6c696e65";
    let select = format!("a613 {name} 430205a0");
    let selected = format!("a70f {name}");
    let open = format!("b211 800205a0 a10b a109 a007 {FTAM_3}");
    let opened = format!("b30b a109 a007 {FTAM_3}");
    assert_data(
        vec![
            FtamPdu::BeginGroupRequest { threshold: 2 },
            FtamPdu::SelectRequest {
                filename: filename.clone(),
            },
            FtamPdu::OpenRequest,
            FtamPdu::Empty(FtamEmptyPdu::EndGroupRequest),
        ],
        &["b603800102", &select, &open, "b800"],
    );
    assert_data(
        vec![
            FtamPdu::Empty(FtamEmptyPdu::BeginGroupResponse),
            FtamPdu::SelectResponse {
                outcome: outcome(),
                filename,
            },
            FtamPdu::OpenResponse { outcome: outcome() },
            FtamPdu::Empty(FtamEmptyPdu::EndGroupResponse),
        ],
        &["b700", &selected, &opened, "b900"],
    );
    assert_data(
        vec![
            FtamOutcomePdu::CloseRequest.success(),
            FtamPdu::Empty(FtamEmptyPdu::DeselectRequest),
            FtamOutcomePdu::CloseResponse.success(),
            FtamOutcomePdu::DeselectResponse.success(),
        ],
        &["b400", "a800", "b500", "a900"],
    );
}

#[test]
fn data_is_read_written_and_ended() {
    assert_data(
        vec![FtamPdu::ReadRequest, FtamPdu::WriteRequest],
        &["bf200a 6f03800100 6103800105", "bf2108 800101 6f03800100"],
    );
    assert_data(
        vec![
            FtamOutcomePdu::DataEnd.success(),
            FtamPdu::Empty(FtamEmptyPdu::TransferEndRequest),
            FtamOutcomePdu::TransferEndResponse.success(),
        ],
        &["bf2200", "bf2300", "bf2400"],
    );
}

#[test]
fn a_data_unit_is_an_octet_string_in_its_own_context() {
    for (unit, expected) in [
        (32, "01000100 6129 3027 020105 a022 0420"),
        (1024, "01000100 6182040f 3082040b 020105 a0820404 04820400"),
    ] {
        let mut head = Vec::new();
        write_unit_head(unit, &mut head);
        assert_eq!(head, hex(expected));
    }
    for unit in [0, 1, 127, 128, 65_519, 65_536, 1 << 20, 1 << 30] {
        let mut head = Vec::new();
        write_unit_head(unit, &mut head);
        let read = read_unit_head(&head).unwrap();
        let (length, bytes) = (head.len(), unit as u64);
        assert_eq!(
            read,
            UnitHead::Unit {
                head: length,
                bytes
            }
        );
        for cut in 0..length {
            assert_eq!(read_unit_head(&head[..cut]), Ok(UnitHead::Partial));
        }
    }
}
