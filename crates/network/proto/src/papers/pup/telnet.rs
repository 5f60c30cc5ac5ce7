//! The marks of a PUP byte stream that a terminal uses (Taft, "Pup Telnet Protocol", 2 July 1978). Unlike TELNET on TCP, data needs no
//! escaping and no options are negotiated.

/// The meaning of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PupTelnetMark {
    /// Data before this mark may be dropped; it is sent with an interrupt, which arrives before it.
    Data,
    /// The width of lines is the next byte.
    LineWidth,
    /// The length of pages is the next byte.
    PageLength,
    /// The type of the terminal is the next byte.
    TerminalType,
    /// To be answered once everything before it has been processed.
    Timing,
    /// The answer to [`PupTelnetMark::Timing`].
    TimingReply,
}

impl PupTelnetMark {
    /// All marks.
    pub const ALL: [Self; 6] = [
        Self::Data,
        Self::LineWidth,
        Self::PageLength,
        Self::TerminalType,
        Self::Timing,
        Self::TimingReply,
    ];

    /// The byte that the mark carries in the stream.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8 + 1
    }

    /// The mark with that byte; `None` if it is unknown.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|mark| mark.code() == code)
    }

    /// Whether the data byte after the mark is its argument.
    #[must_use]
    pub const fn has_argument(self) -> bool {
        matches!(
            self,
            Self::LineWidth | Self::PageLength | Self::TerminalType
        )
    }
}
