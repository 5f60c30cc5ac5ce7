//! Archives: a whole run as one file, which another machine adds to its kept runs.
//!
//! An archive is a tar file compressed by gzip (RFC 1952), so that any machine can unpack it. All its entries stand in one
//! directory with the run's name. The first, `archive.json`, lists the others in order, with sizes and digests. Times,
//! owners and modes are fixed: equal runs give equal bytes, as long as the compression library is the same.

mod contents;
mod pack;
mod unpack;

pub use contents::{ArchiveContents, ArchivedFile, contents_of};
pub use pack::write_archive;
pub(crate) use unpack::UNPACKING;
pub use unpack::{AddedRun, add_archive, is_archive};
