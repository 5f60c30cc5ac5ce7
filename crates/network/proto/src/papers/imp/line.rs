//! One end of a line between IMPs: logical channels with an odd/even bit each, acknowledgements in whatever goes the other way,
//! hellos, and what goes next (BBN 2499, 2.1.2 and 2.2.1.5). It knows no ways through the network.

use super::options::ImpOptions;
use super::packet::{ImpFrame, ImpFrameLoad, ImpPacket};
use super::routing::Vector;
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use alloc::vec::Vec;
use stackline_core::time::{Duration, Instant};

/// Channels that one frame acknowledges.
const TOGETHER: u16 = 8;

/// Ticks without a word from a line that went down.
const SILENT: u32 = 10;

/// What both ends of a line agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineKind {
    /// Whether it goes by satellite.
    pub satellite: bool,
    /// Its channels: an end that has more of them uses no more than the other has.
    pub channels: u16,
}

impl LineKind {
    /// A line between IMPs of which these things are chosen.
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

/// A channel of the sender: one packet at a time, held until it is acknowledged.
#[derive(Clone, Debug, Default)]
struct ImpLineChannel {
    packet: Option<ImpPacket>,
    /// When it was sent last.
    sent: Option<Instant>,
    tries: u32,
    odd: bool,
}

/// What a line did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCounts {
    /// Packets sent, those sent again too.
    pub packets: u64,
    /// Their data, bits; what goes again counts once.
    pub bits: u64,
    /// Packets sent again.
    pub again: u64,
    /// Packets that came and were refused for want of room.
    pub refused: u64,
    /// Packets that came and were there already.
    pub duplicates: u64,
    /// How often it went down.
    pub downs: u64,
}

/// One end of a line.
#[derive(Debug)]
pub struct ImpLine {
    channels: Vec<ImpLineChannel>,
    free: Vec<u16>,
    regular: VecDeque<u16>,
    priority: VecDeque<u16>,
    /// What waits for its acknowledgement, in the order in which it was sent: may have gone again since.
    sent: VecDeque<(u16, Instant)>,
    /// The state of each channel of the receiver, by eights; which eights changed since they were last sent.
    received: Vec<u8>,
    changed: Vec<bool>,
    again_after: Duration,
    most_tries: u32,
    /// A routing message that is to go, and a null that says one was heard.
    routing: Option<Rc<Vector>>,
    answer: bool,
    /// Whether something is on it.
    pub(super) is_busy: bool,
    /// Whether it is used.
    pub(super) is_up: bool,
    /// Hellos since the last answer, or good ones in a row while it is down.
    misses: u32,
    good: u32,
    /// Since when a packet of others was refused for want of a channel: hosts let one of these in first.
    pub(super) owed: Option<Instant>,
    /// Ticks for which it says nothing, so that the other end learns that it is down.
    silent: u32,
    /// A routing message was heard since it was last looked.
    heard: bool,
    /// What it did.
    pub counts: LineCounts,
}

/// What became of a packet that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ImpPacketArrival {
    /// It is new.
    New,
    /// It was there before.
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
            free: (0..count).rev().collect(),
            regular: VecDeque::new(),
            priority: VecDeque::new(),
            sent: VecDeque::new(),
            // The bit that a channel expects first is its opposite.
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

    /// Packets that wait or are not acknowledged.
    pub(super) fn held(&self) -> usize {
        self.channels.len() - self.free.len()
    }

    /// Packets that wait to be sent for the first time.
    pub(super) fn queued(&self) -> usize {
        self.regular.len() + self.priority.len()
    }

    /// Takes a packet, if there is a channel for it.
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

    /// A routing message is to go.
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

    /// When the oldest packet without acknowledgement is to go again.
    pub(super) fn due(&mut self) -> Option<Instant> {
        while let Some((number, at)) = self.sent.front() {
            if self.channels[usize::from(*number)].sent == Some(*at) {
                return Some(*at + self.again_after);
            }
            self.sent.pop_front();
        }
        None
    }

    /// What goes next: routing, the answer to a hello, what has to go again, what has priority, the rest, acknowledgements alone. `Err`: a packet went too
    /// often, the line is no good.
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

    /// The eight that changed, or else the first.
    fn acks(&mut self) -> (u16, u8) {
        let which = self
            .changed
            .iter()
            .position(|changed| *changed)
            .unwrap_or(0);
        self.changed[which] = false;
        (which as u16, self.received[which])
    }

    /// A packet came on a channel.
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

    /// It was taken, or is one that was: the next frame says so.
    pub(super) fn accept(&mut self, channel: u16, odd: bool) {
        let (which, bit) = (usize::from(channel / TOGETHER), channel % TOGETHER);
        if let (Some(bits), Some(changed)) =
            (self.received.get_mut(which), self.changed.get_mut(which))
        {
            *bits = *bits & !(1 << bit) | u8::from(odd) << bit;
            *changed = true;
        }
    }

    /// What the other end says of this one's channels. How many packets it has.
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

    /// A routing message came: it is answered.
    pub(super) const fn hello(&mut self) {
        self.heard = true;
        self.answer = self.silent == 0;
    }

    /// The other end heard this one's.
    pub(super) const fn heard(&mut self) {
        self.misses = 0;
    }

    /// A tick went by. Whether it goes down or comes up by it.
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

    /// It goes down: what it held, in no order. Both ends begin anew when it comes up.
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

    /// It is up again.
    pub(super) const fn up(&mut self) {
        self.is_up = true;
        self.misses = 0;
    }
}
