//! `stackline blocks load`: writes a source to the disk servers as a set. It may be interrupted anywhere: acknowledged
//! blocks stay, and the next load of the same source under the same name continues after them.

use super::progress_bar;
use crate::exit::{Blame, Error, Exit, Result};
use crate::flags::BlocksLoad;
use crate::interrupt::listen_for_ctrl_c;
use crate::output;
use indicatif::ProgressBar;
use stackline_blocks::set::BlockSet;
use stackline_blocks::wire::handshake::BlockWriteKey;
use stackline_blockserver::block_source::{self, placement};
use stackline_blockserver::client::{BlockClient, BlockClientOptions};
use stackline_blockserver::load::{self, BlockLoadCounts, BlockLoadOptions};
use stackline_blockserver::{connection, key};
use stackline_guard::interruptible::unless_stopped;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Loads a set.
pub(super) fn load(flags: &BlocksLoad) -> Result {
    let interrupted = Arc::new(AtomicBool::new(false));
    listen_for_ctrl_c([&interrupted])?;
    let key = key::find_key(flags.key.key.as_deref(), |note| output::say(&note))?
        .ok_or_else(connection::no_key)?;
    let bar = progress_bar::create_byte_bar(0, "reading the source");
    let (flags, loading) = (flags.clone(), bar.clone());
    let work = move || loaded(&flags, &key, &loading);
    let ended = || {
        Error::new(
            Blame::Interrupted,
            "the load was interrupted before it was complete",
        )
        .hint("start it again to resume")
    };
    let result = unless_stopped(&interrupted, Duration::ZERO, ended, work);
    bar.finish_and_clear();
    output::print(&result?)?;
    Ok(Exit::Done)
}

/// Loads a set and returns the line to print.
fn loaded(flags: &BlocksLoad, key: &BlockWriteKey, bar: &ProgressBar) -> Result<String> {
    let client = BlockClient::connect(
        &flags.at.master,
        BlockClientOptions {
            key: Some(key.clone()),
            ..BlockClientOptions::default()
        },
    )?;
    let mut opened = block_source::open(&flags.source, flags.block, flags.plain)?;
    opened.note.iter().for_each(output::say);
    let (placement, given) =
        placement::parse_placement(flags.placement.as_deref(), opened.picture.is_some())?;
    if let Some(given) = &given {
        let servers = client.list()?.1;
        placement::check_disks(
            given,
            servers
                .iter()
                .filter(|server| server.up)
                .map(|server| server.disks.len())
                .sum(),
        )?;
    }
    let (block_size, bytes, replicas) = (opened.block, opened.bytes, flags.replicas);
    let name = flags.set.clone();
    let about = BlockSet {
        name,
        block_size,
        bytes,
        replicas,
        placement,
        picture: opened.picture,
    };
    if let Some(fault) = about.fault() {
        return Err(Error::input(format!(
            "cannot create the set {}: {fault}",
            about.name
        )));
    }
    bar.set_length(bytes);
    bar.set_message(about.name.clone());
    bar.reset_eta();
    let clock = progress_bar::start_clock();
    let disk_of =
        given.map(|given| move |number: u64| given[(number % given.len() as u64) as usize]);
    let how = BlockLoadOptions {
        given: disk_of.as_ref().map(|disk| disk as &dyn Fn(u64) -> u32),
        batch: flags.batch,
    };
    let progress = |done: u64| {
        bar.set_position((done * u64::from(block_size)).min(bytes));
        Ok(())
    };
    let loaded = load::load_with(&client, key, &about, &mut *opened.source, how, progress)?;
    Ok(words(&about, loaded, clock()))
}

fn words(
    about: &BlockSet,
    BlockLoadCounts { written, before }: BlockLoadCounts,
    took: Duration,
) -> String {
    // The last block may be shorter than the others, and is written last.
    let bytes = about.bytes.min(written * u64::from(about.block_size));
    let before = match before {
        0 => String::new(),
        _ => format!(" ({before} of {} blocks already existed)", about.blocks()),
    };
    format!(
        "loaded {}: {}{before}\n",
        about.name,
        progress_bar::describe_throughput(written, bytes, took)
    )
}
