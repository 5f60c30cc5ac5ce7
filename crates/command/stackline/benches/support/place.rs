//! Where the two ends run: left to the kernel, both on one core, or on a core each.

/// Cores of the initiator and the responder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Place {
    /// Left to the kernel.
    Free,
    /// Both on core 0.
    One,
    /// The initiator on core 0, the responder on core 1.
    Two,
}

impl Place {
    /// Core of the initiator.
    pub(crate) fn initiator(self) -> Option<usize> {
        (self != Self::Free).then_some(0)
    }

    /// Core of the responder.
    pub(crate) fn responder(self) -> Option<usize> {
        match self {
            Self::Free => None,
            Self::One => Some(0),
            Self::Two => Some(1),
        }
    }

    /// The clause of a specification.
    pub(crate) fn clause(self) -> &'static str {
        match self {
            Self::Free => "",
            Self::One => " on cpu 0",
            Self::Two => " on cpu 0 to 1",
        }
    }

    /// The words in the name of a case.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::One => "one core",
            Self::Two => "a core each",
        }
    }

    /// Whether this host has the cores.
    pub(crate) fn possible(self) -> bool {
        self != Self::Two || std::thread::available_parallelism().is_ok_and(|cores| cores.get() > 1)
    }
}
