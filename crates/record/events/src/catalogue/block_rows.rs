//! The keywords of the block server, with the names that the paper prints (Tierney et al. 1996). Lifelines find the
//! path of blocks as they do for any program's units; these rows add descriptions, and the field `source` of a block.

use super::{CatalogueEntry, DataFate, Layer};

/// The value of the field `source` for a block that was in its server's memory.
pub const FROM_MEMORY: &str = "memory";
/// The value of the field `source` for a block that was read from a disk.
pub const FROM_DISK: &str = "disk";
/// The event at which `source` is read; every block that arrives passes it once.
pub const SOURCE_KEYWORD: &str = "DPSS_SERV_IN";
/// The index of the data field `source`.
pub const SOURCE_FIELD: usize = 5;

const fn row(keyword: &'static str, help: &'static str, fate: Option<DataFate>) -> CatalogueEntry {
    CatalogueEntry {
        keyword,
        layer: Layer::Application,
        data: &["unit", "block", "set", "list", "bytes", "source"],
        help,
        fate,
        is_work: false,
    }
}

/// All keywords of the block server, in the order in which a block passes them.
pub static BLOCK_ENTRIES: [CatalogueEntry; 11] = [
    row(
        "TV_REQ_TILE",
        "at the client: a block is requested; `unit` counts the blocks requested",
        None,
    ),
    row(
        "DPSS_MASTER_IN",
        "at the master: the list containing the block has arrived",
        None,
    ),
    row(
        "DPSS_MASTER_OUT",
        "at the master: the block has been located, and its server is asked for it",
        None,
    ),
    row(
        SOURCE_KEYWORD,
        "at the server: the request has arrived; `source` is `memory` or `disk` if the block was sent",
        None,
    ),
    row(
        "DPSS_START_READ",
        "at the server: reading from a disk begins",
        None,
    ),
    row(
        "DPSS_END_READ",
        "at the server: the block is in memory and waits for its turn",
        None,
    ),
    row(
        "DPSS_START_WRITE",
        "at the server: the block is handed to the transport",
        None,
    ),
    row(
        "DPSS_END_WRITE",
        "at the server: the transport has taken the block; known once a later block from the same server arrives",
        None,
    ),
    row(
        "TV_RECV_TILE",
        "at the client: the whole block has arrived",
        None,
    ),
    row(
        "DPSS_FLUSH",
        "at the server: the block is discarded in favour of a newer list",
        Some(DataFate::Flushed),
    ),
    row(
        "TV_GIVEN_UP",
        "at the client: other blocks of the set are requested, and no part of this one has arrived",
        Some(DataFate::GivenUp),
    ),
];
