//! An IMP as the source of messages: their numbers, the window of messages under way to each other IMP, and buffers that are requested
//! there (BBN 2499, 2.3; RFC 442). A *room* is an allocation of buffers for a message of eight packets at a destination.
//! The caller sends the packets and reads the hosts.

use super::options::ImpOptions;
use super::packet::{ImpDeliveryFailure, ImpHostAddress, ImpMessage, ImpPacket, ImpPacketKind};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use stackline_core::time::Instant;

/// A message that was not answered yet.
#[derive(Clone, Copy, Debug)]
struct ImpOutstandingMessage {
    number: u32,
    message: ImpMessage,
    /// When all of it was sent, or its fate was queried last; `None` while it is being read from its host.
    sent: Option<Instant>,
    /// How often its fate was queried.
    queries: u32,
}

/// The messages towards one other IMP.
#[derive(Debug, Default)]
struct Towards {
    /// The epoch of the other IMP (it changes when that IMP restarts), as far as it is known.
    epoch: u16,
    /// The number of the next message.
    next: u32,
    outstanding: VecDeque<ImpOutstandingMessage>,
    /// Rooms that were allocated and not used yet.
    rooms: u32,
    /// When the last room was allocated.
    since: Instant,
    /// Rooms requested and not allocated yet, and when they were requested.
    asked: u32,
    asked_at: Instant,
}

impl Towards {
    /// The number of the oldest unanswered message.
    fn first(&self) -> u32 {
        self.outstanding
            .front()
            .map_or(self.next, |first| first.number)
    }
}

/// Whether a message may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Permit {
    /// Yes, as the message with this number.
    Number(u32),
    /// Not yet.
    Wait,
    /// Not yet: a room has to be requested.
    Ask,
}

/// The outgoing messages of an IMP, to all IMPs.
#[derive(Debug)]
pub(super) struct ImpMessageSource {
    own: u16,
    epoch: u16,
    towards: BTreeMap<u16, Towards>,
}

impl ImpMessageSource {
    pub(super) const fn new(own: u16, epoch: u16) -> Self {
        Self {
            own,
            epoch,
            towards: BTreeMap::new(),
        }
    }

    /// A packet to another IMP about message `number`, or about a room there.
    fn word(&self, to: ImpHostAddress, kind: ImpPacketKind, number: u32) -> ImpPacket {
        let from = ImpHostAddress {
            imp: self.own,
            host: 0,
        };
        let (first, to_epoch) = (self.first(to.imp), self.epoch_of(to.imp));
        ImpPacket {
            from,
            to,
            kind,
            number,
            first,
            epoch: self.epoch,
            to_epoch,
            bits: 0,
        }
    }

    /// Whether a message may be sent; if so, it counts as under way.
    pub(super) fn permit(
        &mut self,
        options: &ImpOptions,
        now: Instant,
        message: &ImpMessage,
    ) -> Permit {
        let towards = self.towards.entry(message.to.imp).or_default();
        if towards.outstanding.len() >= options.window as usize {
            return Permit::Wait;
        }
        if options.reservation && message.parts() > 1 {
            if towards.rooms == 0 {
                // One request is enough for all messages that wait.
                if towards.asked > 0 {
                    return Permit::Wait;
                }
                towards.asked += 1;
                towards.asked_at = now;
                return Permit::Ask;
            }
            towards.rooms -= 1;
        }
        let number = towards.next;
        towards.next += 1;
        towards.outstanding.push_back(ImpOutstandingMessage {
            number,
            message: *message,
            sent: None,
            queries: 0,
        });
        Permit::Number(number)
    }

    /// The request for a room.
    pub(super) fn question(&self, to: ImpHostAddress) -> ImpPacket {
        self.word(
            to,
            ImpPacketKind::Request { packets: 8 },
            self.first(to.imp),
        )
    }

    /// The number of the oldest unanswered message; the destination need not wait for earlier ones.
    fn first(&self, to: u16) -> u32 {
        self.towards.get(&to).map_or(0, Towards::first)
    }

    /// The epoch of another IMP, as far as it is known.
    fn epoch_of(&self, to: u16) -> u16 {
        self.towards.get(&to).map_or(0, |towards| towards.epoch)
    }

    /// Notes the epoch of another IMP. If it has restarted, its allocations are void.
    pub(super) fn heard(&mut self, from: u16, epoch: u16) {
        let towards = self.towards.entry(from).or_default();
        if epoch > towards.epoch {
            (towards.epoch, towards.rooms, towards.asked) = (epoch, 0, 0);
        }
    }

    /// The packet with part `part` of a message.
    pub(super) fn part(&self, message: &ImpMessage, number: u32, part: u8) -> ImpPacket {
        let kind = ImpPacketKind::Data {
            part,
            parts: message.parts(),
            id: message.id,
            of_bits: message.bits,
        };
        let (first, bits) = (self.first(message.to.imp), message.bits_of(part));
        let to_epoch = self.epoch_of(message.to.imp);
        ImpPacket {
            from: message.from,
            to: message.to,
            kind,
            number,
            first,
            epoch: self.epoch,
            to_epoch,
            bits,
        }
    }

    /// Notes that all of a message was sent.
    pub(super) fn sent(&mut self, now: Instant, to: u16, number: u32) {
        let outstanding = self
            .towards
            .get_mut(&to)
            .into_iter()
            .flat_map(|towards| &mut towards.outstanding);
        outstanding
            .filter(|one| one.number == number)
            .for_each(|one| one.sent = Some(now));
    }

    /// Removes a message that was answered, and returns it.
    pub(super) fn answered(&mut self, from: u16, number: u32) -> Option<ImpMessage> {
        let towards = self.towards.get_mut(&from)?;
        let at = towards
            .outstanding
            .iter()
            .position(|one| one.number == number)?;
        towards.outstanding.remove(at).map(|one| one.message)
    }

    /// Notes a room at another IMP; `was_asked`: it answers a request.
    pub(super) fn room(&mut self, now: Instant, from: u16, was_asked: bool) {
        let towards = self.towards.entry(from).or_default();
        towards.rooms += 1;
        towards.since = now;
        if was_asked {
            towards.asked = towards.asked.saturating_sub(1);
        }
    }

    /// A buffer is kept for a message of one packet that was refused: returns its packet, to be sent again.
    pub(super) fn once_more(&self, from: u16, number: u32) -> Option<ImpPacket> {
        let towards = self.towards.get(&from)?;
        let one = towards
            .outstanding
            .iter()
            .find(|one| one.number == number)?;
        Some(self.part(&one.message, number, 0))
    }

    /// When the first unused rooms are given back.
    pub(super) fn deadline(&self, options: &ImpOptions) -> Option<Instant> {
        let kept = self.towards.values().filter(|towards| towards.rooms > 0);
        kept.map(|towards| towards.since + options.allocation_kept)
            .min()
    }

    /// Gives back rooms that were not used in time.
    pub(super) fn give_back(
        &mut self,
        options: &ImpOptions,
        now: Instant,
        out: &mut Vec<ImpPacket>,
    ) {
        let (own, epoch) = (self.own, self.epoch);
        for (to, towards) in &mut self.towards {
            if towards.rooms > 0 && towards.since + options.allocation_kept <= now {
                let (from, to) = (
                    ImpHostAddress { imp: own, host: 0 },
                    ImpHostAddress { imp: *to, host: 0 },
                );
                let (kind, first) = (ImpPacketKind::GiveBack, towards.first());
                let (number, to_epoch) = (towards.next, towards.epoch);
                let word = ImpPacket {
                    from,
                    to,
                    kind,
                    number,
                    first,
                    epoch,
                    to_epoch,
                    bits: 0,
                };
                out.extend((0..towards.rooms).map(|_| word));
                towards.rooms = 0;
            }
        }
    }

    /// At a tick: repeats requests and queries that were not answered for long, and gives up messages (`lost`).
    pub(super) fn tick(
        &mut self,
        options: &ImpOptions,
        now: Instant,
        reaches: impl Fn(u16) -> bool,
        ask: &mut Vec<ImpPacket>,
        lost: &mut Vec<(ImpMessage, ImpDeliveryFailure)>,
    ) {
        let (own, epoch) = (self.own, self.epoch);
        for (to, towards) in &mut self.towards {
            let (from, whole) = (
                ImpHostAddress { imp: own, host: 0 },
                ImpHostAddress { imp: *to, host: 0 },
            );
            let first = towards.first();
            let to_epoch = towards.epoch;
            let word = |kind, number| ImpPacket {
                from,
                to: whole,
                kind,
                number,
                first,
                epoch,
                to_epoch,
                bits: 0,
            };
            if !reaches(*to) && *to != own {
                (towards.rooms, towards.asked) = (0, 0);
                lost.extend(
                    towards
                        .outstanding
                        .drain(..)
                        .map(|one| (one.message, ImpDeliveryFailure::DeadImp)),
                );
                continue;
            }
            if towards.asked > 0 && towards.asked_at + options.host_patience <= now {
                towards.asked_at = now;
                ask.push(word(ImpPacketKind::Request { packets: 8 }, towards.next));
            }
            for one in &mut towards.outstanding {
                if one
                    .sent
                    .is_some_and(|sent| sent + options.query_after <= now)
                {
                    one.sent = Some(now);
                    one.queries += 1;
                    ask.push(word(ImpPacketKind::Query, one.number));
                }
            }
            let is_lost = |one: &ImpOutstandingMessage| one.queries > 2;
            lost.extend(
                towards
                    .outstanding
                    .iter()
                    .filter(|one| is_lost(one))
                    .map(|one| (one.message, ImpDeliveryFailure::Incomplete)),
            );
            towards.outstanding.retain(|one| !is_lost(one));
        }
    }

    /// All messages that were not answered yet.
    pub(super) fn unanswered(&self) -> impl Iterator<Item = ImpMessage> {
        self.towards
            .values()
            .flat_map(|towards| &towards.outstanding)
            .map(|one| one.message)
    }

    /// The number of messages that were not answered yet.
    pub(super) fn outstanding(&self) -> usize {
        self.towards
            .values()
            .map(|towards| towards.outstanding.len())
            .sum()
    }
}
