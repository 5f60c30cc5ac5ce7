//! Explicit congestion notification (RFC 3168), as Linux does it: what both ends agree on, what a receiver echoes, and when a sender
//! says that it has slowed down. The window itself is made smaller where losses make it smaller.

use super::segment::TcpFlags;

/// The two bits of an IP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Codepoint {
    /// Queues have to drop it.
    #[default]
    NotCapable,
    /// Queues may mark it: ECT(0).
    Capable,
    /// A queue has marked it: congestion experienced.
    Marked,
}

impl Codepoint {
    /// As it is on the wire.
    pub(super) const fn bits(self) -> u8 {
        match self {
            Self::NotCapable => 0,
            Self::Capable => 2,
            Self::Marked => 3,
        }
    }
}

/// One end's part.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TcpEcn {
    /// Both ends take part.
    pub(super) agreed: bool,
    /// A mark came: every segment says so until the peer says that it has slowed down.
    echoes: bool,
    /// The window was made smaller, and this was not reported to the peer yet.
    slowed: bool,
}

impl TcpEcn {
    /// The flags with which a SYN asks for it, or the answer grants it.
    pub(super) const fn of_syn(self, answers: bool) -> TcpFlags {
        if answers {
            TcpFlags::ECE
        } else {
            TcpFlags::ECE.with(TcpFlags::CWR)
        }
    }

    /// Whether the peer's SYN asks for it, or its answer grants it.
    pub(super) const fn wanted(flags: TcpFlags) -> bool {
        flags.has(TcpFlags::ECE) && flags.has(TcpFlags::CWR) != flags.has(TcpFlags::ACK)
    }

    /// Data arrived. True where it is acknowledged soon: the first mark, or a sender that slowed down and may have little on its way.
    pub(super) fn arrives(&mut self, codepoint: Codepoint, flags: TcpFlags) -> bool {
        if !self.agreed {
            return false;
        }
        let slowed = flags.has(TcpFlags::CWR);
        self.echoes &= !slowed;
        let first = codepoint == Codepoint::Marked && !self.echoes;
        self.echoes |= first;
        slowed || first
    }

    /// Whether an acknowledgement says that a mark came.
    pub(super) const fn is_echo(self, flags: TcpFlags) -> bool {
        self.agreed && flags.has(TcpFlags::ECE) && !flags.has(TcpFlags::SYN)
    }

    /// The window was made smaller, for whatever reason.
    pub(super) const fn slow(&mut self) {
        self.slowed = self.agreed;
    }

    /// The flags of a segment that leaves, with new data or not; and what queues may do to it.
    pub(super) const fn leaves(&mut self, new_data: bool) -> (TcpFlags, Codepoint) {
        let mut flags = if self.echoes {
            TcpFlags::ECE
        } else {
            TcpFlags(0)
        };
        if !(self.agreed && new_data) {
            return (flags, Codepoint::NotCapable);
        }
        if self.slowed {
            flags = flags.with(TcpFlags::CWR);
            self.slowed = false;
        }
        (flags, Codepoint::Capable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TALKING: TcpEcn = TcpEcn {
        agreed: true,
        echoes: false,
        slowed: false,
    };

    #[test]
    fn a_syn_asks_and_its_answer_grants() {
        assert!(TcpEcn::wanted(TcpFlags::SYN.with(TALKING.of_syn(false))));
        assert!(TcpEcn::wanted(
            TcpFlags::SYN.with(TcpFlags::ACK).with(TALKING.of_syn(true))
        ));
        assert!(
            !TcpEcn::wanted(TcpFlags::SYN) && !TcpEcn::wanted(TcpFlags::SYN.with(TcpFlags::ECE))
        );
        // RFC 3168, 6.1.1: an answer with both flags is a broken peer's echo.
        assert!(!TcpEcn::wanted(
            TcpFlags::SYN
                .with(TcpFlags::ACK)
                .with(TALKING.of_syn(false))
        ));
    }

    #[test]
    fn a_mark_is_echoed_until_the_sender_has_slowed_down() {
        let (mut receiver, mut sender) = (TALKING, TALKING);
        assert!(
            receiver.arrives(Codepoint::Marked, TcpFlags::ACK),
            "the first mark is urgent"
        );
        assert!(!receiver.arrives(Codepoint::Marked, TcpFlags::ACK));
        let (flags, codepoint) = receiver.leaves(false);
        assert_eq!(
            (flags, codepoint),
            (TcpFlags::ECE, Codepoint::NotCapable),
            "acknowledgements are never marked"
        );
        assert!(sender.is_echo(flags));
        sender.slow();
        let (flags, codepoint) = sender.leaves(true);
        assert_eq!((flags, codepoint), (TcpFlags::CWR, Codepoint::Capable));
        assert!(receiver.arrives(codepoint, flags));
        assert_eq!(receiver.leaves(false).0, TcpFlags(0));
        assert_eq!(sender.leaves(true).0, TcpFlags(0), "said once");
    }

    #[test]
    fn who_did_not_agree_sees_no_marks() {
        let mut end = TcpEcn::default();
        end.slow();
        assert!(!end.arrives(Codepoint::Marked, TcpFlags::CWR));
        assert_eq!(end.leaves(true), (TcpFlags(0), Codepoint::NotCapable));
    }
}
