//! What monitors and captures say of connections of any programs, where nothing was measured.

pub(super) mod connections;
pub(super) mod full_link;
pub(super) mod loss;
pub(super) mod quiet;
pub(super) mod unread;
pub(super) mod window;
