//! What monitors, captures and logs of QUIC say of connections of any programs, where nothing was measured.

pub(super) mod application;
pub(super) mod congestion;
pub(super) mod connections;
pub(super) mod datagram_loss;
pub(super) mod full_link;
pub(super) mod loss;
pub(super) mod quic;
pub(super) mod quiet;
pub(super) mod unread;
pub(super) mod window;
