//! Presentation (ISO 8823), normal mode: three contexts, one each for ACSE, FTAM's PDUs and the contents of files, all in BER.

use super::ber::{
    BASIC_ENCODING, application, context, invalid, misread, read_name, read_number, write_name,
};
use super::osi_error::{OsiError, OsiLayer};
use alloc::format;
use alloc::vec::Vec;
use yasna::tags::TAG_SET;
use yasna::{ASN1Result, BERReader, BERReaderSeq, DERWriter, DERWriterSeq};

/// The context of ACSE.
pub const ACSE_CONTEXT: u32 = 1;
/// The context of FTAM's PDUs.
pub const FTAM_CONTEXT: u32 = 3;
/// The context of the contents of files.
pub const CONTENTS_CONTEXT: u32 = 5;
/// Each context and the name of its abstract syntax.
const CONTEXTS: [(u32, &[u64]); 3] = [
    (ACSE_CONTEXT, &[2, 2, 1, 0, 1]),
    (FTAM_CONTEXT, &[1, 0, 8571, 2, 1]),
    (CONTENTS_CONTEXT, &[1, 0, 8571, 2, 4]),
];
/// Normal mode, in a mode selector.
const NORMAL_MODE: u32 = 1;
/// Most values in one PDU.
pub const MOST_VALUES: usize = 8;

fn construct(write: impl FnOnce(DERWriter<'_>)) -> Vec<u8> {
    yasna::construct_der(write)
}

fn parse<T>(
    bytes: &[u8],
    read: impl for<'a, 'b> FnOnce(BERReader<'a, 'b>) -> ASN1Result<T>,
) -> Result<T, OsiError> {
    yasna::parse_ber(bytes, read).map_err(misread(OsiLayer::Presentation))
}

/// A CP: the contexts are proposed, and ACSE's PDU asks for the association.
pub fn write_connect(apdu: impl FnOnce(DERWriter<'_>)) -> Vec<u8> {
    construct(|writer| {
        write_normal_mode(writer, |parameters| {
            parameters
                .next()
                .write_tagged_implicit(context(4), |writer| {
                    writer.write_sequence_of(|list| {
                        for (number, name) in CONTEXTS {
                            list.next().write_sequence(|item| {
                                item.next().write_u32(number);
                                write_name(item.next(), name);
                                item.next().write_sequence_of(|transfer| {
                                    write_name(transfer.next(), BASIC_ENCODING);
                                });
                            });
                        }
                    });
                });
            write_one_value(parameters.next(), apdu);
        });
    })
}

/// Reads a CP with the reader of ACSE's PDU.
///
/// # Errors
/// An [`OsiError`] if it is malformed or proposes other contexts.
pub fn read_connect<T>(
    bytes: &[u8],
    apdu: impl for<'a, 'b> FnOnce(BERReader<'a, 'b>) -> ASN1Result<T>,
) -> Result<T, OsiError> {
    parse(bytes, |reader| {
        read_normal_mode(reader, |parameters| {
            let mut contexts = CONTEXTS.iter();
            parameters
                .next()
                .read_tagged_implicit(context(4), |reader| {
                    reader.read_sequence_of(|item| {
                        let (number, name) = contexts.next().ok_or_else(invalid)?;
                        item.read_sequence(|item| {
                            if item.next().read_u32()? != *number {
                                return Err(invalid());
                            }
                            read_name(item.next(), name)?;
                            item.next()
                                .read_sequence_of(|name| read_name(name, BASIC_ENCODING))
                        })
                    })
                })?;
            if contexts.next().is_some() {
                return Err(invalid());
            }
            read_one_value(parameters.next(), apdu)
        })
    })
}

/// A CPA: the contexts are accepted, and ACSE's PDU accepts the association.
pub fn write_accept(apdu: impl FnOnce(DERWriter<'_>)) -> Vec<u8> {
    construct(|writer| {
        write_normal_mode(writer, |parameters| {
            write_results(parameters);
            write_one_value(parameters.next(), apdu);
        });
    })
}

/// Reads a CPA with the reader of ACSE's PDU.
///
/// # Errors
/// An [`OsiError`] if it is malformed or a context is not accepted.
pub fn read_accept<T>(
    bytes: &[u8],
    apdu: impl for<'a, 'b> FnOnce(BERReader<'a, 'b>) -> ASN1Result<T>,
) -> Result<T, OsiError> {
    parse(bytes, |reader| {
        read_normal_mode(reader, |parameters| {
            read_results(parameters)?;
            read_one_value(parameters.next(), apdu)
        })
    })
}

/// A CPR: ACSE's PDU refuses the association.
pub fn write_reject(apdu: impl FnOnce(DERWriter<'_>)) -> Vec<u8> {
    construct(|writer| {
        writer.write_sequence(|parameters| {
            write_results(parameters);
            write_one_value(parameters.next(), apdu);
        });
    })
}

/// Reads a CPR with the reader of ACSE's PDU.
///
/// # Errors
/// The refusal of this layer, if it is the one that refuses, and an [`OsiError`] if the PDU is malformed.
pub fn read_reject<T>(
    bytes: &[u8],
    apdu: impl for<'a, 'b> FnOnce(BERReader<'a, 'b>) -> ASN1Result<T>,
) -> Result<T, OsiError> {
    let read = parse(bytes, |reader| {
        reader.read_sequence(|parameters| {
            parameters.read_optional(read_result_list)?;
            let reason = read_number(parameters, context(10), u32::MAX)?;
            if reason != u32::MAX {
                return Ok(Err(reason));
            }
            read_one_value(parameters.next(), apdu).map(Ok)
        })
    })?;
    read.map_err(|reason| OsiError::Refused {
        layer: OsiLayer::Presentation,
        reason: format!("no agreement on contexts (reason {reason})"),
    })
}

/// Values of FTAM's context: the user data of an S-DATA.
pub fn write_data(values: &[impl Fn(DERWriter<'_>)]) -> Vec<u8> {
    construct(|writer| {
        writer.write_tagged_implicit(application(1), |writer| {
            writer.write_sequence_of(|list| {
                for value in values {
                    write_value(list.next(), FTAM_CONTEXT, value);
                }
            });
        });
    })
}

/// Reads values of FTAM's context, at most [`MOST_VALUES`].
///
/// # Errors
/// An [`OsiError`] if there is none, there are more, or they are malformed.
pub fn read_data<T>(
    bytes: &[u8],
    mut value: impl for<'a, 'b> FnMut(BERReader<'a, 'b>) -> ASN1Result<T>,
) -> Result<Vec<T>, OsiError> {
    parse(bytes, |reader| {
        let mut values = Vec::new();
        reader.read_tagged_implicit(application(1), |reader| {
            reader.read_sequence_of(|item| {
                if values.len() == MOST_VALUES {
                    return Err(invalid());
                }
                values.push(read_value(item, FTAM_CONTEXT, &mut value)?);
                Ok(())
            })
        })?;
        if values.is_empty() {
            return Err(invalid());
        }
        Ok(values)
    })
}

/// A value of ACSE's context: the user data of S-RELEASE.
pub fn write_release(apdu: impl FnOnce(DERWriter<'_>)) -> Vec<u8> {
    construct(|writer| write_one_value(writer, apdu))
}

/// Reads the user data of S-RELEASE.
///
/// # Errors
/// An [`OsiError`] if it is malformed.
pub fn read_release<T>(
    bytes: &[u8],
    apdu: impl for<'a, 'b> FnOnce(BERReader<'a, 'b>) -> ASN1Result<T>,
) -> Result<T, OsiError> {
    parse(bytes, |reader| read_one_value(reader, apdu))
}

/// An ARU: the user of presentation aborts.
pub fn write_abort(apdu: impl FnOnce(DERWriter<'_>)) -> Vec<u8> {
    construct(|writer| {
        writer.write_tagged_implicit(context(0), |writer| {
            writer.write_sequence(|parameters| {
                write_one_value(parameters.next(), apdu);
            });
        });
    })
}

/// Reads an ARU; `None` of an ARP, by which presentation itself aborts, and of an abort that says nothing.
///
/// # Errors
/// An [`OsiError`] if it is malformed.
pub fn read_abort<T>(
    bytes: &[u8],
    apdu: impl for<'a, 'b> FnOnce(BERReader<'a, 'b>) -> ASN1Result<T>,
) -> Result<Option<T>, OsiError> {
    if bytes.first() != Some(&0xA0) {
        return Ok(None);
    }
    parse(bytes, |reader| {
        reader.read_tagged_implicit(context(0), |reader| {
            reader.read_sequence(|parameters| read_one_value(parameters.next(), apdu))
        })
    })
    .map(Some)
}

fn write_normal_mode(writer: DERWriter<'_>, parameters: impl FnOnce(&mut DERWriterSeq<'_>)) {
    writer.write_set(|set| {
        set.next().write_tagged_implicit(context(0), |writer| {
            writer.write_set(|selector| {
                selector
                    .next()
                    .write_tagged_implicit(context(0), |writer| writer.write_u32(NORMAL_MODE));
            });
        });
        set.next().write_tagged_implicit(context(2), |writer| {
            writer.write_sequence(parameters);
        });
    });
}

/// The elements of the SETs come in the order of their tags, as all writers have them.
fn read_normal_mode<T>(
    reader: BERReader<'_, '_>,
    parameters: impl for<'c, 'd> FnOnce(&mut BERReaderSeq<'c, 'd>) -> ASN1Result<T>,
) -> ASN1Result<T> {
    reader.read_tagged_implicit(TAG_SET, |reader| {
        reader.read_sequence(|set| {
            set.next().read_tagged_implicit(context(0), |reader| {
                reader.read_sequence(|selector| match read_number(selector, context(0), 0)? {
                    NORMAL_MODE => Ok(()),
                    _ => Err(invalid()),
                })
            })?;
            set.next()
                .read_tagged_implicit(context(2), |reader| reader.read_sequence(parameters))
        })
    })
}

fn write_results(parameters: &mut DERWriterSeq<'_>) {
    parameters
        .next()
        .write_tagged_implicit(context(5), |writer| {
            writer.write_sequence_of(|list| {
                for _ in CONTEXTS {
                    list.next().write_sequence(|result| {
                        result
                            .next()
                            .write_tagged_implicit(context(0), |writer| writer.write_u32(0));
                        result.next().write_tagged_implicit(context(1), |writer| {
                            write_name(writer, BASIC_ENCODING);
                        });
                    });
                }
            });
        });
}

fn read_results(parameters: &mut BERReaderSeq<'_, '_>) -> ASN1Result<()> {
    if read_result_list(parameters.next())? == CONTEXTS.len() {
        Ok(())
    } else {
        Err(invalid())
    }
}

/// How many contexts are accepted.
fn read_result_list(reader: BERReader<'_, '_>) -> ASN1Result<usize> {
    let mut accepted = 0;
    reader.read_tagged_implicit(context(5), |reader| {
        reader.read_sequence_of(|result| {
            result.read_sequence(|result| {
                accepted += usize::from(read_number(result, context(0), 0)? == 0);
                result.read_optional(|reader| {
                    reader.read_tagged_implicit(context(1), |reader| {
                        read_name(reader, BASIC_ENCODING)
                    })
                })?;
                read_number(result, context(2), 0).map(drop)
            })
        })
    })?;
    Ok(accepted)
}

/// User data of one value in ACSE's context.
fn write_one_value(writer: DERWriter<'_>, apdu: impl FnOnce(DERWriter<'_>)) {
    writer.write_tagged_implicit(application(1), |writer| {
        writer.write_sequence(|list| write_value(list.next(), ACSE_CONTEXT, apdu));
    });
}

fn read_one_value<T>(
    reader: BERReader<'_, '_>,
    apdu: impl for<'c, 'd> FnOnce(BERReader<'c, 'd>) -> ASN1Result<T>,
) -> ASN1Result<T> {
    reader.read_tagged_implicit(application(1), |reader| {
        reader.read_sequence(|list| read_value(list.next(), ACSE_CONTEXT, apdu))
    })
}

/// A PDV-list: the context and a single ASN.1 type.
fn write_value(writer: DERWriter<'_>, number: u32, value: impl FnOnce(DERWriter<'_>)) {
    writer.write_sequence(|item| {
        item.next().write_u32(number);
        item.next().write_tagged(context(0), value);
    });
}

fn read_value<T>(
    reader: BERReader<'_, '_>,
    number: u32,
    value: impl for<'c, 'd> FnOnce(BERReader<'c, 'd>) -> ASN1Result<T>,
) -> ASN1Result<T> {
    reader.read_sequence(|item| {
        if item.next().read_u32()? != number {
            return Err(invalid());
        }
        item.next().read_tagged(context(0), value)
    })
}
