//! COTP class 0 (ISO 8073) in TPKTs (RFC 1006): connecting, the sizes of TPDUs, and what goes before each piece of a TSDU.

use super::osi_error::{OsiError, OsiLayer};
use alloc::format;
use alloc::vec::Vec;

/// Bytes of a TPKT's own: version, reserved, length.
pub(super) const TPKT_HEAD: usize = 4;
/// Bytes of a data TPDU before its data: length, code, end of TSDU.
pub(super) const DATA_HEAD: usize = 3;
/// Most bytes of a TPKT that is not data, so of one that opens or ends a connection.
const MOST_CONNECT: usize = 260;
/// Most bytes of a TSAP-ID (ISO 8073 leaves them to addressing; X.650 has 32).
const MOST_SELECTOR: usize = 32;
/// The last bit of a data TPDU's third byte: the TSDU ends here.
const END: u8 = 0x80;

const REQUEST: u8 = 0xE0;
const CONFIRM: u8 = 0xD0;
const DISCONNECT: u8 = 0x80;
const DATA: u8 = 0xF0;
const ERROR: u8 = 0x70;
const SIZE_PARAMETER: u8 = 0xC0;
const CALLING_PARAMETER: u8 = 0xC1;
const CALLED_PARAMETER: u8 = 0xC2;

const fn malformed(what: &'static str) -> OsiError {
    OsiError::malformed(OsiLayer::Transport, what)
}

/// The largest TPDU of a connection: 128 to 8192 bytes as class 0 codes them, or 65,531 as RFC 1006 has without a proposal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TpduSize {
    /// The code of the size, 7 to 13; `None` without a proposal.
    code: Option<u8>,
}

impl TpduSize {
    /// Bytes without a proposal: the largest TPKT, less its own head.
    pub const WITHOUT_PROPOSAL: usize = 65_531;
    /// The smallest that can be proposed, bytes.
    pub const LEAST: usize = 128;
    /// The largest that can be proposed, bytes.
    pub const MOST: usize = 8192;

    /// The largest size that can be proposed within so many bytes; without a number, none is proposed.
    #[must_use]
    pub fn within(bytes: Option<u64>) -> Self {
        let code = bytes.map(|bytes| {
            let bytes = bytes.clamp(Self::LEAST as u64, Self::MOST as u64);
            bytes.ilog2() as u8
        });
        Self { code }
    }

    fn from_code(code: u8) -> Option<Self> {
        (7..=13)
            .contains(&code)
            .then_some(Self { code: Some(code) })
    }

    /// Bytes of a TPDU with its head, without the TPKT's.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self.code {
            Some(code) => 1 << code,
            None => Self::WITHOUT_PROPOSAL,
        }
    }

    /// Bytes of a TSDU that one TPDU carries.
    #[must_use]
    pub const fn data_bytes(self) -> usize {
        self.bytes() - DATA_HEAD
    }

    /// The smaller of two sizes: what is agreed on.
    #[must_use]
    pub fn smaller(self, other: Self) -> Self {
        if self.bytes() <= other.bytes() {
            self
        } else {
            other
        }
    }
}

/// What opens a connection: a request (CR) or its confirmation (CC).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CotpConnect {
    /// The reference of the receiver, 0 in a request.
    pub destination: u16,
    /// The reference of the sender.
    pub source: u16,
    /// The largest TPDU.
    pub size: TpduSize,
    /// The TSAP-ID of the initiator.
    pub calling: Vec<u8>,
    /// The TSAP-ID of the responder.
    pub called: Vec<u8>,
}

/// Where the calling TSAP-ID begins in the TPKT of a request that [`CotpConnect::write_request`] makes.
pub const CALLING_SELECTOR_AT: usize = TPKT_HEAD + 7 + 2;

impl CotpConnect {
    /// Appends the TPKT of a request. The calling TSAP-ID comes first, at [`CALLING_SELECTOR_AT`].
    pub fn write_request(&self, out: &mut Vec<u8>) {
        self.write(REQUEST, out);
    }

    /// Appends the TPKT of a confirmation.
    pub fn write_confirm(&self, out: &mut Vec<u8>) {
        self.write(CONFIRM, out);
    }

    fn write(&self, code: u8, out: &mut Vec<u8>) {
        let begins = out.len();
        out.extend_from_slice(&[3, 0, 0, 0, 0, code]);
        out.extend_from_slice(&self.destination.to_be_bytes());
        out.extend_from_slice(&self.source.to_be_bytes());
        // Class 0, no options.
        out.push(0);
        for (parameter, selector) in [
            (CALLING_PARAMETER, &self.calling),
            (CALLED_PARAMETER, &self.called),
        ] {
            let kept = &selector[..selector.len().min(MOST_SELECTOR)];
            out.extend_from_slice(&[parameter, kept.len() as u8]);
            out.extend_from_slice(kept);
        }
        if let Some(size) = self.size.code {
            out.extend_from_slice(&[SIZE_PARAMETER, 1, size]);
        }
        let length = out.len() - begins;
        out[begins + 2..begins + 4].copy_from_slice(&(length as u16).to_be_bytes());
        out[begins + TPKT_HEAD] = (length - TPKT_HEAD - 1) as u8;
    }

    fn read(fixed: &[u8], parameters: &[u8]) -> Result<Self, OsiError> {
        let [d0, d1, s0, s1, class, ..] = *fixed else {
            return Err(malformed("a TPDU is too short to open a connection"));
        };
        if class >> 4 != 0 {
            return Err(malformed("the class is not 0"));
        }
        let mut connect = Self {
            destination: u16::from_be_bytes([d0, d1]),
            source: u16::from_be_bytes([s0, s1]),
            size: TpduSize::default(),
            calling: Vec::new(),
            called: Vec::new(),
        };
        let mut rest = parameters;
        while let [parameter, length, behind @ ..] = rest {
            let length = usize::from(*length);
            let Some(value) = behind.get(..length) else {
                return Err(malformed("a parameter is longer than its TPDU"));
            };
            rest = &behind[length..];
            match *parameter {
                SIZE_PARAMETER => {
                    let size = value.first().and_then(|code| TpduSize::from_code(*code));
                    connect.size = size.ok_or(malformed("an unknown size of TPDUs"))?;
                }
                CALLING_PARAMETER | CALLED_PARAMETER if length > MOST_SELECTOR => {
                    return Err(malformed("a TSAP-ID is too long"));
                }
                CALLING_PARAMETER => connect.calling = value.to_vec(),
                CALLED_PARAMETER => connect.called = value.to_vec(),
                // Others belong to other classes, and class 0 ignores them.
                _ => {}
            }
        }
        if rest.is_empty() {
            Ok(connect)
        } else {
            Err(malformed("a parameter is cut short"))
        }
    }
}

/// A TPDU that opens a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CotpOpening {
    /// CR.
    Request(CotpConnect),
    /// CC.
    Confirm(CotpConnect),
}

impl CotpOpening {
    /// Reads the TPKT at the beginning of these bytes, and how long it is; `None` while it is not complete.
    ///
    /// # Errors
    /// An [`OsiError`] if it is not one that opens a connection.
    pub fn read(bytes: &[u8]) -> Result<Option<(Self, usize)>, OsiError> {
        let Some(length) = read_tpkt_length(bytes)? else {
            return Ok(None);
        };
        if length > MOST_CONNECT {
            return Err(malformed("a TPDU is too long to open a connection"));
        }
        let Some(tpdu) = bytes.get(TPKT_HEAD..length) else {
            return Ok(None);
        };
        let (head, code) = read_head(tpdu)?;
        // What is behind the head is user data, which class 0 has none of in these TPDUs.
        let fixed = tpdu.get(2..7.min(head)).unwrap_or_default();
        let parameters = tpdu.get(7..head).unwrap_or_default();
        let opening = match code {
            REQUEST => Self::Request(CotpConnect::read(fixed, parameters)?),
            CONFIRM => Self::Confirm(CotpConnect::read(fixed, parameters)?),
            _ => return Err(unexpected(code, tpdu)),
        };
        Ok(Some((opening, length)))
    }
}

/// The whole length of the TPKT at the beginning of these bytes; `None` while its head is not complete.
fn read_tpkt_length(bytes: &[u8]) -> Result<Option<usize>, OsiError> {
    let wrong = |what| Err(OsiError::malformed(OsiLayer::Tpkt, what));
    match *bytes {
        [version, ..] if version != 3 => wrong("the version is not 3"),
        [_, _, high, low, ..] => match usize::from(u16::from_be_bytes([high, low])) {
            length if length < TPKT_HEAD + DATA_HEAD => wrong("a packet is too short"),
            length => Ok(Some(length)),
        },
        _ => Ok(None),
    }
}

/// The length of a TPDU's head, and its code.
fn read_head(tpdu: &[u8]) -> Result<(usize, u8), OsiError> {
    match *tpdu {
        [indicator, code, ..] if usize::from(indicator) < tpdu.len() && indicator >= 2 => {
            Ok((usize::from(indicator) + 1, code))
        }
        _ => Err(malformed("the length of a TPDU's head is wrong")),
    }
}

/// The error of a TPDU that ends the connection, or comes at a wrong moment.
fn unexpected(code: u8, tpdu: &[u8]) -> OsiError {
    let refused = |reason| OsiError::Refused {
        layer: OsiLayer::Transport,
        reason,
    };
    match (code & 0xF0, tpdu) {
        (DISCONNECT, [_, _, _, _, _, _, reason, ..]) => {
            refused(format!("{} (reason {reason})", disconnect_reason(*reason)))
        }
        (DISCONNECT, _) => malformed("a disconnect request is too short"),
        (ERROR, _) => refused("it got a TPDU that it cannot take".into()),
        _ => malformed("a TPDU of this kind is not expected here"),
    }
}

/// The reasons of a disconnect request (ISO 8073, 13.5.3), as ends of sentences.
const fn disconnect_reason(reason: u8) -> &'static str {
    match reason {
        0 => "no reason given",
        1 => "it is congested",
        2 => "nothing listens at that TSAP-ID",
        3 => "the TSAP-ID is unknown",
        128 => "its user wants it",
        129 => "it is congested at the moment",
        130 => "no agreement on class and options",
        133 => "a protocol error",
        _ => "another reason",
    }
}

/// What goes before a piece of a TSDU: a TPKT's head and that of a data TPDU.
#[must_use]
pub fn data_head(data: usize, ends: bool) -> [u8; TPKT_HEAD + DATA_HEAD] {
    let [high, low] = ((TPKT_HEAD + DATA_HEAD + data) as u16).to_be_bytes();
    [3, 0, high, low, 2, DATA, if ends { END } else { 0 }]
}

/// Appends a TSDU as data TPDUs.
pub fn write_tsdu(tsdu: &[u8], size: TpduSize, out: &mut Vec<u8>) {
    let pieces = tsdu.len().div_ceil(size.data_bytes()).max(1);
    for index in 0..pieces {
        let from = index * size.data_bytes();
        let piece = &tsdu[from..tsdu.len().min(from + size.data_bytes())];
        out.extend_from_slice(&data_head(piece.len(), index + 1 == pieces));
        out.extend_from_slice(piece);
    }
}

/// What [`TpduStream::step`] found: how many bytes it took, of which the last `data` bytes are of a TSDU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TpduStep {
    /// How many bytes were taken; 0 if more have to arrive first.
    pub taken: usize,
    /// How many of them, the last ones, belong to the TSDU.
    pub data: usize,
    /// Whether the TSDU ends here.
    pub ends: bool,
}

/// Takes data TPDUs apart as their bytes arrive; it keeps none of them.
#[derive(Clone, Debug)]
pub struct TpduStream {
    size: TpduSize,
    /// Bytes that the present TPDU still has.
    left: usize,
    /// Whether the TSDU ends with the present TPDU.
    last: bool,
}

impl TpduStream {
    /// At the beginning of a TPDU.
    #[must_use]
    pub const fn new(size: TpduSize) -> Self {
        Self {
            size,
            left: 0,
            last: false,
        }
    }

    /// Takes the next bytes, at most `most` of them of the TSDU.
    ///
    /// # Errors
    /// An [`OsiError`] if they are not of a data TPDU.
    pub fn step(&mut self, bytes: &[u8], most: usize) -> Result<TpduStep, OsiError> {
        let mut step = TpduStep::default();
        if self.left == 0 {
            let Some(length) = read_tpkt_length(bytes)? else {
                return Ok(step);
            };
            if length - TPKT_HEAD > self.size.bytes() {
                return Err(malformed("a TPDU is longer than agreed"));
            }
            let Some(head) = bytes.get(TPKT_HEAD..TPKT_HEAD + DATA_HEAD) else {
                return Ok(step);
            };
            if head[1] != DATA {
                // It ends the connection, so it is short and worth waiting for.
                return match bytes.get(TPKT_HEAD..length.min(MOST_CONNECT)) {
                    Some(tpdu) => Err(unexpected(head[1], tpdu)),
                    None => Ok(step),
                };
            }
            if head[0] != 2 {
                return Err(malformed("the head of a data TPDU has not 3 bytes"));
            }
            step.taken = TPKT_HEAD + DATA_HEAD;
            self.left = length - TPKT_HEAD - DATA_HEAD;
            self.last = head[2] & END != 0;
        }
        step.data = self.left.min(most).min(bytes.len() - step.taken);
        step.taken += step.data;
        self.left -= step.data;
        step.ends = self.left == 0 && self.last;
        Ok(step)
    }
}
