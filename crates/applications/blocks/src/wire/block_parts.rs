//! The data of a block in parts. Each part is preceded by its length (4 bytes). A length of 0 says that the rest of the block is not sent
//! because a newer list superseded it, so an unwanted block ends with the part that is under way.

use super::codec::MalformedBlockMessage;

/// Bytes of the length before a part.
pub const PART: usize = 4;
/// The length 0, which stands in place of the rest of a block that is not sent.
pub const CUT: [u8; PART] = [0; PART];

/// Encodes the length of a part.
#[must_use]
pub const fn encode_part_length(length: u32) -> [u8; PART] {
    length.to_be_bytes()
}

/// Decodes the length of a part; `left` is how many bytes of the block are still to come. `None`: they are not sent.
///
/// # Errors
/// [`MalformedBlockMessage`] if the part is longer than what is left.
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
