//! The IMP and its lines: frames that arrive, packets that are forwarded, lines that go down.

use super::ImpNode;
use crate::papers::imp::line::{ImpLine, ImpPacketArrival};
use crate::papers::imp::packet::{ImpFrame, ImpFrameLoad, ImpPacket};
use alloc::vec::Vec;
use stackline_core::time::Instant;

impl ImpNode {
    /// Handles a frame that arrived over a line: its acknowledgements, then its load.
    pub(super) fn frame(&mut self, now: Instant, line: usize, frame: &ImpFrame) {
        let Some(known) = self.lines.get_mut(line) else {
            return;
        };
        let freed = known.acknowledged(frame.acks);
        match &frame.load {
            ImpFrameLoad::Packet {
                channel,
                odd,
                packet,
            } => {
                if known.is_up {
                    self.came(now, line, *channel, *odd, packet);
                }
            }
            ImpFrameLoad::Routing(vector) => {
                known.hello();
                if known.is_up {
                    let load = self.load(&self.lines[line]);
                    self.routing.note_vector(line, vector.clone(), load);
                } else {
                    self.routing.note_unused_line(line, vector.clone());
                }
            }
            ImpFrameLoad::Null { heard } => {
                if *heard {
                    known.heard();
                }
            }
        }
        if freed > 0 {
            self.room(now);
        }
        self.kick(now, line);
    }

    /// Handles a packet that arrived over a line; it is acknowledged only if it is accepted or was before.
    fn came(&mut self, now: Instant, line: usize, channel: u16, odd: bool, packet: &ImpPacket) {
        if self.lines[line].arrived(channel, odd) == ImpPacketArrival::Duplicate {
            self.lines[line].counts.duplicates += 1;
            self.lines[line].accept(channel, odd);
            return;
        }
        let is_taken = if packet.to.imp == self.own {
            self.for_here(now, packet)
        } else {
            self.pass_on(now, packet)
        };
        if is_taken {
            self.counts.packets += 1;
            self.lines[line].accept(channel, odd);
        } else {
            self.lines[line].counts.refused += 1;
        }
    }

    /// Forwards a packet of another IMP. If its line has no channel, the next free one is kept for it (`owed`). Whether it was forwarded.
    fn pass_on(&mut self, now: Instant, packet: &ImpPacket) -> bool {
        let is_placed = self.place(now, packet);
        if let Some(line) = self.line_to(packet.to.imp) {
            self.lines[line].owed = if is_placed { None } else { Some(now) };
        }
        is_placed
    }

    /// Whether packets of this IMP's hosts must leave the next free channel towards `to` to a packet of other IMPs that was refused. After
    /// two retransmission times that packet is no longer expected.
    pub(super) fn is_owed(&self, now: Instant, to: u16) -> bool {
        let owed = self.line_to(to).and_then(|line| self.lines[line].owed);
        owed.is_some_and(|since| {
            now.since(since) <= self.options.again_after + self.options.again_after
        })
    }

    /// Gives a packet to the line towards its destination. False if there is no room.
    pub(super) fn place(&mut self, now: Instant, packet: &ImpPacket) -> bool {
        let Some(line) = self.line_to(packet.to.imp) else {
            // The destination is unreachable: the packet is dropped, and its source learns that from its own routing.
            self.counts.unreachable += 1;
            return true;
        };
        if self.through() >= self.options.store_and_forward || !self.lines[line].put(*packet) {
            return false;
        }
        self.kick(now, line);
        true
    }

    /// The line towards an IMP; with `splits`, the least loaded of those with as few hops.
    fn line_to(&self, to: u16) -> Option<usize> {
        let best = self.routing.line(to)?;
        if self.splits {
            let up = |line: usize| {
                self.lines
                    .get(line)
                    .filter(|line| line.is_up)
                    .map(ImpLine::held)
            };
            return self.routing.other_line(to, up).or(Some(best));
        }
        Some(best)
    }

    /// Sends packets of this IMP; those without room are kept in `waiting`.
    pub(super) fn put_all(&mut self, now: Instant, packets: &mut Vec<ImpPacket>) {
        // A packet for this IMP itself may produce answers, which are sent from here as well.
        while let Some(packet) = (!packets.is_empty()).then(|| packets.remove(0)) {
            if packet.to.imp == self.own {
                self.for_here(now, &packet);
            } else if !self.place(now, &packet) {
                self.waiting.push_back(packet);
            }
        }
    }

    /// Channels have become free: uses them for the IMP's own packets first, then for those of its hosts.
    fn room(&mut self, now: Instant) {
        self.place_waiting(now);
        for host in 0..self.hosts.len() as u16 {
            self.unstall(now, host);
        }
    }

    /// Sends the waiting packets for which there is room.
    pub(super) fn place_waiting(&mut self, now: Instant) {
        for _ in 0..self.waiting.len() {
            let Some(packet) = self.waiting.pop_front() else {
                break;
            };
            if !self.place(now, &packet) {
                self.waiting.push_back(packet);
            }
        }
    }

    /// Takes a line down: packets that it held are sent over other lines.
    pub(super) fn line_down(&mut self, now: Instant, line: usize) {
        let held = self.lines[line].down();
        self.routing.mark_line_down(line);
        self.waiting.extend(held);
        let queues: Vec<Option<usize>> = self
            .lines
            .iter()
            .map(|line| line.is_up.then(|| self.load(line)))
            .collect();
        self.routing.tick(&queues);
        self.place_waiting(now);
    }
}
