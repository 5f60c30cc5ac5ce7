//! ACSE (ISO 8650), the kernel: an association is asked for, released and aborted, each time with a PDU of FTAM in it.

use super::ber::{application, context, invalid, read_name, read_number, write_name};
use super::pdu::FtamPdu;
use super::presentation::FTAM_CONTEXT;
use alloc::format;
use alloc::string::String;
use yasna::tags::TAG_EXT;
use yasna::{ASN1Result, BERReader, BERReaderSeq, DERWriter, DERWriterSeq, TagClass};

/// The application context: ISO FTAM.
const ISO_FTAM: &[u64] = &[1, 0, 8571, 1, 1];

/// A PDU of ACSE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcseApdu {
    /// AARQ.
    AssociateRequest(FtamPdu),
    /// AARE.
    AssociateResponse {
        /// 0: accepted, 1: rejected for good, 2: rejected for now.
        result: u32,
        /// The number of the user's diagnostic.
        diagnostic: u32,
        /// What FTAM says.
        user: Option<FtamPdu>,
    },
    /// RLRQ.
    ReleaseRequest(FtamPdu),
    /// RLRE.
    ReleaseResponse(FtamPdu),
    /// ABRT.
    Abort {
        /// Whether the provider aborts, not the user.
        by_provider: bool,
        /// What FTAM says.
        user: Option<FtamPdu>,
    },
}

impl AcseApdu {
    /// Writes it.
    pub fn write(&self, writer: DERWriter<'_>) {
        let tag = match self {
            Self::AssociateRequest(_) => 0,
            Self::AssociateResponse { .. } => 1,
            Self::ReleaseRequest(_) => 2,
            Self::ReleaseResponse(_) => 3,
            Self::Abort { .. } => 4,
        };
        writer.write_tagged_implicit(application(tag), |writer| {
            writer.write_sequence(|elements| self.write_elements(elements));
        });
    }

    fn write_elements(&self, elements: &mut DERWriterSeq<'_>) {
        let number = |writer: DERWriter<'_>, number: u32| writer.write_u32(number);
        let user = match self {
            Self::AssociateRequest(user) => {
                write_context(elements);
                Some(user)
            }
            Self::AssociateResponse {
                result,
                diagnostic,
                user,
            } => {
                write_context(elements);
                elements
                    .next()
                    .write_tagged(context(2), |writer| number(writer, *result));
                elements.next().write_tagged(context(3), |writer| {
                    writer.write_tagged(context(1), |writer| number(writer, *diagnostic));
                });
                user.as_ref()
            }
            Self::ReleaseRequest(user) | Self::ReleaseResponse(user) => {
                elements
                    .next()
                    .write_tagged_implicit(context(0), |writer| number(writer, 0));
                Some(user)
            }
            Self::Abort { by_provider, user } => {
                elements.next().write_tagged_implicit(context(0), |writer| {
                    number(writer, u32::from(*by_provider));
                });
                user.as_ref()
            }
        };
        if let Some(user) = user {
            write_user(elements, user);
        }
    }

    /// Reads one.
    ///
    /// # Errors
    /// An [`yasna::ASN1Error`] if it is malformed.
    pub fn read(reader: BERReader<'_, '_>) -> ASN1Result<Self> {
        let tag = reader.lookahead_tag()?;
        if tag.tag_class != TagClass::Application {
            return Err(invalid());
        }
        reader.read_tagged_implicit(tag, |reader| {
            reader.read_sequence(|elements| match tag.tag_number {
                0 => {
                    read_context(elements)?;
                    read_user(elements)?
                        .map(Self::AssociateRequest)
                        .ok_or_else(invalid)
                }
                1 => {
                    read_context(elements)?;
                    let result = elements
                        .next()
                        .read_tagged(context(2), |reader| reader.read_u32())?;
                    let diagnostic = elements.next().read_tagged(context(3), |reader| {
                        let source = reader.lookahead_tag()?;
                        if ![context(1), context(2)].contains(&source) {
                            return Err(invalid());
                        }
                        reader.read_tagged(source, |reader| reader.read_u32())
                    })?;
                    let user = read_user(elements)?;
                    Ok(Self::AssociateResponse {
                        result,
                        diagnostic,
                        user,
                    })
                }
                released @ (2 | 3) => {
                    read_number(elements, context(0), 0)?;
                    let user = read_user(elements)?.ok_or_else(invalid)?;
                    Ok(if released == 2 {
                        Self::ReleaseRequest(user)
                    } else {
                        Self::ReleaseResponse(user)
                    })
                }
                4 => {
                    let by_provider = read_number(elements, context(0), 0)? == 1;
                    let user = read_user(elements)?;
                    Ok(Self::Abort { by_provider, user })
                }
                _ => Err(invalid()),
            })
        })
    }

    /// Why it refuses or ends the association, as the end of a sentence; `None` if it does not.
    #[must_use]
    pub fn refusal(&self) -> Option<String> {
        match self {
            Self::AssociateResponse {
                result, diagnostic, ..
            } if *result != 0 => {
                let why = match diagnostic {
                    2 => "it does not know the application context of FTAM",
                    3..=10 => "it does not know a title or qualifier",
                    _ => "it gives no reason",
                };
                Some(format!(
                    "the association is rejected, {why} (result {result}, diagnostic {diagnostic})"
                ))
            }
            Self::Abort { by_provider, user } => {
                let who = if *by_provider {
                    "its protocol machine"
                } else {
                    "its user"
                };
                let outcome = user.as_ref().and_then(FtamPdu::outcome);
                Some(match outcome.filter(|outcome| !outcome.is_success()) {
                    Some(outcome) => format!("{who} aborts, {outcome}"),
                    None => format!("{who} aborts"),
                })
            }
            _ => None,
        }
    }
}

fn write_context(elements: &mut DERWriterSeq<'_>) {
    elements
        .next()
        .write_tagged(context(1), |writer| write_name(writer, ISO_FTAM));
}

fn read_context(elements: &mut BERReaderSeq<'_, '_>) -> ASN1Result<()> {
    elements
        .next()
        .read_tagged(context(1), |reader| read_name(reader, ISO_FTAM))
}

/// User information: one EXTERNAL in FTAM's context.
fn write_user(elements: &mut DERWriterSeq<'_>, user: &FtamPdu) {
    elements
        .next()
        .write_tagged_implicit(context(30), |writer| {
            writer.write_sequence_of(|list| {
                list.next().write_tagged_implicit(TAG_EXT, |writer| {
                    writer.write_sequence(|external| {
                        external.next().write_u32(FTAM_CONTEXT);
                        external
                            .next()
                            .write_tagged(context(0), |writer| user.write(writer));
                    });
                });
            });
        });
}

fn read_user(elements: &mut BERReaderSeq<'_, '_>) -> ASN1Result<Option<FtamPdu>> {
    elements.read_optional(|reader| {
        reader.read_tagged_implicit(context(30), |reader| {
            reader.read_sequence(|list| {
                list.next().read_tagged_implicit(TAG_EXT, |reader| {
                    reader.read_sequence(|external| {
                        if external.next().read_u32()? != FTAM_CONTEXT {
                            return Err(invalid());
                        }
                        external.next().read_tagged(context(0), FtamPdu::read)
                    })
                })
            })
        })
    })
}
