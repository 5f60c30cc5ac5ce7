//! What is known of one block on its way: when it passed which point, and how it ended. It came back with the block, or
//! with the word that it was discarded.

use crate::wire::server_messages::{BlockHead, Flushed, NOT_READ};
use stackline_core::time::Instant;

/// The points of a block's way, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BlockPathPoint {
    /// The application sends its list.
    AppSend,
    /// The master has it.
    MasterIn,
    /// The master sends it on.
    MasterOut,
    /// The server has it.
    ServerIn,
    /// Reading begins.
    StartRead,
    /// It is in memory and in the write queue.
    EndRead,
    /// It is handed to the transport.
    StartWrite,
    /// The transport has taken it.
    EndWrite,
    /// The application has it.
    AppReceive,
}

impl BlockPathPoint {
    /// All of them.
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

    /// The keyword of its event; the names that the paper prints, where it prints them (sections 3.1 and 4.3.1).
    #[must_use]
    pub const fn keyword(self) -> &'static str {
        match self {
            Self::AppSend => "TV_REQ_TILE",
            Self::MasterIn => "DPSS_MASTER_IN",
            Self::MasterOut => "DPSS_MASTER_OUT",
            Self::ServerIn => "DPSS_SERV_IN",
            Self::StartRead => "DPSS_START_READ",
            Self::EndRead => "DPSS_END_READ",
            Self::StartWrite => "DPSS_START_WRITE",
            Self::EndWrite => "DPSS_END_WRITE",
            Self::AppReceive => "TV_RECV_TILE",
        }
    }

    /// Whether it is at the master, at the server, or with the application.
    #[must_use]
    pub const fn place(self) -> BlockPathNode {
        match self {
            Self::AppSend | Self::AppReceive => BlockPathNode::Application,
            Self::MasterIn | Self::MasterOut => BlockPathNode::Master,
            _ => BlockPathNode::Server,
        }
    }
}

/// Where a point is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockPathNode {
    /// With the application.
    Application,
    /// At the master.
    Master,
    /// At a disk server.
    Server,
}

/// The keyword of a block that a newer list discarded.
pub const FLUSH: &str = "DPSS_FLUSH";
/// The keyword of a block of which nothing came when its client asked for others.
pub const GIVEN_UP: &str = "TV_GIVEN_UP";

/// One block on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// The unit that the client gave it.
    pub unit: u64,
    /// Of which set.
    pub set: u32,
    /// Its number.
    pub number: u64,
    /// Of which list.
    pub serial: u64,
    /// Which server; the highest number where that is not known.
    pub server: u16,
    /// Its bytes.
    pub bytes: u32,
    /// Whether it was in memory.
    pub cached: bool,
    /// When it passed each point.
    pub at: [Option<Instant>; 9],
    /// When it was discarded.
    pub flushed: Option<Instant>,
    /// When its client asked for other blocks of its set while nothing of it had come, and nothing came later.
    pub given_up: Option<Instant>,
}

impl History {
    /// Of a block that came at that moment.
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

    /// Of the blocks that were discarded; their numbers by their places in the list.
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

    /// Of a block that was asked for then, of which nothing came back: of a set, its number there, of a list.
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

    /// When it passed a point.
    #[must_use]
    pub const fn passed(&self, point: BlockPathPoint) -> Option<Instant> {
        self.at[point as usize]
    }
}
