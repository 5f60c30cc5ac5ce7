//! A host's interface and the copying between it and memory (Zwaenepoel 1985, section 2).
//!
//! One processor, the host's or the interface's own, copies one packet at a time, without interruption; arriving
//! packets go before departing ones. A departing packet is copied once the interface has a free buffer, and holds it
//! until its last bit is on the wire. An arriving packet holds a buffer until it has been copied out, and is dropped
//! when none is free. A processor that waits busily does nothing else until the packet it copied last has left.

use alloc::collections::VecDeque;
use stackline_core::network::NetworkInterface;
use stackline_core::time::{Duration, Instant};

/// The direction of a packet, seen from the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InterfaceDirection {
    /// From the wire into memory.
    In,
    /// From memory onto the wire.
    Out,
}

/// What the interface does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextStep {
    /// A copy has begun that ends then.
    CopyUntil(Instant),
    /// No copy can begin before then: all buffers are in use, or the processor waits busily for a departure.
    WaitUntil(Instant),
    /// There is nothing to do, or a copy is already running.
    Rest,
}

/// One host's interface (network card); packets are named by their slot in the network.
#[derive(Clone, Debug, Default)]
pub(crate) struct Card {
    /// The cost of a copy, in ns.
    per_packet_ns: f64,
    /// The cost of a byte in a copy, in ns.
    per_byte_ns: f64,
    /// Buffers for departing packets.
    out_buffers: usize,
    /// Buffers for arriving packets.
    in_buffers: usize,
    /// After copying a packet out, the processor waits busily until that packet is on the wire.
    busy_waits: bool,
    /// The interface has a processor of its own that copies; the host's processor spends nothing.
    own_processor: bool,
    /// Packets that wait to be copied into memory: slot and bytes.
    arrived: VecDeque<(u32, u64)>,
    /// Packets that wait to be copied into the interface: slot and bytes.
    leaving: VecDeque<(u32, u64)>,
    /// The packet being copied, its direction, and when the copy ends.
    copying: Option<(u32, InterfaceDirection, Instant)>,
    /// When each output buffer in use becomes free, ascending.
    on_the_wire: VecDeque<Instant>,
    /// Time that the processor has spent, in ns, including the whole of the work that it is doing now.
    spent_ns: u64,
    /// When that work ends.
    free_at: Instant,
}

impl Card {
    /// `None` for an interface that costs no time and drops nothing.
    pub(crate) fn new(plan: &NetworkInterface) -> Option<Self> {
        let speed = plan.copy_speed();
        let free = plan.copy_per_packet == Duration::ZERO && plan.copy_ns_per_byte <= 0.0;
        if free && plan.buffer_frames.is_none() && !plan.single_buffered && !plan.busy_waiting {
            return None;
        }
        let buffers = plan
            .buffer_frames
            .map_or(usize::MAX, |frames| frames.max(1) as usize);
        Some(Self {
            per_packet_ns: plan.copy_per_packet.seconds() * 1e9 / speed,
            per_byte_ns: plan.copy_ns_per_byte.max(0.0) / speed,
            out_buffers: if plan.single_buffered { 1 } else { buffers },
            in_buffers: buffers,
            busy_waits: plan.busy_waiting,
            own_processor: plan.interface_copies,
            ..Self::default()
        })
    }

    /// A packet has come in from the wire; false when no buffer is free for it.
    pub(crate) fn arrives(&mut self, slot: u32, bytes: u64) -> bool {
        let used = self.arrived.len()
            + usize::from(matches!(self.copying, Some((_, InterfaceDirection::In, _))));
        let room = used < self.in_buffers;
        if room {
            self.arrived.push_back((slot, bytes));
        }
        room
    }

    /// The host hands a packet over.
    pub(crate) fn leaves(&mut self, slot: u32, bytes: u64) {
        self.leaving.push_back((slot, bytes));
    }

    /// Ends the current copy if it is over by now, and returns its packet.
    pub(crate) fn copied(&mut self, now: Instant) -> Option<(u32, InterfaceDirection)> {
        let (slot, direction, _) = self.copying.filter(|(.., until)| *until <= now)?;
        self.copying = None;
        Some((slot, direction))
    }

    /// The packet that was copied last keeps its buffer until `departure`, when its last bit is on the wire.
    pub(crate) fn occupied_until(&mut self, departure: Instant) {
        self.on_the_wire.push_back(departure);
        if self.busy_waits {
            self.spends_until(departure);
        }
    }

    /// The processor works until that instant: adds the time beyond work already counted.
    const fn spends_until(&mut self, until: Instant) {
        self.spent_ns += until.0.saturating_sub(self.free_at.0);
        if until.0 > self.free_at.0 {
            self.free_at = until;
        }
    }

    /// Time the host's processor has spent by now, in ns.
    pub(crate) const fn spent_ns(&self, now: Instant) -> u64 {
        if self.own_processor {
            return 0;
        }
        self.spent_ns
            .saturating_sub(self.free_at.0.saturating_sub(now.0))
    }

    /// The earliest instant at which the copy of a packet handed over now could begin. If that is later than `now`, an
    /// arriving packet may still go before it.
    pub(crate) fn begins(&self, now: Instant) -> Instant {
        if let Some((.., until)) = self.copying {
            return until;
        }
        // The departure it waits for: that of the last packet, or of the one whose buffer it takes.
        let behind = if self.busy_waits { 1 } else { self.out_buffers };
        let departure = self
            .on_the_wire
            .len()
            .checked_sub(behind)
            .and_then(|place| self.on_the_wire.get(place));
        departure.map_or(now, |departure| now.max(*departure))
    }

    /// Begins the next copy if there is one and the processor is free.
    pub(crate) fn next_step(&mut self, now: Instant) -> NextStep {
        if self.copying.is_some() {
            return NextStep::Rest;
        }
        if self.busy_waits
            && let Some(departure) = self
                .on_the_wire
                .back()
                .filter(|departure| **departure > now)
        {
            let idle = self.arrived.is_empty() && self.leaving.is_empty();
            return if idle {
                NextStep::Rest
            } else {
                NextStep::WaitUntil(*departure)
            };
        }
        if let Some((slot, bytes)) = self.arrived.pop_front() {
            return self.copy(now, slot, bytes, InterfaceDirection::In);
        }
        while self
            .on_the_wire
            .front()
            .is_some_and(|departure| *departure <= now)
        {
            self.on_the_wire.pop_front();
        }
        match (self.leaving.is_empty(), self.on_the_wire.front()) {
            (true, _) => NextStep::Rest,
            (false, Some(departure)) if self.on_the_wire.len() >= self.out_buffers => {
                NextStep::WaitUntil(*departure)
            }
            _ => match self.leaving.pop_front() {
                Some((slot, bytes)) => self.copy(now, slot, bytes, InterfaceDirection::Out),
                None => NextStep::Rest,
            },
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a copy takes less than 2^52 ns"
    )]
    fn copy(
        &mut self,
        now: Instant,
        slot: u32,
        bytes: u64,
        direction: InterfaceDirection,
    ) -> NextStep {
        let cost = self.per_packet_ns + self.per_byte_ns * bytes as f64;
        let until = now + Duration((cost + 0.5) as u64);
        self.copying = Some((slot, direction, until));
        // Idle time up to now is not work: only the copy itself is counted as spent.
        self.free_at = self.free_at.max(now);
        self.spends_until(until);
        NextStep::CopyUntil(until)
    }
}
