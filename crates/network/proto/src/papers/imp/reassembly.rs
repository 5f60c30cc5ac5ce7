//! An IMP as the destination of messages: buffers to reassemble them in, their order, and the answers to their sources (BBN 2499, 2.3;
//! RFC 442, RFC 626). Buffers are *promised* when a source has been sent an allocation that it has not used yet.
//! Complete messages are returned to the caller, which delivers them to hosts.

use super::options::ImpOptions;
use super::packet::{
    ImpDeliveryFailure, ImpHostAddress, ImpMessage, ImpPacket, ImpPacketKind, MOST_PARTS,
};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use stackline_core::time::{Duration, Instant};

/// Promised buffers, and those of a message whose remaining parts do not come, are taken back after this time (RFC 442).
const IDLE: Duration = Duration(120_000_000_000);

/// A message that is being reassembled, or that is complete and waits for earlier ones.
#[derive(Clone, Copy, Debug)]
struct Assembly {
    message: ImpMessage,
    parts: u8,
    /// A bit for each part that has arrived.
    came: u8,
    /// The time of the tick before the last part arrived.
    since: Instant,
}

impl Assembly {
    const fn is_whole(&self) -> bool {
        self.came.count_ones() == self.parts as u32
    }
}

/// The messages that come from one other IMP.
#[derive(Debug, Default)]
struct ImpIncomingState {
    epoch: u16,
    /// The number of the next message to be delivered to its host.
    next: u32,
    assemblies: BTreeMap<u32, Assembly>,
    /// How many messages of eight packets were promised buffers that are not used yet.
    promised: u32,
    /// Messages of one packet that were refused, and for which a buffer is now kept.
    awaited: BTreeSet<u32>,
    /// When buffers were promised last.
    since: Instant,
}

/// A wait for eight buffers.
#[derive(Clone, Copy, Debug)]
enum Want {
    /// A source has requested them.
    Asked { by: ImpHostAddress, number: u32 },
    /// An RFNM is held back until `until`, so that it can promise buffers for the next message.
    Rfnm {
        to: ImpHostAddress,
        number: u32,
        until: Instant,
    },
}

/// A complete message, for a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ImpReassembledMessage {
    pub(super) message: ImpMessage,
    pub(super) number: u32,
    /// The number of buffers that it occupies.
    packets: u32,
}

/// The incoming messages of an IMP, from all IMPs.
#[derive(Debug, Default)]
pub(super) struct Destination {
    own: u16,
    epoch: u16,
    /// Free buffers, and all buffers, for packets of messages of several packets.
    free: u32,
    all: u32,
    /// Free buffers for messages of one packet.
    singles: u32,
    /// Free blocks that describe messages in reassembly; `None`: without limit.
    blocks: Option<u32>,
    from: BTreeMap<u16, ImpIncomingState>,
    wants: VecDeque<Want>,
    /// Messages of one packet that were refused: their sources and numbers.
    refused: VecDeque<(ImpHostAddress, u32)>,
    /// The time of the last tick.
    now: Instant,
}

/// What happens to a packet of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ImpPacketVerdict {
    /// It is accepted, or was before.
    Taken,
    /// There is no buffer: it is not acknowledged, and will be sent again.
    Refused,
}

impl Destination {
    pub(super) fn new(options: &ImpOptions, own: u16, epoch: u16) -> Self {
        let all = options.reassembly.saturating_mul(MOST_PARTS as u32);
        Self {
            own,
            epoch,
            free: all,
            all,
            singles: options.pending,
            blocks: options.reassembly_blocks,
            ..Self::default()
        }
    }

    /// A packet of this IMP about message `number` of another.
    fn word(&self, to: ImpHostAddress, kind: ImpPacketKind, number: u32) -> ImpPacket {
        let from = ImpHostAddress {
            imp: self.own,
            host: 0,
        };
        ImpPacket {
            from,
            to,
            kind,
            number,
            first: 0,
            epoch: self.epoch,
            to_epoch: self.epoch_of(to.imp),
            bits: 0,
        }
    }

    /// The epoch of another IMP (it changes when that IMP restarts), as far as it is known.
    pub(super) fn epoch_of(&self, by: u16) -> u16 {
        self.from.get(&by).map_or(0, |known| known.epoch)
    }

    /// Refuses a packet that was sent before this IMP restarted: its message may have been delivered then, so it must not be again.
    pub(super) fn void_here(
        &mut self,
        options: &ImpOptions,
        packet: &ImpPacket,
        out: &mut Vec<ImpPacket>,
    ) {
        self.of_epoch(options, packet.from.imp, packet.epoch);
        out.push(self.word(
            packet.from,
            ImpPacketKind::Failed(ImpDeliveryFailure::Incomplete),
            packet.number,
        ));
    }

    /// Notes the epoch of another IMP. If it has restarted, everything that came from it before is void.
    fn of_epoch(&mut self, options: &ImpOptions, by: u16, epoch: u16) {
        let is_known = self.from.get(&by).map(|known| known.epoch == epoch);
        if is_known == Some(false) {
            self.void(options, by);
        }
        if is_known != Some(true) {
            self.from.insert(
                by,
                ImpIncomingState {
                    epoch,
                    ..ImpIncomingState::default()
                },
            );
        }
    }

    /// Frees the buffers of another IMP's incomplete messages, and those that it was promised.
    fn void(&mut self, options: &ImpOptions, by: u16) {
        let Some(known) = self.from.get_mut(&by) else {
            return;
        };
        let promised = core::mem::take(&mut known.promised) * u32::from(MOST_PARTS);
        self.singles += core::mem::take(&mut known.awaited).len() as u32;
        self.refused.retain(|(to, _)| to.imp != by);
        let assemblies = core::mem::take(&mut known.assemblies);
        self.free += promised;
        assemblies
            .values()
            .for_each(|one| self.let_go(options, one));
    }

    /// Gives up the reassembly of a message and frees its buffers.
    fn let_go(&mut self, options: &ImpOptions, one: &Assembly) {
        self.blocks = self.blocks.map(|blocks| blocks + 1);
        self.release(one.parts, buffers(options, one));
    }

    /// Frees the buffers of a message of `parts` packets.
    const fn release(&mut self, parts: u8, packets: u32) {
        if parts > 1 {
            self.free += packets
        } else {
            self.singles += 1
        }
    }

    /// Handles a request for buffers; one per source IMP is kept.
    pub(super) fn asked(
        &mut self,
        options: &ImpOptions,
        packet: &ImpPacket,
        out: &mut Vec<ImpPacket>,
    ) {
        self.of_epoch(options, packet.from.imp, packet.epoch);
        let is_waiting =
            |want: &Want| matches!(want, Want::Asked { by, .. } if by.imp == packet.from.imp);
        if !self.wants.iter().any(is_waiting) {
            self.wants.push_back(Want::Asked {
                by: packet.from,
                number: packet.number,
            });
        }
        self.serve(out);
    }

    /// Handles promised buffers that are given back unused.
    pub(super) fn given_back(
        &mut self,
        options: &ImpOptions,
        packet: &ImpPacket,
        out: &mut Vec<ImpPacket>,
    ) {
        self.of_epoch(options, packet.from.imp, packet.epoch);
        if let Some(from) = self
            .from
            .get_mut(&packet.from.imp)
            .filter(|from| from.promised > 0)
        {
            from.promised -= 1;
            self.free += u32::from(MOST_PARTS);
        }
        self.serve(out);
    }

    /// Handles a packet of a message; messages that it completes are added to `whole`.
    pub(super) fn data(
        &mut self,
        options: &ImpOptions,
        packet: &ImpPacket,
        whole: &mut Vec<ImpReassembledMessage>,
    ) -> ImpPacketVerdict {
        let ImpPacketKind::Data {
            part,
            parts,
            id,
            of_bits,
        } = packet.kind
        else {
            return ImpPacketVerdict::Taken;
        };
        self.of_epoch(options, packet.from.imp, packet.epoch);
        self.skip(packet.from.imp, packet.first, options, whole);
        let Some(known) = self.from.get(&packet.from.imp) else {
            return ImpPacketVerdict::Refused;
        };
        let number = packet.number;
        let came = known.assemblies.get(&number).map(|one| one.came);
        // Here already: taken once more, so that it is not sent again.
        if number < known.next || came.is_some_and(|came| came >> part & 1 == 1) {
            return ImpPacketVerdict::Taken;
        }
        if came.is_none() {
            let message = ImpMessage {
                from: packet.from,
                to: packet.to,
                bits: of_bits,
                id,
            };
            if let Some(verdict) = self.begin_assembly(options, message, number, parts) {
                return verdict;
            }
        }
        if parts > 1 && !options.reservation {
            if self.free == 0 {
                return ImpPacketVerdict::Refused;
            }
            self.free -= 1;
        }
        let known = self.from.get_mut(&packet.from.imp);
        if let Some(one) = known.and_then(|known| known.assemblies.get_mut(&number)) {
            one.came |= 1 << part;
            one.since = self.now;
        }
        self.deliver(packet.from.imp, options, whole);
        ImpPacketVerdict::Taken
    }

    /// Takes buffers for a message whose first packet has arrived; if there are none, returns what happens to that packet.
    fn begin_assembly(
        &mut self,
        options: &ImpOptions,
        message: ImpMessage,
        number: u32,
        parts: u8,
    ) -> Option<ImpPacketVerdict> {
        let Self {
            free,
            singles,
            blocks,
            from,
            refused,
            now,
            ..
        } = self;
        let known = from.get_mut(&message.from.imp)?;
        if *blocks == Some(0) {
            return Some(ImpPacketVerdict::Refused);
        }
        let is_promised = parts > 1 && known.promised > 0;
        match parts {
            1 if known.awaited.remove(&number) => {}
            1 if has_room(*singles, number == known.next) => *singles -= 1,
            // Not kept: it counts as a request, and is sent again once a buffer is promised.
            1 => {
                if !refused.contains(&(message.from, number)) {
                    refused.push_back((message.from, number));
                }
                return Some(ImpPacketVerdict::Taken);
            }
            _ if is_promised => known.promised -= 1,
            // Without reservation each packet takes a buffer for itself.
            _ if !options.reservation => {}
            _ if *free < u32::from(MOST_PARTS) => return Some(ImpPacketVerdict::Refused),
            _ => *free -= u32::from(MOST_PARTS),
        }
        *blocks = blocks.map(|blocks| blocks - 1);
        known.assemblies.insert(
            number,
            Assembly {
                message,
                parts,
                came: 0,
                since: *now,
            },
        );
        None
    }

    /// Moves complete messages that are next in order to `whole`.
    fn deliver(&mut self, by: u16, options: &ImpOptions, whole: &mut Vec<ImpReassembledMessage>) {
        let Some(known) = self.from.get_mut(&by) else {
            return;
        };
        while let Some(one) = known
            .assemblies
            .get(&known.next)
            .copied()
            .filter(Assembly::is_whole)
        {
            known.assemblies.remove(&known.next);
            self.blocks = self.blocks.map(|blocks| blocks + 1);
            let packets = buffers(options, &one);
            whole.push(ImpReassembledMessage {
                message: one.message,
                number: known.next,
                packets,
            });
            known.next += 1;
        }
    }

    /// A host has accepted a message, or never will (`failure`): frees its buffers and answers its source.
    pub(super) fn delivered(
        &mut self,
        options: &ImpOptions,
        now: Instant,
        one: &ImpReassembledMessage,
        failure: Option<ImpDeliveryFailure>,
        out: &mut Vec<ImpPacket>,
    ) {
        self.release(one.message.parts(), one.packets);
        match failure {
            Some(failure) => {
                out.push(self.word(one.message.from, ImpPacketKind::Failed(failure), one.number));
                self.serve(out);
            }
            None => self.answered(options, now, one, out),
        }
    }

    /// Frees the buffers of a message that was answered before.
    pub(super) fn is_taken(&mut self, one: &ImpReassembledMessage, out: &mut Vec<ImpPacket>) {
        self.release(one.message.parts(), one.packets);
        self.serve(out);
    }

    /// Answers a message that its host has accepted, or begins to accept.
    pub(super) fn answered(
        &mut self,
        options: &ImpOptions,
        now: Instant,
        one: &ImpReassembledMessage,
        out: &mut Vec<ImpPacket>,
    ) {
        let to = one.message.from;
        if options.reservation && one.message.parts() > 1 {
            // The sender's next message is likely as long: the RFNM also promises buffers for it, or waits a while for them.
            self.wants.push_back(Want::Rfnm {
                to,
                number: one.number,
                until: now + options.rfnm_waits,
            });
        } else {
            out.push(self.word(to, ImpPacketKind::Rfnm { allocates: false }, one.number));
        }
        self.serve(out);
    }

    /// Promises buffers to those who wait for them, in order.
    fn serve(&mut self, out: &mut Vec<ImpPacket>) {
        let eight = u32::from(MOST_PARTS);
        // In their order, so that small wants do not starve a large one before them.
        while let Some(want) = self.wants.front().copied() {
            let (to, kind, number) = match want {
                Want::Asked { by, number } if self.free >= eight => (
                    by,
                    ImpPacketKind::Allocate {
                        packets: MOST_PARTS,
                    },
                    number,
                ),
                Want::Rfnm { to, number, .. } if self.free >= eight => {
                    (to, ImpPacketKind::Rfnm { allocates: true }, number)
                }
                _ => break,
            };
            self.wants.pop_front();
            self.free -= eight;
            let from = self.from.entry(to.imp).or_default();
            from.promised += 1;
            from.since = self.now;
            out.push(self.word(to, kind, number));
        }
        self.serve_singles(out);
    }

    /// Asks again for refused messages of one packet, once there are buffers for them.
    fn serve_singles(&mut self, out: &mut Vec<ImpPacket>) {
        let Self {
            refused,
            from,
            singles,
            ..
        } = self;
        let may_come = |(by, number): &(ImpHostAddress, u32)| {
            has_room(
                *singles,
                from.get(&by.imp).is_some_and(|known| known.next == *number),
            )
        };
        let Some((by, number)) = refused
            .iter()
            .position(may_come)
            .and_then(|at| refused.remove(at))
        else {
            return;
        };
        *singles -= 1;
        let known = from.entry(by.imp).or_default();
        known.awaited.insert(number);
        known.since = self.now;
        out.push(self.word(by, ImpPacketKind::Allocate { packets: 1 }, number));
        self.serve_singles(out);
    }

    /// When the first RFNM that waits for buffers is sent without promising any.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let until = |want: &Want| {
            if let Want::Rfnm { until, .. } = want {
                Some(*until)
            } else {
                None
            }
        };
        self.wants.iter().filter_map(until).min()
    }

    /// Sends the RFNMs that have waited long enough.
    pub(super) fn answer(&mut self, now: Instant, out: &mut Vec<ImpPacket>) {
        let is_over = |want: &Want| matches!(want, Want::Rfnm { until, .. } if *until <= now);
        let over: Vec<Want> = self.wants.iter().copied().filter(is_over).collect();
        self.wants.retain(|want| !is_over(want));
        for want in over {
            if let Want::Rfnm { to, number, .. } = want {
                out.push(self.word(to, ImpPacketKind::Rfnm { allocates: false }, number));
            }
        }
    }

    /// Handles a query about a message. Unless it is complete or its RFNM waits, it is given up and reported as incomplete.
    pub(super) fn query(
        &mut self,
        options: &ImpOptions,
        packet: &ImpPacket,
        whole: &mut Vec<ImpReassembledMessage>,
        out: &mut Vec<ImpPacket>,
    ) {
        self.of_epoch(options, packet.from.imp, packet.epoch);
        let number = packet.number;
        let Some(known) = self.from.get_mut(&packet.from.imp) else {
            return;
        };
        let waits = |want: &Want| matches!(want, Want::Rfnm { to, number: of, .. } if to.imp == packet.from.imp && *of == number);
        if known
            .assemblies
            .get(&number)
            .is_some_and(Assembly::is_whole)
            || self.wants.iter().any(waits)
        {
            return;
        }
        if number >= known.next {
            self.skip(packet.from.imp, packet.first, options, whole);
            self.give_up(packet.from.imp, number, options, whole);
        }
        out.push(self.word(
            packet.from,
            ImpPacketKind::Failed(ImpDeliveryFailure::Incomplete),
            number,
        ));
    }

    /// Gives up all messages before number `first`: the source will not send them any more.
    fn skip(
        &mut self,
        by: u16,
        first: u32,
        options: &ImpOptions,
        whole: &mut Vec<ImpReassembledMessage>,
    ) {
        self.refused
            .retain(|(of, refused)| of.imp != by || *refused >= first);
        while let Some(known) = self.from.get(&by).filter(|known| known.next < first) {
            let begun = known.assemblies.keys().chain(&known.awaited).copied().min();
            match begun.filter(|number| *number < first) {
                Some(number) => {
                    if let Some(known) = self.from.get_mut(&by) {
                        known.next = number;
                    }
                    self.give_up(by, number, options, whole);
                }
                None => self.from.entry(by).or_default().next = first,
            }
        }
    }

    /// Gives up a message.
    fn give_up(
        &mut self,
        by: u16,
        number: u32,
        options: &ImpOptions,
        whole: &mut Vec<ImpReassembledMessage>,
    ) {
        let Some(known) = self.from.get_mut(&by) else {
            return;
        };
        known.next += u32::from(number == known.next);
        self.singles += u32::from(known.awaited.remove(&number));
        self.refused
            .retain(|(of, refused)| of.imp != by || *refused != number);
        if let Some(one) = known.assemblies.remove(&number) {
            self.let_go(options, &one);
        }
        self.deliver(by, options, whole);
    }

    /// Free buffers, and all buffers.
    pub(super) const fn buffers(&self) -> (u32, u32) {
        (self.free, self.all)
    }

    /// Free buffers for messages of one packet.
    pub(super) const fn singles(&self) -> u32 {
        self.singles
    }

    /// The number of buffers that are promised and not used.
    pub(super) fn promised(&self) -> u32 {
        self.from
            .values()
            .map(|from| from.promised * u32::from(MOST_PARTS))
            .sum()
    }

    /// At a tick: takes back buffers that were promised too long ago, and gives up messages that stall or come from unreachable IMPs.
    pub(super) fn forget(
        &mut self,
        options: &ImpOptions,
        now: Instant,
        reaches: impl Fn(u16) -> bool,
        whole: &mut Vec<ImpReassembledMessage>,
        out: &mut Vec<ImpPacket>,
    ) {
        let eight = u32::from(MOST_PARTS);
        self.now = now;
        for known in self
            .from
            .values_mut()
            .filter(|known| known.since + IDLE <= now)
        {
            self.free += known.promised * eight;
            known.promised = 0;
            self.singles += core::mem::take(&mut known.awaited).len() as u32;
        }
        let gone: Vec<u16> = self
            .from
            .keys()
            .copied()
            .filter(|by| !reaches(*by))
            .collect();
        for by in gone {
            self.void(options, by);
            self.wants.retain(|want| match want {
                Want::Asked { by: of, .. } | Want::Rfnm { to: of, .. } => of.imp != by,
            });
        }
        let is_stale = |one: &Assembly| one.since + IDLE <= now;
        let stale = |(by, known): (&u16, &ImpIncomingState)| {
            known.assemblies.values().any(is_stale).then_some(*by)
        };
        let stale: Vec<u16> = self.from.iter().filter_map(stale).collect();
        for by in stale {
            let known = self
                .from
                .get(&by)
                .into_iter()
                .flat_map(|known| &known.assemblies);
            let last = known
                .filter(|(_, one)| is_stale(one))
                .map(|(number, _)| *number)
                .max();
            // Earlier messages will not come any more either: their source has restarted or given them up.
            self.skip(by, last.map_or(0, |number| number + 1), options, whole);
        }
        self.serve(out);
    }
}

/// Whether a message of one packet gets a buffer. The last buffer is kept for a message that is next in order; otherwise later messages,
/// which have to wait for it, could keep it out.
const fn has_room(singles: u32, is_next: bool) -> bool {
    singles > 1 || singles == 1 && is_next
}

/// The buffers of a message of several packets: eight that were reserved, or one for each packet that arrived.
const fn buffers(options: &ImpOptions, one: &Assembly) -> u32 {
    if options.reservation {
        MOST_PARTS as u32
    } else {
        one.came.count_ones()
    }
}
