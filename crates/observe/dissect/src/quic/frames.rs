//! Reads the frames in a decrypted packet (RFC 9000, section 19; RFC 9221). Frames that do not concern the handshake, a stream or the end
//! of the connection are skipped.

use super::packet_header::LONGEST_ID;
use crate::conversation::varint;

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuicFrame<'b> {
    /// Handshake bytes, from an offset on.
    Crypto(u64, &'b [u8]),
    /// Bytes of a stream.
    Stream(StreamPiece<'b>),
    /// The sender resets a stream.
    Reset(u64),
    /// The sender closes the connection, with an error code of QUIC or of the application protocol.
    Close { code: u64, is_application: bool },
    /// The sender accepts packets to another connection id.
    NewId(&'b [u8]),
    /// Any other frame.
    Other,
}

/// Bytes of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamPiece<'b> {
    /// The stream's id.
    pub(super) stream: u64,
    /// The offset of the first byte.
    pub(super) offset: u64,
    pub(super) bytes: &'b [u8],
    /// Whether they are the last bytes of the stream.
    pub(super) is_last: bool,
}

/// Takes the next frame off the payload; `None` if nothing more can be read.
pub(super) fn next_frame<'b>(payload: &mut &'b [u8]) -> Option<QuicFrame<'b>> {
    match varint::take(payload)? {
        0x00 => {
            // Padding frames come in rows: all are skipped.
            let behind = payload.iter().position(|byte| *byte != 0);
            *payload = &payload[behind.unwrap_or(payload.len())..];
            Some(QuicFrame::Other)
        }
        0x01 | 0x1e => Some(QuicFrame::Other),
        kind @ (0x02 | 0x03) => acknowledgement(payload, kind == 0x03),
        0x04 => {
            let stream = varint::take(payload)?;
            numbers(payload, 2)?;
            Some(QuicFrame::Reset(stream))
        }
        0x06 => Some(QuicFrame::Crypto(varint::take(payload)?, vector(payload)?)),
        0x07 => vector(payload).map(|_| QuicFrame::Other),
        kind @ 0x08..=0x0f => stream(payload, kind),
        0x10 | 0x12..=0x14 | 0x16 | 0x17 | 0x19 => numbers(payload, 1),
        // STOP_SENDING is skipped: its receiver resets the stream itself.
        0x05 | 0x11 | 0x15 => numbers(payload, 2),
        0x18 => {
            numbers(payload, 2)?;
            let length = usize::from(*take(payload, 1)?.first()?);
            let id = take(payload, length).filter(|id| (1..=LONGEST_ID).contains(&id.len()))?;
            // The stateless reset token.
            take(payload, 16)?;
            Some(QuicFrame::NewId(id))
        }
        0x1a | 0x1b => take(payload, 8).map(|_| QuicFrame::Other),
        kind @ (0x1c | 0x1d) => {
            let (code, is_application) = (varint::take(payload)?, kind == 0x1d);
            if !is_application {
                numbers(payload, 1)?;
            }
            // If the reason phrase is cut off, the code is enough.
            let _ = vector(payload);
            Some(QuicFrame::Close {
                code,
                is_application,
            })
        }
        0x30 => {
            // Without a length a datagram reaches to the end of the packet (RFC 9221, section 4).
            *payload = &[];
            Some(QuicFrame::Other)
        }
        0x31 => vector(payload).map(|_| QuicFrame::Other),
        _ => None,
    }
}

/// An ACK frame; `with_marks` says whether it has ECN counts.
fn acknowledgement<'b>(payload: &mut &'b [u8], with_marks: bool) -> Option<QuicFrame<'b>> {
    numbers(payload, 2)?;
    let ranges = varint::take(payload)?;
    // A range takes at least two bytes.
    if ranges > payload.len() as u64 {
        return None;
    }
    numbers(payload, 1 + 2 * ranges + if with_marks { 3 } else { 0 })
}

/// A STREAM frame.
fn stream<'b>(payload: &mut &'b [u8], kind: u64) -> Option<QuicFrame<'b>> {
    let stream = varint::take(payload)?;
    let offset = if kind & 4 != 0 {
        varint::take(payload)?
    } else {
        0
    };
    let bytes = match kind & 2 {
        // Without a length it reaches to the end of the packet (RFC 9000, section 19.8).
        0 => std::mem::take(payload),
        _ => vector(payload)?,
    };
    // Offsets must be below 2^62 (RFC 9000, 19.8).
    let is_within = offset.checked_add(bytes.len() as u64)? < 1 << 62;
    let is_last = kind & 1 != 0;
    is_within.then_some(QuicFrame::Stream(StreamPiece {
        stream,
        offset,
        bytes,
        is_last,
    }))
}

/// Skips a frame that has this many integers.
fn numbers<'b>(payload: &mut &'b [u8], count: u64) -> Option<QuicFrame<'b>> {
    for _ in 0..count {
        varint::take(payload)?;
    }
    Some(QuicFrame::Other)
}

/// Bytes that follow their length.
fn vector<'b>(payload: &mut &'b [u8]) -> Option<&'b [u8]> {
    let length = usize::try_from(varint::take(payload)?).ok()?;
    take(payload, length)
}

fn take<'b>(payload: &mut &'b [u8], count: usize) -> Option<&'b [u8]> {
    let (taken, behind) = payload.split_at_checked(count)?;
    *payload = behind;
    Some(taken)
}
