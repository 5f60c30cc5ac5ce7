//! The messages that wait for one connection of a master. They are bounded in bytes, not in number, because an answer may have half a
//! megabyte.
//!
//! When a client's answers reach a limit, the master reads nothing more from it until some are sent. The bytes that wait for all clients
//! together are bounded too: above the limit, the client for which the most waits is disconnected.

use crate::connection::{self, BlockMessageSender};
use crate::server::now;
use stackline_blocks::master::stamp_master_out;
use stackline_blocks::wire::message::Message;
use std::collections::VecDeque;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The largest number of messages that are sent with one system call.
const TOGETHER: usize = 64;
/// When this many bytes are gathered, no other message is added to them.
const AT_ONCE: u64 = 64 << 10;
/// How long sending the last messages of a closed connection may take.
const LAST: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
struct OutboxMessages {
    /// The waiting messages, each with the bytes charged for it.
    messages: VecDeque<(u64, Message)>,
    /// Bytes charged: messages that wait, are being sent, or depend on changes that are being stored.
    bytes: u64,
    /// Whether nothing may be added any more.
    is_closed: bool,
}

/// The outbox of one connection.
#[derive(Debug)]
pub(super) struct Outbox {
    waiting: Mutex<OutboxMessages>,
    /// Notified when a message was added or the outbox was closed.
    changed: Condvar,
    /// Notified when fewer bytes wait.
    room: Condvar,
    stream: TcpStream,
    /// The total over all connections that are counted together.
    all: Option<Arc<AtomicU64>>,
}

impl Outbox {
    /// The outbox of a connection; its bytes are also counted in `all`.
    pub(super) fn new(stream: TcpStream, all: Option<Arc<AtomicU64>>) -> Arc<Self> {
        Arc::new(Self {
            waiting: Mutex::default(),
            changed: Condvar::new(),
            room: Condvar::new(),
            stream,
            all,
        })
    }

    fn waiting(&self) -> MutexGuard<'_, OutboxMessages> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that are charged to it.
    pub(super) fn bytes(&self) -> u64 {
        self.waiting().bytes
    }

    /// Charges bytes: a message on its way here, or changes that are being stored for it.
    pub(super) fn charge(&self, bytes: u64) {
        self.waiting().bytes += bytes;
        if let Some(all) = &self.all {
            all.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Takes charged bytes back.
    pub(super) fn discharge(&self, bytes: u64) {
        self.waiting().bytes -= bytes;
        if let Some(all) = &self.all {
            all.fetch_sub(bytes, Ordering::Relaxed);
        }
        self.room.notify_all();
    }

    /// Adds a message, for which `charged` bytes were charged.
    pub(super) fn put(&self, charged: u64, message: Message) {
        let mut waiting = self.waiting();
        if waiting.is_closed {
            drop(waiting);
            return self.discharge(charged);
        }
        waiting.messages.push_back((charged, message));
        drop(waiting);
        self.changed.notify_one();
    }

    /// Waits until fewer than `most` bytes are charged. Returns whether the outbox is still open.
    pub(super) fn wait_below(&self, most: u64) -> bool {
        let mut waiting = self.waiting();
        while waiting.bytes >= most && !waiting.is_closed {
            waiting = self
                .room
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        }
        !waiting.is_closed
    }

    /// Closes the connection after the waiting messages have been sent, if that takes no longer than [`LAST`].
    pub(super) fn close(&self) {
        self.waiting().is_closed = true;
        let _ = self.stream.set_write_timeout(Some(LAST));
        self.changed.notify_one();
        self.room.notify_all();
    }

    /// Ends the connection at once, with `words` for the peer if there are any. Waiting messages are dropped.
    pub(super) fn end(&self, words: Option<&str>) {
        let dropped: Vec<(u64, Message)> = {
            let mut waiting = self.waiting();
            waiting.is_closed = true;
            waiting.messages.drain(..).collect()
        };
        dropped
            .iter()
            .for_each(|(charged, _)| self.discharge(*charged));
        match words {
            Some(words) => connection::send_away(&self.stream, words),
            None => drop(self.stream.shutdown(Shutdown::Both)),
        }
        self.changed.notify_one();
        self.room.notify_all();
    }

    /// Sends messages until the outbox is closed or the connection is lost.
    pub(super) fn send(&self, mut sender: BlockMessageSender) {
        let mut messages = Vec::new();
        loop {
            let mut charged = 0;
            {
                let mut waiting = self.waiting();
                while waiting.messages.is_empty() && !waiting.is_closed {
                    waiting = self
                        .changed
                        .wait(waiting)
                        .unwrap_or_else(PoisonError::into_inner);
                }
                while messages.len() < TOGETHER
                    && charged < AT_ONCE
                    && let Some((bytes, message)) = waiting.messages.pop_front()
                {
                    charged += bytes;
                    messages.push(message);
                }
            }
            if messages.is_empty() {
                break;
            }
            let at = now();
            messages
                .iter_mut()
                .for_each(|message| stamp_master_out(message, at));
            let sent = sender.messages(&messages);
            messages.clear();
            self.discharge(charged);
            if sent.is_err() {
                break;
            }
        }
        self.end(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection;
    use stackline_blocks::wire::master_messages::BlockRequestDone;
    use std::net::TcpListener;

    fn outbox(all: &Arc<AtomicU64>) -> (Arc<Outbox>, TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let far = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let near = listener.accept().unwrap().0;
        (
            Outbox::new(near.try_clone().unwrap(), Some(Arc::clone(all))),
            near,
            far,
        )
    }

    #[test]
    fn all_that_was_charged_is_given_back_however_it_ends() {
        let all = Arc::<AtomicU64>::default();
        let put = |outbox: &Outbox| {
            for request in 0..1000 {
                let message = Message::from(BlockRequestDone { request });
                outbox.charge(message.weight());
                outbox.put(message.weight(), message);
            }
        };
        // Sent to its end.
        let (sent, near, far) = outbox(&all);
        put(&sent);
        assert!(all.load(Ordering::Relaxed) == sent.bytes() && sent.bytes() > 0);
        sent.close();
        assert!(!sent.wait_below(1), "it is closed");
        sent.send(connection::sender(near));
        assert_eq!((sent.bytes(), all.load(Ordering::Relaxed)), (0, 0));
        drop(far);
        // Ended with all that waits; what comes later is dropped.
        let (ended, _near, _far) = outbox(&all);
        put(&ended);
        ended.end(Some("too slow"));
        put(&ended);
        assert_eq!((ended.bytes(), all.load(Ordering::Relaxed)), (0, 0));
    }

    #[test]
    fn who_asks_waits_until_less_waits() {
        let all = Arc::default();
        let (outbox, _near, _far) = outbox(&all);
        outbox.charge(100);
        assert!(outbox.wait_below(101));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| outbox.wait_below(100));
            outbox.discharge(1);
            assert!(waits.join().unwrap());
        });
    }
}
