//! Programs of an application that ask and answer each other, over the network of its connections.

use super::calls::{ArrivedMessage, MessageCallPair};
use super::{CALLS, Happening, MessageAlarm, MessageNetwork};
use crate::datagram::SimDatagram;
use crate::error::Result;
use crate::stacks::packet_wire::BELOW;
use stackline_core::procedure::PairSide;
use stackline_net::{NetworkPacket, NodeIndex, Tap};
use stackline_proto::blast::wire::HEADER;
use stackline_proto::ikp::options::{BESIDE, PACKET};

impl<M, T: Tap<SimDatagram>> MessageNetwork<M, T> {
    /// Two programs that ask and answer over V's message passing; their number.
    ///
    /// # Errors
    /// When no path leads there and back.
    pub fn call_to(&mut self, from: NodeIndex, to: NodeIndex) -> Result<u32> {
        let number = CALLS + u32::try_from(self.calls.len()).unwrap_or(0);
        let mtu = self.path_mtu(from, to, number)?;
        let packet = mtu
            .saturating_sub((BELOW + HEADER) as u64 + u64::from(BESIDE))
            .clamp(1, u64::from(PACKET));
        self.calls
            .push(MessageCallPair::new(number, [from, to], packet as u32));
        Ok(number)
    }

    /// Bytes that a message of these calls has room for.
    pub fn room_of(&self, calls: u32) -> u64 {
        let place = calls.wrapping_sub(CALLS) as usize;
        self.calls
            .get(place)
            .map_or(0, |calls| u64::from(calls.room()))
    }

    /// Asks; [`Happening::Answered`] comes once it is answered, and nothing else may be asked before.
    pub fn ask(&mut self, calls: u32, bytes: u64, message: M) {
        let (now, place) = (self.now, calls.wrapping_sub(CALLS) as usize);
        if let Some(known) = self.calls.get_mut(place) {
            known.ask(now, bytes as u32, message);
            self.flush_calls(calls, PairSide::Initiator);
        }
    }

    /// Answers what was asked.
    pub fn answer(&mut self, calls: u32, bytes: u64, message: M) {
        let (now, place) = (self.now, calls.wrapping_sub(CALLS) as usize);
        if let Some(known) = self.calls.get_mut(place) {
            known.answer(now, bytes as u32, message);
            self.flush_calls(calls, PairSide::Responder);
        }
    }

    pub(super) fn deliver_to_calls(&mut self, packet: &NetworkPacket<SimDatagram>) {
        let (now, number) = (self.now, packet.payload.pair);
        let Some(calls) = self.calls.get_mut(number.wrapping_sub(CALLS) as usize) else {
            return;
        };
        let side = calls.side_of(packet.to);
        match calls.arrived(now, side, &packet.payload) {
            Some(ArrivedMessage::Question(message)) => {
                self.happened.push_back(Happening::Asked(number, message))
            }
            Some(ArrivedMessage::Answer(message)) => self
                .happened
                .push_back(Happening::Answered(number, message)),
            None => {}
        }
        self.flush_calls(number, side);
    }

    /// Sends what a side of calls has to send, and sets its timer.
    pub(super) fn flush_calls(&mut self, number: u32, side: PairSide) {
        let now = self.now;
        let Some(calls) = self.calls.get_mut(number.wrapping_sub(CALLS) as usize) else {
            return;
        };
        while let Some(packet) = calls.poll(now, side) {
            self.network.handle(now, packet);
        }
        if calls.is_silent() {
            self.happened.push_back(Happening::Broken(number));
            return;
        }
        if let Some(at) = calls.deadline(now, side)
            && calls.alarms[side.index()].is_none_or(|alarm| at < alarm)
        {
            calls.alarms[side.index()] = Some(at.max(now));
            self.set_alarm(
                at,
                MessageAlarm::Calls {
                    calls: number,
                    side: side.index(),
                },
            );
        }
    }
}
