//! Parses the frames of one side (RFC 9113, sections 4 and 6) byte by byte: where they begin, what is content, where they end. A header
//! block with its CONTINUATION frames counts as one frame. Only frame headers are held; padding and priorities are skipped.

/// The connection preface, which the initiator sends first.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The length of a frame's header in bytes.
const HEADER: usize = 9;

/// Flags of frames.
const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;

/// The kinds of frames that matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Http2FrameKind {
    /// DATA.
    Data,
    /// HEADERS with its continuations.
    Head,
    /// `PUSH_PROMISE` with its continuations.
    Promise,
    /// `RST_STREAM`.
    Reset,
    /// Any frame that belongs to no exchange.
    #[default]
    Other,
}

/// The frame in progress.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Http2Frame {
    pub(super) what: Http2FrameKind,
    pub(super) stream: u32,
    /// The offset of its first byte.
    pub(super) at: u64,
    /// Whether it is the last frame of its sender on its stream.
    pub(super) ends_stream: bool,
    /// The promised stream of a `PUSH_PROMISE`, once it was read.
    pub(super) promised: Option<u32>,
}

/// A step of the parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Http2FrameStep<'b> {
    /// The header of a frame is complete.
    Begins,
    /// The promised stream of the frame was read.
    Promised,
    /// Content of a DATA frame, or a part of a header block.
    Content(&'b [u8]),
    /// The frame is complete.
    Ends,
    /// The bytes are not HTTP/2: nothing more can be read.
    Foreign,
}

/// The effect of bytes that were not captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gap {
    /// This many content bytes of the current frame are missing.
    Contents(u64),
    /// Bytes of the current frame are missing, and it is unknown how many of them are content.
    Unclear,
    /// The position of frames is lost: nothing more can be read.
    Frames,
}

/// The parser of one side.
#[derive(Debug)]
pub(super) struct Http2FrameParser {
    state: Http2FrameState,
    frame: Http2Frame,
    /// The bytes held of a frame's header, or of the fields before its content.
    held: [u8; HEADER],
    /// How many bytes are held.
    held_bytes: usize,
    /// How many bytes of the payload are still to come.
    left: u32,
    /// How many of these are padding.
    padding: u32,
    flags: u8,
    /// Whether only a CONTINUATION frame may follow.
    continues: bool,
}

/// What the parser reads next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Http2FrameState {
    /// The preface, of which this many bytes were read.
    Preface(usize),
    Header,
    /// The fields before the content (padding length, priority, promised stream), which have this many bytes.
    Before(usize),
    Contents,
    Lost,
}

impl Http2FrameParser {
    /// The parser of a side that sends the preface first, or not.
    pub(super) fn new(with_preface: bool) -> Self {
        Self {
            state: if with_preface {
                Http2FrameState::Preface(0)
            } else {
                Http2FrameState::Header
            },
            frame: Http2Frame::default(),
            held: [0; HEADER],
            held_bytes: 0,
            left: 0,
            padding: 0,
            flags: 0,
            continues: false,
        }
    }

    /// The frame of the last step.
    pub(super) const fn frame(&self) -> Http2Frame {
        self.frame
    }

    /// Gives up the side: nothing more can be read.
    pub(super) const fn lose(&mut self) {
        self.state = Http2FrameState::Lost;
    }

    /// Takes bytes from the front and returns the next step; `None` when all bytes are consumed.
    pub(super) fn step<'b>(
        &mut self,
        at: &mut u64,
        bytes: &mut &'b [u8],
    ) -> Option<Http2FrameStep<'b>> {
        loop {
            if self.state == Http2FrameState::Contents && self.left == 0 {
                self.state = Http2FrameState::Header;
                if !self.continues {
                    return Some(Http2FrameStep::Ends);
                }
            }
            if bytes.is_empty() {
                return None;
            }
            let step = match self.state {
                Http2FrameState::Preface(came) => self.preface(came, at, bytes),
                Http2FrameState::Header => self.header(at, bytes),
                Http2FrameState::Before(length) => self.before(length, at, bytes),
                Http2FrameState::Contents => self.contents(at, bytes),
                Http2FrameState::Lost => {
                    take(usize::MAX, at, bytes);
                    None
                }
            };
            if step == Some(Http2FrameStep::Foreign) {
                self.state = Http2FrameState::Lost;
            }
            if step.is_some() {
                return step;
            }
        }
    }

    /// Skips bytes that were not captured. Afterwards, [`Self::step`] may return a step without new bytes.
    pub(super) fn unseen(&mut self, count: u64) -> Gap {
        let within = matches!(
            self.state,
            Http2FrameState::Before(_) | Http2FrameState::Contents
        ) && count <= u64::from(self.left);
        if !within {
            self.state = Http2FrameState::Lost;
            return Gap::Frames;
        }
        // Padding is never above what is left: `before` checks it.
        let contents = self.left - self.padding;
        self.left -= count as u32;
        self.padding = self.padding.min(self.left);
        match self.state {
            Http2FrameState::Contents => Gap::Contents(count.min(u64::from(contents))),
            _ => {
                (self.state, self.held_bytes) = (Http2FrameState::Contents, 0);
                Gap::Unclear
            }
        }
    }

    /// Checks bytes of the preface, of which `came` were read before.
    fn preface<'b>(
        &mut self,
        came: usize,
        at: &mut u64,
        bytes: &mut &'b [u8],
    ) -> Option<Http2FrameStep<'b>> {
        let taken = take(PREFACE.len() - came, at, bytes);
        if !PREFACE[came..].starts_with(taken) {
            return Some(Http2FrameStep::Foreign);
        }
        let came = came + taken.len();
        self.state = if came == PREFACE.len() {
            Http2FrameState::Header
        } else {
            Http2FrameState::Preface(came)
        };
        None
    }

    /// Reads bytes of a frame's header.
    fn header<'b>(&mut self, at: &mut u64, bytes: &mut &'b [u8]) -> Option<Http2FrameStep<'b>> {
        let began = *at - self.held_bytes as u64;
        if !self.hold(HEADER, at, bytes) {
            return None;
        }
        let [a, b, c, kind, flags, stream @ ..] = self.held;
        (self.left, self.padding, self.flags) = (u32::from_be_bytes([0, a, b, c]), 0, flags);
        let stream = u32::from_be_bytes(stream) & 0x7fff_ffff;
        if self.continues {
            return self.continuation(kind, stream);
        }
        let what = match kind {
            0x0 => Http2FrameKind::Data,
            0x1 => Http2FrameKind::Head,
            0x3 => Http2FrameKind::Reset,
            0x5 => Http2FrameKind::Promise,
            // A CONTINUATION that continues nothing.
            0x9 => return Some(Http2FrameStep::Foreign),
            _ => Http2FrameKind::Other,
        };
        let before = before(what, flags);
        if before > self.left as usize || (what != Http2FrameKind::Other && stream == 0) {
            return Some(Http2FrameStep::Foreign);
        }
        let ends_stream =
            matches!(what, Http2FrameKind::Data | Http2FrameKind::Head) && flags & END_STREAM != 0;
        self.frame = Http2Frame {
            what,
            stream,
            at: began,
            ends_stream,
            promised: None,
        };
        self.continues = matches!(what, Http2FrameKind::Head | Http2FrameKind::Promise)
            && flags & END_HEADERS == 0;
        self.state = if before == 0 {
            Http2FrameState::Contents
        } else {
            Http2FrameState::Before(before)
        };
        Some(Http2FrameStep::Begins)
    }

    /// Reads the header of a CONTINUATION frame, which must be of the same stream.
    fn continuation<'b>(&mut self, kind: u8, stream: u32) -> Option<Http2FrameStep<'b>> {
        if kind != 0x9 || stream != self.frame.stream {
            return Some(Http2FrameStep::Foreign);
        }
        self.continues = self.flags & END_HEADERS == 0;
        self.state = Http2FrameState::Contents;
        None
    }

    /// Reads the fields before the content.
    fn before<'b>(
        &mut self,
        length: usize,
        at: &mut u64,
        bytes: &mut &'b [u8],
    ) -> Option<Http2FrameStep<'b>> {
        let held = self.held_bytes;
        let whole = self.hold(length, at, bytes);
        // `header` has refused a payload that is shorter than these fields.
        self.left -= if whole {
            length - held
        } else {
            self.held_bytes - held
        } as u32;
        if !whole {
            return None;
        }
        let padded = self.flags & PADDED != 0;
        self.padding = if padded { u32::from(self.held[0]) } else { 0 };
        self.state = Http2FrameState::Contents;
        if self.padding > self.left {
            return Some(Http2FrameStep::Foreign);
        }
        if self.frame.what != Http2FrameKind::Promise {
            return None;
        }
        let [.., a, b, c, d] = self.held[..length] else {
            return None;
        };
        self.frame.promised = Some(u32::from_be_bytes([a, b, c, d]) & 0x7fff_ffff);
        Some(Http2FrameStep::Promised)
    }

    /// Takes content, or skips padding.
    fn contents<'b>(&mut self, at: &mut u64, bytes: &mut &'b [u8]) -> Option<Http2FrameStep<'b>> {
        let (contents, padding) = (self.left - self.padding, self.padding);
        let taken = take(
            if contents > 0 { contents } else { padding } as usize,
            at,
            bytes,
        );
        self.left -= taken.len() as u32;
        self.padding = self.padding.min(self.left);
        let wanted = contents > 0
            && matches!(
                self.frame.what,
                Http2FrameKind::Data | Http2FrameKind::Head | Http2FrameKind::Promise
            );
        wanted.then_some(Http2FrameStep::Content(taken))
    }

    /// Holds bytes until there are `length`; returns whether there are.
    fn hold(&mut self, length: usize, at: &mut u64, bytes: &mut &[u8]) -> bool {
        let taken = take(length - self.held_bytes, at, bytes);
        let end = self.held_bytes + taken.len();
        self.held[self.held_bytes..end].copy_from_slice(taken);
        self.held_bytes = if end == length { 0 } else { end };
        end == length
    }
}

/// The length of the fields before a frame's content, in bytes.
const fn before(what: Http2FrameKind, flags: u8) -> usize {
    let padding = if flags & PADDED != 0 { 1 } else { 0 };
    match what {
        Http2FrameKind::Data => padding,
        Http2FrameKind::Head if flags & PRIORITY != 0 => padding + 5,
        Http2FrameKind::Head => padding,
        Http2FrameKind::Promise => padding + 4,
        Http2FrameKind::Reset | Http2FrameKind::Other => 0,
    }
}

/// Takes up to `count` bytes from the front.
fn take<'b>(count: usize, at: &mut u64, bytes: &mut &'b [u8]) -> &'b [u8] {
    let (taken, behind) = bytes.split_at(count.min(bytes.len()));
    *at += taken.len() as u64;
    *bytes = behind;
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of a responder's frames, each with the offset behind it.
    fn steps(bytes: &[u8]) -> Vec<String> {
        let (mut frames, mut at, mut left, mut steps) =
            (Http2FrameParser::new(false), 0, bytes, Vec::new());
        while let Some(step) = frames.step(&mut at, &mut left) {
            let Http2Frame {
                what,
                stream,
                at: from,
                ends_stream,
                promised,
            } = frames.frame();
            let last = if ends_stream { " last" } else { "" };
            steps.push(match step {
                Http2FrameStep::Begins => format!("{at} {what:?} of {stream} from {from}{last}"),
                Http2FrameStep::Content(bytes) => {
                    format!("{at} {}", String::from_utf8_lossy(bytes))
                }
                Http2FrameStep::Promised => format!("{at} promised {promised:?}"),
                step => format!("{at} {step:?}"),
            });
        }
        assert!(left.is_empty());
        steps
    }

    #[test]
    fn data_with_padding_and_without() {
        let bytes = b"\0\0\x03\0\0\0\0\0\x01abc\0\0\x06\0\x09\0\0\0\x03\x02def\0\0";
        assert_eq!(
            steps(bytes),
            [
                "9 Data of 1 from 0",
                "12 abc",
                "12 Ends",
                "21 Data of 3 from 12 last",
                "25 def",
                "27 Ends",
            ]
        );
    }

    #[test]
    fn a_head_with_priority_padding_and_continuations_is_one_frame() {
        let bytes = b"\0\0\x0a\x01\x29\0\0\0\x01\x02\x80\0\0\0\x10ab\0\0\
            \0\0\0\x09\0\0\0\0\x01\
            \0\0\x01\x09\x04\0\0\0\x01c";
        assert_eq!(
            steps(bytes),
            ["9 Head of 1 from 0 last", "17 ab", "38 c", "38 Ends"]
        );
    }

    #[test]
    fn a_promise_names_its_stream() {
        let bytes = b"\0\0\x06\x05\x04\0\0\0\x01\x80\0\0\x02ab";
        assert_eq!(
            steps(bytes),
            [
                "9 Promise of 1 from 0",
                "13 promised Some(2)",
                "15 ab",
                "15 Ends"
            ]
        );
    }

    #[test]
    fn what_belongs_to_no_exchange_is_skipped() {
        let bytes =
            b"\0\0\x06\x04\0\0\0\0\0abcdef\0\0\0\x04\x01\0\0\0\0\0\0\x08\x06\0\0\0\0\0abcdefgh";
        let ends: Vec<String> = steps(bytes)
            .into_iter()
            .filter(|step| step.ends_with("Ends"))
            .collect();
        assert_eq!(ends, ["15 Ends", "24 Ends", "41 Ends"]);
    }

    #[test]
    fn what_no_frame_may_be_is_foreign() {
        let foreign: [&[u8]; 6] = [
            b"\0\0\0\0\0\0\0\0\0",                             // Data of no stream.
            b"\0\0\0\0\x08\0\0\0\x01",                         // Padding without a length.
            b"\0\0\x02\0\x08\0\0\0\x01\x02a",                  // More padding than there is.
            b"\0\0\0\x09\0\0\0\0\x01",                         // A continuation of nothing.
            b"\0\0\0\x01\0\0\0\0\x01\0\0\0\x09\x04\0\0\0\x03", // A continuation of another stream.
            b"\0\0\0\x01\0\0\0\0\x01\0\0\0\0\0\0\0\0\x01", // Something else than a continuation.
        ];
        for bytes in foreign {
            assert!(
                steps(bytes).last().unwrap().ends_with("Foreign"),
                "{bytes:?}"
            );
        }
    }

    #[test]
    fn gaps_within_a_frame_are_counted_and_others_lose_it() {
        let (mut frames, mut at) = (Http2FrameParser::new(false), 0);
        frames.step(&mut at, &mut &b"\xff\xff\xff\0\x08\0\0\0\x01\x05"[..]);
        assert_eq!(frames.unseen(1), Gap::Unclear);
        assert_eq!(frames.unseen(1000), Gap::Contents(1000));
        assert_eq!(
            frames.unseen(0xff_ffff - 1001),
            Gap::Contents(0xff_ffff - 1001)
        );
        assert_eq!(
            frames.step(&mut at, &mut &[][..]),
            Some(Http2FrameStep::Ends)
        );
        assert_eq!(frames.unseen(1), Gap::Frames);

        let mut frames = Http2FrameParser::new(false);
        let mut bytes = &b"\0\0\x06\0\x08\0\0\0\x01\x02a"[..];
        while frames.step(&mut at, &mut bytes).is_some() {}
        assert_eq!(frames.unseen(4), Gap::Contents(2));
        assert_eq!(
            frames.step(&mut at, &mut &[][..]),
            Some(Http2FrameStep::Ends)
        );
    }
}
