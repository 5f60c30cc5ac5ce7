//! Control datagrams, as far as the simulation differs from the live world: tokens come from seeds, and waits have descriptions.

use stackline_proto::datagram::DatagramToken;
use stackline_proto::datagram::control::DatagramControl;

/// Describes the wait for the reply to a control datagram.
pub(super) const fn awaited_reply(control: DatagramControl) -> &'static str {
    match control {
        DatagramControl::Hello => "its HELLO to be answered",
        DatagramControl::Start => "its START to be answered",
        DatagramControl::End => "its END to be answered",
        DatagramControl::Bye => "its BYE to be answered",
    }
}

/// The token of a pair, by which its datagrams are recognised.
pub(super) fn seeded_token(seed: u64) -> DatagramToken {
    let mut token = DatagramToken::default();
    token[..8].copy_from_slice(&seed.to_le_bytes());
    token[8..].copy_from_slice(&seed.rotate_left(32).to_le_bytes());
    // As the first 8 bytes of a datagram, the token is then no number of a data unit.
    token[7] |= 0x80;
    token
}
