//! What arrives on an open transport connection, as its bytes come: pieces of data units, which stay with the caller, and messages.

use super::cotp::{TpduSize, TpduStream};
use super::data_unit::{MOST_UNIT_HEAD, UnitHead, read_unit_head};
use super::message::FtamMessage;
use super::osi_error::{OsiError, OsiLayer};
use alloc::vec::Vec;

/// Most bytes of a message, all layers included.
pub const MOST_MESSAGE: usize = 8 << 10;

/// What [`FtamReceiver::take`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FtamReceived {
    /// More bytes have to arrive first.
    Nothing,
    /// Bytes of a data unit: the last `bytes` of those that were taken.
    Data {
        /// How many.
        bytes: usize,
        /// How many bytes of the unit are still to come.
        left: u64,
    },
    /// A whole message: [`FtamReceiver::message`] reads it.
    Message,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TsduPart {
    /// Its beginning, which says what it is.
    Head,
    /// A message.
    Message,
    /// The bytes of a data unit; so many are to come.
    Unit(u64),
}

/// Takes what arrives apart.
#[derive(Clone, Debug)]
pub struct FtamReceiver {
    tpdus: TpduStream,
    part: TsduPart,
    /// The head of a data unit, or the message that arrives or arrived last.
    message: Vec<u8>,
    /// Whether the message is complete, and the next one begins anew.
    complete: bool,
}

impl FtamReceiver {
    /// At the beginning of a TSDU.
    #[must_use]
    pub const fn new(size: TpduSize) -> Self {
        Self {
            tpdus: TpduStream::new(size),
            part: TsduPart::Head,
            message: Vec::new(),
            complete: false,
        }
    }

    /// Takes the next bytes. Returns how many, and what was found in them: then the rest is for the next call.
    ///
    /// # Errors
    /// An [`OsiError`] if a layer does not allow them, or a message is too long.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(usize, FtamReceived), OsiError> {
        let mut taken = 0;
        loop {
            let most = match self.part {
                TsduPart::Head => MOST_UNIT_HEAD,
                TsduPart::Message => MOST_MESSAGE,
                TsduPart::Unit(_) => usize::MAX,
            };
            let step = self.tpdus.step(&bytes[taken..], most)?;
            if step.taken == 0 {
                return Ok((taken, FtamReceived::Nothing));
            }
            taken += step.taken;
            let data = &bytes[taken - step.data..taken];
            if let Some(received) = self.part_of_tsdu(data, step.ends)? {
                return Ok((taken, received));
            }
        }
    }

    fn part_of_tsdu(&mut self, data: &[u8], ends: bool) -> Result<Option<FtamReceived>, OsiError> {
        if let TsduPart::Unit(left) = self.part {
            return self.bytes_of_unit(data.len(), left, ends);
        }
        if self.complete {
            self.message.clear();
            self.complete = false;
        }
        if self.message.len() + data.len() > MOST_MESSAGE {
            let what = "a message is too long";
            return Err(OsiError::malformed(OsiLayer::Session, what));
        }
        self.message.extend_from_slice(data);
        if self.part == TsduPart::Head {
            match read_unit_head(&self.message)? {
                UnitHead::Unit { head, bytes } => {
                    // Without the last bytes it was not known to be a unit, so what is behind the head is among them.
                    let here = self.message.len() - head;
                    self.complete = true;
                    return self.bytes_of_unit(here, bytes, ends);
                }
                UnitHead::Other => self.part = TsduPart::Message,
                UnitHead::Partial => {}
            }
        }
        if !ends {
            return Ok(None);
        }
        self.part = TsduPart::Head;
        self.complete = true;
        Ok(Some(FtamReceived::Message))
    }

    /// So many bytes of a unit that had so many to come.
    fn bytes_of_unit(
        &mut self,
        here: usize,
        to_come: u64,
        ends: bool,
    ) -> Result<Option<FtamReceived>, OsiError> {
        let left = to_come
            .checked_sub(here as u64)
            .filter(|left| !ends || *left == 0);
        let Some(left) = left else {
            let what = "a data unit does not end with its TSDU";
            return Err(OsiError::malformed(OsiLayer::Presentation, what));
        };
        let was_complete = self.part == TsduPart::Unit(0);
        self.part = if ends {
            TsduPart::Head
        } else {
            TsduPart::Unit(left)
        };
        // An empty TPDU may end the TSDU of a unit that was complete before.
        let silent = was_complete || (here == 0 && left > 0);
        Ok((!silent).then_some(FtamReceived::Data { bytes: here, left }))
    }

    /// The message that was completed last.
    ///
    /// # Errors
    /// An [`OsiError`] if it is malformed, or the peer refuses or ends the connection with it.
    pub fn message(&self) -> Result<FtamMessage, OsiError> {
        FtamMessage::read(&self.message)
    }
}
