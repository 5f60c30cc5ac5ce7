//! FTAM (ISO 8571, file transfer, access and management) over all of OSI's upper layers, on a TCP connection as RFC 1006 has it: what
//! SPIMS measured in 1988 beside TCP and FTP. Both ends of an association, for memory instead of files.
//!
//! ```text
//!   initiator                                           responder
//!   CR (the TSAP-IDs, the size of TPDUs) -------------> CC
//!   CONNECT [CP [AARQ [F-INITIALIZE]]] ---------------> ACCEPT [CPA [AARE [F-INITIALIZE]]]
//!   F-BEGIN-GROUP, F-SELECT, F-OPEN, F-END-GROUP -----> the same, confirmed
//!   F-READ -------------------------------------------> F-DATA ... F-DATA, F-DATA-END
//!   F-WRITE, F-DATA ... F-DATA, F-DATA-END -----------> taken
//!   F-TRANSFER-END -----------------------------------> confirmed
//!   F-BEGIN-GROUP, F-CLOSE, F-DESELECT, F-END-GROUP --> the same, confirmed
//!   FINISH [RLRQ [F-TERMINATE]] ----------------------> DISCONNECT [RLRE [F-TERMINATE]]; the TCP connection is closed
//! ```
//!
//! Session has kernel and duplex, presentation three contexts in BER, ACSE its kernel, FTAM the transfer class with reading, writing and
//! grouping, and one document type, unstructured binary (FTAM-3). BER of PDUs is read and written by `yasna`; the few bytes before a data
//! unit are written here, since the unit itself stays with the caller.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`cotp`] | TPKT and COTP class 0: opening, sizes, pieces of a TSDU |
//! | [`session`] | session PDUs |
//! | [`presentation`] | presentation PDUs, contexts |
//! | [`acse`] | PDUs of the association |
//! | [`pdu`], `pdu_coding` | PDUs of FTAM |
//! | [`data_unit`] | F-DATA: what goes before a data unit, and between its TPDUs |
//! | [`message`] | all layers of what is not a data unit |
//! | [`receiver`] | what arrives, as its bytes come |
//! | [`osi_error`] | what a peer says that cannot go on |

pub mod acse;
mod ber;
pub mod cotp;
pub mod data_unit;
pub mod message;
pub mod osi_error;
pub mod pdu;
mod pdu_coding;
pub mod presentation;
pub mod receiver;
pub mod session;

#[cfg(test)]
mod tests;

pub use cotp::{CotpConnect, CotpOpening, TpduSize};
pub use data_unit::UnitFraming;
pub use message::FtamMessage;
pub use osi_error::{OsiError, OsiLayer};
pub use pdu::{FtamEmptyPdu, FtamOutcome, FtamOutcomePdu, FtamPdu};
pub use receiver::{FtamReceived, FtamReceiver};
