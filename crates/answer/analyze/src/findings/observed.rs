//! Findings about connections of any programs in runs without measurements, from monitors of sockets, packet captures and QUIC logs.

pub(super) mod application;
pub(super) mod congestion;
pub(super) mod connections;
pub(super) mod datagram_loss;
pub(super) mod full_link;
pub(super) mod loss;
pub(super) mod quic;
pub(super) mod quiet;
pub(super) mod send_buffer;
pub(super) mod sender_limits;
pub(super) mod transfers;
pub(super) mod unread;
pub(super) mod window;
