//! The description of a session: which sets the client requests, how and when, and what is kept of it. Sessions on this machine, on a
//! host of an emulated network and in virtual time are all started from it.

use serde::{Deserialize, Serialize};
use stackline_blocks::demand::{BlockListSchedule, Demand};
use stackline_blocks::pyramid_viewer::{PyramidViewer, ViewerMotion};
use stackline_blocks::wire::message::BlockDataTransport;
use stackline_core::named::by_name;
use stackline_core::time::Duration as Ticks;
use stackline_runs::RunFileAccess;
use std::path::PathBuf;
use std::time::Duration;

/// How many blocks a viewer keeps unless the request says otherwise.
const VIEWER_KEEPS: usize = 4096;

/// The description of a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BlockSessionRequest {
    /// The master's address.
    pub master: String,
    /// The sets, each with lists of its own. If none is named: all sets of `captured_lists`.
    pub sets: Vec<String>,
    /// A file of lists that were captured from another session.
    pub captured_lists: Option<PathBuf>,
    /// Blocks of each list, instead of what a viewer needs.
    pub blocks: Option<u32>,
    /// Whether the blocks of a list are drawn at random.
    pub random: bool,
    /// How a viewer moves over the picture.
    #[serde(with = "by_name")]
    pub motion: ViewerMotion,
    /// Pixels of the viewer's window.
    pub window: (u32, u32),
    /// The speed of the viewer, pixels a second.
    pub speed: f64,
    /// The time between two lists.
    pub interval: Duration,
    /// How long lists are sent.
    pub duration: Duration,
    /// How many blocks the client keeps and does not ask for again.
    pub keep: Option<usize>,
    /// The greatest number of blocks of a list.
    pub most: u32,
    /// Whether a list adds to the one before; otherwise it discards what is pending of that.
    pub append: bool,
    /// How blocks travel.
    #[serde(with = "by_name")]
    pub transport: BlockDataTransport,
    /// Servers drop a block that has waited longer than this.
    pub age: Option<Duration>,
    /// The receive buffer of each connection, bytes.
    pub receive_buffer: Option<u64>,
    /// The rate at which datagrams of each server leave, bytes a second.
    pub pace: Option<u64>,
    /// The file that the lists are written to.
    pub capture: Option<PathBuf>,
    /// The root of all randomness.
    pub seed: u64,
    /// The run that is written; without it there are only figures.
    pub run: Option<SessionRun>,
    /// The name of the client's host in the events.
    pub client_name: Option<String>,
    /// The name of the master's host in the events.
    pub master_name: Option<String>,
    /// A file with events of ports, which become part of the run.
    pub ports: Option<PathBuf>,
    /// How many servers the session waits for.
    pub servers: Option<usize>,
}

/// The run that a session is kept as.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SessionRun {
    /// Its name.
    pub name: String,
    /// Whether all users of the machine may read it.
    pub shared: bool,
}

impl SessionRun {
    /// Who may read it.
    #[must_use]
    pub const fn access(&self) -> RunFileAccess {
        match self.shared {
            true => RunFileAccess::Shared,
            false => RunFileAccess::Private,
        }
    }
}

impl BlockSessionRequest {
    /// When lists leave, and for how long.
    #[must_use]
    pub fn schedule(&self) -> BlockListSchedule {
        let of = |time: Duration| Ticks(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        BlockListSchedule {
            interval: of(self.interval),
            duration: of(self.duration),
        }
    }

    /// The rule by which lists are made, if there are no captured lists.
    #[must_use]
    pub fn demand(&self) -> Demand {
        match self.blocks {
            Some(blocks) if self.random => Demand::Random(blocks),
            Some(blocks) => Demand::Sequential(blocks),
            None => Demand::Viewer(PyramidViewer {
                path: self.motion,
                window: self.window,
                speed: self.speed,
            }),
        }
    }

    /// How many blocks the client keeps: a viewer some thousand, a client with lists of fixed length none.
    #[must_use]
    pub fn keeps(&self) -> usize {
        let is_viewer = self.blocks.is_none() && self.captured_lists.is_none();
        self.keep
            .unwrap_or(if is_viewer { VIEWER_KEEPS } else { 0 })
    }
}
