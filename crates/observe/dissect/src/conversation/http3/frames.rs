//! Frames of HTTP/3 (RFC 9114, section 7.1) on one side of a stream: a type and a length, each a number of one to eight bytes, and so
//! many bytes. Nothing is held but a head that is not whole.

use crate::conversation::varint;

/// Bytes of a type and a length, at most.
const HEAD: usize = 16;
const DATA: u64 = 0;
const HEADERS: u64 = 1;
const SETTINGS: u64 = 4;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Http3FrameKind {
    Data,
    Head,
    Settings,
    Other,
}

/// What bytes are of a frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Http3FrameStep<'b> {
    /// One begins.
    Begins(Http3FrameKind),
    /// Contents of it.
    Content(Http3FrameKind, &'b [u8]),
    /// It is whole.
    Ends(Http3FrameKind),
}

/// One side of a stream.
#[derive(Debug, Default)]
pub(super) struct Http3FrameParser {
    head: [u8; HEAD],
    held: usize,
    /// The frame that goes on, and how many bytes of it are to come.
    frame: Option<(Http3FrameKind, u64)>,
    /// Where frames begin is not known.
    is_lost: bool,
}

impl Http3FrameParser {
    /// The next step that bytes make; they are taken.
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

    /// So many bytes were not seen; whether they did no harm: they are of data alone.
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
