//! What marks of a byte stream mean to a terminal (Taft, "Pup Telnet Protocol", 2 July 1978). Data goes as it is: nothing is doubled, and
//! nothing is negotiated.

/// What a mark says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PupTelnetMark {
    /// Data before it may be dropped: sent with an interrupt, which overtakes it.
    Data,
    /// The width of lines is the next byte.
    LineWidth,
    /// The length of pages is the next byte.
    PageLength,
    /// The type of the terminal is the next byte.
    TerminalType,
    /// To be answered once everything before it is done.
    Timing,
    /// That answer.
    TimingReply,
}

impl PupTelnetMark {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Data,
        Self::LineWidth,
        Self::PageLength,
        Self::TerminalType,
        Self::Timing,
        Self::TimingReply,
    ];

    /// Its number in the stream.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8 + 1
    }

    /// By its number.
    #[must_use]
    pub fn of(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|mark| mark.code() == code)
    }

    /// Whether the byte behind it belongs to it.
    #[must_use]
    pub const fn has_argument(self) -> bool {
        matches!(
            self,
            Self::LineWidth | Self::PageLength | Self::TerminalType
        )
    }
}
