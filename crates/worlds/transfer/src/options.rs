//! The options of a channel, and how they are fitted to what its carrier can do.

use crate::carrier::CarrierFacts;
use crate::error::Error;
use crate::seal::SealKey;
use crate::udp;
use stackline_proto::blast::{self, BlastStrategy, HEADER, negotiation};
use std::fmt;
use std::sync::Arc;

/// How many packets go as one at least, on a path (such as loopback) that carries packets about as long as one system call can send.
const JOINED: usize = 4;
/// Bytes of these packets together. With the headers of all layers the kernel takes 64 KiB as one; it would segment a longer run at once,
/// and every packet would go by itself.
const TOGETHER: usize = 64_000;

/// How a channel waits for packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PacketWaiting {
    /// Sleep in the kernel.
    #[default]
    Block,
    /// Poll continuously: this keeps a core busy, and saves the time that waking up takes.
    Spin,
}

/// A callback that is called at least every 20 ms while a channel waits, and after every signal. If it returns true, the operation ends.
#[derive(Clone)]
pub struct Interrupt(Arc<dyn Fn() -> bool + Send + Sync>);

impl Interrupt {
    /// An interrupt that polls `asked`.
    pub fn new(asked: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(asked))
    }

    pub(crate) fn is_asked(&self) -> bool {
        (self.0)()
    }
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interrupt")
    }
}

/// The options of a channel. Both ends need the same strategy, checks, token and key; of differing sizes the smaller is used.
#[derive(Clone, Debug)]
pub struct BlastChannelOptions {
    /// The machine's options; a `packet` or `buffer` of 0 is what the carrier can do.
    pub blast: blast::BlastOptions,
    /// Proves that a connection belongs to the run. It travels in clear without a key; with a key a value derived from
    /// both does, so that token and key may be one secret.
    pub token: negotiation::BlastToken,
    /// Encrypts and authenticates every packet with keys derived from this one.
    pub key: Option<SealKey>,
    /// How to wait.
    pub waiting: PacketWaiting,
    /// The interrupt that ends calls.
    pub interrupt: Option<Interrupt>,
    /// The number of the connection that is opened; random if not chosen.
    pub number: Option<u32>,
    /// How the socket of a UDP channel is set up.
    pub udp: udp::UdpCarrierOptions,
}

impl Default for BlastChannelOptions {
    fn default() -> Self {
        Self::new(BlastStrategy::Selective)
    }
}

impl BlastChannelOptions {
    /// Blasts with this strategy as [`blast::BlastOptions::usual`] has them.
    #[must_use]
    pub const fn new(strategy: BlastStrategy) -> Self {
        Self::from_blast(blast::BlastOptions {
            buffer: 0,
            ..blast::BlastOptions::usual(strategy, 0)
        })
    }

    /// These options of the machine, and nothing else.
    #[must_use]
    pub const fn from_blast(blast: blast::BlastOptions) -> Self {
        Self {
            blast,
            token: [0; 16],
            key: None,
            waiting: PacketWaiting::Block,
            interrupt: None,
            number: None,
            udp: udp::UdpCarrierOptions::new(),
        }
    }

    /// The proof that is sent: the token, or with a key a value that only owners of the key can derive from it.
    pub(crate) fn shown(&self) -> negotiation::BlastToken {
        self.key
            .as_ref()
            .map_or(self.token, |key| key.proof(&self.token))
    }

    /// Bytes of a packet's head.
    pub(crate) const fn head(&self) -> usize {
        if self.key.is_some() {
            crate::seal::HEAD
        } else {
            HEADER
        }
    }

    /// Bytes of data in packets of which several go and come as one, for blasts of many packets on a path that carries
    /// packets about as long as a call takes: as on loopback.
    fn cut(&self, facts: CarrierFacts) -> u32 {
        let offload = facts.joined_out > 1 && facts.joined_in;
        let many = self.blast.size as usize > facts.packet;
        if offload && many {
            (TOGETHER / JOINED - self.head()) as u32
        } else {
            u32::MAX
        }
    }

    /// The machine's options on a path: as much of everything as the carrier allows, and not more.
    ///
    /// # Errors
    /// When packets are wanted that the path does not carry.
    pub(crate) fn fitted(&self, facts: CarrierFacts) -> Result<blast::BlastOptions, Error> {
        let most = u32::try_from(facts.packet.saturating_sub(self.head())).unwrap_or(u32::MAX);
        let least = negotiation::PARAMETERS_BYTES as u32;
        let packet = if self.blast.packet == 0 {
            most.min(self.cut(facts))
        } else {
            self.blast.packet
        };
        if packet > most || most < least {
            let what = if most < least {
                format!("this path carries {most} B of data per packet, and {least} B are needed")
            } else {
                format!(
                    "this path cannot carry packets with {packet} B of data: the maximum is {most} B"
                )
            };
            return Err(Error::Options(format!(
                "{what}; hint: omit the packet size, or raise the MTU"
            )));
        }
        // The kernel accounts for more than the bytes of a packet.
        let granted = (facts.receive_buffer / 2) as u64;
        let buffer = if self.blast.buffer == 0 {
            granted
        } else {
            self.blast.buffer.min(granted)
        };
        Ok(blast::BlastOptions {
            packet,
            buffer,
            ..self.blast
        }
        .fitted())
    }
}
