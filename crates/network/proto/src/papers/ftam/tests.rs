//! Tests of FTAM's stack: each PDU byte by byte, both ways; what arrives in pieces; what peers refuse; hostile bytes.

mod bytes;
mod hostile;
mod pieces;
mod refusals;

use super::*;
use alloc::vec;
use alloc::vec::Vec;

/// Hexadecimal digits, spaced as one likes.
fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    let value = |digit: u8| (digit as char).to_digit(16).unwrap() as u8;
    digits
        .chunks(2)
        .map(|two| value(two[0]) << 4 | value(two[1]))
        .collect()
}

/// A message of each kind that goes on.
fn messages() -> Vec<FtamMessage> {
    let outcome = FtamOutcome::default();
    let filename = alloc::string::String::from("stackline");
    let alone = |pdu| FtamMessage::Data(vec![pdu]);
    let empty = |pdu| alone(FtamPdu::Empty(pdu));
    let group = FtamMessage::Data(vec![
        FtamPdu::BeginGroupRequest { threshold: 2 },
        FtamPdu::SelectRequest {
            filename: filename.clone(),
        },
        FtamPdu::OpenRequest,
        FtamPdu::Empty(FtamEmptyPdu::EndGroupRequest),
    ]);
    let answers = FtamMessage::Data(vec![
        FtamPdu::Empty(FtamEmptyPdu::BeginGroupResponse),
        FtamPdu::SelectResponse {
            outcome: outcome.clone(),
            filename,
        },
        FtamPdu::OpenResponse { outcome },
        FtamPdu::Empty(FtamEmptyPdu::EndGroupResponse),
    ]);
    let close = FtamMessage::Data(vec![
        FtamOutcomePdu::CloseRequest.success(),
        FtamPdu::Empty(FtamEmptyPdu::DeselectRequest),
    ]);
    let closed = FtamMessage::Data(vec![
        FtamOutcomePdu::CloseResponse.success(),
        FtamOutcomePdu::DeselectResponse.success(),
    ]);
    vec![
        FtamMessage::connect(),
        FtamMessage::accept(),
        group,
        answers,
        alone(FtamPdu::ReadRequest),
        alone(FtamPdu::WriteRequest),
        alone(FtamOutcomePdu::DataEnd.success()),
        empty(FtamEmptyPdu::TransferEndRequest),
        alone(FtamOutcomePdu::TransferEndResponse.success()),
        close,
        closed,
        FtamMessage::Finish,
        FtamMessage::Disconnect,
    ]
}
