//! The first pass over a capture: collects what shows at which host it was taken, and packets by which its clock can be compared with
//! others'. It makes no events.

use crate::Error;
use stackline_dissect::connections::SegmentEnds;
use stackline_dissect::left_out::{Bound, LeftOut};
use stackline_dissect::pcapng::{self, CapturePacket};
use stackline_dissect::quic::packet_header::sets_up_connection;
use stackline_dissect::segment::{DissectedDatagram, DissectedSegment, PacketTransport};
use stackline_requests::Secrets;
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::net::IpAddr;

/// The most handshakes, and pairs of addresses, of one interface that are looked at.
const MOST: usize = Bound::Handshakes.most();
/// The most interfaces, by name.
const MOST_PLACES: usize = Bound::SurveyedInterfaces.most();
/// The most packets of one interface that are remembered to compare clocks. Beyond it, packets are thinned out by their hash, so that all
/// captures keep the same ones.
const MOST_MARKS: usize = 1 << 14;

/// The findings on a capture, by interface.
#[derive(Debug, Default)]
pub struct Survey {
    /// The capture's name in messages.
    pub(super) source: String,
    /// The name of its hosts, given by the user; `*` stands for the interface's name.
    pub(super) pattern: Option<String>,
    pub(super) places: BTreeMap<String, SurveyedInterface>,
    /// TLS secrets that the capture contains.
    pub(super) secrets: Secrets,
    /// Handshakes, addresses and interfaces beyond the limits.
    pub(super) left_out: LeftOut,
}

/// The findings at one interface.
#[derive(Debug, Default)]
pub(super) struct SurveyedInterface {
    /// Handshakes by the initiator's and responder's addresses and the SYN's sequence number.
    pub(super) handshakes: BTreeMap<(SegmentEnds, u32), SurveyedHandshake>,
    /// The SYN's sequence number of the latest handshake between two addresses.
    open: HashMap<SegmentEnds, u32>,
    /// For each address, the number of packets whose link header says that it is this host's, and that it is not.
    pub(super) link_votes: BTreeMap<IpAddr, [u64; 2]>,
    /// The TTL of the first packet from one address to another.
    pub(super) ttls: BTreeMap<(IpAddr, IpAddr), u8>,
    pub(super) marks: PacketFingerprints,
}

/// When the packets of a handshake were first seen, ns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SurveyedHandshake {
    syn_ns: u64,
    answer_ns: Option<u64>,
    acknowledged_ns: Option<u64>,
    /// Whether the SYN or its answer was seen twice.
    again: bool,
    /// The TTL of the SYN.
    pub(super) ttl: u8,
}

impl SurveyedHandshake {
    /// The times from the SYN to its answer, and from there to the acknowledgement, ns. `None` if the handshake is incomplete or has
    /// retransmissions.
    pub(super) fn gaps(&self) -> Option<(u64, u64)> {
        let (answer, end) = (self.answer_ns?, self.acknowledged_ns?);
        (!self.again).then(|| {
            (
                answer.saturating_sub(self.syn_ns),
                end.saturating_sub(answer),
            )
        })
    }
}

/// Sightings of packets by which captures of the same traffic recognise each other's packets.
#[derive(Debug, Default)]
pub(super) struct PacketFingerprints {
    /// Sightings by a hash of the packet's addresses, ports and last sequence number.
    pub(super) by_hash: HashMap<u64, FingerprintSighting>,
    /// Only hashes whose bits under this mask are 0 are kept.
    mask: u64,
}

/// When and between which addresses a packet was seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct FingerprintSighting {
    pub(super) at_ns: u64,
    pub(super) ends: (IpAddr, IpAddr),
    /// Whether another packet had the same hash, as a retransmission has.
    pub(super) twice: bool,
}

impl PacketFingerprints {
    /// Remembers a segment with data, SYN or FIN.
    fn put(&mut self, at_ns: u64, segment: &DissectedSegment) {
        let more = u32::from(segment.syn) + u32::from(segment.fin);
        if segment.bytes == 0 && more == 0 {
            return;
        }
        // The hash uses the segment's end, since offload may join segments on one side and not on the other.
        let end = segment
            .sequence
            .wrapping_add(segment.bytes as u32)
            .wrapping_add(more);
        let mut hasher = DefaultHasher::new();
        (segment.ends, end).hash(&mut hasher);
        let hash = hasher.finish();
        // Thins out by hash, so that all captures keep the same packets.
        if hash & self.mask != 0 {
            return;
        }
        let ends = (segment.ends.0.ip(), segment.ends.1.ip());
        self.by_hash
            .entry(hash)
            .and_modify(|mark| mark.twice = true)
            .or_insert(FingerprintSighting {
                at_ns,
                ends,
                twice: false,
            });
        if self.by_hash.len() > MOST_MARKS {
            self.mask = self.mask << 1 | 1;
            let mask = self.mask;
            self.by_hash.retain(|hash, _| hash & mask == 0);
        }
    }

    /// The packets that two interfaces saw once each.
    pub(super) fn common<'m>(
        &'m self,
        other: &'m Self,
    ) -> impl Iterator<Item = (FingerprintSighting, FingerprintSighting)> + 'm {
        let both = self
            .by_hash
            .iter()
            .filter_map(|(hash, mark)| Some((*mark, *other.by_hash.get(hash)?)));
        both.filter(|(one, other)| !one.twice && !other.twice)
    }
}

impl Survey {
    /// Reads a whole capture. `source` is its name in messages. Its hosts are named after its interfaces, or by `pattern`.
    ///
    /// # Errors
    /// If it is neither pcapng nor pcap.
    pub fn read(
        from: impl Read + Send,
        source: &str,
        pattern: Option<&str>,
    ) -> Result<Self, Error> {
        let mut reader = pcapng::CaptureReader::open(from)
            .map_err(|cause| Error::new("this is neither pcapng nor pcap", cause))?;
        let (source, pattern) = (source.to_owned(), pattern.map(str::to_owned));
        let mut survey = Self {
            source,
            pattern,
            ..Self::default()
        };
        while reader
            .step(|packet| packet.into_iter().for_each(|packet| survey.packet(&packet)))
            .is_ok()
        {}
        survey.secrets = reader.secrets().clone();
        Ok(survey)
    }

    /// TLS secrets that the capture contains.
    #[must_use]
    pub const fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// Takes one packet.
    fn packet(&mut self, packet: &CapturePacket<'_>) {
        let segment = match packet.carried() {
            Some(PacketTransport::Tcp(segment, _)) => Some(segment),
            Some(PacketTransport::Udp(datagram, data)) if sets_up_connection(data) => {
                return self.set_up(packet, &datagram);
            }
            _ => None,
        };
        self.seen(
            packet.interface,
            packet.at_ns,
            packet.outgoing(),
            segment.as_ref(),
        );
    }

    /// Takes a datagram that sets up a QUIC connection.
    fn set_up(&mut self, packet: &CapturePacket<'_>, datagram: &DissectedDatagram) {
        self.seen(packet.interface, packet.at_ns, packet.outgoing(), None);
        if let Some(place) = self.places.get_mut(packet.interface) {
            let outgoing = packet.outgoing();
            place.ends(datagram.ends, datagram.ttl, outgoing, &mut self.left_out);
        }
    }

    /// Takes a packet at an interface, with its TCP segment if it has one.
    pub(super) fn seen(
        &mut self,
        interface: &str,
        at_ns: u64,
        outgoing: Option<bool>,
        segment: Option<&DissectedSegment>,
    ) {
        if !self.places.contains_key(interface) {
            if self.places.len() >= MOST_PLACES {
                return self.left_out.add(Bound::SurveyedInterfaces, 1);
            }
            self.places
                .insert(interface.to_owned(), SurveyedInterface::default());
        }
        if let Some((place, segment)) = self.places.get_mut(interface).zip(segment) {
            place.segment(at_ns, outgoing, segment, &mut self.left_out);
        }
    }
}

impl SurveyedInterface {
    fn segment(
        &mut self,
        at_ns: u64,
        outgoing: Option<bool>,
        segment: &DissectedSegment,
        left_out: &mut LeftOut,
    ) {
        self.ends(segment.ends, segment.ttl, outgoing, left_out);
        self.marks.put(at_ns, segment);
        self.handshake(at_ns, segment, left_out);
    }

    /// Notes the addresses, the TTL and the direction of a packet.
    fn ends(&mut self, ends: SegmentEnds, ttl: u8, outgoing: Option<bool>, left_out: &mut LeftOut) {
        let (from, to) = (ends.0.ip(), ends.1.ip());
        if let Some(outgoing) = outgoing {
            for (address, is_here) in [(from, outgoing), (to, !outgoing)] {
                if self.link_votes.len() < MOST || self.link_votes.contains_key(&address) {
                    self.link_votes.entry(address).or_default()[usize::from(!is_here)] += 1;
                } else {
                    left_out.add(Bound::Handshakes, 1);
                }
            }
        }
        if self.ttls.len() < MOST {
            self.ttls.entry((from, to)).or_insert(ttl);
        } else if !self.ttls.contains_key(&(from, to)) {
            left_out.add(Bound::Handshakes, 1);
        }
    }

    /// Notes the times of a handshake's packets.
    fn handshake(&mut self, at_ns: u64, segment: &DissectedSegment, left_out: &mut LeftOut) {
        let (there, back) = (segment.ends, (segment.ends.1, segment.ends.0));
        match (segment.syn, segment.acknowledged) {
            (true, None) if self.handshakes.len() >= MOST => left_out.add(Bound::Handshakes, 1),
            (true, None) => {
                self.open.insert(there, segment.sequence);
                let first = SurveyedHandshake {
                    syn_ns: at_ns,
                    ttl: segment.ttl,
                    ..SurveyedHandshake::default()
                };
                self.handshakes
                    .entry((there, segment.sequence))
                    .and_modify(|known| known.again = true)
                    .or_insert(first);
            }
            (true, Some(_)) => {
                let Some(number) = self.open.get(&back) else {
                    return;
                };
                let Some(known) = self.handshakes.get_mut(&(back, *number)) else {
                    return;
                };
                known.again |= known.answer_ns.is_some();
                known.answer_ns.get_or_insert(at_ns);
            }
            (false, Some(_)) => {
                let Some(number) = self.open.get(&there) else {
                    return;
                };
                let Some(known) = self.handshakes.get_mut(&(there, *number)) else {
                    return;
                };
                if known.answer_ns.is_some() {
                    known.acknowledged_ns.get_or_insert(at_ns);
                    self.open.remove(&there);
                }
            }
            _ => {}
        }
    }
}
