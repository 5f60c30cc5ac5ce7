//! Encoding and decoding of numbers, texts and lists in network byte order. The bytes may come from anybody, so decoding never allocates
//! more than the bytes at hand can fill.

use crate::limits::LONGEST_TEXT;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// Why bytes cannot be decoded as a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MalformedBlockMessage {
    /// The bytes end before the message does.
    Short,
    /// Bytes are left over after the message.
    Long,
    /// There is no message of that kind.
    Kind(u8),
    /// The field of that name has an invalid value.
    Field(&'static str),
}

impl fmt::Display for MalformedBlockMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short => f.write_str("a message is truncated"),
            Self::Long => f.write_str("a message has extra bytes at its end"),
            Self::Kind(kind) => write!(f, "unknown message kind {kind}"),
            Self::Field(name) => write!(f, "the field {name} is out of range"),
        }
    }
}

/// A position in bytes that are being decoded.
#[derive(Clone, Copy, Debug)]
pub struct BlockWireReader<'b> {
    rest: &'b [u8],
}

impl<'b> BlockWireReader<'b> {
    /// A reader at the beginning of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Takes the next `count` bytes.
    ///
    /// # Errors
    /// [`MalformedBlockMessage::Short`] if there are fewer.
    pub fn bytes(&mut self, count: usize) -> Result<&'b [u8], MalformedBlockMessage> {
        let (taken, rest) = self
            .rest
            .split_at_checked(count)
            .ok_or(MalformedBlockMessage::Short)?;
        self.rest = rest;
        Ok(taken)
    }

    /// The number of bytes that are left.
    #[must_use]
    pub const fn left(&self) -> usize {
        self.rest.len()
    }

    /// Checks that no bytes are left.
    ///
    /// # Errors
    /// [`MalformedBlockMessage::Long`] if some are.
    pub const fn end(&self) -> Result<(), MalformedBlockMessage> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(MalformedBlockMessage::Long)
        }
    }
}

/// A type with an encoding in messages.
pub trait BlockWireField: Sized {
    /// The fewest bytes that a value takes: it bounds how many values a list can announce.
    const LEAST: usize;
    /// Appends the encoded value.
    fn put(&self, to: &mut Vec<u8>);
    /// Decodes a value.
    ///
    /// # Errors
    /// [`MalformedBlockMessage`] if the bytes are not one.
    fn take(from: &mut BlockWireReader<'_>) -> Result<Self, MalformedBlockMessage>;
}

macro_rules! numbers {
    ($($kind:ty),*) => { $(
        impl BlockWireField for $kind {
            const LEAST: usize = size_of::<Self>();
            fn put(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_be_bytes());
            }
            fn take(from: &mut BlockWireReader<'_>) -> Result<Self, MalformedBlockMessage> {
                let bytes = from.bytes(size_of::<Self>())?;
                Ok(Self::from_be_bytes(bytes.try_into().map_err(|_| MalformedBlockMessage::Short)?))
            }
        }
    )* };
}

numbers!(u8, u16, u32, u64, u128);

impl BlockWireField for bool {
    const LEAST: usize = 1;
    fn put(&self, to: &mut Vec<u8>) {
        u8::from(*self).put(to);
    }
    fn take(from: &mut BlockWireReader<'_>) -> Result<Self, MalformedBlockMessage> {
        match u8::take(from)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(MalformedBlockMessage::Field("flag")),
        }
    }
}

impl<const N: usize> BlockWireField for [u8; N] {
    const LEAST: usize = N;
    fn put(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(self);
    }
    fn take(from: &mut BlockWireReader<'_>) -> Result<Self, MalformedBlockMessage> {
        from.bytes(N)?
            .try_into()
            .map_err(|_| MalformedBlockMessage::Short)
    }
}

impl BlockWireField for String {
    const LEAST: usize = 2;
    /// A text longer than [`LONGEST_TEXT`] is cut after the last whole character that fits.
    fn put(&self, to: &mut Vec<u8>) {
        let mut length = self.len().min(LONGEST_TEXT);
        while !self.is_char_boundary(length) {
            length -= 1;
        }
        (length as u16).put(to);
        to.extend_from_slice(&self.as_bytes()[..length]);
    }
    fn take(from: &mut BlockWireReader<'_>) -> Result<Self, MalformedBlockMessage> {
        let length = usize::from(u16::take(from)?);
        if length > LONGEST_TEXT {
            return Err(MalformedBlockMessage::Field("text"));
        }
        let text = core::str::from_utf8(from.bytes(length)?)
            .map_err(|_| MalformedBlockMessage::Field("text"))?;
        Ok(Self::from(text))
    }
}

impl<T: BlockWireField> BlockWireField for Vec<T> {
    const LEAST: usize = 4;
    fn put(&self, to: &mut Vec<u8>) {
        (self.len() as u32).put(to);
        self.iter().for_each(|each| each.put(to));
    }
    fn take(from: &mut BlockWireReader<'_>) -> Result<Self, MalformedBlockMessage> {
        let count = u32::take(from)? as usize;
        if count > from.left() / T::LEAST.max(1) {
            return Err(MalformedBlockMessage::Short);
        }
        (0..count).map(|_| T::take(from)).collect()
    }
}

impl<T: BlockWireField> BlockWireField for Option<T> {
    const LEAST: usize = 1;
    fn put(&self, to: &mut Vec<u8>) {
        self.is_some().put(to);
        if let Some(inner) = self {
            inner.put(to);
        }
    }
    fn take(from: &mut BlockWireReader<'_>) -> Result<Self, MalformedBlockMessage> {
        Ok(if bool::take(from)? {
            Some(T::take(from)?)
        } else {
            None
        })
    }
}

/// Defines a struct whose fields are encoded one after the other, in the order of their declaration.
macro_rules! record {
    ($(#[$doc:meta])* pub struct $name:ident { $($(#[$field_doc:meta])* pub $field:ident: $kind:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name { $($(#[$field_doc])* pub $field: $kind,)* }

        impl $crate::wire::codec::BlockWireField for $name {
            const LEAST: usize = 0 $(+ <$kind as $crate::wire::codec::BlockWireField>::LEAST)*;
            fn put(&self, to: &mut alloc::vec::Vec<u8>) {
                $($crate::wire::codec::BlockWireField::put(&self.$field, to);)*
            }
            fn take(from: &mut $crate::wire::codec::BlockWireReader<'_>) -> Result<Self, $crate::wire::codec::MalformedBlockMessage> {
                Ok(Self { $($field: $crate::wire::codec::BlockWireField::take(from)?,)* })
            }
        }
    };
}
pub(crate) use record;
