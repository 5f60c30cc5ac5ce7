//! Whatever a peer sends, nothing panics and nothing grows without bound.

use super::*;
use crate::papers::ftam::receiver::MOST_MESSAGE;
use proptest::prelude::*;

/// Takes bytes as they come, and reads each message.
fn take_all(bytes: &[u8], size: TpduSize) -> Result<(), OsiError> {
    let mut receiver = FtamReceiver::new(size);
    let mut from = 0;
    loop {
        let (taken, received) = receiver.take(&bytes[from..])?;
        from += taken;
        match received {
            FtamReceived::Nothing => return Ok(()),
            FtamReceived::Data { bytes, .. } => assert!(bytes <= taken),
            FtamReceived::Message => receiver.message().map(drop)?,
        }
    }
}

#[test]
fn every_truncation_and_every_flipped_bit_of_every_message_is_an_answer_or_an_error() {
    for message in messages() {
        let tsdu = message.tsdu();
        for cut in 0..tsdu.len() {
            assert!(FtamMessage::read(&tsdu[..cut]).is_err(), "{message:?}");
        }
        for bit in 0..tsdu.len() * 8 {
            let mut changed = tsdu.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let _ = FtamMessage::read(&changed);
            let mut framed = Vec::new();
            cotp::write_tsdu(&changed, TpduSize::default(), &mut framed);
            let _ = take_all(&framed, TpduSize::default());
        }
    }
}

#[test]
fn a_message_without_end_is_refused() {
    let size = TpduSize::within(Some(8192));
    let mut endless = cotp::data_head(4000, false).to_vec();
    endless.extend_from_slice(&[0x0D; 4000]);
    let bytes = endless.repeat(MOST_MESSAGE / 4000 + 1);
    assert_eq!(
        take_all(&bytes, size).unwrap_err(),
        OsiError::Malformed {
            layer: OsiLayer::Session,
            what: "a message is too long"
        }
    );
}

#[test]
fn lengths_that_contradict_each_other_are_refused() {
    for unit in [
        "01000100 6129 3027 020105 a022 0421",
        "01000100 61ff 3027",
        "01000100 6181ff 3027 020105 a022 0420",
    ] {
        let mut bytes = Vec::new();
        cotp::write_tsdu(&hex(unit), TpduSize::default(), &mut bytes);
        assert!(take_all(&bytes, TpduSize::default()).is_err(), "{unit}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_harmless(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = CotpOpening::read(&bytes);
        let _ = FtamMessage::read(&bytes);
        let _ = take_all(&bytes, TpduSize::within(Some(128)));
    }

    #[test]
    fn what_is_nearly_a_message_is_harmless(
        which in 0_usize..13,
        changes in prop::collection::vec((0_usize..200, any::<u8>()), 1..4),
    ) {
        let mut tsdu = messages()[which].tsdu();
        for (at, byte) in changes {
            let at = at % tsdu.len();
            tsdu[at] = byte;
        }
        let _ = FtamMessage::read(&tsdu);
    }
}
