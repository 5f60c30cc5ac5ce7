//! Parses the frames of HTTP/3 (RFC 9114, section 7.1) on one side of a stream: a type and a length, each a variable-length integer, and
//! the content. Only an incomplete head is held.

use crate::conversation::varint;

/// The longest head, in bytes: a type and a length.
const HEAD: usize = 16;
/// Frame types.
const DATA: u64 = 0;
const HEADERS: u64 = 1;
const SETTINGS: u64 = 4;

/// The kinds of frames that matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Http3FrameKind {
    Data,
    Head,
    Settings,
    Other,
}

/// A step of the parser.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Http3FrameStep<'b> {
    /// A frame begins.
    Begins(Http3FrameKind),
    /// Content of the current frame.
    Content(Http3FrameKind, &'b [u8]),
    /// The current frame is complete.
    Ends(Http3FrameKind),
}

/// The parser of one side of a stream.
#[derive(Debug, Default)]
pub(super) struct Http3FrameParser {
    /// The bytes of an incomplete head.
    head: [u8; HEAD],
    /// How many bytes of it were read.
    held: usize,
    /// The current frame, and how many bytes of it are still to come.
    frame: Option<(Http3FrameKind, u64)>,
    /// Whether the position of frames is lost.
    is_lost: bool,
}

impl Http3FrameParser {
    /// Takes bytes and returns the next step; `None` when all bytes are consumed or the position is lost.
    pub(super) fn step<'b>(&mut self, left: &mut &'b [u8]) -> Option<Http3FrameStep<'b>> {
        if self.is_lost {
            return None;
        }
        match self.frame {
            Some((kind, 0)) => {
                self.frame = None;
                Some(Http3FrameStep::Ends(kind))
            }
            Some((kind, to_come)) => {
                let count = usize::try_from(to_come).unwrap_or(usize::MAX);
                let (taken, behind) = left.split_at(count.min(left.len()));
                *left = behind;
                self.frame = Some((kind, to_come - taken.len() as u64));
                (!taken.is_empty()).then_some(Http3FrameStep::Content(kind, taken))
            }
            None => self.begin(left),
        }
    }

    /// Reads bytes of a head until it is complete.
    fn begin<'b>(&mut self, left: &mut &'b [u8]) -> Option<Http3FrameStep<'b>> {
        while let Some((first, behind)) = left.split_first() {
            *left = behind;
            self.head[self.held] = *first;
            self.held += 1;
            let mut rest = &self.head[..self.held];
            if let (Some(kind), Some(length)) = (varint::take(&mut rest), varint::take(&mut rest)) {
                let kind = match kind {
                    DATA => Http3FrameKind::Data,
                    HEADERS => Http3FrameKind::Head,
                    SETTINGS => Http3FrameKind::Settings,
                    _ => Http3FrameKind::Other,
                };
                (self.held, self.frame) = (0, Some((kind, length)));
                return Some(Http3FrameStep::Begins(kind));
            }
        }
        None
    }

    /// Skips bytes that were not captured. Returns false, and loses the position, if they are not all content of a frame that is skipped
    /// anyway.
    pub(super) fn unseen(&mut self, count: u64) -> bool {
        match &mut self.frame {
            Some((Http3FrameKind::Data | Http3FrameKind::Other, to_come)) if *to_come >= count => {
                *to_come -= count;
            }
            _ => self.is_lost = true,
        }
        !self.is_lost
    }
}
