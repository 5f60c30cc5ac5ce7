//! Records the events of a connection while tracing is enabled. Otherwise nothing is kept.

use super::connection::TcpConnection;
use super::event::{TcpConnectionEvent, TcpResendReason};
use super::sender::TcpRecoveryPhase;
use super::sequence_numbers::TcpStreamRange;
use alloc::boxed::Box;

impl TcpRecoveryPhase {
    /// Linux's name of the phase.
    const fn word(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Disorder => "disorder",
            Self::Reduction => "cwr",
            Self::Recovery => "recovery",
            Self::Loss => "loss",
        }
    }
}

impl TcpConnection {
    /// Enables the recording of events.
    pub fn enable_trace(&mut self) {
        self.trace = Some(Box::default());
    }

    /// Takes the events recorded since the last call.
    pub fn take_events(&mut self) -> impl Iterator<Item = TcpConnectionEvent> {
        self.trace
            .iter_mut()
            .flat_map(|trace| trace.events.drain(..))
    }

    /// Records that a range of the stream is sent; `again` is the reason if it was sent before.
    #[inline]
    pub(super) fn emit_range(&mut self, range: TcpStreamRange, again: Option<TcpResendReason>) {
        if let Some(trace) = &mut self.trace {
            let end = range.end.min(self.sender.queued);
            let (offset, bytes) = (
                range.start.saturating_sub(1),
                end.saturating_sub(range.start),
            );
            match again {
                Some(reason) => trace.events.push(TcpConnectionEvent::Again {
                    offset,
                    bytes,
                    reason,
                }),
                None if bytes > 0 => trace
                    .events
                    .push(TcpConnectionEvent::Sent { offset, bytes }),
                // A FIN carries no data.
                None => {}
            }
        }
    }

    /// Records that a SYN or its answer is sent again.
    pub(super) fn emit_handshake(&mut self) {
        if let Some(trace) = &mut self.trace {
            trace.events.push(TcpConnectionEvent::Again {
                offset: 0,
                bytes: 0,
                reason: TcpResendReason::Handshake,
            });
        }
    }

    /// Records that a packet found no free buffer.
    pub(super) fn emit_full(&mut self) {
        let (offset, queued) = (
            self.receiver.next.saturating_sub(1),
            self.receiver.waiting(),
        );
        if let Some(trace) = &mut self.trace {
            trace
                .events
                .push(TcpConnectionEvent::Full { offset, queued });
        }
    }

    /// Records changes of phase and of the receive queue.
    #[inline]
    pub(super) fn emit_changes(&mut self) {
        if self.trace.is_some() {
            self.emit_state_changes();
        }
    }

    fn emit_state_changes(&mut self) {
        let phase = self.sender.phase;
        let offset = self.sender.una.saturating_sub(1);
        let (queued, full) = (self.receiver.waiting(), self.receiver.offers_nothing());
        let next = self.receiver.next.saturating_sub(1);
        let Some(trace) = &mut self.trace else { return };
        if core::mem::replace(&mut trace.phase, phase) != phase {
            trace.events.push(TcpConnectionEvent::State {
                offset,
                state: phase.word(),
            });
        }
        if !core::mem::replace(&mut trace.full, full) && full {
            trace.events.push(TcpConnectionEvent::Full {
                offset: next,
                queued,
            });
        }
    }
}
