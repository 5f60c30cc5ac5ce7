//! Follows the TLS 1.3 handshake within a QUIC connection: reads the hellos in its Initial packets, and derives the keys of packets from
//! a connection id or from known secrets.

use super::packet_header::{LongPacket, QuicVersion};
use super::packet_keys::{PacketKeys, UnmaskedPacket};
use crate::conversation::LONGEST_HEAD;
use crate::conversation::reassembly::{ReassembledPiece, StreamReassembly};
use crate::conversation::tls::hellos::{ServerHello, TlsClientOffer, chosen_protocol};
use crate::conversation::tls::record_keys::Suite;
use crate::conversation::tls::session_secrets::Secrets;
use crate::left_out::{Bound, LeftOut};
use stackline_events::unit_ids::EventStreamDirection;

/// The packet number spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketSpace {
    Initial,
    Handshake,
    Data,
}

/// The handshake messages of one side in one space, reassembled.
#[derive(Debug, Default)]
struct CryptoMessages {
    stream: StreamReassembly,
    bytes: Vec<u8>,
    /// Whether the messages are longer than is held, or some of their bytes were not captured.
    is_lost: bool,
}

impl CryptoMessages {
    /// Adds bytes; returns whether any of them is new.
    fn add(&mut self, offset: u64, bytes: &[u8], left_out: &mut LeftOut) -> bool {
        let Self {
            stream,
            bytes: whole,
            is_lost,
        } = self;
        let held = stream.held();
        let before = stream.next();
        stream.segment(
            offset,
            bytes,
            bytes.len() as u64,
            &mut |piece| match piece {
                ReassembledPiece::Bytes(_, bytes)
                    if whole.len() + bytes.len() <= LONGEST_HEAD && !*is_lost =>
                {
                    whole.extend_from_slice(bytes);
                }
                ReassembledPiece::Bytes(..) => {
                    left_out.add(Bound::Head, u64::from(!*is_lost));
                    *is_lost = true;
                }
                ReassembledPiece::Unseen(..) => *is_lost = true,
            },
        );
        left_out.add(Bound::BehindHole, stream.take_given_up());
        stream.next() > before || stream.held() > held
    }

    /// The complete message behind `skip` others, if it is there.
    fn message(&self, skip: usize) -> Option<&[u8]> {
        let mut rest = &self.bytes[..];
        for number in 0.. {
            let length =
                4 + u32::from_be_bytes([0, *rest.get(1)?, *rest.get(2)?, *rest.get(3)?]) as usize;
            let (message, behind) = rest.split_at_checked(length)?;
            if number == skip {
                return Some(message);
            }
            rest = behind;
        }
        None
    }
}

/// The keys of one side's data packets, which the side may update.
#[derive(Debug)]
struct DataKeys {
    /// The keys in use.
    now: PacketKeys,
    /// The keys after the next update.
    next: Option<PacketKeys>,
    /// The keys before the last update, for packets that arrive late.
    before: Option<PacketKeys>,
    /// The key phase bit of the keys in use.
    phase: bool,
}

impl DataKeys {
    fn new(now: PacketKeys) -> Self {
        Self {
            next: now.next(),
            now,
            before: None,
            phase: false,
        }
    }

    /// Decrypts a packet; switches to the next keys if the packet uses them.
    fn open(&mut self, packet: &UnmaskedPacket<'_>) -> Option<Vec<u8>> {
        if packet.key_phase() == self.phase {
            return self.now.open(packet);
        }
        if let Some(payload) = self.before.as_ref().and_then(|keys| keys.open(packet)) {
            return Some(payload);
        }
        let payload = self.next.as_ref()?.open(packet)?;
        let now = self.next.take()?;
        self.next = now.next();
        self.before = Some(std::mem::replace(&mut self.now, now));
        self.phase = !self.phase;
        Some(payload)
    }
}

/// The handshake of one connection.
#[derive(Debug)]
pub(super) struct QuicHandshake {
    version: QuicVersion,
    /// The connection id from which the keys of Initial packets are derived.
    id: Vec<u8>,
    /// TLS secrets from which all other keys are derived.
    secrets: Option<Secrets>,
    initial: Option<[PacketKeys; 2]>,
    handshake: [Option<PacketKeys>; 2],
    data: [Option<DataKeys>; 2],
    /// The largest packet number, by side and space.
    largest: [[Option<u64>; 3]; 2],
    /// The hellos of both sides.
    hellos: [CryptoMessages; 2],
    /// The server's messages behind its hello: its EncryptedExtensions.
    extensions: CryptoMessages,
    /// What the client's hello offers.
    offer: Option<TlsClientOffer>,
    /// The client's random number, which identifies the session's secrets.
    random: Option<[u8; 32]>,
    suite: Option<Suite>,
    /// The application protocol that the server chose.
    chosen: Option<Vec<u8>>,
    pub(super) left_out: LeftOut,
}

impl QuicHandshake {
    /// The handshake of a connection whose client first sends to this connection id.
    pub(super) fn new(version: QuicVersion, id: &[u8], secrets: Option<Secrets>) -> Self {
        Self {
            version,
            id: id.to_vec(),
            secrets,
            initial: PacketKeys::of_initial(version, id),
            handshake: [None, None],
            data: [None, None],
            largest: [[None; 3]; 2],
            hellos: Default::default(),
            extensions: CryptoMessages::default(),
            offer: None,
            random: None,
            suite: None,
            chosen: None,
            left_out: LeftOut::default(),
        }
    }

    /// Decrypts a packet with a long header. The keys of Initial packets change if both sides agree on another version (RFC 9369, section
    /// 4), or if the server asked for a Retry, since the client then sends to another id.
    pub(super) fn open_long(
        &mut self,
        side: EventStreamDirection,
        space: PacketSpace,
        packet: &LongPacket<'_>,
    ) -> Option<Vec<u8>> {
        if !packet.is_whole {
            return None;
        }
        let opened = self.open(side, space, packet.bytes, packet.number_at);
        if opened.is_some() || space != PacketSpace::Initial {
            return opened;
        }
        let again = (side == EventStreamDirection::There).then(|| packet.to.to_vec());
        let known = (packet.version != self.version).then(|| self.id.clone());
        for id in known.into_iter().chain(again) {
            let keys = PacketKeys::of_initial(packet.version, &id)?;
            let before = self.initial.replace(keys);
            let opened = self.open(side, space, packet.bytes, packet.number_at);
            if opened.is_some() {
                // After a Retry, the client may send another hello.
                if id != self.id {
                    (self.hellos, self.offer, self.random) = (Default::default(), None, None);
                }
                (self.version, self.id) = (packet.version, id);
                return opened;
            }
            self.initial = before;
        }
        None
    }

    /// Decrypts a packet whose number stands at an offset.
    pub(super) fn open(
        &mut self,
        side: EventStreamDirection,
        space: PacketSpace,
        packet: &[u8],
        number_at: usize,
    ) -> Option<Vec<u8>> {
        let largest = &mut self.largest[side as usize][space as usize];
        let at = side as usize;
        let keys = match space {
            PacketSpace::Initial => &self.initial.as_ref()?[at],
            PacketSpace::Handshake => self.handshake[at].as_ref()?,
            PacketSpace::Data => &self.data[at].as_ref()?.now,
        };
        let unmasked = keys.unmask(packet, number_at, *largest)?;
        let payload = match space {
            PacketSpace::Data => self.data[at].as_mut()?.open(&unmasked),
            _ => keys.open(&unmasked),
        }?;
        *largest = (*largest).max(Some(unmasked.number));
        Some(payload)
    }

    /// Takes handshake bytes; returns whether any of them is new.
    pub(super) fn say(
        &mut self,
        side: EventStreamDirection,
        space: PacketSpace,
        offset: u64,
        bytes: &[u8],
    ) -> bool {
        let is_new = match (space, side) {
            (PacketSpace::Initial, _) => {
                self.hellos[side as usize].add(offset, bytes, &mut self.left_out)
            }
            (PacketSpace::Handshake, EventStreamDirection::Back) => {
                self.extensions.add(offset, bytes, &mut self.left_out)
            }
            _ => return true,
        };
        if self.offer.is_none()
            && let Some(hello) = self.hellos[0].message(0)
        {
            self.random = hello.get(6..38).and_then(|random| random.try_into().ok());
            self.offer = TlsClientOffer::read(hello);
        }
        if self.suite.is_none() {
            let hello = |skip| self.hellos[1].message(skip).and_then(ServerHello::read);
            let hello = hello(0).filter(|hello| !hello.retry).or_else(|| hello(1));
            if let Some(number) = hello.map(|hello| hello.suite) {
                self.suite = Suite::from_number(number);
                self.unlock();
            }
        }
        if self.chosen.is_none() {
            self.chosen = self.extensions.message(0).and_then(chosen_protocol);
        }
        is_new
    }

    /// Derives the keys for which secrets are known by now.
    pub(super) fn unlock(&mut self) {
        if self.data.iter().all(Option::is_some) {
            return;
        }
        let (Some(secrets), Some(random), Some(suite)) = (&self.secrets, self.random, self.suite)
        else {
            return;
        };
        let Some(session) = secrets.session_of(&random) else {
            return;
        };
        let version = self.version;
        let keys = |secret: &Option<Vec<u8>>| {
            secret
                .as_ref()
                .and_then(|secret| PacketKeys::new(version, suite, secret))
        };
        for at in [0, 1] {
            if self.handshake[at].is_none() {
                self.handshake[at] = keys(&session.handshake[at]);
            }
            if self.data[at].is_none() {
                self.data[at] = keys(&session.data[at]).map(DataKeys::new);
            }
        }
    }

    /// Whether data packets can be decrypted.
    pub(super) fn is_unlocked(&self) -> bool {
        self.data.iter().any(Option::is_some)
    }

    /// The connection id from which the keys of Initial packets are derived.
    pub(super) fn id(&self) -> &[u8] {
        &self.id
    }

    /// The version in use.
    pub(super) const fn version(&self) -> QuicVersion {
        self.version
    }

    /// What the client offers, once its hello is complete.
    pub(super) const fn offer(&self) -> Option<&TlsClientOffer> {
        self.offer.as_ref()
    }

    /// The application protocol: what the server chose, or else what the client prefers.
    pub(super) fn protocol(&self) -> &[u8] {
        let offered = self
            .offer
            .as_ref()
            .and_then(|offer| offer.protocols.first());
        self.chosen.as_ref().or(offered).map_or(&[], Vec::as_slice)
    }

    /// How many bytes are held.
    pub(super) fn held(&self) -> usize {
        let messages = [&self.hellos[0], &self.hellos[1], &self.extensions];
        messages
            .iter()
            .map(|messages| messages.bytes.len() + messages.stream.held())
            .sum()
    }
}
