//! The display's protocol (VGTP) as bytes: each message has a head of 4 bytes, then what its operation says. Numbers are big-endian.
//!
//! ```text
//! operation 1 (its highest bit: an answer is wanted) | kind, or stipple and kind 1 | length of all of it 2
//! ```
//! An `AddItem` of a vector or a rectangle has 20 bytes, as in the paper (section 8). Nothing is judged here but the form.

use crate::item::{DisplayItem, DisplayItemKind, WIRE_BYTES};

/// Bytes of a head.
pub const HEAD_BYTES: usize = 4;
/// Bytes of the longest secret that is said in a `Hello`.
pub const LONGEST_SECRET: usize = 255;
/// Bytes of the longest `Hello`.
pub const LONGEST_HELLO: usize = HEAD_BYTES + 6 + LONGEST_SECRET;
/// Bytes of an `AddItem` of an item that holds nothing.
pub const PLAIN_BYTES: usize = HEAD_BYTES + WIRE_BYTES;
/// Bytes of a message, at most.
pub const LONGEST: usize = u16::MAX as usize;
/// What a client says first, and the version that this is.
pub const MAGIC: [u8; 4] = *b"VGTP";
/// See `MAGIC`.
pub const VERSION: u16 = 2;
const ANSWER: u8 = 0x80;
/// The operation of a `Hello`.
const HELLO: u8 = 1;
/// The operation of an `AddItem`.
const ADD: u8 = 6;

/// What a client asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisplayRequest<'b> {
    /// The first message; the secret where the server wants one.
    Hello {
        /// The version that it speaks.
        version: u16,
        /// The secret, or nothing.
        token: &'b [u8],
    },
    /// A symbol is defined: items go to it until `EndSymbol`, and it is there then, or not at all.
    DefineSymbol(u32),
    /// A symbol that is there is open from now on: each item changes it at once.
    EditSymbol(u32),
    /// The symbol that is open is done.
    EndSymbol,
    /// A symbol goes.
    DeleteSymbol(u32),
    /// An item more, behind the others, with what it holds.
    AddItem(DisplayItem, &'b [u8]),
    /// Another item in the place of the one with its id.
    ChangeItem(DisplayItem, &'b [u8]),
    /// An item goes.
    DeleteItem(u32),
    /// A window, so wide and high, with a title.
    CreateWindow(u32, (u16, u16), &'b [u8]),
    /// A window shows a symbol, whose origin is there, in 256ths of its size.
    DisplayView(u32, u32, (i16, i16), u16),
    /// A window goes.
    CloseWindow(u32),
    /// What follows is seen all at once.
    BeginBatch,
    /// It is seen now.
    EndBatch,
    /// Everything before is to be drawn; the answer says when each step was done.
    Sync(u32),
}

/// What a server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DisplayAnswer {
    /// The client may send so many bytes.
    Welcome {
        /// Bytes after the first message.
        credit: u32,
        /// The number of the client, which names it in events.
        client: u64,
    },
    /// A request that wanted an answer is done.
    Done,
    /// A request was not done: its number since the first, and why. Also of those that wanted no answer.
    Refused {
        /// Counted from 1, the first after `Hello`.
        request: u32,
        /// Why.
        why: u8,
    },
    /// The client may send so many bytes more.
    Credit(u32),
    /// Everything before a `Sync` is drawn: when it was parsed, stored, drawn and shown, ns since the server began.
    Synced {
        /// What the client called it.
        token: u32,
        /// ns.
        stamps: Stamps,
    },
    /// A key or the pointer, in a window.
    Input {
        /// Which.
        window: u32,
        /// What happened.
        input: DisplayInput,
        /// Events before it that were dropped because the client did not read them.
        dropped: u32,
        /// Items there, the last drawn first: symbol and item.
        hits: Vec<(u32, u32)>,
    },
}

/// When a request had passed which step, ns since the server began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// Its bytes were there.
    pub parsed: u64,
    /// What was before it is in the display file.
    pub stored: u64,
    /// It is drawn.
    pub rendered: u64,
    /// It can be seen: whoever looks on has it, or could have.
    pub presented: u64,
}

/// What happened in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisplayInput {
    /// A key was pressed: its character.
    Key(u32),
    /// The pointer is there.
    Move(i16, i16),
    /// A button was pressed there.
    Press(i16, i16),
    /// It was let go.
    Release(i16, i16),
}

/// Why bytes are no messages: the connection has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MalformedDisplayMessage {
    /// A length below that of a head.
    Length,
    /// An operation that there is not.
    Operation(u8),
    /// A message of another length than its operation has.
    Form(u8),
    /// A `Hello` that does not begin as one.
    Magic,
    /// A `Welcome` of another version.
    Version(u16),
}

impl MalformedDisplayMessage {
    /// For people.
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

/// Puts a request behind others.
#[inline]
pub fn write_request(out: &mut Vec<u8>, request: &DisplayRequest<'_>, wants_answer: bool) {
    match request {
        // By far the most: all of it at once.
        DisplayRequest::AddItem(item, b"") => out.extend_from_slice(&plain(item, wants_answer)),
        _ => put_any(out, request, wants_answer),
    }
}

/// Puts requests that add items behind others, where all of them hold nothing: else nothing is put. No answer is wanted.
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

/// The message that adds an item that holds nothing.
#[inline]
fn plain(item: &DisplayItem, wants_answer: bool) -> [u8; PLAIN_BYTES] {
    let mut whole = [0; PLAIN_BYTES];
    let operation = ADD | if wants_answer { ANSWER } else { 0 };
    whole[..HEAD_BYTES].copy_from_slice(&[operation, kind_byte(item), 0, PLAIN_BYTES as u8]);
    whole[HEAD_BYTES..].copy_from_slice(&item.to_wire());
    whole
}

/// The item that a message adds, where it holds nothing, calls nothing and wants no answer: by far the most are so.
#[inline]
#[must_use]
pub fn take_plain(message: &[u8; PLAIN_BYTES]) -> Option<DisplayItem> {
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

/// Whether the first message, which is `Hello`, can begin so.
#[must_use]
pub const fn begins_hello(first: u8) -> bool {
    first & !ANSWER == HELLO
}

/// Bytes that a message has, as far as what is there of it says: its head's, or all of them.
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

fn close(out: &mut Vec<u8>, begin: usize) {
    out.truncate(begin + LONGEST);
    let length = ((out.len() - begin) as u16).to_be_bytes();
    if let Some(head) = out.get_mut(begin + 2..begin + 4) {
        head.copy_from_slice(&length);
    }
}

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

/// The first message of what came. None when not all of it is there.
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

/// The next request of what came: it, whether an answer is wanted, and its bytes. None when not all of it is there.
///
/// # Errors
/// When it is no message.
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
                DisplayItemKind::of(kind & 0xf).ok_or(wrong)?,
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
    /// Puts it behind others.
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

    /// The next answer of what came, and its bytes. None when not all of it is there.
    ///
    /// # Errors
    /// When it is none.
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
                input: DisplayInput::of(kind, long(4)?).ok_or(wrong)?,
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
                (x as u16 as u32) << 16 | y as u16 as u32
            }
        }
    }

    fn of(number: u8, value: u32) -> Option<Self> {
        let (x, y) = ((value >> 16) as u16 as i16, value as u16 as i16);
        Some(match number {
            1 => Self::Key(value),
            2 => Self::Move(x, y),
            3 => Self::Press(x, y),
            4 => Self::Release(x, y),
            _ => return None,
        })
    }

    /// Where the pointer is; none of a key.
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
