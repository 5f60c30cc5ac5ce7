//! Options of V's message passing (IKP), and the parameters that a client sends to its server.

use crate::blast::bitmap;
use crate::blast::{self, BlastPacing, BlastStrategy, BlastTimeout};
use stackline_core::time::Duration;

/// The default of data bytes in a packet, as in V.
pub const PACKET: u32 = 1024;
/// Bytes of a message that a packet carries beside its data, as in V: a page and a short message fit into one packet.
pub const BESIDE: u32 = 32;
/// The longest packet, in bytes of data.
const LONGEST: u32 = 65_000;
/// The shortest packet, in bytes of data.
const SHORTEST: u32 = 32;
/// The default size of a blast in bytes: what the paper measures.
const SIZE: u32 = 64 << 10;
/// The most blasts of a move in flight.
const FLIGHT: u32 = 1 << 10;
/// The most packets of a move in flight.
const UNDER_WAY: u32 = 1 << 16;
/// The default of [`IkpOptions::patience`].
const PATIENCE: Duration = Duration(10_000_000_000);
/// The default of [`IkpOptions::memory`].
const MEMORY: Duration = Duration(30_000_000_000);
/// How long a receiver of a move waits for more before it reports missing packets, where intervals adapt.
const NAK_DELAY: Duration = Duration(10_000_000);
/// A time longer than any run.
// A quarter of the range, so that instants can be added to it.
const NEVER: Duration = Duration(u64::MAX / 4);
/// The version of the parameters' format.
const VERSION: u8 = 1;

/// The options of a client or a server. For packets, blasts and strategy the client's choice holds for both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IkpOptions {
    /// The most bytes of data in a packet. Messages and replies have [`BESIDE`] more, message and data together.
    pub packet: u32,
    /// The strategy of retransmission in a move.
    pub strategy: BlastStrategy,
    /// The most bytes of a blast of a move.
    pub size: u32,
    /// Blasts of a move that may be in flight at once.
    pub flight: u32,
    /// The time after which a message, or a request of a move, is repeated. Fixed intervals are limited to half the
    /// patience.
    pub interval: BlastTimeout,
    /// A peer that is silent for this long counts as dead. PENDING counts as a sign of life.
    pub patience: Duration,
    /// Whether the client requests delivery once only, while the server remembers it.
    pub once: bool,
    /// How long a server remembers a client that requested delivery once only, and its reply: longer than the client's
    /// patience.
    pub memory: Duration,
}

impl IkpOptions {
    /// The shortest packet, in bytes of data.
    pub const SHORTEST: u64 = SHORTEST as u64;
    /// The longest packet, in bytes of data.
    pub const LONGEST: u64 = LONGEST as u64;

    /// The options of V: packets of 1024 bytes, retransmission from the first missing packet on, duplicates are
    /// delivered. Intervals adapt.
    #[must_use]
    pub const fn v() -> Self {
        Self {
            packet: PACKET,
            strategy: BlastStrategy::Partial,
            size: SIZE,
            flight: 1,
            interval: BlastTimeout::Adaptive,
            patience: PATIENCE,
            once: false,
            memory: MEMORY,
        }
    }

    /// The options of V with duplicates suppressed.
    #[must_use]
    pub const fn once() -> Self {
        Self {
            once: true,
            ..Self::v()
        }
    }

    /// The bytes that a packet has for a message, or a reply, and the data that travels with it.
    #[must_use]
    pub const fn room(&self) -> u32 {
        self.packet + BESIDE
    }

    /// These options within the bounds of the protocol.
    #[must_use]
    pub fn fitted(mut self) -> Self {
        self.packet = self.packet.clamp(SHORTEST, LONGEST);
        let each = self.moves(NEVER).fitted().size / self.packet;
        self.size = each * self.packet;
        self.flight = self.flight.clamp(1, FLIGHT.min(UNDER_WAY / each));
        if let BlastTimeout::Fixed(interval) = self.interval {
            self.interval =
                BlastTimeout::Fixed(Duration(interval.0.min(self.patience.0 / 2).max(1)));
        }
        self
    }

    /// The blast options of a move whose peer may be silent for `patience`.
    pub(crate) const fn moves(&self, patience: Duration) -> blast::BlastOptions {
        blast::BlastOptions {
            strategy: self.strategy,
            packet: self.packet,
            size: self.size,
            flight: self.flight,
            interval: self.interval,
            // Fixed intervals are the paper's conditions: a receiver only sends when requested.
            nak_delay: if matches!(self.interval, BlastTimeout::Fixed(_)) {
                None
            } else {
                Some(NAK_DELAY)
            },
            buffer: u32::MAX as u64,
            patience,
            pacing: BlastPacing::Off,
            checked: false,
        }
    }

    /// The blast options of a client's moves, which never time out: the client's Sends find out whether its server
    /// lives.
    pub(crate) const fn patient_moves(&self) -> blast::BlastOptions {
        self.moves(NEVER)
    }
}

impl Default for IkpOptions {
    fn default() -> Self {
        Self::once()
    }
}

/// The parameters that a client sends with every message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientParameters {
    pub(crate) packet: u32,
    pub(crate) strategy: BlastStrategy,
    pub(crate) size: u32,
    pub(crate) flight: u32,
}

const STRATEGIES: [BlastStrategy; 4] = [
    BlastStrategy::Full,
    BlastStrategy::FullNak,
    BlastStrategy::Partial,
    BlastStrategy::Selective,
];

impl ClientParameters {
    /// The parameters of these options, fitted.
    pub(crate) const fn from_options(options: &IkpOptions) -> Self {
        let IkpOptions {
            packet,
            strategy,
            size,
            flight,
            ..
        } = *options;
        Self {
            packet,
            strategy,
            size,
            flight,
        }
    }

    /// The parameters packed into a number.
    pub(crate) fn pack(&self) -> u64 {
        // Each part fits its bits: at most 65,000, 2^15 and 2^10.
        u64::from(self.packet)
            | u64::from(self.size / self.packet) << 16
            | u64::from(self.flight) << 32
            | (self.strategy as u64) << 48
            | u64::from(VERSION) << 56
    }

    /// Unpacks the parameters; `None` where a value is out of bounds.
    pub(crate) fn unpack(number: u64) -> Option<Self> {
        let part = |shift: u32| (number >> shift & 0xffff) as u32;
        let (packet, each, flight) = (part(0), part(16), part(32));
        let strategy = STRATEGIES
            .into_iter()
            .find(|strategy| *strategy as u64 == number >> 48 & 0xff)?;
        let sound = number >> 56 == u64::from(VERSION)
            && (SHORTEST..=LONGEST).contains(&packet)
            && (1..=bitmap::MOST).contains(&each)
            && (1..=FLIGHT).contains(&flight)
            && each * flight <= UNDER_WAY;
        sound.then_some(Self {
            packet,
            strategy,
            size: each * packet,
            flight,
        })
    }

    /// A server's options for a client with these parameters.
    pub(crate) const fn taken(&self, own: &IkpOptions) -> IkpOptions {
        let Self {
            packet,
            strategy,
            size,
            flight,
        } = *self;
        IkpOptions {
            packet,
            strategy,
            size,
            flight,
            ..*own
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blast::BlastStrategy;
    use proptest::prelude::{prop_assert_eq, proptest};

    #[test]
    fn vs_packets_are_1024_bytes() {
        let v = IkpOptions::v().fitted();
        assert_eq!(
            (v.packet, v.size, v.flight, v.strategy, v.once),
            (1024, 64 << 10, 1, BlastStrategy::Partial, false)
        );
    }

    proptest! {
        #[test]
        fn client_parameters_are_in_force_at_the_server(packet: u32, size: u32, flight: u32, strategy in 0_usize..4) {
            let options = IkpOptions { packet, size, flight, strategy: STRATEGIES[strategy], ..IkpOptions::v() }.fitted();
            let parameters = ClientParameters::from_options(&options);
            prop_assert_eq!(ClientParameters::unpack(parameters.pack()), Some(parameters));
            let moves = parameters.taken(&IkpOptions::once()).moves(PATIENCE);
            // What both sides' machines make of it is the same.
            let fitted = moves.fitted();
            prop_assert_eq!((fitted.packet, fitted.size, fitted.flight), (options.packet, options.size, options.flight));
        }

        #[test]
        fn any_number_is_sound_or_nothing(number: u64) {
            if let Some(parameters) = ClientParameters::unpack(number) {
                let options = parameters.taken(&IkpOptions::v());
                prop_assert_eq!(options.fitted(), options);
                prop_assert_eq!(ClientParameters::from_options(&options), parameters);
            }
        }
    }
}
