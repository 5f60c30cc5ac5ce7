//! The options of the stack `quic`, translated to quinn-proto's settings. All random values that quinn-proto draws come from the run's
//! seed.

use super::certificate;
use super::flight::WatchedQuicFactory;
use super::null_crypto::Null;
use crate::error::{Error, Result};
use quinn_proto::congestion::{ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::crypto;
use quinn_proto::{
    ClientConfig, ConnectionId, ConnectionIdGenerator, Endpoint, EndpointConfig, IdleTimeout,
    ServerConfig, TransportConfig, VarInt,
};
use stackline_core::plan::Stack;
use stackline_core::procedure::PairSide;
use stackline_core::random::Seed;
use stackline_proto::quic::{RECEIVE_BUFFER, SEND_BUFFER, TIMEOUT_S, initial_window};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Bytes of a connection id: quinn's default.
const ID: usize = 8;
/// Bytes of the first connection id, which an initiator invents for its peer.
const FIRST_ID: usize = 20;
/// The settings of a pair's connections.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    stack: Stack,
    /// The seeds of all random values of the initiator's and the responder's side.
    seeds: [Seed; 2],
}

impl Terms {
    pub(super) fn new(stack: &Stack, seed: u64) -> Self {
        let seed = Seed(seed).child("quic");
        Self {
            stack: stack.clone(),
            seeds: [seed.index(0), seed.index(1)],
        }
    }

    pub(super) fn congestion(&self) -> &str {
        self.stack.word("congestion").unwrap_or("cubic")
    }

    pub(super) fn crypto(&self) -> &str {
        self.stack.word("crypto").unwrap_or("ring")
    }

    pub(super) fn receive_buffer(&self) -> u64 {
        self.stack
            .number("receive_buffer")
            .unwrap_or(RECEIVE_BUFFER)
    }

    pub(super) fn send_buffer(&self) -> u64 {
        self.stack.number("send_buffer").unwrap_or(SEND_BUFFER)
    }

    /// Seconds of silence after which a connection is given up; 0 for never.
    pub(super) fn timeout(&self) -> f64 {
        self.stack.seconds("timeout").unwrap_or(TIMEOUT_S)
    }

    /// The largest UDP payload, where it is not discovered.
    pub(super) fn mtu(&self) -> Option<u16> {
        self.stack
            .number("mtu")
            .and_then(|bytes| u16::try_from(bytes).ok())
    }

    fn congestion_factory(&self) -> Arc<dyn ControllerFactory + Send + Sync> {
        let (mut cubic, mut reno) = (CubicConfig::default(), NewRenoConfig::default());
        let window = initial_window(&self.stack);
        cubic.initial_window(window);
        reno.initial_window(window);
        if self.congestion() == "reno" {
            Arc::new(WatchedQuicFactory(Arc::new(reno)))
        } else {
            Arc::new(WatchedQuicFactory(Arc::new(cubic)))
        }
    }

    fn transport(&self) -> Arc<TransportConfig> {
        let mut transport = TransportConfig::default();
        let varint = |value: u64| VarInt::from_u64(value).unwrap_or(VarInt::MAX);
        let timeout =
            (self.timeout() > 0.0).then(|| Duration::from_secs_f64(self.timeout().min(1e9)));
        transport
            .congestion_controller_factory(self.congestion_factory())
            .stream_receive_window(varint(self.receive_buffer()))
            .send_window(self.send_buffer())
            .max_idle_timeout(timeout.and_then(|time| IdleTimeout::try_from(time).ok()))
            // The simulated network takes datagrams one by one, so batches (GSO) would only be cut again.
            .enable_segmentation_offload(false);
        if let Some(streams) = self.stack.number("streams") {
            transport.max_concurrent_bidi_streams(varint(100 + 2 * streams));
        }
        if let Some(mtu) = self.mtu() {
            transport.initial_mtu(mtu).mtu_discovery_config(None);
        }
        Arc::new(transport)
    }

    /// The settings with which initiators connect.
    ///
    /// # Errors
    /// An [`Error`] when the TLS library rejects its settings.
    pub(super) fn client(&self) -> Result<ClientConfig> {
        let crypto: Arc<dyn crypto::ClientConfig> = if self.crypto() == "null" {
            Arc::new(Null)
        } else {
            certificate::tls_configs().map_err(no_tls)?.client
        };
        let mut config = ClientConfig::new(crypto);
        let (seed, count) = (self.seeds[0].child("first"), AtomicU64::new(0));
        config
            .initial_dst_cid_provider(Arc::new(move || {
                id::<FIRST_ID>(seed, count.fetch_add(1, Ordering::Relaxed))
            }))
            .transport_config(self.transport());
        Ok(config)
    }

    fn server(&self) -> Result<Arc<ServerConfig>> {
        let crypto: Arc<dyn crypto::ServerConfig> = if self.crypto() == "null" {
            Arc::new(Null)
        } else {
            certificate::tls_configs().map_err(no_tls)?.server
        };
        let mut config = ServerConfig::new(crypto, Arc::new(Null));
        config.transport_config(self.transport());
        Ok(Arc::new(config))
    }

    /// One side's UDP socket with all its connections.
    ///
    /// # Errors
    /// See [`Terms::client`].
    pub(super) fn endpoint(&self, side: PairSide) -> Result<Endpoint> {
        let mut config = EndpointConfig::new(Arc::new(Null));
        let seed = self.seeds[side.index()];
        let ids = SeededConnectionIds {
            seed: seed.child("ids"),
            count: 0,
        };
        config
            .cid_generator(move || Box::new(ids))
            .rng_seed(Some(bytes(seed.child("draws"))));
        if let Some(mtu) = self.mtu() {
            // Only values below 1200 are rejected, and the option's range excludes them.
            let _ = config.max_udp_payload_size(mtu);
        }
        let server = match side {
            PairSide::Initiator => None,
            PairSide::Responder => Some(self.server()?),
        };
        Ok(Endpoint::new(Arc::new(config), server, true, None))
    }
}

fn no_tls(why: String) -> Error {
    Error::environment(format!("cannot set up TLS: {why}"))
        .hint("use crypto = null, which needs no TLS")
}

/// `N` random bytes from a seed.
fn bytes<const N: usize>(seed: Seed) -> [u8; N] {
    let mut all = [0; N];
    for (index, chunk) in all.chunks_mut(8).enumerate() {
        chunk.copy_from_slice(&seed.index(index as u64).0.to_le_bytes()[..chunk.len()]);
    }
    all
}

fn id<const N: usize>(seed: Seed, number: u64) -> ConnectionId {
    ConnectionId::new(&bytes::<N>(seed.index(number)))
}

/// Connection ids, one after the other, the same for the same seed.
#[derive(Clone, Copy, Debug)]
struct SeededConnectionIds {
    seed: Seed,
    count: u64,
}

impl ConnectionIdGenerator for SeededConnectionIds {
    fn generate_cid(&mut self) -> ConnectionId {
        self.count += 1;
        id::<ID>(self.seed, self.count)
    }

    fn cid_len(&self) -> usize {
        ID
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}
