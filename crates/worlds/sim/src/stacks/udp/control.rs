//! Of control datagrams what is the simulated world's own: tokens from seeds, and words for whoever waits.

use stackline_proto::datagram::DatagramToken;
use stackline_proto::datagram::control::DatagramControl;

/// What one who has sent this waits for.
pub(super) const fn awaited_reply(control: DatagramControl) -> &'static str {
    match control {
        DatagramControl::Hello => "its HELLO to be answered",
        DatagramControl::Start => "its START to be answered",
        DatagramControl::End => "its END to be answered",
        DatagramControl::Bye => "its BYE to be answered",
    }
}

/// The token of a pair.
pub(super) fn seeded_token(seed: u64) -> DatagramToken {
    let mut token = DatagramToken::default();
    token[..8].copy_from_slice(&seed.to_le_bytes());
    token[8..].copy_from_slice(&seed.rotate_left(32).to_le_bytes());
    token[7] |= 0x80;
    token
}
