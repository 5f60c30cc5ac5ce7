//! What a session is: which sets are asked for, how, when, and what is kept of it. Whoever replays one, here, on a host of an emulated
//! network or in virtual time, is given this and nothing else.

use serde::{Deserialize, Serialize};
use stackline_blocks::demand::{BlockListSchedule, Demand};
use stackline_blocks::pyramid_viewer::{PyramidViewer, ViewerMotion};
use stackline_blocks::wire::message::BlockDataTransport;
use stackline_core::named::by_name;
use stackline_core::time::Duration as Ticks;
use stackline_runs::RunFileAccess;
use std::path::PathBuf;
use std::time::Duration;

/// Blocks that a viewer keeps, where nothing else is asked for.
const VIEWER_KEEPS: usize = 4096;

/// A session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BlockSessionRequest {
    /// The master's address.
    pub master: String,
    /// Sets that are asked for, each with lists of its own; all of the trace where none is named.
    pub sets: Vec<String>,
    /// Lists as another session's were captured.
    pub trace: Option<PathBuf>,
    /// So many blocks a list, in the place of a viewer.
    pub blocks: Option<u32>,
    /// Whether they are drawn.
    pub random: bool,
    /// A viewer's way over a picture.
    #[serde(with = "by_name")]
    pub motion: ViewerMotion,
    /// Pixels of the viewer's window.
    pub window: (u32, u32),
    /// Pixels that pass in a second.
    pub speed: f64,
    /// Between two lists.
    pub interval: Duration,
    /// How long lists are sent.
    pub duration: Duration,
    /// Blocks that are kept and not asked for again.
    pub keep: Option<usize>,
    /// Most blocks of a list.
    pub most: u32,
    /// Whether a list adds to the one before, instead of discarding what is pending of it.
    pub append: bool,
    /// How blocks travel.
    #[serde(with = "by_name")]
    pub transport: BlockDataTransport,
    /// Blocks that servers had to hold longer are dropped.
    pub age: Option<Duration>,
    /// The receive buffer of each connection, bytes.
    pub receive_buffer: Option<u64>,
    /// The rate at which datagrams of each server leave, bytes a second.
    pub pace: Option<u64>,
    /// Where the lists are written.
    pub capture: Option<PathBuf>,
    /// The root of all randomness.
    pub seed: u64,
    /// What is kept of it; only figures without.
    pub run: Option<SessionRun>,
    /// The client's host by name, in the events.
    pub client_name: Option<String>,
    /// The same of the master's.
    pub master_name: Option<String>,
    /// A file with events of ports, which are kept too.
    pub ports: Option<PathBuf>,
    /// So many servers are waited for.
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
    /// Between lists, and for how long.
    #[must_use]
    pub fn schedule(&self) -> BlockListSchedule {
        let of = |time: Duration| Ticks(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        BlockListSchedule {
            interval: of(self.interval),
            duration: of(self.duration),
        }
    }

    /// What is asked for, where no trace says it.
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

    /// Blocks that are kept: a viewer's some thousand, of lists of so many blocks none.
    #[must_use]
    pub fn keeps(&self) -> usize {
        let is_viewer = self.blocks.is_none() && self.trace.is_none();
        self.keep
            .unwrap_or(if is_viewer { VIEWER_KEEPS } else { 0 })
    }
}
