//! gRPC over HTTP/2: messages of Protocol Buffers with a length before each, and a status in the trailers
//! (<https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>).
//!
//! A data unit is a message with one field: `message Unit { bytes payload = 1; }`.

use crate::error::{Error, Result};
use bytes::{BufMut, Bytes, BytesMut};
use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};

/// `content-type` of requests and responses.
pub(crate) const CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/grpc");
const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
/// The key of field 1 with a length before its value.
const PAYLOAD: u8 = 0x0a;
/// Length of what precedes a message: a flag and its length.
const PREFIX: usize = 5;

/// The trailers of an answer that is right.
pub(super) fn status_ok() -> HeaderMap {
    HeaderMap::from_iter([(STATUS, HeaderValue::from_static("0"))])
}

/// Checks the status in the trailers.
pub(super) fn check_status(trailers: Option<&HeaderMap>) -> Result<()> {
    let status = trailers.and_then(|trailers| trailers.get(STATUS));
    let Some(status) = status else {
        return Err(Error::measurement(
            "the peer ended an answer without a gRPC status",
        ));
    };
    if status == "0" {
        return Ok(());
    }
    let why = trailers.and_then(|trailers| trailers.get(MESSAGE));
    let why = why.map_or(String::new(), |why| {
        format!(": {}", why.to_str().unwrap_or(""))
    });
    let status = status.to_str().unwrap_or("?");
    Err(Error::measurement(format!(
        "the peer answered with the gRPC status {status}{why}"
    )))
}

/// The message of a data unit: what precedes the unit, and the unit.
pub(crate) fn message(unit: Bytes) -> Vec<Bytes> {
    let mut head = BytesMut::with_capacity(PREFIX + 6);
    if unit.is_empty() {
        head.put_bytes(0, PREFIX);
        return vec![head.freeze()];
    }
    let mut varint = Vec::with_capacity(5);
    let mut left = unit.len();
    while left >= 0x80 {
        varint.push(left as u8 | 0x80);
        left >>= 7;
    }
    varint.push(left as u8);
    head.put_u8(0);
    head.put_u32((1 + varint.len() + unit.len()) as u32);
    head.put_u8(PAYLOAD);
    head.put_slice(&varint);
    vec![head.freeze(), unit]
}

/// Takes data units out of messages that arrive in pieces.
#[derive(Debug, Default)]
pub(super) struct GrpcMessages {
    state: MessagePart,
    /// Bytes of the message that have not come.
    left: u64,
}

/// What of a message comes next.
#[derive(Debug)]
enum MessagePart {
    /// The flag and the length: the bytes of them that have come.
    Prefix { have: u8, length: u32 },
    /// The key of the field.
    Key,
    /// The length of the field.
    Length { value: u64, shift: u32 },
    /// The value of the field.
    Payload,
}

impl Default for MessagePart {
    fn default() -> Self {
        Self::Prefix { have: 0, length: 0 }
    }
}

impl GrpcMessages {
    /// Takes the next bytes, and gives what of them is in data units to `store`.
    ///
    /// # Errors
    /// When they are not messages as [`message`] makes them.
    pub(super) fn take_units(
        &mut self,
        mut bytes: &[u8],
        mut store: impl FnMut(&[u8]),
    ) -> Result<()> {
        while let Some((&first, rest)) = bytes.split_first() {
            match &mut self.state {
                MessagePart::Prefix { have: 0, .. } if first != 0 => {
                    return Err(malformed("a compressed message"));
                }
                MessagePart::Prefix { have, length } => {
                    *length = *length << 8 | u32::from(first);
                    *have += 1;
                    bytes = rest;
                    if usize::from(*have) == PREFIX {
                        self.left = u64::from(*length);
                        self.go_on(MessagePart::Key);
                    }
                    continue;
                }
                MessagePart::Key if first != PAYLOAD => {
                    return Err(malformed("a field that is not its payload"));
                }
                MessagePart::Key => {
                    self.state = MessagePart::Length { value: 0, shift: 0 };
                }
                MessagePart::Length { value, shift } => {
                    *value |= u64::from(first & 0x7f) << *shift;
                    *shift += 7;
                    let (value, is_last) = (*value, first < 0x80);
                    if *shift > 35 || is_last && value != self.left - 1 {
                        return Err(malformed("a length that is not its message's"));
                    }
                    if is_last {
                        self.state = MessagePart::Payload;
                    }
                }
                MessagePart::Payload => {
                    let here = bytes
                        .len()
                        .min(usize::try_from(self.left).unwrap_or(usize::MAX));
                    store(&bytes[..here]);
                    bytes = &bytes[here..];
                    self.left -= here as u64;
                    self.go_on(MessagePart::Payload);
                    continue;
                }
            }
            // A byte of the head of the message's field.
            bytes = rest;
            self.left -= 1;
            if self.left == 0 && !matches!(self.state, MessagePart::Payload) {
                return Err(malformed("a message that ends within its field"));
            }
            if self.left == 0 {
                self.state = MessagePart::default();
            }
        }
        Ok(())
    }

    /// Goes on with `part`, or with the next message if nothing of this one is left.
    fn go_on(&mut self, part: MessagePart) {
        self.state = if self.left == 0 {
            MessagePart::default()
        } else {
            part
        };
    }
}

fn malformed(what: &str) -> Error {
    Error::measurement(format!("the peer sent {what} over gRPC"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The units in messages that arrive in pieces of so many bytes.
    fn taken(bytes: &[u8], pieces: usize) -> Result<Vec<u8>> {
        let mut messages = GrpcMessages::default();
        let mut units = Vec::new();
        for piece in bytes.chunks(pieces) {
            messages.take_units(piece, |unit| units.extend_from_slice(unit))?;
        }
        Ok(units)
    }

    #[test]
    fn units_are_taken_out_of_messages_however_they_are_cut() {
        let units = [1, 127, 128, 300, 20_000, 0].map(|bytes| vec![bytes as u8; bytes]);
        let sent = units
            .iter()
            .flat_map(|unit| message(Bytes::copy_from_slice(unit)))
            .collect::<Vec<_>>()
            .concat();
        for pieces in [1, 2, 3, 5, 7, 64, 1000, sent.len()] {
            assert!(taken(&sent, pieces).unwrap() == units.concat(), "{pieces}");
        }
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for (bytes, why) in [
            (&[1, 0, 0, 0, 0][..], "a compressed message"),
            (&[0, 0, 0, 0, 2, 8, 1], "a field that is not its payload"),
            (&[0, 0, 0, 0, 1, 10], "a message that ends within its field"),
            (
                &[0, 0, 0, 0, 3, 10, 2, 7],
                "a length that is not its message's",
            ),
            (
                &[0, 0, 0, 0, 3, 10, 0x80, 0x80],
                "a message that ends within its field",
            ),
            (
                &[0, 0, 0, 1, 0, 10, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80],
                "a length that is not its message's",
            ),
        ] {
            let refused = taken(bytes, 1).unwrap_err().to_string();
            assert!(refused.contains(why), "{bytes:?}: {refused}");
        }
    }

    #[test]
    fn a_status_other_than_ok_is_an_error_with_its_message() {
        assert!(check_status(Some(&status_ok())).is_ok());
        assert!(check_status(None).is_err());
        let busy = HeaderMap::from_iter([
            (STATUS, HeaderValue::from_static("8")),
            (MESSAGE, HeaderValue::from_static("too much")),
        ]);
        let refused = check_status(Some(&busy)).unwrap_err().to_string();
        assert!(refused.contains("status 8: too much"), "{refused}");
    }
}
