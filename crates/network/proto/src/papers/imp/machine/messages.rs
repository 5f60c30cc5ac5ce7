//! The IMP and its hosts' messages: packets that are for this IMP, messages that are delivered to its hosts, and messages that its hosts
//! send.

use super::{ImpHostSending, ImpJob, ImpNode, ImpOutput};
use crate::papers::imp::message_source::Permit;
use crate::papers::imp::packet::{ImpDeliveryFailure, ImpPacket, ImpPacketKind, WORD_BITS};
use crate::papers::imp::reassembly::{ImpPacketVerdict, ImpReassembledMessage};
use alloc::vec::Vec;
use stackline_core::time::Instant;

impl ImpNode {
    /// Handles a packet for this IMP or its hosts. False if there is no room for it.
    pub(super) fn for_here(&mut self, now: Instant, packet: &ImpPacket) -> bool {
        let by = packet.from.imp;
        // Ignore packets that the other IMP sent before it restarted. Packets that were sent to this IMP before it restarted are void.
        if packet.epoch < self.destination.epoch_of(by) {
            return true;
        }
        self.source.heard(by, packet.epoch);
        let is_void = packet.to_epoch != self.epoch;
        let (mut words, mut wholes) = (Vec::new(), core::mem::take(&mut self.wholes));
        let mut verdict = ImpPacketVerdict::Taken;
        match packet.kind {
            ImpPacketKind::Data { .. } if is_void => {
                self.destination
                    .void_here(&self.options, packet, &mut words)
            }
            ImpPacketKind::GiveBack
            | ImpPacketKind::Allocate { .. }
            | ImpPacketKind::Rfnm { .. }
            | ImpPacketKind::Failed(_)
                if is_void => {}
            ImpPacketKind::Data { .. } => {
                verdict = self.destination.data(&self.options, packet, &mut wholes);
            }
            ImpPacketKind::Request { .. } => {
                self.destination.asked(&self.options, packet, &mut words)
            }
            ImpPacketKind::GiveBack => {
                self.destination
                    .given_back(&self.options, packet, &mut words)
            }
            ImpPacketKind::Query => {
                self.destination
                    .query(&self.options, packet, &mut wholes, &mut words)
            }
            ImpPacketKind::Allocate { packets: 1 } => {
                words.extend(self.source.once_more(by, packet.number))
            }
            ImpPacketKind::Allocate { .. } => {
                self.source.room(now, by, true);
                self.begin_all(now);
            }
            ImpPacketKind::Rfnm { allocates } => {
                if allocates {
                    self.source.room(now, by, false);
                }
                self.answered(now, by, packet.number, None);
            }
            ImpPacketKind::Failed(why) => self.answered(now, by, packet.number, Some(why)),
        }
        for one in wholes.drain(..) {
            self.whole(now, one, &mut words);
        }
        self.wholes = wholes;
        self.put_all(now, &mut words);
        verdict == ImpPacketVerdict::Taken
    }

    /// Passes the answer to a message on to the host that sent it.
    fn answered(
        &mut self,
        now: Instant,
        by: u16,
        number: u32,
        failure: Option<ImpDeliveryFailure>,
    ) {
        if let Some(message) = self.source.answered(by, number) {
            let host = message.from.host;
            self.out.push_back(match failure {
                None => ImpOutput::Rfnm(host, message),
                Some(why) => ImpOutput::Failed(host, message, why),
            });
        }
        self.begin_all(now);
    }

    /// Queues a complete message for its host; if the host is down, reports that to the sender.
    pub(super) fn whole(
        &mut self,
        now: Instant,
        one: ImpReassembledMessage,
        words: &mut Vec<ImpPacket>,
    ) {
        let Some(host) = self
            .hosts
            .get_mut(usize::from(one.message.to.host))
            .filter(|host| host.is_up)
        else {
            self.destination.delivered(
                &self.options,
                now,
                &one,
                Some(ImpDeliveryFailure::DeadHost),
                words,
            );
            return;
        };
        host.whole.push_back(one);
        if host.whole.len() == 1 {
            self.give(now, one.message.to.host);
        }
    }

    /// Queues the processor's work of handing the next message to a host.
    fn give(&mut self, now: Instant, host: u16) {
        let Some(known) = self.hosts.get(usize::from(host)) else {
            return;
        };
        let Some(one) = known.whole.front() else {
            return;
        };
        let (machine, message, kind) = (self.options.machine, one.message, known.kind);
        let parts = message.parts();
        for part in 0..parts {
            let words = u64::from(message.bits_of(part).div_ceil(WORD_BITS));
            let cycles = machine.costs.host_out_word * words / 100 + kind.fake_cycles.1 * words;
            self.processor.put_host(
                now,
                ImpJob::Deliver(host, part + 1 == parts),
                machine.time(cycles),
            );
        }
    }

    /// A host has the first packet of a message: with `answers_first`, the message is answered.
    pub(super) fn first_taken(&mut self, now: Instant, host: u16) {
        let Some(known) = self.hosts.get_mut(usize::from(host)) else {
            return;
        };
        let Some(one) = known.whole.front().copied() else {
            return;
        };
        if !self.options.answers_first || known.giving.is_none() || known.is_answered {
            return;
        }
        known.is_answered = true;
        let mut words = Vec::new();
        self.destination
            .answered(&self.options, now, &one, &mut words);
        self.put_all(now, &mut words);
    }

    /// A host has accepted its message, or failed to (`failure`).
    pub(super) fn taken(&mut self, now: Instant, host: u16, failure: Option<ImpDeliveryFailure>) {
        let Some(known) = self.hosts.get_mut(usize::from(host)) else {
            return;
        };
        if known.giving.take().is_none() {
            return;
        }
        let Some(one) = known.whole.pop_front() else {
            return;
        };
        self.counts.messages.1 += u64::from(failure.is_none());
        let mut words = Vec::new();
        if core::mem::take(&mut known.is_answered) {
            self.destination.is_taken(&one, &mut words);
        } else {
            self.destination
                .delivered(&self.options, now, &one, failure, &mut words);
        }
        self.give(now, host);
        self.put_all(now, &mut words);
    }

    /// A host comes up or goes down; messages for a host that is down fail.
    pub(super) fn host_up(&mut self, now: Instant, host: u16, is_up: bool) {
        let Some(known) = self.hosts.get_mut(usize::from(host)) else {
            return;
        };
        known.is_up = is_up;
        if is_up {
            return;
        }
        // The processor may still have a job for the first of them. It delivers nothing, unless another message is queued by then.
        let whole: Vec<ImpReassembledMessage> = known.whole.drain(..).collect();
        known.giving = None;
        let mut is_answered = core::mem::take(&mut known.is_answered);
        let mut words = Vec::new();
        for one in whole {
            if core::mem::take(&mut is_answered) {
                self.destination.is_taken(&one, &mut words);
            } else {
                self.destination.delivered(
                    &self.options,
                    now,
                    &one,
                    Some(ImpDeliveryFailure::DeadHost),
                    &mut words,
                );
            }
        }
        self.put_all(now, &mut words);
    }

    /// Begins all waiting messages of hosts that may be sent.
    fn begin_all(&mut self, now: Instant) {
        for host in 0..self.hosts.len() as u16 {
            self.begin(now, host);
        }
    }

    /// Begins to read a host's message, if it may be sent.
    pub(super) fn begin(&mut self, now: Instant, host: u16) {
        let Some(known) = self.hosts.get_mut(usize::from(host)) else {
            return;
        };
        let ImpHostSending::Waits(message) = known.sending else {
            return;
        };
        if message.to.imp != self.own && self.routing.hops(message.to.imp).is_none() {
            known.sending = ImpHostSending::Nothing;
            self.out.push_back(ImpOutput::Failed(
                host,
                message,
                ImpDeliveryFailure::DeadImp,
            ));
            self.out.push_back(ImpOutput::Accepted(host, message.id));
            return;
        }
        match self.source.permit(&self.options, now, &message) {
            Permit::Number(number) => {
                known.sending = ImpHostSending::Reads {
                    message,
                    number,
                    part: 0,
                    stalled: None,
                };
                self.out
                    .push_back(ImpOutput::Read(host, message.bits_of(0)));
            }
            Permit::Ask => {
                let question = self.source.question(message.to);
                self.put_all(now, &mut alloc::vec![question]);
            }
            Permit::Wait => {}
        }
    }

    /// A part (packet) of a host's message was read: sends it.
    pub(super) fn part(&mut self, now: Instant, host: u16) {
        let Some(known) = self.hosts.get_mut(usize::from(host)) else {
            return;
        };
        let ImpHostSending::Reads {
            message,
            number,
            part,
            stalled,
        } = &mut known.sending
        else {
            return;
        };
        *stalled = Some(self.source.part(message, *number, *part));
        self.unstall(now, host);
    }

    /// Sends the part of a host's message that was read, if there is room, and begins to read the next.
    pub(super) fn unstall(&mut self, now: Instant, host: u16) {
        let Some(known) = self.hosts.get(usize::from(host)) else {
            return;
        };
        let ImpHostSending::Reads {
            message,
            number,
            part,
            stalled: Some(packet),
            ..
        } = known.sending
        else {
            return;
        };
        let is_placed = match message.to.imp == self.own {
            true => self.for_here(now, &packet),
            false => !self.is_owed(now, message.to.imp) && self.place(now, &packet),
        };
        let Some(known) = self.hosts.get_mut(usize::from(host)).filter(|_| is_placed) else {
            return;
        };
        self.counts.packets += 1;
        if part + 1 < message.parts() {
            known.sending = ImpHostSending::Reads {
                message,
                number,
                part: part + 1,
                stalled: None,
            };
            self.out
                .push_back(ImpOutput::Read(host, message.bits_of(part + 1)));
            return;
        }
        known.sending = ImpHostSending::Nothing;
        self.counts.messages.0 += 1;
        self.source.sent(now, message.to.imp, number);
        self.out.push_back(ImpOutput::Accepted(host, message.id));
    }
}
