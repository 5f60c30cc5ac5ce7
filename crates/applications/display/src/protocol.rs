//! The display's protocol (VGTP): encoding and decoding of requests and answers. Each message has a header of 4 bytes, then the fields of
//! its operation. Numbers are big-endian.
//!
//! ```text
//! operation 1 (its highest bit: an answer is wanted) | kind, or stipple and kind 1 | length of the whole message 2
//! ```
//! An `AddItem` of a vector or a rectangle has 20 bytes, as in the paper (section 8). Only the form of messages is checked here.

use crate::item::{DisplayItem, DisplayItemKind, WIRE_BYTES};

/// Bytes of a message's header.
pub const HEAD_BYTES: usize = 4;
/// Bytes of the longest secret in a `Hello`.
pub const LONGEST_SECRET: usize = 255;
/// Bytes of the longest `Hello`.
pub const LONGEST_HELLO: usize = HEAD_BYTES + 6 + LONGEST_SECRET;
/// Bytes of an `AddItem` whose item has no extra bytes (text, points, bits).
pub const PLAIN_BYTES: usize = HEAD_BYTES + WIRE_BYTES;
/// Bytes of the longest message.
pub const LONGEST: usize = u16::MAX as usize;
/// The first bytes of a `Hello`'s body.
pub const MAGIC: [u8; 4] = *b"VGTP";
/// The version of the protocol that this program speaks.
pub const VERSION: u16 = 2;
/// The bit of the operation that asks for an answer.
const ANSWER: u8 = 0x80;
/// The operation of a `Hello`.
const HELLO: u8 = 1;
/// The operation of an `AddItem`.
const ADD: u8 = 6;

/// A request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisplayRequest<'b> {
    /// The client's first message.
    Hello {
        /// The version of the protocol that the client speaks.
        version: u16,
        /// The display's secret; empty if the client has none.
        token: &'b [u8],
    },
    /// Begins the definition of a symbol: items go to it until `EndSymbol`, which puts the whole symbol in place.
    DefineSymbol(u32),
    /// Opens an existing symbol for editing: each item changes it at once.
    EditSymbol(u32),
    /// Ends the definition or the editing of the open symbol.
    EndSymbol,
    /// Deletes a symbol.
    DeleteSymbol(u32),
    /// Adds an item to the open symbol, after the others, with its extra bytes (text, points, bits).
    AddItem(DisplayItem, &'b [u8]),
    /// Replaces the item with the same id in the open symbol.
    ChangeItem(DisplayItem, &'b [u8]),
    /// Deletes an item of the open symbol by its id.
    DeleteItem(u32),
    /// Creates a window: number, width and height in pixels, title.
    CreateWindow(u32, (u16, u16), &'b [u8]),
    /// Shows a symbol in a window: window, symbol, where the symbol's origin is, scale in 256ths.
    DisplayView(u32, u32, (i16, i16), u16),
    /// Closes a window.
    CloseWindow(u32),
    /// Begins a batch: the requests in it take effect together when it ends.
    BeginBatch,
    /// Ends a batch.
    EndBatch,
    /// Asks for everything before it to be drawn; the answer carries this token and the time of each step.
    Sync(u32),
}

/// An answer of a display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DisplayAnswer {
    /// The answer to `Hello`: the client may send.
    Welcome {
        /// Bytes that the client may send after its `Hello`.
        credit: u32,
        /// The number of the client, which names it in events.
        client: u64,
    },
    /// A request that asked for an answer is done.
    Done,
    /// A request was not done. This is sent also for requests that did not ask for an answer.
    Refused {
        /// The number of the request; the first one after `Hello` is 1.
        request: u32,
        /// The reason, a number of [`DisplayRefusal`](crate::symbols::DisplayRefusal).
        why: u8,
    },
    /// The client may send this many bytes more.
    Credit(u32),
    /// Everything before a `Sync` is drawn.
    Synced {
        /// The token of the `Sync`.
        token: u32,
        /// When it passed each step, ns since the server began.
        stamps: Stamps,
    },
    /// A key was pressed in a window, or the pointer moved or clicked there.
    Input {
        /// The number of the window.
        window: u32,
        /// What happened.
        input: DisplayInput,
        /// The number of events before it that were dropped because the client did not read them.
        dropped: u32,
        /// The items at that point, the last drawn first: symbol and item id.
        hits: Vec<(u32, u32)>,
    },
}

/// When a request passed each step, ns since the server began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// Its bytes were received.
    pub parsed: u64,
    /// All requests before it have changed the display's symbols and windows.
    pub stored: u64,
    /// The windows are drawn.
    pub rendered: u64,
    /// The pixels are available to viewers.
    pub presented: u64,
}

/// An input event in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisplayInput {
    /// A key was pressed: its character.
    Key(u32),
    /// The pointer moved to this pixel (x, y).
    Move(i16, i16),
    /// A button was pressed at this pixel (x, y).
    Press(i16, i16),
    /// The button was released at this pixel (x, y).
    Release(i16, i16),
}

/// Why bytes cannot be decoded as messages. The connection has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MalformedDisplayMessage {
    /// The length is smaller than that of a header.
    Length,
    /// There is no such operation.
    Operation(u8),
    /// The length is not one that this operation can have.
    Form(u8),
    /// A `Hello` that does not begin with [`MAGIC`].
    Magic,
    /// A `Welcome` of another version of the protocol.
    Version(u16),
}

impl MalformedDisplayMessage {
    /// The reason in words.
    #[must_use]
    pub fn words(self) -> String {
        match self {
            Self::Length => "a message is shorter than its own header".to_owned(),
            Self::Operation(number) => format!("unknown operation {number}"),
            Self::Form(number) => format!("a message for operation {number} has the wrong length"),
            Self::Magic => "the first bytes are not a display client's".to_owned(),
            Self::Version(version) => {
                format!(
                    "it speaks version {version} of the protocol, but this program speaks {VERSION}"
                )
            }
        }
    }
}

/// Appends the encoding of a request to `out`.
#[inline]
pub fn write_request(out: &mut Vec<u8>, request: &DisplayRequest<'_>, wants_answer: bool) {
    match request {
        // By far the most frequent request, so it is encoded in one step.
        DisplayRequest::AddItem(item, b"") => out.extend_from_slice(&plain(item, wants_answer)),
        _ => put_any(out, request, wants_answer),
    }
}

/// Appends `AddItem` requests without answers for all `items`, if none of them has extra bytes; otherwise nothing. Returns whether it did.
#[must_use]
pub fn put_plain(out: &mut Vec<u8>, items: &[(DisplayItem, Vec<u8>)]) -> bool {
    let is_plain = items.iter().all(|(_, held)| held.is_empty());
    if is_plain {
        let begin = out.len();
        out.resize(begin + items.len() * PLAIN_BYTES, 0);
        let (messages, _) = out[begin..].as_chunks_mut::<PLAIN_BYTES>();
        messages
            .iter_mut()
            .zip(items)
            .for_each(|(message, (item, _))| *message = plain(item, false));
    }
    is_plain
}

/// The `AddItem` message of an item without extra bytes.
#[inline]
fn plain(item: &DisplayItem, wants_answer: bool) -> [u8; PLAIN_BYTES] {
    let mut whole = [0; PLAIN_BYTES];
    let operation = ADD | if wants_answer { ANSWER } else { 0 };
    whole[..HEAD_BYTES].copy_from_slice(&[operation, kind_byte(item), 0, PLAIN_BYTES as u8]);
    whole[HEAD_BYTES..].copy_from_slice(&item.to_wire());
    whole
}

/// Decodes the most frequent messages quickly: an `AddItem` of a vector or a rectangle without extra bytes that asks for no answer. `None`
/// for any other message.
#[inline]
#[must_use]
pub fn take_plain(message: &[u8; PLAIN_BYTES]) -> Option<DisplayItem> {
    // One that wants an answer, or has more bytes, takes the general way.
    let ([ADD, kind, 0, 20], wire) = message.split_first_chunk::<HEAD_BYTES>()? else {
        return None;
    };
    let drawn = match kind & 0xf {
        1 => DisplayItemKind::Vector,
        2 => DisplayItemKind::Rectangle,
        _ => return None,
    };
    Some(DisplayItem::from_wire(
        drawn,
        kind >> 4,
        wire.first_chunk()?,
    ))
}

/// Whether a message that begins with this byte can be a `Hello`.
#[must_use]
pub const fn begins_hello(first: u8) -> bool {
    first & !ANSWER == HELLO
}

/// The length of the message that begins here, from its header, or the header's length while that is incomplete.
#[must_use]
pub fn message_length(message: &[u8]) -> usize {
    let length = message
        .get(2..HEAD_BYTES)
        .map_or(0, |two| usize::from(u16::from_be_bytes([two[0], two[1]])));
    length.max(HEAD_BYTES)
}

fn put_any(out: &mut Vec<u8>, request: &DisplayRequest<'_>, wants_answer: bool) {
    let begin = out.len();
    let (operation, kind) = numbers(request);
    out.extend([
        operation | if wants_answer { ANSWER } else { 0 },
        kind,
        0,
        0,
    ]);
    match request {
        DisplayRequest::Hello { version, token } => {
            out.extend(MAGIC);
            out.extend(version.to_be_bytes());
            out.extend(*token);
        }
        DisplayRequest::DefineSymbol(number)
        | DisplayRequest::EditSymbol(number)
        | DisplayRequest::DeleteSymbol(number)
        | DisplayRequest::DeleteItem(number)
        | DisplayRequest::CloseWindow(number)
        | DisplayRequest::Sync(number) => out.extend(number.to_be_bytes()),
        DisplayRequest::AddItem(item, bytes) | DisplayRequest::ChangeItem(item, bytes) => {
            out.extend(item.to_wire());
            out.extend(*bytes);
        }
        DisplayRequest::CreateWindow(window, size, title) => {
            out.extend(window.to_be_bytes());
            out.extend(size.0.to_be_bytes());
            out.extend(size.1.to_be_bytes());
            out.extend(*title);
        }
        DisplayRequest::DisplayView(window, symbol, at, scale) => {
            out.extend(window.to_be_bytes());
            out.extend(symbol.to_be_bytes());
            out.extend(at.0.to_be_bytes());
            out.extend(at.1.to_be_bytes());
            out.extend(scale.to_be_bytes());
        }
        DisplayRequest::EndSymbol | DisplayRequest::BeginBatch | DisplayRequest::EndBatch => {}
    }
    close(out, begin);
}

/// Writes the length into the header of the message that begins at `begin`.
fn close(out: &mut Vec<u8>, begin: usize) {
    // The length has 16 bits.
    out.truncate(begin + LONGEST);
    let length = ((out.len() - begin) as u16).to_be_bytes();
    if let Some(head) = out.get_mut(begin + 2..begin + 4) {
        head.copy_from_slice(&length);
    }
}

/// The operation and the second byte of a request's header.
const fn numbers(request: &DisplayRequest<'_>) -> (u8, u8) {
    match request {
        DisplayRequest::Hello { .. } => (HELLO, 0),
        DisplayRequest::DefineSymbol(_) => (2, 0),
        DisplayRequest::EditSymbol(_) => (3, 0),
        DisplayRequest::EndSymbol => (4, 0),
        DisplayRequest::DeleteSymbol(_) => (5, 0),
        DisplayRequest::AddItem(item, _) => (ADD, kind_byte(item)),
        DisplayRequest::ChangeItem(item, _) => (7, kind_byte(item)),
        DisplayRequest::DeleteItem(_) => (8, 0),
        DisplayRequest::CreateWindow(..) => (9, 0),
        DisplayRequest::DisplayView(..) => (10, 0),
        DisplayRequest::CloseWindow(_) => (11, 0),
        DisplayRequest::BeginBatch => (12, 0),
        DisplayRequest::EndBatch => (13, 0),
        DisplayRequest::Sync(_) => (14, 0),
    }
}

const fn kind_byte(item: &DisplayItem) -> u8 {
    let kind = match item.kind {
        Some(kind) => kind as u8,
        None => 0,
    };
    item.stipple << 4 | kind
}

/// The first whole message in `bytes`; `None` if it is incomplete.
fn first_message(bytes: &[u8]) -> Result<Option<&[u8]>, MalformedDisplayMessage> {
    let Some((head, _)) = bytes.split_at_checked(HEAD_BYTES) else {
        return Ok(None);
    };
    let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
    if length < HEAD_BYTES {
        return Err(MalformedDisplayMessage::Length);
    }
    Ok(bytes.get(..length))
}

/// Decodes the first request in `bytes`: the request, whether an answer is wanted, and its length in bytes. `None` if it is incomplete.
///
/// # Errors
/// [`MalformedDisplayMessage`] if the bytes are not a request.
pub fn parse_request(
    bytes: &[u8],
) -> Result<Option<(DisplayRequest<'_>, bool, usize)>, MalformedDisplayMessage> {
    let Some(message) = first_message(bytes)? else {
        return Ok(None);
    };
    let request = request(message[0] & !ANSWER, message[1], &message[HEAD_BYTES..])?;
    Ok(Some((request, message[0] & ANSWER != 0, message.len())))
}

fn request(
    operation: u8,
    kind: u8,
    body: &[u8],
) -> Result<DisplayRequest<'_>, MalformedDisplayMessage> {
    let wrong = MalformedDisplayMessage::Form(operation);
    let number = || body.try_into().map(u32::from_be_bytes).map_err(|_| wrong);
    let nothing = |request| {
        if body.is_empty() {
            Ok(request)
        } else {
            Err(wrong)
        }
    };
    Ok(match operation {
        1 => {
            let rest = body
                .strip_prefix(&MAGIC)
                .ok_or(MalformedDisplayMessage::Magic)?;
            let (version, token) = rest.split_at_checked(2).ok_or(wrong)?;
            DisplayRequest::Hello {
                version: u16::from_be_bytes([version[0], version[1]]),
                token,
            }
        }
        2 => DisplayRequest::DefineSymbol(number()?),
        3 => DisplayRequest::EditSymbol(number()?),
        4 => nothing(DisplayRequest::EndSymbol)?,
        5 => DisplayRequest::DeleteSymbol(number()?),
        6 | 7 => {
            let (wire, bytes) = body.split_first_chunk::<WIRE_BYTES>().ok_or(wrong)?;
            let item = DisplayItem::from_wire(
                DisplayItemKind::from_number(kind & 0xf).ok_or(wrong)?,
                kind >> 4,
                wire,
            );
            if operation == 6 {
                DisplayRequest::AddItem(item, bytes)
            } else {
                DisplayRequest::ChangeItem(item, bytes)
            }
        }
        8 => DisplayRequest::DeleteItem(number()?),
        9 => {
            let (size, title) = body.split_first_chunk::<8>().ok_or(wrong)?;
            let window = u32::from_be_bytes([size[0], size[1], size[2], size[3]]);
            let size = (
                u16::from_be_bytes([size[4], size[5]]),
                u16::from_be_bytes([size[6], size[7]]),
            );
            DisplayRequest::CreateWindow(window, size, title)
        }
        10 => {
            let all: &[u8; 14] = body.try_into().map_err(|_| wrong)?;
            let long =
                |at: usize| u32::from_be_bytes([all[at], all[at + 1], all[at + 2], all[at + 3]]);
            let short = |at: usize| [all[at], all[at + 1]];
            let at = (i16::from_be_bytes(short(8)), i16::from_be_bytes(short(10)));
            DisplayRequest::DisplayView(long(0), long(4), at, u16::from_be_bytes(short(12)))
        }
        11 => DisplayRequest::CloseWindow(number()?),
        12 => nothing(DisplayRequest::BeginBatch)?,
        13 => nothing(DisplayRequest::EndBatch)?,
        14 => DisplayRequest::Sync(number()?),
        other => return Err(MalformedDisplayMessage::Operation(other)),
    })
}

impl DisplayAnswer {
    /// Appends the encoding of this answer to `out`.
    pub fn put(&self, out: &mut Vec<u8>) {
        let begin = out.len();
        let (operation, kind) = match self {
            Self::Welcome { .. } => (65, 0),
            Self::Done => (66, 0),
            Self::Refused { why, .. } => (67, *why),
            Self::Credit(_) => (68, 0),
            Self::Synced { .. } => (69, 0),
            Self::Input { input, .. } => (70, input.number()),
        };
        out.extend([operation, kind, 0, 0]);
        match self {
            Self::Welcome { credit, client } => {
                out.extend(VERSION.to_be_bytes());
                out.extend(credit.to_be_bytes());
                out.extend(client.to_be_bytes());
            }
            Self::Done => {}
            Self::Refused { request, .. } => out.extend(request.to_be_bytes()),
            Self::Credit(bytes) => out.extend(bytes.to_be_bytes()),
            Self::Synced { token, stamps } => {
                out.extend(token.to_be_bytes());
                for stamp in [
                    stamps.parsed,
                    stamps.stored,
                    stamps.rendered,
                    stamps.presented,
                ] {
                    out.extend(stamp.to_be_bytes());
                }
            }
            Self::Input {
                window,
                input,
                dropped,
                hits,
            } => {
                out.extend(window.to_be_bytes());
                out.extend(input.value().to_be_bytes());
                out.extend(dropped.to_be_bytes());
                for (symbol, item) in hits {
                    out.extend(symbol.to_be_bytes());
                    out.extend(item.to_be_bytes());
                }
            }
        }
        close(out, begin);
    }

    /// Decodes the first answer in `bytes`: the answer and its length in bytes. `None` if it is incomplete.
    ///
    /// # Errors
    /// [`MalformedDisplayMessage`] if the bytes are not an answer.
    pub fn take(bytes: &[u8]) -> Result<Option<(Self, usize)>, MalformedDisplayMessage> {
        let Some(message) = first_message(bytes)? else {
            return Ok(None);
        };
        let answer = answer(message[0], message[1], &message[HEAD_BYTES..])?;
        Ok(Some((answer, message.len())))
    }
}

fn answer(operation: u8, kind: u8, body: &[u8]) -> Result<DisplayAnswer, MalformedDisplayMessage> {
    let wrong = MalformedDisplayMessage::Form(operation);
    let long = |at: usize| {
        let bytes = body.get(at..at + 4).ok_or(wrong)?;
        bytes.try_into().map(u32::from_be_bytes).map_err(|_| wrong)
    };
    let stamp = |at: usize| {
        let bytes = body.get(at..at + 8).ok_or(wrong)?;
        bytes.try_into().map(u64::from_be_bytes).map_err(|_| wrong)
    };
    Ok(match operation {
        // The version is looked at first: it decides what the rest means.
        65 => match body {
            [high, low, ..] if u16::from_be_bytes([*high, *low]) != VERSION => {
                return Err(MalformedDisplayMessage::Version(u16::from_be_bytes([
                    *high, *low,
                ])));
            }
            _ => DisplayAnswer::Welcome {
                credit: long(2)?,
                client: stamp(6)?,
            },
        },
        66 => DisplayAnswer::Done,
        67 => DisplayAnswer::Refused {
            request: long(0)?,
            why: kind,
        },
        68 => DisplayAnswer::Credit(long(0)?),
        69 => {
            let stamps = Stamps {
                parsed: stamp(4)?,
                stored: stamp(12)?,
                rendered: stamp(20)?,
                presented: stamp(28)?,
            };
            DisplayAnswer::Synced {
                token: long(0)?,
                stamps,
            }
        }
        70 => {
            let hits = body.get(12..).ok_or(wrong)?.chunks_exact(8);
            let hit = |eight: &[u8]| {
                let long = |at: usize| {
                    u32::from_be_bytes([eight[at], eight[at + 1], eight[at + 2], eight[at + 3]])
                };
                (long(0), long(4))
            };
            DisplayAnswer::Input {
                window: long(0)?,
                input: DisplayInput::from_number(kind, long(4)?).ok_or(wrong)?,
                dropped: long(8)?,
                hits: hits.map(hit).collect(),
            }
        }
        other => return Err(MalformedDisplayMessage::Operation(other)),
    })
}

impl DisplayInput {
    const fn number(self) -> u8 {
        match self {
            Self::Key(_) => 1,
            Self::Move(..) => 2,
            Self::Press(..) => 3,
            Self::Release(..) => 4,
        }
    }

    const fn value(self) -> u32 {
        match self {
            Self::Key(key) => key,
            Self::Move(x, y) | Self::Press(x, y) | Self::Release(x, y) => {
                // By way of 16 bits: a sign must not run into the other half.
                (x as u16 as u32) << 16 | y as u16 as u32
            }
        }
    }

    fn from_number(number: u8, value: u32) -> Option<Self> {
        let (x, y) = ((value >> 16) as u16 as i16, value as u16 as i16);
        Some(match number {
            1 => Self::Key(value),
            2 => Self::Move(x, y),
            3 => Self::Press(x, y),
            4 => Self::Release(x, y),
            _ => return None,
        })
    }

    /// Where the pointer is; `None` for a key.
    #[must_use]
    pub const fn place(self) -> Option<(i16, i16)> {
        match self {
            Self::Key(_) => None,
            Self::Move(x, y) | Self::Press(x, y) | Self::Release(x, y) => Some((x, y)),
        }
    }
}

#[cfg(test)]
mod tests;
