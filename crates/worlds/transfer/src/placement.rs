//! Chooses the places into which the packets of a read are received, finds the payload of each packet that came, and moves payloads
//! that are not where they belong.
//!
//! Most payloads are where they belong: received straight into the posted memory (the memory of a receive in progress). Before the first
//! one that is not is moved, it and those behind it are copied aside, because one of them may be in the place that is written to.

use crate::carrier::{CarrierPayload, PacketCarrier, PayloadPlace};
use crate::seal::{Seal, SealVerdict};
use crate::stream_memory::{self, Posted, Staging};
use stackline_proto::blast::wire;

/// Most packets of one read that are received in place.
const PLACES: usize = 128;

/// Where a payload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PayloadLocation {
    /// In the posted memory, from this offset on.
    Posted(usize),
    /// Copied aside, from this offset of the copy on.
    Aside(usize),
    /// In the carrier's memory.
    Carrier,
    /// Decrypted, in a copy outside of the carrier's memory.
    Opened,
}

/// Which packet of those that one read received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchPosition {
    /// Index of the packet.
    pub(crate) index: usize,
    /// How many packets the read received.
    pub(crate) packets: usize,
}

/// The places for one read, and copies of payloads that cannot stay where they were received.
#[derive(Debug, Default)]
pub(crate) struct PayloadPlacement {
    /// Where each expected packet's payload is received, in the posted memory.
    pub(crate) places: Vec<PayloadPlace>,
    /// Payloads copied aside.
    aside: Vec<u8>,
    /// Index of the first packet whose payload is aside; those behind it are aside too.
    aside_from: Option<usize>,
    /// Bytes from one payload aside to the next.
    stride: usize,
    /// The decrypted payload of one packet that was in the carrier's memory.
    opened: Vec<u8>,
    /// Bytes that were moved, in all reads.
    pub(crate) moved: u64,
}

impl PayloadPlacement {
    /// Chooses at most `most` places for the next read: where rows of packets of `packet` bytes, by stream position and bytes,
    /// lie in the memory posted.
    pub(crate) fn expect(
        &mut self,
        posted: &Posted<'_>,
        rows: impl Iterator<Item = (u64, u64)>,
        packet: usize,
        most: usize,
    ) {
        self.places.clear();
        self.aside_from = None;
        for (mut position, mut bytes) in rows {
            while bytes > 0 {
                let Some(at) = posted.place(position) else {
                    return;
                };
                let row = posted
                    .room(position)
                    .min(usize::try_from(bytes).unwrap_or(usize::MAX));
                // The last place of a row is short where the blast or the memory ends.
                let wanted = row.div_ceil(packet).min(most - self.places.len());
                let place = |n: usize| PayloadPlace {
                    at: at + n * packet,
                    length: packet.min(row - n * packet),
                };
                self.places.extend((0..wanted).map(place));
                // Memory that ends within a packet: what follows would begin there.
                if self.places.len() == most || row % packet > 0 && row as u64 != bytes {
                    return;
                }
                position += row as u64;
                bytes -= row as u64;
            }
        }
    }

    /// Like [`PayloadPlacement::expect`], for single packets, given by their stream positions and bytes.
    pub(crate) fn expect_each(
        &mut self,
        posted: &Posted<'_>,
        packets: impl Iterator<Item = (u64, u32)>,
    ) {
        let rows = packets.map(|(position, bytes)| (position, u64::from(bytes)));
        self.expect(posted, rows, usize::MAX, PLACES);
    }

    /// How many of `packets` packets from `index` on are consecutive: full data packets of one blast that requests no
    /// answer, in consecutive places.
    pub(crate) fn row<C: PacketCarrier>(
        &self,
        carrier: &C,
        index: usize,
        packets: usize,
        packet: usize,
    ) -> usize {
        if self.aside_from.is_some() {
            return 0;
        }
        let Some((&first, places)) = self
            .places
            .get(index..)
            .and_then(<[PayloadPlace]>::split_first)
        else {
            return 0;
        };
        let head = carrier.packet(index);
        if head.payload != CarrierPayload::Placed(packet) || !wire::begins_row(head.head) {
            return 0;
        }
        let follows = |(n, place): &(usize, &PayloadPlace)| {
            let next = carrier.packet(index + n + 1);
            place.at == first.at + (n + 1) * packet
                && next.payload == head.payload
                && wire::follows(head.head, next.head, *n as u16 + 1)
        };
        1 + places[..places.len().min(packets - index - 1)]
            .iter()
            .enumerate()
            .take_while(follows)
            .count()
    }

    /// Where the payload of a packet is now.
    pub(crate) fn find(&self, payload: CarrierPayload<'_>, index: usize) -> PayloadLocation {
        match (payload, self.aside_from) {
            (CarrierPayload::Here(_), _) => PayloadLocation::Carrier,
            (CarrierPayload::Placed(_), Some(from)) => {
                PayloadLocation::Aside((index - from) * self.stride)
            }
            (CarrierPayload::Placed(_), None) => PayloadLocation::Posted(self.places[index].at),
        }
    }

    /// Opens (checks and decrypts) a sealed packet in place, or a copy of it if it is in the carrier's memory. Returns where it is then.
    pub(crate) fn open<C: PacketCarrier>(
        &mut self,
        carrier: &C,
        seal: &mut Seal,
        index: usize,
        posted: &mut Posted<'_>,
    ) -> (SealVerdict, PayloadLocation) {
        let packet = carrier.packet(index);
        let at = self.find(packet.payload, index);
        let length = packet.payload.length();
        match (at, packet.payload) {
            (PayloadLocation::Posted(from), _) => (
                seal.open(packet.head, &mut posted.into[from..from + length]),
                at,
            ),
            (PayloadLocation::Aside(from), _) => (
                seal.open(packet.head, &mut self.aside[from..from + length]),
                at,
            ),
            (PayloadLocation::Carrier | PayloadLocation::Opened, payload) => {
                self.opened.clear();
                if let CarrierPayload::Here(bytes) = payload {
                    self.opened.extend_from_slice(bytes);
                }
                (
                    seal.open(packet.head, &mut self.opened),
                    PayloadLocation::Opened,
                )
            }
        }
    }

    /// The payload of a packet.
    pub(crate) fn payload<'a>(
        &'a self,
        payload: CarrierPayload<'a>,
        at: PayloadLocation,
        posted: &'a Posted<'_>,
    ) -> &'a [u8] {
        match (at, payload) {
            (PayloadLocation::Posted(from), payload) => &posted.into[from..from + payload.length()],
            (PayloadLocation::Aside(from), payload) => &self.aside[from..from + payload.length()],
            (PayloadLocation::Opened, _) => &self.opened,
            (PayloadLocation::Carrier, CarrierPayload::Here(bytes)) => bytes,
            (PayloadLocation::Carrier, CarrierPayload::Placed(_)) => &[],
        }
    }

    /// Makes sure that the payload of a packet, now at `at`, is where its stream position belongs: moves it if it is elsewhere.
    pub(crate) fn put<C: PacketCarrier>(
        &mut self,
        carrier: &C,
        received: BatchPosition,
        at: PayloadLocation,
        position: u64,
        posted: &mut Posted<'_>,
        staging: &mut Staging,
    ) {
        let BatchPosition { index, packets } = received;
        let payload = carrier.packet(index).payload;
        let length = payload.length();
        if let PayloadLocation::Posted(from) = at
            && posted.place(position) == Some(from)
            && length <= posted.room(position)
        {
            return;
        }
        self.moved += length as u64;
        if self.aside_from.is_none() {
            self.copy_aside(carrier, index, packets, posted);
        }
        match (
            if matches!(at, PayloadLocation::Posted(_)) {
                PayloadLocation::Aside(0)
            } else {
                at
            },
            payload,
        ) {
            (PayloadLocation::Aside(from), _) => stream_memory::store_bytes(
                posted,
                staging,
                position,
                &self.aside[from..from + length],
            ),
            (PayloadLocation::Opened, _) => {
                stream_memory::store_bytes(posted, staging, position, &self.opened)
            }
            (_, CarrierPayload::Here(bytes)) => {
                stream_memory::store_bytes(posted, staging, position, bytes)
            }
            (_, CarrierPayload::Placed(_)) => {}
        }
    }

    /// Copies the payloads that are in places aside, from packet `index` on.
    fn copy_aside<C: PacketCarrier>(
        &mut self,
        carrier: &C,
        index: usize,
        packets: usize,
        posted: &Posted<'_>,
    ) {
        self.aside_from = Some(index);
        self.stride = self
            .places
            .iter()
            .map(|place| place.length)
            .max()
            .unwrap_or(0);
        self.aside.resize((packets - index) * self.stride, 0);
        for later in index..packets {
            if let CarrierPayload::Placed(length) = carrier.packet(later).payload {
                let from = self.places[later].at;
                self.aside[(later - index) * self.stride..][..length]
                    .copy_from_slice(&posted.into[from..from + length]);
            }
        }
    }
}
