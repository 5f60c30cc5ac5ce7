//! What the layers above session need of BER (ISO 8825) beside `yasna`: tags, names, and lengths of what is not held in memory.

use super::osi_error::{OsiError, OsiLayer};
use alloc::string::String;
use alloc::vec::Vec;
use yasna::models::ObjectIdentifier;
use yasna::{
    ASN1Error, ASN1ErrorKind, ASN1Result, BERReader, BERReaderSeq, DERWriter, Tag, TagClass,
};

/// Most bytes of a text that is kept: a file's name, the details of a diagnostic.
const MOST_TEXT: usize = 255;

/// The transfer syntax of all contexts: Basic Encoding Rules of ASN.1.
pub(super) const BASIC_ENCODING: &[u64] = &[2, 1, 1];

/// `[n]`.
pub(super) fn context(number: u64) -> Tag {
    Tag::context(number)
}

/// `[APPLICATION n]`.
pub(super) fn application(number: u64) -> Tag {
    Tag::application(number)
}

const GRAPHIC_STRING: Tag = Tag {
    tag_class: TagClass::Universal,
    tag_number: 25,
};

/// The error of a value that its type does not allow.
pub(super) fn invalid() -> ASN1Error {
    ASN1Error::new(ASN1ErrorKind::Invalid)
}

/// The error of a layer whose PDU could not be read.
pub(super) fn misread(layer: OsiLayer) -> impl Fn(ASN1Error) -> OsiError {
    move |error| {
        let what = match error.kind() {
            ASN1ErrorKind::Eof => "a PDU is cut short",
            ASN1ErrorKind::Extra => "a PDU has more than its type allows",
            ASN1ErrorKind::IntegerOverflow => "a number of a PDU is too large",
            ASN1ErrorKind::StackOverflow => "a PDU is nested too deeply",
            ASN1ErrorKind::Invalid => "a PDU has not the form that its type asks for",
        };
        OsiError::malformed(layer, what)
    }
}

pub(super) fn write_name(writer: DERWriter<'_>, name: &[u64]) {
    writer.write_oid(&ObjectIdentifier::from_slice(name));
}

/// Reads an object identifier, which has to be this one.
pub(super) fn read_name(reader: BERReader<'_, '_>, name: &[u64]) -> ASN1Result<()> {
    let read = reader.read_oid()?;
    if read.components() == name {
        Ok(())
    } else {
        Err(invalid())
    }
}

/// A GraphicString, which is one of this type unless the writer has an implicit tag.
pub(super) fn write_text(writer: DERWriter<'_>, text: &str) {
    writer.write_tagged_implicit(GRAPHIC_STRING, |writer| writer.write_bytes(text.as_bytes()));
}

/// Reads a GraphicString; what cannot be shown is replaced, and what is too long is cut.
pub(super) fn read_text(reader: BERReader<'_, '_>) -> ASN1Result<String> {
    let bytes = reader.read_tagged_implicit(GRAPHIC_STRING, |reader| reader.read_bytes())?;
    let kept = bytes.iter().take(MOST_TEXT);
    let shown = |byte: &u8| match byte {
        b' '..=b'~' => char::from(*byte),
        _ => '?',
    };
    Ok(kept.map(shown).collect())
}

/// A BIT STRING of up to 16 named bits; bit 0 is the highest.
pub(super) fn write_bits(writer: DERWriter<'_>, bits: u16) {
    let length = 16 - bits.trailing_zeros().min(16) as usize;
    writer.write_bitvec_bytes(&bits.to_be_bytes()[..length.div_ceil(8)], length);
}

/// Reads a BIT STRING; bits beyond the 16th are of later versions, and left out.
pub(super) fn read_bits(reader: BERReader<'_, '_>) -> ASN1Result<u16> {
    let (bytes, _) = reader.read_bitvec_bytes()?;
    let byte = |index: usize| bytes.get(index).copied().unwrap_or(0);
    Ok(u16::from_be_bytes([byte(0), byte(1)]))
}

/// Reads an INTEGER with an implicit tag; without it, `default`.
pub(super) fn read_number(
    sequence: &mut BERReaderSeq<'_, '_>,
    tag: Tag,
    default: u32,
) -> ASN1Result<u32> {
    let read = sequence
        .read_optional(|reader| reader.read_tagged_implicit(tag, |reader| reader.read_u32()))?;
    Ok(read.unwrap_or(default))
}

/// Appends the length of a value, definite.
pub(super) fn write_length(length: usize, out: &mut Vec<u8>) {
    match u8::try_from(length) {
        Ok(short @ 0..128) => out.push(short),
        _ => {
            let bytes = length.to_be_bytes();
            let from = bytes.iter().take_while(|byte| **byte == 0).count();
            out.push(0x80 | (bytes.len() - from) as u8);
            out.extend_from_slice(&bytes[from..]);
        }
    }
}

/// How many bytes [`write_length`] appends.
pub(super) const fn length_bytes(length: usize) -> usize {
    if length < 128 {
        1
    } else {
        1 + (usize::BITS - length.leading_zeros()).div_ceil(8) as usize
    }
}

/// A length that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadLength {
    /// The length, and how many bytes it takes itself.
    Definite { length: usize, bytes: usize },
    /// Bytes are missing.
    Partial,
    /// It is indefinite, or longer than 4 bytes.
    Other,
}

/// Reads the length at the beginning of these bytes.
pub(super) fn read_length(bytes: &[u8]) -> ReadLength {
    let Some(first) = bytes.first() else {
        return ReadLength::Partial;
    };
    let count = usize::from(first & 0x7F);
    if first & 0x80 == 0 {
        return ReadLength::Definite {
            length: count,
            bytes: 1,
        };
    }
    if count == 0 || count > 4 {
        return ReadLength::Other;
    }
    bytes
        .get(1..=count)
        .map_or(ReadLength::Partial, |bytes| ReadLength::Definite {
            length: bytes
                .iter()
                .fold(0, |length, byte| length << 8 | usize::from(*byte)),
            bytes: 1 + count,
        })
}
