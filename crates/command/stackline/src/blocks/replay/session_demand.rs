//! What a session asks for, and when, as flags say.

use crate::flags::{Replay, ViewerPath};
use stackline_blocks::demand::{BlockListSchedule, Demand};
use stackline_blocks::pyramid_viewer::{PyramidViewer, ViewerMotion};
use stackline_core::time::Duration;

/// Between lists, and for how long.
pub(super) fn schedule(flags: &Replay) -> BlockListSchedule {
    let of =
        |time: std::time::Duration| Duration(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    BlockListSchedule {
        interval: of(flags.interval),
        duration: of(flags.duration),
    }
}

/// What is asked for, where no trace says it.
pub(super) fn demand(flags: &Replay) -> Demand {
    match flags.blocks {
        Some(blocks) if flags.random => Demand::Random(blocks),
        Some(blocks) => Demand::Sequential(blocks),
        None => {
            let path = match flags.path {
                ViewerPath::Pan => ViewerMotion::Pan,
                ViewerPath::Zoom => ViewerMotion::Zoom,
                ViewerPath::Flight => ViewerMotion::Flight,
            };
            Demand::Viewer(PyramidViewer {
                path,
                window: flags.window,
                speed: flags.speed,
            })
        }
    }
}

/// Blocks that are kept: a viewer's some thousand, of lists of so many blocks none.
pub(super) fn keeps(flags: &Replay) -> usize {
    flags
        .keep
        .unwrap_or(if flags.blocks.is_some() || flags.trace.is_some() {
            0
        } else {
            4096
        })
}
