//! The histories of blocks as events: one event for each point that a block passed, under the paper's keywords (Tierney et al. 1996,
//! sections 3.1 and 4.3.1). Writing them to a file is up to the caller.

use stackline_blocks::block_history::{BlockPathNode, BlockPathPoint, History};
use stackline_blocks::session_record::BlockSessionRecord;
use stackline_events::catalogue::block_rows::{FROM_DISK, FROM_MEMORY};
use stackline_events::catalogue::families::{BlockPassage, BlockPassageEvent};
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
    fn name_of(&self, history: &History, place: BlockPathNode) -> &str {
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
        // What the block's message says: whether it was in memory.
        let source = match history.passed(BlockPathPoint::AppReceive) {
            Some(_) if history.cached => EventValue::Text(FROM_MEMORY),
            Some(_) => EventValue::Text(FROM_DISK),
            None => EventValue::Absent,
        };
        let data = BlockPassage {
            unit: history.unit.into(),
            block: history.number.into(),
            set: history.set.into(),
            list: history.serial.into(),
            bytes: history.bytes.into(),
            source,
        };
        for point in BlockPathPoint::ALL {
            if let Some(at) = history.passed(point) {
                // In virtual time several points may have the same time; one more nanosecond for each point keeps their order.
                let at_ns = at.0 + zero_ns + point as u64;
                event_of(point).emit_on(&data, names.name_of(history, point.place()), at_ns, emit);
            }
        }
        if let Some(at) = history.flushed {
            let server = names.name_of(history, BlockPathNode::Server);
            BlockPassageEvent::DpssFlush.emit_on(&data, server, at.0 + zero_ns, emit);
        }
        if let Some(at) = history.given_up {
            BlockPassageEvent::TvGivenUp.emit_on(&data, &names.client, at.0 + zero_ns, emit);
        }
    }
}

/// The event of a point: under the name that the paper prints, where it prints one (sections 3.1 and 4.3.1).
const fn event_of(point: BlockPathPoint) -> BlockPassageEvent {
    match point {
        BlockPathPoint::AppSend => BlockPassageEvent::TvReqTile,
        BlockPathPoint::MasterIn => BlockPassageEvent::DpssMasterIn,
        BlockPathPoint::MasterOut => BlockPassageEvent::DpssMasterOut,
        BlockPathPoint::ServerIn => BlockPassageEvent::DpssServIn,
        BlockPathPoint::StartRead => BlockPassageEvent::DpssStartRead,
        BlockPathPoint::EndRead => BlockPassageEvent::DpssEndRead,
        BlockPathPoint::StartWrite => BlockPassageEvent::DpssStartWrite,
        BlockPathPoint::EndWrite => BlockPassageEvent::DpssEndWrite,
        BlockPathPoint::AppReceive => BlockPassageEvent::TvRecvTile,
    }
}
