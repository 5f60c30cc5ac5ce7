//! The history of one block: when it passed each point of its way from disk to application, and how it ended. The time stamps came with the
//! block itself or with the report that a server discarded it.

use crate::wire::server_messages::{BlockHead, Flushed, NOT_READ};
use stackline_core::time::Instant;

/// The points of a block's way, in the order in which it passes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BlockPathPoint {
    /// The application sends the list that asks for it.
    AppSend,
    /// The master receives the list.
    MasterIn,
    /// The master sends the list on to the server.
    MasterOut,
    /// The server receives the list.
    ServerIn,
    /// Reading from disk begins.
    StartRead,
    /// The block is in memory and in the write queue.
    EndRead,
    /// The block is handed to the transport.
    StartWrite,
    /// The transport has taken the whole block.
    EndWrite,
    /// The application receives the block.
    AppReceive,
}

impl BlockPathPoint {
    /// All points in their order.
    pub const ALL: [Self; 9] = [
        Self::AppSend,
        Self::MasterIn,
        Self::MasterOut,
        Self::ServerIn,
        Self::StartRead,
        Self::EndRead,
        Self::StartWrite,
        Self::EndWrite,
        Self::AppReceive,
    ];

    /// Which part of the system the point belongs to.
    #[must_use]
    pub const fn place(self) -> BlockPathNode {
        match self {
            Self::AppSend | Self::AppReceive => BlockPathNode::Application,
            Self::MasterIn | Self::MasterOut => BlockPathNode::Master,
            _ => BlockPathNode::Server,
        }
    }
}

/// A part of the system that a block passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockPathNode {
    /// The client application.
    Application,
    /// The master.
    Master,
    /// A disk server.
    Server,
}

/// What is known of one request for one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// The unit: the number that the client gave this request.
    pub unit: u64,
    /// The number of its set.
    pub set: u32,
    /// The block's number in the set.
    pub number: u64,
    /// The serial number of the list that asked for it.
    pub serial: u64,
    /// The number of the server; `u16::MAX` if unknown.
    pub server: u16,
    /// Bytes of the block; 0 if it did not come.
    pub bytes: u32,
    /// Whether the server had it in its cache.
    pub cached: bool,
    /// When it passed each point, indexed by [`BlockPathPoint`]; `None` where that is unknown or did not happen. Each stamp is of the clock
    /// of that point's host.
    pub at: [Option<Instant>; 9],
    /// When a server discarded it, by the server's clock.
    pub flushed: Option<Instant>,
    /// When its client sent the next list for its set, if nothing of the block had come by then or later.
    pub given_up: Option<Instant>,
}

impl History {
    /// The history of a block that came at the moment `at`.
    #[must_use]
    pub fn of_block(head: &BlockHead, at: Instant) -> Self {
        let read = |ns| (!head.cached).then_some(Instant(ns));
        let stamps = [
            Some(Instant(head.app_send)),
            Some(Instant(head.master_in)),
            Some(Instant(head.master_out)),
            Some(Instant(head.server_in)),
            read(head.start_read),
            read(head.end_read),
            Some(Instant(head.start_write)),
            None,
            Some(at),
        ];
        Self {
            unit: head.unit,
            set: head.set,
            number: head.number,
            serial: head.serial,
            server: head.server,
            bytes: head.length,
            cached: head.cached,
            at: stamps,
            flushed: None,
            given_up: None,
        }
    }

    /// The histories of the blocks that a server discarded. `numbers` maps a block's index in its list to its number.
    pub fn of_flushed(
        flushed: &Flushed,
        numbers: impl Fn(u32) -> u64,
    ) -> impl Iterator<Item = Self> {
        flushed.blocks.iter().map(move |block| {
            let after = |us: u32| {
                (us != NOT_READ)
                    .then(|| Instant(flushed.server_in.saturating_add(u64::from(us) * 1000)))
            };
            let [app_send, master_in, master_out] = flushed.stamps.map(|ns| Some(Instant(ns)));
            let server_in = Some(Instant(flushed.server_in));
            let [start, end, write] =
                [block.start_read, block.end_read, block.start_write].map(after);
            Self {
                unit: flushed.first_unit.wrapping_add(block.index.into()),
                set: flushed.set,
                number: numbers(block.index),
                serial: flushed.serial,
                server: flushed.server,
                bytes: 0,
                cached: false,
                at: [
                    app_send, master_in, master_out, server_in, start, end, write, None, None,
                ],
                flushed: Some(Instant(flushed.at)),
                given_up: None,
            }
        })
    }

    /// The history of a block that was asked for at the moment `at` and of which nothing came back.
    #[must_use]
    pub const fn unanswered(unit: u64, set: u32, number: u64, serial: u64, at: Instant) -> Self {
        let mut stamps = [None; 9];
        stamps[BlockPathPoint::AppSend as usize] = Some(at);
        Self {
            unit,
            set,
            number,
            serial,
            server: u16::MAX,
            bytes: 0,
            cached: false,
            at: stamps,
            flushed: None,
            given_up: None,
        }
    }

    /// When the block passed a point, if that is known.
    #[must_use]
    pub const fn passed(&self, point: BlockPathPoint) -> Option<Instant> {
        self.at[point as usize]
    }
}
