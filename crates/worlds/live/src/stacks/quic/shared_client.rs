//! One connection of QUIC for several pairs of initiators: the first that connects opens it, the others join, and the last to leave closes
//! it. A pair joins a connection once.

use super::end::{ConnectionUsers, QuicEnd, SharedPlace};
use super::settings::QuicSettings;
use super::sockets::socket_failed;
use crate::cancel::LiveCancelFlags;
use crate::error::Result;
use crate::stacks::endpoint_runtime::EndpointRuntime;
use quinn::Connection;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::Mutex;

/// Opens connections that pairs share.
pub(crate) trait SharedQuicOpener: Send + Sync + 'static {
    /// What the pairs of a connection have in common.
    type Client: Clone + Send + Sync + 'static;
    /// What drives the connections.
    fn runtime(&self) -> &EndpointRuntime;
    fn settings(&self) -> &QuicSettings;
    /// Opens one; it has to be awaited in the runtime.
    fn open(&self) -> impl Future<Output = Result<(Connection, Self::Client)>> + Send;
    /// Waits until the sockets have no connection any more.
    fn wait_idle(&self) -> impl Future<Output = ()> + Send;
}

/// A connection, and the pairs on it.
struct SharedQuicConnection<C> {
    connection: Connection,
    client: C,
    /// How many pairs use it.
    users: Arc<AtomicU64>,
    /// The pairs that have joined it, by number, though they may have left.
    joined: u128,
    received: Arc<AtomicU64>,
}

impl<C> SharedQuicConnection<C> {
    /// Joins the connection; false if the last pair has left it, or this pair has been on it before.
    fn join(&mut self, member: u16) -> bool {
        let place = 1_u128.checked_shl(u32::from(member)).unwrap_or(0);
        if self.joined & place != 0 {
            return false;
        }
        let more = |users: u64| (users > 0).then(|| users + 1);
        let joins = self
            .users
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        self.joined |= place;
        joins.is_ok()
    }
}

/// The connection of a group of initiators.
pub(crate) struct SharedQuicClient<O: SharedQuicOpener> {
    opener: O,
    /// Pairs that connect while another opens the connection wait here.
    current: Mutex<Option<SharedQuicConnection<O::Client>>>,
    /// Those of the job, once a pair has a connection.
    flags: OnceLock<Arc<LiveCancelFlags>>,
}

impl<O: SharedQuicOpener> SharedQuicClient<O> {
    pub(crate) fn new(opener: O) -> Self {
        Self {
            opener,
            current: Mutex::default(),
            flags: OnceLock::new(),
        }
    }

    pub(crate) const fn opener(&self) -> &O {
        &self.opener
    }

    /// Forgets a connection on which the peer accepts nothing more, so that nobody joins it or waits for its end.
    pub(crate) fn retire(
        &self,
        connection: &Connection,
        flags: &Arc<LiveCancelFlags>,
    ) -> Result<()> {
        let retire = async {
            let mut current = self.current.lock().await;
            let is_current = |open: &mut SharedQuicConnection<O::Client>| {
                open.connection.stable_id() == connection.stable_id()
            };
            drop(current.take_if(is_current));
        };
        self.opener.runtime().run(flags, retire)
    }

    /// The connection for the pair with that number: the one that is open, or a new one when it has closed.
    ///
    /// # Errors
    /// As the opener, or when the job was ended.
    pub(crate) fn connect(
        &self,
        member: u16,
        flags: &Arc<LiveCancelFlags>,
    ) -> Result<(QuicEnd, O::Client)> {
        let runtime = self.opener.runtime();
        let joined = runtime.run(flags, self.join(member, flags))??;
        let _ = self.flags.set(Arc::clone(flags));
        Ok(joined)
    }

    async fn join(
        &self,
        member: u16,
        flags: &Arc<LiveCancelFlags>,
    ) -> Result<(QuicEnd, O::Client)> {
        let mut current = self.current.lock().await;
        let joins = match &mut *current {
            Some(open) if open.connection.close_reason().is_none() => open.join(member),
            _ => false,
        };
        if !joins {
            if let Some(last) = current.take() {
                last.connection.closed().await;
            }
            let (connection, client) = self.opener.open().await?;
            *current = Some(SharedQuicConnection {
                connection,
                client,
                users: Arc::new(AtomicU64::new(1)),
                joined: 1 << member,
                received: Arc::default(),
            });
        }
        let open = current.as_ref().ok_or_else(socket_failed)?;
        let place = SharedPlace {
            member,
            users: ConnectionUsers::Counted(Arc::clone(&open.users)),
        };
        let (runtime, settings) = (self.opener.runtime(), self.opener.settings());
        let end = QuicEnd::new(runtime, open.connection.clone(), settings, true, flags);
        Ok((end.sharing(place, &open.received), open.client.clone()))
    }
}

impl<O: SharedQuicOpener> Drop for SharedQuicClient<O> {
    fn drop(&mut self) {
        let runtime = self.opener.runtime();
        runtime.leave(self.flags.get(), self.opener.wait_idle());
    }
}
