//! All that travels on an open transport connection beside data units: the PDUs of all layers above it, one within the other.

use super::acse::AcseApdu;
use super::cotp::{TpduSize, write_tsdu};
use super::osi_error::{OsiError, OsiLayer};
use super::pdu::{FUNCTIONAL_UNITS, FtamEmptyPdu, FtamOutcome, FtamPdu};
use super::presentation::{
    read_abort, read_accept, read_connect, read_data, read_reject, read_release, write_abort,
    write_accept, write_connect, write_data, write_reject, write_release,
};
use super::session::{Spdu, SpduKind};
use alloc::string::String;
use alloc::vec::Vec;

/// A message of both ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FtamMessage {
    /// CONNECT, CP, AARQ, F-INITIALIZE request.
    Connect(FtamPdu),
    /// ACCEPT, CPA, AARE, F-INITIALIZE response.
    Accept(FtamPdu),
    /// REFUSE, CPR, AARE, F-INITIALIZE response.
    Refuse(FtamPdu),
    /// DATA TRANSFER with PDUs of FTAM.
    Data(Vec<FtamPdu>),
    /// FINISH, RLRQ, F-TERMINATE request.
    Finish,
    /// DISCONNECT, RLRE, F-TERMINATE response.
    Disconnect,
    /// ABORT, ARU, ABRT, F-U-ABORT request.
    Abort(FtamOutcome),
}

impl FtamMessage {
    /// The message that asks for a connection.
    #[must_use]
    pub const fn connect() -> Self {
        Self::Connect(FtamPdu::InitializeRequest {
            functional_units: FUNCTIONAL_UNITS,
        })
    }

    /// The message that accepts one.
    #[must_use]
    pub fn accept() -> Self {
        Self::Accept(FtamPdu::InitializeResponse {
            outcome: FtamOutcome::default(),
            functional_units: FUNCTIONAL_UNITS,
        })
    }

    /// Appends it as TPKTs.
    pub fn write(&self, size: TpduSize, out: &mut Vec<u8>) {
        write_tsdu(&self.tsdu(), size, out);
    }

    /// It as a TSDU.
    #[must_use]
    pub fn tsdu(&self) -> Vec<u8> {
        let (kind, user_data) = match self {
            Self::Connect(user) => {
                let apdu = AcseApdu::AssociateRequest(user.clone());
                (
                    SpduKind::Connect,
                    write_connect(|writer| apdu.write(writer)),
                )
            }
            Self::Accept(user) => {
                let apdu = associate_response(0, user);
                (SpduKind::Accept, write_accept(|writer| apdu.write(writer)))
            }
            Self::Refuse(user) => {
                let apdu = associate_response(1, user);
                (SpduKind::Refuse, write_reject(|writer| apdu.write(writer)))
            }
            Self::Data(pdus) => {
                let values: Vec<_> = pdus
                    .iter()
                    .map(|pdu| |writer: yasna::DERWriter<'_>| pdu.write(writer))
                    .collect();
                (SpduKind::Data, write_data(&values))
            }
            Self::Finish => {
                let user = FtamPdu::Empty(FtamEmptyPdu::TerminateRequest);
                let apdu = AcseApdu::ReleaseRequest(user);
                (SpduKind::Finish, write_release(|writer| apdu.write(writer)))
            }
            Self::Disconnect => {
                let user = FtamPdu::Empty(FtamEmptyPdu::TerminateResponse);
                let apdu = AcseApdu::ReleaseResponse(user);
                (
                    SpduKind::Disconnect,
                    write_release(|writer| apdu.write(writer)),
                )
            }
            Self::Abort(outcome) => {
                let user = FtamPdu::Outcome(super::pdu::FtamOutcomePdu::UserAbort, outcome.clone());
                let apdu = AcseApdu::Abort {
                    by_provider: false,
                    user: Some(user),
                };
                (SpduKind::Abort, write_abort(|writer| apdu.write(writer)))
            }
        };
        Spdu::new(kind, &user_data).write()
    }

    /// Reads a TSDU. A message by which the peer refuses or aborts is an error, with the reason that it gives.
    ///
    /// # Errors
    /// An [`OsiError`] that names the layer.
    pub fn read(tsdu: &[u8]) -> Result<Self, OsiError> {
        let spdu = Spdu::read(tsdu)?;
        let user_data = spdu.user_data;
        match spdu.kind {
            SpduKind::Data => {
                let pdus = read_data(user_data, FtamPdu::read)?;
                match pdus.iter().find_map(FtamPdu::refusal) {
                    Some(reason) => Err(refused(OsiLayer::File, reason)),
                    None => Ok(Self::Data(pdus)),
                }
            }
            SpduKind::Connect => match read_connect(user_data, AcseApdu::read)? {
                AcseApdu::AssociateRequest(user @ FtamPdu::InitializeRequest { .. }) => {
                    Ok(Self::Connect(user))
                }
                _ => Err(misplaced()),
            },
            SpduKind::Accept => {
                let apdu = read_accept(user_data, AcseApdu::read)?;
                let user = associated(apdu)?;
                user.map(Self::Accept).ok_or_else(misplaced)
            }
            SpduKind::Refuse if user_data.is_empty() => Err(spdu.refusal()),
            SpduKind::Refuse => {
                let apdu = read_reject(user_data, AcseApdu::read)?;
                associated(apdu)?;
                Err(spdu.refusal())
            }
            SpduKind::Finish => match read_release(user_data, AcseApdu::read)? {
                AcseApdu::ReleaseRequest(FtamPdu::Empty(FtamEmptyPdu::TerminateRequest)) => {
                    Ok(Self::Finish)
                }
                _ => Err(misplaced()),
            },
            SpduKind::Disconnect => match read_release(user_data, AcseApdu::read)? {
                AcseApdu::ReleaseResponse(FtamPdu::Empty(FtamEmptyPdu::TerminateResponse)) => {
                    Ok(Self::Disconnect)
                }
                _ => Err(misplaced()),
            },
            SpduKind::Abort => {
                let apdu = read_abort(user_data, AcseApdu::read)?;
                let reason = apdu.as_ref().and_then(AcseApdu::refusal);
                Err(match reason {
                    Some(reason) => refused(OsiLayer::Association, reason),
                    None => refused(OsiLayer::Session, "it aborts".into()),
                })
            }
        }
    }
}

fn associate_response(result: u32, user: &FtamPdu) -> AcseApdu {
    AcseApdu::AssociateResponse {
        result,
        diagnostic: 0,
        user: Some(user.clone()),
    }
}

/// What FTAM says in a response of ACSE; an error if one of the two refuses.
fn associated(apdu: AcseApdu) -> Result<Option<FtamPdu>, OsiError> {
    let refusal = apdu.refusal();
    let AcseApdu::AssociateResponse { user, .. } = apdu else {
        return Err(misplaced());
    };
    // FTAM knows more of why it refuses than ACSE does.
    if let Some(reason) = user.as_ref().and_then(FtamPdu::refusal) {
        return Err(refused(OsiLayer::File, reason));
    }
    if let Some(reason) = refusal {
        return Err(refused(OsiLayer::Association, reason));
    }
    match user {
        Some(FtamPdu::InitializeResponse {
            functional_units, ..
        }) if functional_units & FUNCTIONAL_UNITS != FUNCTIONAL_UNITS => Err(refused(
            OsiLayer::File,
            "it lacks reading, writing or grouping".into(),
        )),
        user => Ok(user.filter(|user| matches!(user, FtamPdu::InitializeResponse { .. }))),
    }
}

const fn refused(layer: OsiLayer, reason: String) -> OsiError {
    OsiError::Refused { layer, reason }
}

const fn misplaced() -> OsiError {
    OsiError::malformed(
        OsiLayer::Association,
        "a PDU is not the one that belongs here",
    )
}
