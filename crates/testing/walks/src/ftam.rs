//! A peer of OSI's file transfer that says what bytes say: for the fuzz target and the tests.
//!
//! The first byte chooses: the rest opens a transport connection and goes on with TPDUs, in the pieces that its own bytes ask for; or it
//! is one TSDU, which is cut into TPDUs as a sender does. Whatever comes: nothing panics, every call takes bytes or says that more have to
//! come, and a data unit is as long as it said.

use stackline_proto::papers::ftam::cotp::write_tsdu;
use stackline_proto::papers::ftam::receiver::MOST_MESSAGE;
use stackline_proto::papers::ftam::{
    CotpOpening, FtamMessage, FtamReceived, FtamReceiver, OsiError, TpduSize,
};

/// Most bytes that a receiver leaves to its caller when it wants more.
const MOST_UNTAKEN: usize = 260;

/// Plays what the bytes encode; how many messages and data units were whole.
///
/// # Panics
/// When what is found cannot be true.
#[must_use]
pub fn fuzz_ftam(bytes: &[u8]) -> usize {
    let Some((first, rest)) = bytes.split_first() else {
        return 0;
    };
    let size = TpduSize::within((first & 2 != 0).then_some(128 << (first >> 5)));
    if first & 1 == 0 {
        let mut tpdus = Vec::new();
        write_tsdu(rest, size, &mut tpdus);
        let _ = FtamMessage::read(rest);
        return take_all(&tpdus, size, tpdus.len()).unwrap_or(0);
    }
    let opened = match CotpOpening::read(rest) {
        Ok(Some((CotpOpening::Request(opened) | CotpOpening::Confirm(opened), length))) => {
            assert!(length <= rest.len() && opened.calling.len() <= 32);
            Some((opened.size.smaller(size), length))
        }
        _ => None,
    };
    let (size, from) = opened.unwrap_or((size, 0));
    take_all(&rest[from..], size, usize::from(first >> 2) + 1).unwrap_or(0)
}

fn take_all(bytes: &[u8], size: TpduSize, at_once: usize) -> Result<usize, OsiError> {
    let mut receiver = FtamReceiver::new(size);
    let (mut from, mut to, mut whole) = (0, 0, 0);
    let mut left_before = 0;
    loop {
        let (taken, received) = receiver.take(&bytes[from..to])?;
        assert!(taken <= to - from);
        from += taken;
        match received {
            FtamReceived::Nothing if to == bytes.len() => return Ok(whole),
            FtamReceived::Nothing => {
                assert!(to - from <= MOST_UNTAKEN, "{} bytes are left", to - from);
                to = bytes.len().min(to + at_once);
            }
            FtamReceived::Data { bytes, left } => {
                assert!(taken > 0 && bytes <= taken);
                assert!(left_before == 0 || left_before == left + bytes as u64);
                left_before = left;
                whole += usize::from(left == 0);
            }
            FtamReceived::Message => {
                assert!(taken > 0 && left_before == 0);
                if let FtamMessage::Data(pdus) = receiver.message()? {
                    assert!(pdus.len() <= MOST_MESSAGE / 2);
                }
                whole += 1;
            }
        }
    }
}
