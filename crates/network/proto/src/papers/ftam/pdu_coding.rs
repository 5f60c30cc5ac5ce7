//! How FTAM's PDUs are written and read: the ASN.1 of ISO 8571-4.

use super::ber::{
    application, context, invalid, read_bits, read_name, read_number, read_text, write_bits,
    write_name, write_text,
};
use super::pdu::{
    FtamDiagnostic, FtamEmptyPdu, FtamOutcome, FtamOutcomePdu, FtamPdu, READ_AND_REPLACE,
};
use alloc::string::String;
use yasna::{ASN1Result, BERReader, BERReaderSeq, DERWriter, DERWriterSeq, TagClass};

/// The service class `transfer`.
const TRANSFER_CLASS: u16 = 1 << 13;
/// The document type of unstructured binary files.
const FTAM_3: &[u64] = &[1, 0, 8571, 5, 3];
/// The access context of unstructured files: all data units.
const ALL_DATA_UNITS: u32 = 5;
/// The operation `replace` of F-WRITE.
const REPLACE: u32 = 1;
/// Most elements of lists of which only the first is kept.
const MOST_LISTED: usize = 16;

impl FtamPdu {
    /// Writes it.
    pub fn write(&self, writer: DERWriter<'_>) {
        writer.write_tagged_implicit(context(u64::from(self.tag())), |writer| {
            writer.write_sequence(|elements| self.write_elements(elements));
        });
    }

    fn write_elements(&self, elements: &mut DERWriterSeq<'_>) {
        match self {
            Self::InitializeRequest { functional_units } => {
                write_regime(elements, *functional_units);
            }
            Self::InitializeResponse {
                outcome,
                functional_units,
            } => {
                write_results(elements, outcome);
                write_regime(elements, *functional_units);
                write_diagnostic(elements, outcome);
            }
            Self::SelectRequest { filename } => {
                write_filename(elements, filename);
                elements
                    .next()
                    .write_tagged_implicit(application(3), |writer| {
                        write_bits(writer, READ_AND_REPLACE);
                    });
            }
            Self::SelectResponse { outcome, filename } => {
                write_results(elements, outcome);
                write_filename(elements, filename);
                write_diagnostic(elements, outcome);
            }
            Self::OpenRequest => {
                elements.next().write_tagged_implicit(context(0), |writer| {
                    write_bits(writer, READ_AND_REPLACE);
                });
                elements.next().write_tagged(context(1), |writer| {
                    writer.write_tagged(context(1), write_document_type);
                });
            }
            Self::OpenResponse { outcome } => {
                write_results(elements, outcome);
                elements
                    .next()
                    .write_tagged(context(1), write_document_type);
                write_diagnostic(elements, outcome);
            }
            Self::BeginGroupRequest { threshold } => write_number(elements, 0, *threshold),
            Self::ReadRequest => {
                write_first_unit(elements);
                elements
                    .next()
                    .write_tagged_implicit(application(1), |writer| {
                        writer.write_sequence(|access| write_number(access, 0, ALL_DATA_UNITS));
                    });
            }
            Self::WriteRequest => {
                write_number(elements, 0, REPLACE);
                write_first_unit(elements);
            }
            Self::Empty(_) => {}
            Self::Outcome(_, outcome) => {
                write_results(elements, outcome);
                write_diagnostic(elements, outcome);
            }
        }
    }

    /// Reads one.
    ///
    /// # Errors
    /// An [`yasna::ASN1Error`] if it is malformed, or none that this end knows.
    pub fn read(reader: BERReader<'_, '_>) -> ASN1Result<Self> {
        let tag = reader.lookahead_tag()?;
        if tag.tag_class != TagClass::ContextSpecific {
            return Err(invalid());
        }
        reader.read_tagged_implicit(tag, |reader| {
            reader.read_sequence(|elements| Self::read_elements(tag.tag_number, elements))
        })
    }

    fn read_elements(tag: u64, elements: &mut BERReaderSeq<'_, '_>) -> ASN1Result<Self> {
        Ok(match tag {
            0 => Self::InitializeRequest {
                functional_units: read_regime(elements)?,
            },
            1 => {
                let mut outcome = read_results(elements)?;
                let functional_units = read_regime(elements)?;
                outcome.diagnostic = read_diagnostic(elements)?;
                Self::InitializeResponse {
                    outcome,
                    functional_units,
                }
            }
            6 => {
                let filename = read_filename(elements)?;
                elements
                    .next()
                    .read_tagged_implicit(application(3), read_bits)?;
                Self::SelectRequest { filename }
            }
            7 => {
                let mut outcome = read_results(elements)?;
                let filename = read_filename(elements)?;
                outcome.diagnostic = read_diagnostic(elements)?;
                Self::SelectResponse { outcome, filename }
            }
            18 => {
                elements
                    .next()
                    .read_tagged_implicit(context(0), read_bits)?;
                elements.next().read_tagged(context(1), |reader| {
                    reader.read_tagged(context(1), read_document_type)
                })?;
                Self::OpenRequest
            }
            19 => {
                let mut outcome = read_results(elements)?;
                elements
                    .next()
                    .read_tagged(context(1), read_document_type)?;
                outcome.diagnostic = read_diagnostic(elements)?;
                Self::OpenResponse { outcome }
            }
            22 => Self::BeginGroupRequest {
                threshold: read_number(elements, context(0), 0)?,
            },
            32 => {
                read_first_unit(elements)?;
                elements
                    .next()
                    .read_tagged_implicit(application(1), |reader| {
                        reader.read_sequence(|access| expect_number(access, ALL_DATA_UNITS))
                    })?;
                Self::ReadRequest
            }
            33 => {
                expect_number(elements, REPLACE)?;
                read_first_unit(elements)?;
                Self::WriteRequest
            }
            _ => Self::read_common(tag, elements)?,
        })
    }

    fn read_common(tag: u64, elements: &mut BERReaderSeq<'_, '_>) -> ASN1Result<Self> {
        let empty = FtamEmptyPdu::ALL.into_iter().find(|pdu| *pdu as u64 == tag);
        if let Some(pdu) = empty {
            return Ok(Self::Empty(pdu));
        }
        let pdu = FtamOutcomePdu::ALL
            .into_iter()
            .find(|pdu| *pdu as u64 == tag)
            .ok_or_else(invalid)?;
        let mut outcome = read_results(elements)?;
        outcome.diagnostic = read_diagnostic(elements)?;
        Ok(Self::Outcome(pdu, outcome))
    }
}

fn write_number(elements: &mut DERWriterSeq<'_>, tag: u64, number: u32) {
    elements
        .next()
        .write_tagged_implicit(context(tag), |writer| writer.write_u32(number));
}

/// Reads `[0] IMPLICIT INTEGER`, which has to be this number.
fn expect_number(elements: &mut BERReaderSeq<'_, '_>, number: u32) -> ASN1Result<()> {
    if read_number(elements, context(0), u32::MAX)? == number {
        Ok(())
    } else {
        Err(invalid())
    }
}

/// The elements that F-INITIALIZE's request and response share: who speaks, class, functional units, no recovery, the type of files.
fn write_regime(elements: &mut DERWriterSeq<'_>, functional_units: u16) {
    elements
        .next()
        .write_tagged_implicit(context(1), |writer| write_text(writer, "stackline"));
    for (tag, bits) in [(3, TRANSFER_CLASS), (4, functional_units)] {
        elements
            .next()
            .write_tagged_implicit(context(tag), |writer| write_bits(writer, bits));
    }
    write_number(elements, 6, 0);
    elements.next().write_tagged_implicit(context(7), |writer| {
        writer.write_sequence_of(|list| {
            list.next()
                .write_tagged_implicit(application(14), |writer| write_name(writer, FTAM_3));
        });
    });
}

/// Reads them; returns the functional units.
fn read_regime(elements: &mut BERReaderSeq<'_, '_>) -> ASN1Result<u16> {
    let bits = |elements: &mut BERReaderSeq<'_, '_>, tag| {
        elements.read_optional(|reader| reader.read_tagged_implicit(context(tag), read_bits))
    };
    bits(elements, 0)?;
    elements.read_optional(|reader| reader.read_tagged_implicit(context(1), read_text))?;
    elements.read_optional(|reader| {
        reader.read_tagged_implicit(context(2), |reader| reader.read_bool())
    })?;
    bits(elements, 3)?;
    let functional_units = bits(elements, 4)?.ok_or_else(invalid)?;
    bits(elements, 5)?;
    read_number(elements, context(6), 0)?;
    elements.read_optional(|reader| {
        reader.read_tagged_implicit(context(7), |reader| {
            let mut listed = 0;
            reader.read_sequence_of(|name| {
                listed += 1;
                if listed > MOST_LISTED {
                    return Err(invalid());
                }
                name.read_tagged_implicit(application(14), |reader| reader.read_oid())
                    .map(drop)
            })
        })
    })?;
    read_number(elements, context(8), 1)?;
    Ok(functional_units)
}

fn write_filename(elements: &mut DERWriterSeq<'_>, filename: &str) {
    elements
        .next()
        .write_tagged_implicit(application(19), |writer| {
            writer.write_sequence(|attributes| {
                attributes
                    .next()
                    .write_tagged_implicit(context(0), |writer| {
                        writer.write_sequence_of(|names| write_text(names.next(), filename));
                    });
            });
        });
}

fn read_filename(elements: &mut BERReaderSeq<'_, '_>) -> ASN1Result<String> {
    elements
        .next()
        .read_tagged_implicit(application(19), |reader| {
            reader.read_sequence(|attributes| {
                attributes
                    .next()
                    .read_tagged_implicit(context(0), |reader| {
                        reader.read_sequence(|names| read_text(names.next()))
                    })
            })
        })
}

fn write_document_type(writer: DERWriter<'_>) {
    writer.write_tagged_implicit(context(0), |writer| {
        writer.write_sequence(|elements| {
            elements
                .next()
                .write_tagged_implicit(application(14), |writer| write_name(writer, FTAM_3));
        });
    });
}

fn read_document_type(reader: BERReader<'_, '_>) -> ASN1Result<()> {
    reader.read_tagged_implicit(context(0), |reader| {
        reader.read_sequence(|elements| {
            elements
                .next()
                .read_tagged_implicit(application(14), |reader| read_name(reader, FTAM_3))
        })
    })
}

/// The identity of the only data unit of an unstructured file: the first.
fn write_first_unit(elements: &mut DERWriterSeq<'_>) {
    elements.next().write_tagged(application(15), |writer| {
        writer.write_tagged_implicit(context(0), |writer| writer.write_u32(0));
    });
}

fn read_first_unit(elements: &mut BERReaderSeq<'_, '_>) -> ASN1Result<()> {
    elements.next().read_tagged(application(15), |reader| {
        match reader.read_tagged_implicit(context(0), |reader| reader.read_u32())? {
            0 => Ok(()),
            _ => Err(invalid()),
        }
    })
}

/// State-result and action-result, where they are not `success`.
fn write_results(elements: &mut DERWriterSeq<'_>, outcome: &FtamOutcome) {
    for (tag, result) in [(21, u32::from(outcome.failed)), (5, outcome.action)] {
        if result != 0 {
            elements
                .next()
                .write_tagged_implicit(application(tag), |writer| writer.write_u32(result));
        }
    }
}

fn read_results(elements: &mut BERReaderSeq<'_, '_>) -> ASN1Result<FtamOutcome> {
    let failed = read_number(elements, application(21), 0)?;
    let action = read_number(elements, application(5), 0)?;
    if failed > 1 || action > 2 {
        return Err(invalid());
    }
    Ok(FtamOutcome {
        failed: failed == 1,
        action,
        diagnostic: None,
    })
}

/// The observer and source of an error: the responding protocol machine.
const RESPONDING_MACHINE: u32 = 4;

fn write_diagnostic(elements: &mut DERWriterSeq<'_>, outcome: &FtamOutcome) {
    let Some(diagnostic) = &outcome.diagnostic else {
        return;
    };
    elements
        .next()
        .write_tagged_implicit(application(13), |writer| {
            writer.write_sequence_of(|list| {
                list.next().write_sequence(|element| {
                    write_number(element, 0, diagnostic.kind);
                    write_number(element, 1, diagnostic.identifier);
                    write_number(element, 2, RESPONDING_MACHINE);
                    write_number(element, 3, RESPONDING_MACHINE);
                    if !diagnostic.details.is_empty() {
                        element.next().write_tagged_implicit(context(5), |writer| {
                            write_text(writer, &diagnostic.details);
                        });
                    }
                });
            });
        });
}

/// Reads the first element of a diagnostic, if there is one.
fn read_diagnostic(elements: &mut BERReaderSeq<'_, '_>) -> ASN1Result<Option<FtamDiagnostic>> {
    let mut first = None;
    let mut listed = 0;
    elements.read_optional(|reader| {
        reader.read_tagged_implicit(application(13), |reader| {
            reader.read_sequence_of(|element| {
                listed += 1;
                if listed > MOST_LISTED {
                    return Err(invalid());
                }
                let read = element.read_sequence(read_diagnostic_element)?;
                first.get_or_insert(read);
                Ok(())
            })
        })
    })?;
    Ok(first)
}

fn read_diagnostic_element(element: &mut BERReaderSeq<'_, '_>) -> ASN1Result<FtamDiagnostic> {
    let kind = read_number(element, context(0), 0)?;
    let identifier = read_number(element, context(1), 0)?;
    for tag in 2..=4 {
        read_number(element, context(tag), 0)?;
    }
    let details =
        element.read_optional(|reader| reader.read_tagged_implicit(context(5), read_text))?;
    Ok(FtamDiagnostic {
        kind,
        identifier,
        details: details.unwrap_or_default(),
    })
}
