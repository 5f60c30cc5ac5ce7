//! The data of a block in parts: before each its length; one of length 0 says that the rest is not sent, since a newer list
//! superseded the block. So what is unwanted ends with the part that is under way.

use super::codec::MalformedBlockMessage;

/// Bytes before a part.
pub const PART: usize = 4;
/// What stands in place of the rest of a block that is not sent.
pub const CUT: [u8; PART] = [0; PART];

/// What precedes a part of so many bytes.
#[must_use]
pub const fn encode_part_length(length: u32) -> [u8; PART] {
    length.to_be_bytes()
}

/// Length of a part of a block of which so many bytes are left; `None`: they are not sent.
///
/// # Errors
/// [`MalformedBlockMessage`] where it is longer than that.
pub const fn parse_part_length(
    before: [u8; PART],
    left: usize,
) -> Result<Option<usize>, MalformedBlockMessage> {
    match u32::from_be_bytes(before) as usize {
        0 => Ok(None),
        length if length <= left => Ok(Some(length)),
        _ => Err(MalformedBlockMessage::Field("part")),
    }
}
