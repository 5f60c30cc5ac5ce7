//! What a connection tells of its own doing while somebody listens: what leaves for the first time and again, how it sees
//! losses, a receive queue that is full. While nobody does, it keeps nothing.

use super::connection::Connection;
use super::send::Phase;
use super::sequence::Range;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Why data leaves again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Everything on its way was given up when the retransmission timer came.
    Timeout,
    /// Acknowledgements of what was sent later say that it is missing.
    Missing,
    /// The end of what was sent may be lost.
    TailProbe,
    /// Nobody has answered the SYN, or its answer.
    Handshake,
}

impl Why {
    /// Its word in events.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Missing => "fast",
            Self::TailProbe => "probe",
            Self::Handshake => "handshake",
        }
    }
}

/// Something that a connection did. Offsets count bytes of the stream, from the first after connecting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// New data leaves.
    Sent {
        /// Where it begins.
        offset: u64,
        /// How much it is.
        bytes: u64,
    },
    /// Data leaves again.
    Again {
        /// Where it begins.
        offset: u64,
        /// How much it is.
        bytes: u64,
        /// Why.
        why: Why,
    },
    /// The sender sees losses otherwise than before.
    State {
        /// First byte that is not acknowledged.
        offset: u64,
        /// `open`, `disorder`, `cwr`, `recovery` or `loss`.
        state: &'static str,
    },
    /// The receive queue is full: the window offered is none.
    Full {
        /// The byte that would be next.
        offset: u64,
        /// Bytes in the queue.
        queued: u64,
    },
}

/// What was told and not taken yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Listener {
    told: Vec<Told>,
    phase: Phase,
    full: bool,
}

impl Phase {
    /// As the kernel names it.
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

impl Connection {
    /// From now on it tells what it does.
    pub fn listen_in(&mut self) {
        self.listener = Some(Box::default());
    }

    /// Takes what was told since.
    pub fn told(&mut self) -> impl Iterator<Item = Told> {
        self.listener.iter_mut().flat_map(|listener| listener.told.drain(..))
    }

    /// A range of the stream leaves.
    #[inline]
    pub(super) fn tell_range(&mut self, range: Range, again: Option<Why>) {
        if let Some(listener) = &mut self.listener {
            let end = range.end.min(self.sender.queued);
            let (offset, bytes) = (range.start.saturating_sub(1), end.saturating_sub(range.start));
            match again {
                Some(why) => listener.told.push(Told::Again { offset, bytes, why }),
                None if bytes > 0 => listener.told.push(Told::Sent { offset, bytes }),
                // The end of the stream is no data.
                None => {}
            }
        }
    }

    /// A SYN or its answer leaves again.
    pub(super) fn tell_handshake(&mut self) {
        if let Some(listener) = &mut self.listener {
            listener.told.push(Told::Again { offset: 0, bytes: 0, why: Why::Handshake });
        }
    }

    /// Looks whether something has changed that is told.
    #[inline]
    pub(super) fn tell_changes(&mut self) {
        if self.listener.is_some() {
            self.look();
        }
    }

    fn look(&mut self) {
        let phase = self.sender.phase;
        let offset = self.sender.una.saturating_sub(1);
        let (queued, full) = (self.receiver.waiting(), self.receiver.shut());
        let next = self.receiver.next.saturating_sub(1);
        let Some(listener) = &mut self.listener else { return };
        if core::mem::replace(&mut listener.phase, phase) != phase {
            listener.told.push(Told::State { offset, state: phase.word() });
        }
        if !core::mem::replace(&mut listener.full, full) && full {
            listener.told.push(Told::Full { offset: next, queued });
        }
    }
}
