//! An IMP as the source of messages: their numbers, how many may be under way to each other IMP, room that is asked for and kept
//! (BBN 2499, 2.3; RFC 442). It sends nothing itself and reads no host.

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
    /// When all of it was sent, or what became of it was asked last; none while it is read from its host.
    sent: Option<Instant>,
    queries: u32,
}

/// What there is towards one other IMP.
#[derive(Debug, Default)]
struct Towards {
    /// Since when the other IMP counts, as far as it is known.
    epoch: u16,
    next: u32,
    outstanding: VecDeque<ImpOutstandingMessage>,
    /// Rooms for messages of eight packets that were promised, and since when the last one was.
    rooms: u32,
    since: Instant,
    /// Rooms asked for and not promised yet, and when that was.
    asked: u32,
    asked_at: Instant,
}

impl Towards {
    /// The oldest message that was not answered.
    fn first(&self) -> u32 {
        self.outstanding
            .front()
            .map_or(self.next, |first| first.number)
    }
}

/// Whether a message may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Permit {
    /// As the message of that number.
    Number(u32),
    /// Not yet.
    Wait,
    /// Not yet: room is to be asked for.
    Ask,
}

/// All other IMPs.
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

    /// A packet to an IMP that says something of one of its own messages, or of room there.
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

    /// Whether that message may go; if so it is under way from now on.
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
                // One question is enough for whoever waits.
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

    /// The question after room.
    pub(super) fn question(&self, to: ImpHostAddress) -> ImpPacket {
        self.word(
            to,
            ImpPacketKind::Request { packets: 8 },
            self.first(to.imp),
        )
    }

    /// The oldest message that was not answered: its receiver need wait for none before.
    fn first(&self, to: u16) -> u32 {
        self.towards.get(&to).map_or(0, Towards::first)
    }

    /// Since when another IMP counts, as far as it is known.
    fn epoch_of(&self, to: u16) -> u16 {
        self.towards.get(&to).map_or(0, |towards| towards.epoch)
    }

    /// Another IMP counts since then: where it was started anew, it knows nothing of what it had promised.
    pub(super) fn heard(&mut self, from: u16, epoch: u16) {
        let towards = self.towards.entry(from).or_default();
        if epoch > towards.epoch {
            (towards.epoch, towards.rooms, towards.asked) = (epoch, 0, 0);
        }
    }

    /// A packet of a message.
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

    /// All of a message was sent.
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

    /// A message is answered: it.
    pub(super) fn answered(&mut self, from: u16, number: u32) -> Option<ImpMessage> {
        let towards = self.towards.get_mut(&from)?;
        let at = towards
            .outstanding
            .iter()
            .position(|one| one.number == number)?;
        towards.outstanding.remove(at).map(|one| one.message)
    }

    /// There is room for a message of eight packets.
    pub(super) fn room(&mut self, now: Instant, from: u16, was_asked: bool) {
        let towards = self.towards.entry(from).or_default();
        towards.rooms += 1;
        towards.since = now;
        if was_asked {
            towards.asked = towards.asked.saturating_sub(1);
        }
    }

    /// There is room for a message of one packet that was sent in vain: it, once more.
    pub(super) fn once_more(&self, from: u16, number: u32) -> Option<ImpPacket> {
        let towards = self.towards.get(&from)?;
        let one = towards
            .outstanding
            .iter()
            .find(|one| one.number == number)?;
        Some(self.part(&one.message, number, 0))
    }

    /// When room that nobody uses is given back.
    pub(super) fn deadline(&self, options: &ImpOptions) -> Option<Instant> {
        let kept = self.towards.values().filter(|towards| towards.rooms > 0);
        kept.map(|towards| towards.since + options.allocation_kept)
            .min()
    }

    /// Gives back what nobody used in time.
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

    /// What is asked after a long time, and which messages are given up.
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

    /// How many those are.
    pub(super) fn outstanding(&self) -> usize {
        self.towards
            .values()
            .map(|towards| towards.outstanding.len())
            .sum()
    }
}
