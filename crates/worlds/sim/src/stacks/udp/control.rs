//! Of control datagrams what is the simulated world's own: tokens from seeds, and words for whoever waits.

use stackline_proto::datagram::Token;
use stackline_proto::datagram::control::Control;

/// What one who has sent this waits for.
pub(super) const fn words(control: Control) -> &'static str {
    match control {
        Control::Hello => "its HELLO to be answered",
        Control::Start => "its START to be answered",
        Control::End => "its END to be answered",
        Control::Bye => "its BYE to be answered",
    }
}

/// The token of a pair.
pub(super) fn token(seed: u64) -> Token {
    let mut token = Token::default();
    token[..8].copy_from_slice(&seed.to_le_bytes());
    token[8..].copy_from_slice(&seed.rotate_left(32).to_le_bytes());
    token[7] |= 0x80;
    token
}
