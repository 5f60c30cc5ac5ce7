//! Replays lists at fixed times, whatever became of the lists before, and records the blocks that come; their data is not kept (tv_sim;
//! Tierney et al. 1996, section 2.1.5).

use crate::client::{BlockClient, BlockClientEvent, OpenSet};
use crate::server::now;
use stackline_blocks::demand::{Asker, BlockListSchedule, Demand};
use stackline_blocks::session_record::{BlockSessionRecord, SentListRecord};
use stackline_core::error::{Error, Result};
use stackline_core::random::Seed;
use stackline_core::time::{Duration, Instant};
use std::sync::atomic::{AtomicBool, Ordering};

/// The longest wait before checking whether the session should end (ns).
const LOOK: Duration = Duration(50_000_000);

/// What a session asks for.
#[derive(Debug)]
pub struct BlockReplaySession<'s> {
    /// The open sets, each with the rule by which its lists are made.
    pub sets: Vec<(OpenSet, Demand)>,
    /// When lists are sent.
    pub schedule: BlockListSchedule,
    /// The number of blocks that the client keeps and does not ask for again.
    pub keeps: usize,
    /// The largest number of blocks in a list.
    pub most: usize,
    /// Whether a newer list discards the older one.
    pub supersedes: bool,
    /// Whether the histories of all blocks are recorded.
    pub histories: bool,
    /// The seed of all random choices.
    pub seed: Seed,
    /// Set by another thread to end the session early.
    pub interrupted: &'s AtomicBool,
}

/// The outcome of a session.
#[derive(Debug)]
pub struct BlockReplayOutcome {
    /// The session's record.
    pub record: BlockSessionRecord,
    /// When the session ended.
    pub end: Instant,
    /// The longest time by which a list was sent too late.
    pub latest: Duration,
    /// Whether the session was ended early.
    pub interrupted: bool,
    /// The servers that were lost, and why.
    pub gone: Vec<(String, String)>,
}

/// Runs a session. `progress` is called about once a second with the record so far.
///
/// # Errors
/// If a set has no picture to view, or no list can be sent any more.
pub fn run(
    client: &BlockClient,
    session: &BlockReplaySession<'_>,
    mut progress: impl FnMut(&BlockSessionRecord),
) -> Result<BlockReplayOutcome> {
    let mut askers = askers_of(session)?;
    let mut record = BlockSessionRecord::new(session.histories);
    let began = now();
    let end = began + session.schedule.duration;
    let (mut latest, mut gone) = (Duration::ZERO, Vec::new());
    let mut last_progress = began;
    let mut interrupted = false;
    loop {
        interrupted |= session.interrupted.load(Ordering::Relaxed);
        if interrupted {
            break;
        }
        let next = askers
            .iter()
            .enumerate()
            .filter_map(|(at, (_, asker))| Some((began + asker.next_at()?, at)))
            .min();
        let due = next.map_or(end, |(at, _)| at.min(end));
        let present = now();
        if present >= due {
            match next.filter(|(at, _)| *at < end) {
                Some((at, index)) => {
                    latest = Duration(latest.0.max(present.since(at).0));
                    let (set, asker) = &mut askers[index];
                    send(client, &mut record, *set, asker.list(), session.supersedes)?;
                    continue;
                }
                None => break,
            }
        }
        if present.since(last_progress).0 >= 1_000_000_000 {
            last_progress = present;
            progress(&record);
        }
        let wait = due.since(present).0.min(LOOK.0);
        match client.next(Some(std::time::Duration::from_nanos(wait))) {
            Some(BlockClientEvent::Block(block)) => {
                record.came(&block.head, block.at, block.wanted);
                if let Some((_, asker)) = askers.iter_mut().find(|(set, _)| *set == block.head.set)
                {
                    asker.came(block.head.number);
                }
            }
            Some(BlockClientEvent::Flushed(flushed)) => record.flushed(&flushed),
            Some(BlockClientEvent::Failed { set, number, .. }) => record.failed(set, number),
            Some(BlockClientEvent::ServerGone { name, words }) => gone.push((name, words)),
            Some(_) | None => {}
        }
    }
    let end = now();
    client
        .finish()
        .into_iter()
        .for_each(|tally| record.ended(tally));
    Ok(BlockReplayOutcome {
        record,
        end,
        latest,
        interrupted,
        gone,
    })
}

/// The generators of the lists of all sets, with the sets' numbers.
fn askers_of(session: &BlockReplaySession<'_>) -> Result<Vec<(u32, Asker)>> {
    let mut askers = Vec::new();
    for (index, (set, demand)) in session.sets.iter().enumerate() {
        if matches!(demand, Demand::Viewer(_)) && set.about.picture.is_none() {
            return Err(
                Error::input(format!("the set {} has no picture to view", set.about.name))
                    .hint("use --blocks N to request N blocks per list from any set"),
            );
        }
        let seed = session.seed.child("viewer").index(index as u64);
        let asker = Asker::new(
            &set.about,
            demand.clone(),
            session.schedule,
            session.keeps,
            session.most,
            seed,
        );
        askers.push((set.id, asker));
    }
    Ok(askers)
}

fn send(
    client: &BlockClient,
    record: &mut BlockSessionRecord,
    set: u32,
    blocks: Vec<u64>,
    supersedes: bool,
) -> Result<()> {
    let (at, numbers) = (now(), blocks.clone());
    let sent = client.request(set, blocks, supersedes)?;
    if let Some(tally) = sent.before {
        record.over(tally);
    }
    record.sent(
        sent.first_unit,
        SentListRecord {
            at,
            set,
            serial: sent.serial,
            blocks: numbers,
        },
    );
    Ok(())
}
