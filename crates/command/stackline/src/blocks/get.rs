//! `stackline blocks get`: reads a set back and checks each block; writes it to a file or a directory, or discards it.

use super::progress_bar;
use crate::exit::{Blame, Error, Exit, Result};
use crate::flags::BlocksGet;
use crate::interrupt::listen_for_ctrl_c;
use crate::output;
use stackline_blocks::pyramid::Tile;
use stackline_blockserver::client::{BlockClient, BlockClientOptions};
use stackline_blockserver::restore::{SetPart, SetReader};
use stackline_guard::interruptible::unless_stopped;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Reads a set, a part of it, or one tile.
pub(super) fn get(flags: &BlocksGet) -> Result {
    let interrupted = Arc::new(AtomicBool::new(false));
    listen_for_ctrl_c([&interrupted])?;
    let (master, name) = (flags.at.master.clone(), flags.set.clone());
    // Runs in a thread, so that an interruption need not wait for a master that does not answer.
    let ended = || {
        Error::new(
            Blame::Interrupted,
            "the read was interrupted before it was complete",
        )
    };
    let (client, set) = unless_stopped(&interrupted, Duration::ZERO, ended, move || {
        let client = BlockClient::connect(&master, BlockClientOptions::default())?;
        let set = client.open(&name)?;
        Ok((client, set))
    })?;
    let part = match (flags.tile, flags.blocks) {
        (Some((level, row, column)), _) => SetPart::Tile(Tile { level, row, column }),
        (None, Some((first, last))) => SetPart::Blocks(first, last),
        (None, None) => SetPart::Whole,
    };
    let bar = progress_bar::create_byte_bar(0, "");
    let goes_on = || !interrupted.load(Ordering::Relaxed);
    let came = |bytes| bar.inc(bytes);
    let reader = SetReader::new(&client, &set, &came, &goes_on);
    let numbers = reader.numbers(part)?;
    bar.set_length(reader.bytes_of(&numbers));
    bar.set_message(set.about.name.clone());
    let clock = progress_bar::start_clock();
    let read = reader.save(part, flags.output.as_deref());
    bar.finish_and_clear();
    client
        .notes()
        .iter()
        .for_each(|note| output::say(&format!("note: {note}")));
    let read = read?;
    let to = read
        .at
        .map_or_else(String::new, |path| format!(" to {}", path.display()));
    output::print(&format!(
        "read {}: {}{to}\n",
        set.about.name,
        progress_bar::describe_throughput(read.blocks, read.bytes, clock())
    ))?;
    Ok(Exit::Done)
}
