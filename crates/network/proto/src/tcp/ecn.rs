//! Explicit congestion notification (RFC 3168), as in Linux: what both ends agree on, what a receiver echoes, and when
//! a sender reports that it has slowed down. The window itself is reduced where losses reduce it.

use super::segment::TcpFlags;

/// The two ECN bits of an IP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Codepoint {
    /// Not ECN-capable: queues have to drop the packet instead of marking it.
    #[default]
    NotCapable,
    /// ECT(0): queues may mark the packet.
    Capable,
    /// Congestion experienced: a queue has marked the packet.
    Marked,
}

impl Codepoint {
    /// The bits on the wire.
    pub(super) const fn bits(self) -> u8 {
        match self {
            Self::NotCapable => 0,
            Self::Capable => 2,
            Self::Marked => 3,
        }
    }
}

/// The ECN state of one end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TcpEcn {
    /// Both ends have agreed to use ECN.
    pub(super) agreed: bool,
    /// A marked packet has arrived: every segment echoes this until the peer reports that it has slowed down.
    echoes: bool,
    /// The window was reduced, and this was not reported to the peer yet.
    slowed: bool,
}

impl TcpEcn {
    /// The flags with which a SYN asks for ECN, or its answer grants it.
    pub(super) const fn of_syn(self, answers: bool) -> TcpFlags {
        if answers {
            TcpFlags::ECE
        } else {
            TcpFlags::ECE.with(TcpFlags::CWR)
        }
    }

    /// Whether the peer's SYN asks for ECN, or its answer grants it.
    pub(super) const fn wanted(flags: TcpFlags) -> bool {
        flags.has(TcpFlags::ECE) && flags.has(TcpFlags::CWR) != flags.has(TcpFlags::ACK)
    }

    /// Handles arriving data. Returns true when it has to be acknowledged soon: it has the first mark, or its sender
    /// has slowed down and may have little in flight.
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

    /// Whether an acknowledgement echoes a mark.
    pub(super) const fn is_echo(self, flags: TcpFlags) -> bool {
        self.agreed && flags.has(TcpFlags::ECE) && !flags.has(TcpFlags::SYN)
    }

    /// Notes that the window was reduced, for whatever reason.
    pub(super) const fn slow(&mut self) {
        self.slowed = self.agreed;
    }

    /// The ECN flags and the codepoint of a segment that is sent, with new data or not.
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
