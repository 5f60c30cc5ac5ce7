//! Threads of connections: a machine that has no more of them loses a connection, not the service.

use std::thread;

/// Does that in a thread of its own; false where the machine has none, and it is not done.
pub(crate) fn in_thread(work: impl FnOnce() + Send + 'static) -> bool {
    thread::Builder::new().spawn(work).is_ok()
}
