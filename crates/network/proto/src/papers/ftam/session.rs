//! Session (ISO 8327): the kernel and duplex data, version 2. Tokens, synchronisation and segmenting are not used.

use super::osi_error::{OsiError, OsiLayer};
use alloc::format;
use alloc::vec::Vec;

/// A DATA TRANSFER as it follows GIVE TOKENS in one TSDU, both without parameters: what goes before each P-DATA.
pub(super) const DATA_PREFIX: [u8; 4] = [1, 0, 1, 0];
/// The functional unit `duplex`, in session user requirements.
const DUPLEX: u16 = 2;
/// Version 2, in version numbers.
const VERSION_2: u8 = 2;
/// Most bytes of user data in a parameter of its own; more need the extended one.
const MOST_USER_DATA: usize = 512;

const CONNECT_ITEM: u8 = 5;
const TRANSPORT_DISCONNECT: u8 = 17;
const PROTOCOL_OPTIONS: u8 = 19;
const REQUIREMENTS: u8 = 20;
const VERSION: u8 = 22;
const REASON: u8 = 50;
const USER_DATA: u8 = 193;
const EXTENDED_USER_DATA: u8 = 194;

const fn malformed(what: &'static str) -> OsiError {
    OsiError::malformed(OsiLayer::Session, what)
}

/// What a session PDU does. Their numbers are the identifiers of ISO 8327.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SpduKind {
    /// DATA TRANSFER, behind GIVE TOKENS.
    Data = 1,
    /// FINISH: the initiator releases the connection.
    Finish = 9,
    /// DISCONNECT: the answer.
    Disconnect = 10,
    /// REFUSE: the answer to a CONNECT that is not accepted.
    Refuse = 12,
    /// CONNECT.
    Connect = 13,
    /// ACCEPT.
    Accept = 14,
    /// ABORT.
    Abort = 25,
}

impl SpduKind {
    fn from_identifier(identifier: u8) -> Option<Self> {
        [
            Self::Data,
            Self::Finish,
            Self::Disconnect,
            Self::Refuse,
            Self::Connect,
            Self::Accept,
            Self::Abort,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == identifier)
    }
}

/// A session PDU and what its user says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spdu<'a> {
    /// What it does.
    pub kind: SpduKind,
    /// The presentation PDU in it.
    pub user_data: &'a [u8],
    /// Why a REFUSE refuses.
    pub reason: u8,
}

impl<'a> Spdu<'a> {
    /// One with a presentation PDU in it. A REFUSE is the user's.
    #[must_use]
    pub const fn new(kind: SpduKind, user_data: &'a [u8]) -> Self {
        let reason = if matches!(kind, SpduKind::Refuse) {
            2
        } else {
            0
        };
        Self {
            kind,
            user_data,
            reason,
        }
    }

    /// The PDU as a TSDU.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        if self.kind == SpduKind::Data {
            return [&DATA_PREFIX, self.user_data].concat();
        }
        let mut parameters = Vec::new();
        let mut put = |parameter: u8, value: &[u8]| {
            parameters.push(parameter);
            write_length(value.len(), &mut parameters);
            parameters.extend_from_slice(value);
        };
        match self.kind {
            SpduKind::Connect | SpduKind::Accept => {
                put(
                    CONNECT_ITEM,
                    &[PROTOCOL_OPTIONS, 1, 0, VERSION, 1, VERSION_2],
                );
                put(REQUIREMENTS, &DUPLEX.to_be_bytes());
            }
            // The transport connection goes too.
            SpduKind::Refuse => put(TRANSPORT_DISCONNECT, &[1]),
            // And the user wants it.
            SpduKind::Abort => put(TRANSPORT_DISCONNECT, &[3]),
            _ => {}
        }
        match self.kind {
            SpduKind::Refuse => put(REASON, &[&[self.reason], self.user_data].concat()),
            _ if self.user_data.len() > MOST_USER_DATA => put(EXTENDED_USER_DATA, self.user_data),
            _ => put(USER_DATA, self.user_data),
        }
        let mut out = Vec::with_capacity(parameters.len() + 4);
        out.push(self.kind as u8);
        write_length(parameters.len(), &mut out);
        out.extend_from_slice(&parameters);
        out
    }

    /// Reads a TSDU.
    ///
    /// # Errors
    /// An [`OsiError`] if it is none that this end expects ever.
    pub fn read(tsdu: &'a [u8]) -> Result<Self, OsiError> {
        if let Some(user_data) = tsdu.strip_prefix(&DATA_PREFIX) {
            return Ok(Self::new(SpduKind::Data, user_data));
        }
        let mut rest = tsdu;
        let (identifier, parameters) = take_parameter(&mut rest)?;
        let kind = SpduKind::from_identifier(identifier)
            .filter(|kind| *kind != SpduKind::Data && rest.is_empty())
            .ok_or(malformed("an unknown SPDU"))?;
        let mut spdu = Self {
            reason: 0,
            ..Self::new(kind, &[])
        };
        let (mut version, mut requirements) = (0, 0);
        let mut rest = parameters;
        while !rest.is_empty() {
            match take_parameter(&mut rest)? {
                (CONNECT_ITEM, mut item) => {
                    while !item.is_empty() {
                        if let (VERSION, [number]) = take_parameter(&mut item)? {
                            version = *number;
                        }
                    }
                }
                (REQUIREMENTS, [high, low]) => requirements = u16::from_be_bytes([*high, *low]),
                (REASON, [reason, data @ ..]) if kind == SpduKind::Refuse => {
                    (spdu.reason, spdu.user_data) = (*reason, data);
                }
                (USER_DATA | EXTENDED_USER_DATA, data) => spdu.user_data = data,
                _ => {}
            }
        }
        if matches!(kind, SpduKind::Connect | SpduKind::Accept) {
            if version & VERSION_2 == 0 {
                return Err(malformed("the peer has not version 2"));
            }
            if requirements & DUPLEX == 0 {
                return Err(malformed("the peer cannot send in both directions"));
            }
        }
        Ok(spdu)
    }

    /// The error of a REFUSE whose user says no more.
    pub(super) fn refusal(&self) -> OsiError {
        let why = match self.reason {
            0 | 2 => "its user refuses the connection",
            1 => "its user is congested",
            129 => "the session selector is unknown",
            130 => "nothing is attached to the session selector",
            131 => "it is congested",
            132 => "it has no version that both have",
            _ => "it refuses the connection",
        };
        OsiError::Refused {
            layer: OsiLayer::Session,
            reason: format!("{why} (reason {})", self.reason),
        }
    }
}

/// The length of a parameter or PDU: one byte, or three from 255 on.
fn write_length(length: usize, out: &mut Vec<u8>) {
    if length < 255 {
        out.push(length as u8);
    } else {
        out.push(255);
        out.extend_from_slice(&(length as u16).to_be_bytes());
    }
}

/// Takes an identifier, a length and so many bytes.
fn take_parameter<'a>(rest: &mut &'a [u8]) -> Result<(u8, &'a [u8]), OsiError> {
    let (identifier, length, behind) = match *rest {
        [identifier, 255, high, low, behind @ ..] => {
            (*identifier, u16::from_be_bytes([*high, *low]), behind)
        }
        [identifier, length, behind @ ..] if *length != 255 => {
            (*identifier, u16::from(*length), behind)
        }
        _ => return Err(malformed("a parameter is cut short")),
    };
    let length = usize::from(length);
    let value = behind
        .get(..length)
        .ok_or(malformed("a parameter is longer than its SPDU"))?;
    *rest = &behind[length..];
    Ok((identifier, value))
}
