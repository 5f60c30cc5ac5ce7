//! The handshake of TLS 1.3 within a connection of QUIC: what the hellos in its Initial packets say, and the keys of its packets, as far
//! as they follow from an id or from secrets that are known.

use super::packet_header::{LongPacket, QuicVersion};
use super::packet_keys::{PacketKeys, UnmaskedPacket};
use crate::conversation::LONGEST_HEAD;
use crate::conversation::reassembly::{ReassembledPiece, StreamReassembly};
use crate::conversation::tls::hellos::{ServerHello, TlsClientOffer, chosen_protocol};
use crate::conversation::tls::record_keys::Suite;
use crate::conversation::tls::session_secrets::Secrets;
use crate::left_out::{Bound, LeftOut};
use stackline_events::unit_ids::EventStreamDirection;

/// Which numbers a packet counts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketSpace {
    Initial,
    Handshake,
    Data,
}

/// Messages of one side in one space, put together.
#[derive(Debug, Default)]
struct CryptoMessages {
    stream: StreamReassembly,
    bytes: Vec<u8>,
    /// They are longer than is held, or bytes of them were not seen.
    is_lost: bool,
}

impl CryptoMessages {
    /// Adds bytes; whether any of them was not there before.
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

    /// The first message, or with `skip` one behind it, if it is whole.
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

/// Keys of data of one side, which changes them now and then.
#[derive(Debug)]
struct DataKeys {
    now: PacketKeys,
    next: Option<PacketKeys>,
    before: Option<PacketKeys>,
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
    /// The id that keys of Initial packets follow from.
    id: Vec<u8>,
    secrets: Option<Secrets>,
    initial: Option<[PacketKeys; 2]>,
    handshake: [Option<PacketKeys>; 2],
    data: [Option<DataKeys>; 2],
    /// The largest number of a packet by side and space.
    largest: [[Option<u64>; 3]; 2],
    hellos: [CryptoMessages; 2],
    /// What the server says behind its hello.
    extensions: CryptoMessages,
    offer: Option<TlsClientOffer>,
    random: Option<[u8; 32]>,
    suite: Option<Suite>,
    chosen: Option<Vec<u8>>,
    pub(super) left_out: LeftOut,
}

impl QuicHandshake {
    /// Of a connection whose client first sends to that id.
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

    /// What is in a packet with a long header, if it can be opened. Keys of Initial packets are others where the two agree on another
    /// version (RFC 9369, section 4), or where the client was asked to try again, which sends to another id from then on.
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
                // Who tries again may say another hello.
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

    /// What is in a packet whose number stands there.
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

    /// Bytes of the handshake; whether any of them was not there before.
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
                self.suite = Suite::of(number);
                self.unlock();
            }
        }
        if self.chosen.is_none() {
            self.chosen = self.extensions.message(0).and_then(chosen_protocol);
        }
        is_new
    }

    /// Finds the keys that secrets give, as far as these are known by now.
    pub(super) fn unlock(&mut self) {
        if self.data.iter().all(Option::is_some) {
            return;
        }
        let (Some(secrets), Some(random), Some(suite)) = (&self.secrets, self.random, self.suite)
        else {
            return;
        };
        let Some(session) = secrets.of(&random) else {
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

    /// Whether packets of data can be opened, as far as they are whole.
    pub(super) fn is_unlocked(&self) -> bool {
        self.data.iter().any(Option::is_some)
    }

    /// The id that keys of Initial packets follow from.
    pub(super) fn id(&self) -> &[u8] {
        &self.id
    }

    /// The version that is spoken.
    pub(super) const fn version(&self) -> QuicVersion {
        self.version
    }

    /// What the client offers, once its hello is whole.
    pub(super) const fn offer(&self) -> Option<&TlsClientOffer> {
        self.offer.as_ref()
    }

    /// The protocol within: what the server chose, or the one that the client prefers.
    pub(super) fn protocol(&self) -> &[u8] {
        let offered = self
            .offer
            .as_ref()
            .and_then(|offer| offer.protocols.first());
        self.chosen.as_ref().or(offered).map_or(&[], Vec::as_slice)
    }

    /// Bytes that are held.
    pub(super) fn held(&self) -> usize {
        let messages = [&self.hellos[0], &self.hellos[1], &self.extensions];
        messages
            .iter()
            .map(|messages| messages.bytes.len() + messages.stream.held())
            .sum()
    }
}
