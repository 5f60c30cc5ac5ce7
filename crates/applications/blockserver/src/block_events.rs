//! The histories of blocks as events: one event for each point that a block passed, under the paper's keywords (Tierney et al. 1996,
//! sections 3.1 and 4.3.1). Writing them to a file is up to the caller.

use stackline_blocks::block_history::{BlockPathNode, BlockPathPoint, FLUSH, GIVEN_UP, History};
use stackline_blocks::session_record::BlockSessionRecord;
use stackline_events::catalogue::block_rows::{FROM_DISK, FROM_MEMORY};
use stackline_events::{EventEmitter, EventValue};
use std::collections::BTreeMap;

/// The names of the parts in events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockEventNames {
    /// The client.
    pub client: String,
    /// The master.
    pub master: String,
    /// Disk servers, by their numbers.
    pub servers: BTreeMap<u16, String>,
}

impl BlockEventNames {
    fn of(&self, history: &History, place: BlockPathNode) -> &str {
        match place {
            BlockPathNode::Application => &self.client,
            BlockPathNode::Master => &self.master,
            BlockPathNode::Server => self
                .servers
                .get(&history.server)
                .map_or("server", |name| name),
        }
    }
}

/// Emits every point that the blocks of a record passed. `zero_ns` is added to every time.
pub fn emit_block_events(
    record: &BlockSessionRecord,
    names: &BlockEventNames,
    zero_ns: u64,
    emit: &mut EventEmitter<'_>,
) {
    for history in record.histories.iter().chain(&record.unanswered()) {
        // The unit stands first, as in all events; then the paper's other data: block, set, list. After them the bytes, and whether the
        // block came from memory or from disk.
        // Behind them what the block's message says: whether it was in memory.
        let source = match history.passed(BlockPathPoint::AppReceive) {
            Some(_) if history.cached => EventValue::Text(FROM_MEMORY),
            Some(_) => EventValue::Text(FROM_DISK),
            None => EventValue::Absent,
        };
        let values: [EventValue<'_>; 6] = [
            history.unit.into(),
            history.number.into(),
            history.set.into(),
            history.serial.into(),
            history.bytes.into(),
            source,
        ];
        for point in BlockPathPoint::ALL {
            if let Some(at) = history.passed(point) {
                // In virtual time several points may have the same time; one more nanosecond for each point keeps their order.
                let at_ns = at.0 + zero_ns + point as u64;
                emit(
                    names.of(history, point.place()),
                    point.keyword(),
                    at_ns,
                    &values,
                );
            }
        }
        if let Some(at) = history.flushed {
            emit(
                names.of(history, BlockPathNode::Server),
                FLUSH,
                at.0 + zero_ns,
                &values,
            );
        }
        if let Some(at) = history.given_up {
            emit(&names.client, GIVEN_UP, at.0 + zero_ns, &values);
        }
    }
}
