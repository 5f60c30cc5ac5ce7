//! The keywords of the block server, with the names that the paper prints (Tierney et al. 1996). Lifelines find the
//! path of blocks as they do for any program's units; these rows add descriptions, and the field `source` of a block.

use super::rows::{ENTRIES, catalogue, entry, event_data};
use super::{CatalogueEntry, DataFate, Layer};
use crate::value::EmittedEvent;
use crate::{EventEmitter, EventLog, EventValue, Keyword, recorder};

/// The value of the field `source` for a block that was in its server's memory.
pub const FROM_MEMORY: &str = "memory";
/// The value of the field `source` for a block that was read from a disk.
pub const FROM_DISK: &str = "disk";
/// The event at which `source` is read; every block that arrives passes it once.
pub const SOURCE_KEYWORD: &str = DpssServIn::KEYWORD;
/// The index of the data field `source`.
pub const SOURCE_FIELD: usize = 5;

/// All keywords: those of measurements and traces, and those of the block server.
pub fn all_entries() -> impl Iterator<Item = &'static CatalogueEntry> {
    ENTRIES.iter().chain(BLOCK_ENTRIES)
}

catalogue! {
    /// All keywords of the block server, in the order in which a block passes them.
    BLOCK_ENTRIES;

    TvReqTile = "TV_REQ_TILE", Application: { unit, block, set, list, bytes, source }
        "at the client: a block is requested; `unit` counts the blocks requested";

    DpssMasterIn = "DPSS_MASTER_IN", Application: { unit, block, set, list, bytes, source }
        "at the master: the list containing the block has arrived";

    DpssMasterOut = "DPSS_MASTER_OUT", Application: { unit, block, set, list, bytes, source }
        "at the master: the block has been located, and its server is asked for it";

    DpssServIn = "DPSS_SERV_IN", Application: { unit, block, set, list, bytes, source }
        "at the server: the request has arrived; `source` is `memory` or `disk` if the block was sent";

    DpssStartRead = "DPSS_START_READ", Application: { unit, block, set, list, bytes, source }
        "at the server: reading from a disk begins";

    DpssEndRead = "DPSS_END_READ", Application: { unit, block, set, list, bytes, source }
        "at the server: the block is in memory and waits for its turn";

    DpssStartWrite = "DPSS_START_WRITE", Application: { unit, block, set, list, bytes, source }
        "at the server: the block is handed to the transport";

    DpssEndWrite = "DPSS_END_WRITE", Application: { unit, block, set, list, bytes, source }
        "at the server: the transport has taken the block; known once a later block from the same server arrives";

    TvRecvTile = "TV_RECV_TILE", Application: { unit, block, set, list, bytes, source }
        "at the client: the whole block has arrived";

    DpssFlush = "DPSS_FLUSH", Application fate Flushed: { unit, block, set, list, bytes, source }
        "at the server: the block is discarded in favour of a newer list";

    TvGivenUp = "TV_GIVEN_UP", Application fate GivenUp: { unit, block, set, list, bytes, source }
        "at the client: other blocks of the set are requested, and no part of this one has arrived";
}
