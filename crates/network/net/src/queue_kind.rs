//! The discipline of the queue before a link: what is decided at arrival, and the packets that wait by their slot where it
//! is decided at departure.

use crate::packet::EcnMarking;
use crate::queue::Admission;
use crate::queue::classes::ClassQueues;
use crate::queue::codel::CoDel;
use crate::queue::dual_pi2::{DualPi2, DualPi2Verdict};
use crate::queue::fifo::Fifo;
use crate::queue::fq_codel::FqCoDel;
use crate::queue::pie::Pie;
use crate::queue::red::Red;
use crate::tap::DropReason;
use alloc::boxed::Box;
use stackline_core::network::{Discipline, LinkQueue};
use stackline_core::random::Seed;
use stackline_core::time::{Duration, Instant};

/// Disciplines other than drop-tail are large and rare: boxed, so that what every packet touches is close together.
#[derive(Debug)]
pub(crate) enum QueueKind {
    Tail,
    Red(Box<Red>),
    Pie(Box<Pie>),
    Head(Box<Fifo<u32>>),
    CoDel(Box<(Fifo<u32>, CoDel)>),
    FqCoDel(Box<FqCoDel<u32>>),
    Classes(Box<ClassQueues<u32>>),
    DualPi2(Box<DualPi2<u32>>),
}

/// A packet as a discipline sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitingPacket {
    pub(crate) slot: u32,
    pub(crate) flow: u32,
    pub(crate) dscp: u8,
    pub(crate) ecn: EcnMarking,
    pub(crate) bytes: u64,
}

/// What may wait by its slot: bytes and packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueRoom {
    pub(crate) bytes: u64,
    pub(crate) packets: u64,
}

/// What a discipline that decides at arrival looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueueState {
    /// Bytes that wait or are being sent.
    pub(crate) backlog: u64,
    /// How long the next packet would wait.
    pub(crate) delay: Duration,
    /// Since when the link is idle, if it is.
    pub(crate) idle_since: Option<Instant>,
    /// Time that a packet of full size takes, in ns.
    pub(crate) typical_ns: u64,
}

impl QueueKind {
    /// The empty queue of a link with that MTU.
    pub(crate) fn new(queue: &LinkQueue, mtu: u64, seed: Seed) -> Self {
        match queue.discipline {
            Discipline::DropTail => Self::Tail,
            Discipline::DropHead => Self::Head(Box::default()),
            Discipline::Red {
                min_bytes,
                max_bytes,
                most,
                weight,
            } => {
                let seed = seed.child("red");
                Self::Red(Box::new(Red::new(min_bytes, max_bytes, most, weight, seed)))
            }
            Discipline::CoDel { target, interval } => {
                Self::CoDel(Box::new((Fifo::default(), CoDel::new(target, interval))))
            }
            Discipline::Pie { target, update } => {
                Self::Pie(Box::new(Pie::new(target, update, seed.child("pie"))))
            }
            Discipline::FqCoDel {
                target,
                interval,
                flows,
                quantum,
            } => {
                let hash = seed.child("fq_codel").0;
                let queues = FqCoDel::new(target, interval, flows, quantum, mtu, hash);
                Self::FqCoDel(Box::new(queues))
            }
            Discipline::Classes => Self::Classes(Box::new(ClassQueues::new(&queue.classes, mtu))),
            Discipline::DualPi2(settings) => Self::DualPi2(Box::new(DualPi2::new(settings))),
        }
    }

    /// Whether the discipline decides at departure, so that packets wait by their slot.
    pub(crate) const fn holds(&self) -> bool {
        !matches!(self, Self::Tail | Self::Red(_) | Self::Pie(_))
    }

    /// Whether it takes every packet that has room.
    pub(crate) const fn is_drop_tail(&self) -> bool {
        matches!(self, Self::Tail)
    }

    /// Bytes and packets that wait by their slot.
    pub(crate) fn held(&self) -> (u64, u64) {
        match self {
            Self::Tail | Self::Red(_) | Self::Pie(_) => (0, 0),
            Self::Head(fifo) => (fifo.bytes(), fifo.len() as u64),
            Self::CoDel(held) => (held.0.bytes(), held.0.len() as u64),
            Self::FqCoDel(queues) => (queues.bytes(), queues.len() as u64),
            Self::Classes(queues) => (queues.bytes(), queues.len() as u64),
            Self::DualPi2(queues) => (queues.bytes(), queues.len() as u64),
        }
    }

    /// The decision of a discipline that decides at arrival, about a packet of `bytes`.
    pub(crate) fn decide(&mut self, at: Instant, state: QueueState, bytes: u64) -> Admission {
        match self {
            Self::Red(red) => red.admit(at, state.backlog, state.idle_since, state.typical_ns),
            Self::Pie(pie) => pie.admit(at, state.delay, state.backlog, bytes),
            _ => Admission::Take,
        }
    }

    /// Why the discipline drops at arrival, early or by force.
    pub(crate) const fn refusal(&self, is_forced: bool) -> DropReason {
        match (self, is_forced) {
            (Self::Pie(_), _) => DropReason::Pie,
            (_, true) => DropReason::RedForced,
            (_, false) => DropReason::RedEarly,
        }
    }

    /// Why the discipline drops at departure.
    pub(crate) const fn lateness(&self) -> DropReason {
        match self {
            Self::DualPi2(_) => DropReason::DualPi2,
            _ => DropReason::CoDel,
        }
    }

    /// Queues a packet by its slot. `displaced` is called for each packet that loses its place, perhaps the new one.
    pub(crate) fn hold(
        &mut self,
        now: Instant,
        packet: WaitingPacket,
        room: QueueRoom,
        mut displaced: impl FnMut(u32, DropReason),
    ) {
        let WaitingPacket { slot, bytes, .. } = packet;
        let is_full = |kind: &Self, more: u64, packets: u64| {
            let (held, count) = kind.held();
            held + more > room.bytes || count + packets > room.packets
        };
        match self {
            Self::FqCoDel(queues) => queues.push(now, packet.flow, bytes, slot),
            Self::Classes(queues) => {
                if let Some(refused) = queues.push(now, packet.dscp, bytes, slot) {
                    return displaced(refused, DropReason::QueueFull);
                }
            }
            Self::Head(_) => {
                while is_full(self, bytes, 1) {
                    let Some((oldest, _)) = self.displace() else {
                        // It is larger than the whole limit: nothing is left to displace.
                        return displaced(slot, DropReason::QueueFull);
                    };
                    displaced(oldest, DropReason::Displaced);
                }
                if let Self::Head(fifo) = self {
                    fifo.push(now, bytes, slot);
                }
            }
            _ if is_full(self, bytes, 1) => displaced(slot, DropReason::QueueFull),
            Self::CoDel(held) => held.0.push(now, bytes, slot),
            Self::DualPi2(queues) => {
                let is_l4s = matches!(packet.ecn, EcnMarking::Scalable | EcnMarking::Marked);
                queues.push(now, is_l4s, bytes, slot);
            }
            Self::Tail | Self::Red(_) | Self::Pie(_) => {}
        }
        while is_full(self, 0, 0) {
            let Some(longest) = self.drop_from_longest() else {
                return;
            };
            displaced(longest, DropReason::QueueFull);
        }
    }

    fn drop_from_longest(&mut self) -> Option<u32> {
        match self {
            Self::FqCoDel(queues) => queues.drop_from_longest(),
            Self::Classes(queues) => queues.drop_from_longest(),
            _ => None,
        }
    }

    /// Removes the oldest packet of a queue that drops at its head; its slot and bytes.
    pub(crate) fn displace(&mut self) -> Option<(u32, u64)> {
        let Self::Head(fifo) = self else {
            return None;
        };
        fifo.pop().map(|(_, bytes, slot)| (slot, bytes))
    }

    /// The next packet to leave when the link is free. `stays` is called for one that waited too long, and for one that
    /// is dropped even if it can be marked: it marks it or returns false, which drops it.
    pub(crate) fn release(
        &mut self,
        now: Instant,
        mtu: u64,
        mut stays: impl FnMut(u32, MayMark) -> bool,
    ) -> Option<u32> {
        let mut mark = |slot| stays(slot, MayMark(true)).then_some(slot);
        match self {
            Self::Tail | Self::Red(_) | Self::Pie(_) => None,
            Self::Head(fifo) => fifo.pop().map(|(.., slot)| slot),
            Self::CoDel(held) => loop {
                let (fifo, codel) = &mut **held;
                let (since, _, slot) = fifo.pop()?;
                let waited_too_long =
                    codel.signals_congestion(now, now.since(since), fifo.bytes(), mtu);
                if !waited_too_long || mark(slot).is_some() {
                    return Some(slot);
                }
            },
            Self::FqCoDel(queues) => queues.pop(now, |slot, _| mark(slot)),
            Self::Classes(queues) => queues.pop(now, mark),
            Self::DualPi2(queues) => queues.pop(now, |slot, verdict| {
                stays(slot, MayMark(verdict == DualPi2Verdict::Mark)).then_some(slot)
            }),
        }
    }
}

/// Whether a packet that a discipline has chosen may be marked in the place of a drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MayMark(pub(crate) bool);
