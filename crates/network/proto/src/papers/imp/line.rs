//! One end of a line between IMPs: logical channels with an odd/even bit each, acknowledgements piggybacked on all frames of the other
//! direction, hellos (routing messages), and the choice of the next frame (BBN 2499, 2.1.2 and 2.2.1.5).

use super::options::ImpOptions;
use super::packet::{ImpFrame, ImpFrameLoad, ImpPacket};
use super::routing::Vector;
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::vec::Vec;
use stackline_core::time::{Duration, Instant};

/// The number of channels that one frame acknowledges.
const TOGETHER: u16 = 8;

/// Ticks for which an end sends no hello after its line went down.
const SILENT: u32 = 10;

/// What both ends of a line agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineKind {
    /// Whether it is a satellite line.
    pub satellite: bool,
    /// Its number of channels: the smaller of what the two ends have.
    pub channels: u16,
}

impl LineKind {
    /// The line between two IMPs with these options.
    #[must_use]
    pub fn between(one: &ImpOptions, other: &ImpOptions, satellite: bool) -> Self {
        let channels = |of: &ImpOptions| {
            if satellite {
                of.satellite_channels
            } else {
                of.channels
            }
        };
        Self {
            satellite,
            channels: channels(one).min(channels(other)),
        }
    }
}

/// A sending channel: it holds one packet until that is acknowledged.
#[derive(Clone, Debug, Default)]
struct ImpLineChannel {
    packet: Option<ImpPacket>,
    /// When it was sent last.
    sent: Option<Instant>,
    /// How often the packet was sent.
    tries: u32,
    /// The odd/even bit, which alternates from packet to packet so that duplicates are recognised.
    odd: bool,
}

/// Counters of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCounts {
    /// Packets sent, repetitions included.
    pub packets: u64,
    /// Data bits sent; repetitions are not counted.
    pub bits: u64,
    /// Packets sent again.
    pub again: u64,
    /// Packets that arrived and were refused for lack of room.
    pub refused: u64,
    /// Packets that arrived a second time.
    pub duplicates: u64,
    /// How often it went down.
    pub downs: u64,
}

/// One end of a line.
#[derive(Debug)]
pub struct ImpLine {
    channels: Vec<ImpLineChannel>,
    /// Free channels.
    free: Vec<u16>,
    /// Channels whose packets wait to be sent for the first time: without and with priority.
    regular: VecDeque<u16>,
    priority: VecDeque<u16>,
    /// Channels and the times at which they were sent, oldest first. Entries of packets acknowledged or sent again since are stale.
    sent: VecDeque<(u16, Instant)>,
    /// The state of each receiving channel, a bit each, eight to a byte.
    received: Vec<u8>,
    /// Which of these bytes have changed since they were sent last.
    changed: Vec<bool>,
    again_after: Duration,
    most_tries: u32,
    /// A routing message that is to be sent.
    routing: Option<Rc<Vector>>,
    /// Whether the answer to a hello is to be sent.
    answer: bool,
    /// Whether a frame is being sent.
    pub(super) is_busy: bool,
    /// Whether the line is up: packets are sent only then.
    pub(super) is_up: bool,
    /// Ticks since the last answer to a hello.
    misses: u32,
    /// While the line is down: ticks with a hello, less those without.
    good: u32,
    /// When a packet of other IMPs was refused for lack of a channel: it gets the next free one before packets of this IMP's hosts.
    pub(super) owed: Option<Instant>,
    /// Ticks for which it still sends no hello, so that the other end notices that the line is down.
    silent: u32,
    /// A routing message has come since the last tick.
    heard: bool,
    /// Its counters.
    pub counts: LineCounts,
}

/// Whether an arriving packet is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ImpPacketArrival {
    /// It is new.
    New,
    /// It arrived before.
    Duplicate,
}

impl ImpLine {
    pub(super) fn new(
        options: &ImpOptions,
        LineKind {
            satellite,
            channels: count,
        }: LineKind,
    ) -> Self {
        let eights = usize::from(count.div_ceil(TOGETHER));
        Self {
            channels: alloc::vec![ImpLineChannel::default(); usize::from(count)],
            // Taken from the end, so channel 0 goes first.
            free: (0..count).rev().collect(),
            regular: VecDeque::new(),
            priority: VecDeque::new(),
            sent: VecDeque::new(),
            // The first packet of a channel has an even bit (false), which differs from this initial state.
            received: alloc::vec![0xff; eights],
            changed: alloc::vec![false; eights],
            again_after: if satellite {
                options.satellite_again_after
            } else {
                options.again_after
            },
            most_tries: options.most_tries,
            routing: None,
            answer: false,
            is_busy: false,
            is_up: true,
            misses: 0,
            good: 0,
            owed: None,
            silent: 0,
            heard: false,
            counts: LineCounts::default(),
        }
    }

    /// The number of packets that wait or are not acknowledged.
    pub(super) fn held(&self) -> usize {
        self.channels.len() - self.free.len()
    }

    /// The number of packets that wait to be sent for the first time.
    pub(super) fn queued(&self) -> usize {
        self.regular.len() + self.priority.len()
    }

    /// Takes a packet to be sent. False if no channel is free.
    pub(super) fn put(&mut self, packet: ImpPacket) -> bool {
        let Some(number) = self.free.pop() else {
            return false;
        };
        self.channels[usize::from(number)].packet = Some(packet);
        let queue = if packet.has_priority() {
            &mut self.priority
        } else {
            &mut self.regular
        };
        queue.push_back(number);
        true
    }

    /// Takes a routing message to be sent, unless the end is silent after the line went down.
    pub(super) fn put_routing(&mut self, vector: Rc<Vector>) {
        self.routing = Some(vector).filter(|_| self.silent == 0);
    }

    /// Whether it has anything to send now.
    pub(super) fn wants(&mut self, now: Instant) -> bool {
        self.routing.is_some()
            || self.answer
            || self.queued() > 0
            || self.changed.iter().any(|changed| *changed)
            || self.due().is_some_and(|due| due <= now)
    }

    /// When the oldest unacknowledged packet is to be sent again.
    pub(super) fn due(&mut self) -> Option<Instant> {
        while let Some((number, at)) = self.sent.front() {
            if self.channels[usize::from(*number)].sent == Some(*at) {
                return Some(*at + self.again_after);
            }
            self.sent.pop_front();
        }
        None
    }

    /// The next frame: a routing message, the answer to a hello, a retransmission, a packet with priority, another packet, or only
    /// acknowledgements. `Err`: a packet was sent too often, so the line has to go down.
    pub(super) fn next(&mut self, now: Instant) -> Result<Option<ImpFrame>, ()> {
        let load = if let Some(vector) = self.routing.take() {
            ImpFrameLoad::Routing(vector)
        } else if core::mem::take(&mut self.answer) {
            ImpFrameLoad::Null { heard: true }
        } else if let Some(number) = self
            .due()
            .filter(|due| *due <= now)
            .and_then(|_| self.sent.pop_front())
        {
            self.counts.again += 1;
            self.send(number.0, now)?
        } else if !self.is_up {
            // Nothing but hellos and their answers goes over a line that is down.
            return Ok(None);
        } else if let Some(number) = self
            .priority
            .pop_front()
            .or_else(|| self.regular.pop_front())
        {
            self.send(number, now)?
        } else if self.changed.iter().any(|changed| *changed) {
            ImpFrameLoad::Null { heard: false }
        } else {
            return Ok(None);
        };
        Ok(Some(ImpFrame {
            load,
            acks: self.acks(),
        }))
    }

    /// The frame load with the packet of a channel. `Err`: it was sent too often.
    fn send(&mut self, number: u16, now: Instant) -> Result<ImpFrameLoad, ()> {
        let channel = &mut self.channels[usize::from(number)];
        let Some(packet) = channel.packet else {
            return Err(());
        };
        channel.sent = Some(now);
        channel.tries += 1;
        if channel.tries > self.most_tries {
            return Err(());
        }
        self.sent.push_back((number, now));
        self.counts.packets += 1;
        self.counts.bits += if channel.tries > 1 {
            0
        } else {
            u64::from(packet.bits)
        };
        Ok(ImpFrameLoad::Packet {
            channel: number,
            odd: channel.odd,
            packet,
        })
    }

    /// The acknowledgements of a frame: a group of eight channels that changed, or else the first group.
    fn acks(&mut self) -> (u16, u8) {
        let which = self
            .changed
            .iter()
            .position(|changed| *changed)
            .unwrap_or(0);
        self.changed[which] = false;
        (which as u16, self.received[which])
    }

    /// Whether a packet that arrived on a channel is new, by its odd/even bit.
    pub(super) fn arrived(&self, channel: u16, odd: bool) -> ImpPacketArrival {
        let (which, bit) = (usize::from(channel / TOGETHER), channel % TOGETHER);
        let known = self
            .received
            .get(which)
            .is_some_and(|bits| (bits >> bit & 1 == 1) == odd);
        if known {
            ImpPacketArrival::Duplicate
        } else {
            ImpPacketArrival::New
        }
    }

    /// Acknowledges a packet that is accepted, or was before, with the next frame.
    pub(super) fn accept(&mut self, channel: u16, odd: bool) {
        let (which, bit) = (usize::from(channel / TOGETHER), channel % TOGETHER);
        if let (Some(bits), Some(changed)) =
            (self.received.get_mut(which), self.changed.get_mut(which))
        {
            *bits = *bits & !(1 << bit) | u8::from(odd) << bit;
            *changed = true;
        }
    }

    /// Handles acknowledgements of the other end. Returns how many channels they free.
    pub(super) fn acknowledged(&mut self, acks: (u16, u8)) -> usize {
        let (which, bits) = acks;
        let first = which * TOGETHER;
        let mut count = 0;
        for bit in 0..TOGETHER {
            let Some(channel) = self.channels.get_mut(usize::from(first + bit)) else {
                break;
            };
            if channel.sent.is_some() && (bits >> bit & 1 == 1) == channel.odd {
                *channel = ImpLineChannel {
                    odd: !channel.odd,
                    ..ImpLineChannel::default()
                };
                self.free.push(first + bit);
                count += 1;
            }
        }
        count
    }

    /// A routing message has come, which is a hello: it is to be answered.
    pub(super) const fn hello(&mut self) {
        self.heard = true;
        self.answer = self.silent == 0;
    }

    /// The other end has answered a hello.
    pub(super) const fn heard(&mut self) {
        self.misses = 0;
    }

    /// At a tick: `Some(false)` if the line has to go down (more than `most` ticks without answer), `Some(true)` if it has to come up.
    pub(super) fn tick(&mut self, most: u32, good: u32) -> Option<bool> {
        let heard = core::mem::take(&mut self.heard);
        if self.silent > 0 {
            self.silent -= 1;
            return None;
        }
        if self.is_up {
            self.misses += 1;
            return (self.misses > most).then_some(false);
        }
        self.good = if heard {
            self.good + 1
        } else {
            self.good.saturating_sub(1)
        };
        (self.good >= good).then_some(true)
    }

    /// Takes the line down. Returns the packets that it held, in no order. All channels start anew when it comes up.
    pub(super) fn down(&mut self) -> Vec<ImpPacket> {
        let held = self
            .channels
            .iter_mut()
            .filter_map(|channel| channel.packet.take())
            .collect();
        let count = self.channels.len() as u16;
        self.channels
            .iter_mut()
            .for_each(|channel| *channel = ImpLineChannel::default());
        self.free = (0..count).rev().collect();
        self.received.iter_mut().for_each(|bits| *bits = 0xff);
        self.changed.iter_mut().for_each(|changed| *changed = false);
        self.regular.clear();
        self.priority.clear();
        self.sent.clear();
        self.routing = None;
        self.answer = false;
        self.is_up = false;
        self.good = 0;
        self.silent = SILENT;
        self.counts.downs += 1;
        held
    }

    /// Takes the line up.
    pub(super) const fn up(&mut self) {
        self.is_up = true;
        self.misses = 0;
    }
}
