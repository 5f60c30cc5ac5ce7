//! Sessions by the clock, over loopback.

use crate::common::{Site, set};
use stackline_blocks::block_history::BlockPathPoint;
use stackline_blocks::demand::{BlockListSchedule, Demand};
use stackline_blockserver::client::BlockClientOptions;
use stackline_blockserver::list_file;
use stackline_blockserver::list_replay::{BlockReplayOutcome, BlockReplaySession, run};
use stackline_core::random::Seed;
use stackline_core::time::Duration;
use stackline_testing::PATIENCE;
use std::sync::atomic::{AtomicBool, Ordering};

fn ms(ms: u64) -> Duration {
    Duration(ms * 1_000_000)
}

/// Lists that add to one another, each 100 ms, until so many blocks have come, however long that takes.
fn session(
    site: &Site,
    demand: Demand,
    options: BlockClientOptions,
    blocks: usize,
) -> BlockReplayOutcome {
    let client = site.client(BlockClientOptions {
        first_unit: Some(1),
        report: true,
        discard: true,
        ..options
    });
    let open = client.open("map").unwrap();
    let enough = AtomicBool::new(false);
    let session = BlockReplaySession {
        sets: vec![(open, demand)],
        schedule: BlockListSchedule {
            interval: ms(100),
            duration: Duration::from_seconds(PATIENCE.as_secs_f64()),
        },
        keeps: 0,
        most: 8192,
        supersedes: false,
        histories: true,
        seed: Seed::root(1),
        interrupted: &enough,
    };
    // It is shown about once a second what there is so far.
    let outcome = run(&client, &session, |record| {
        enough.store(record.histories.len() >= blocks, Ordering::Relaxed);
    });
    let outcome = outcome.unwrap();
    assert!(outcome.interrupted, "it ends when all has come");
    outcome
}

#[test]
fn a_session_gets_what_it_asks_for_and_knows_every_hop() {
    let site = Site::new(2);
    site.load(&set("map", 1000, 1)).unwrap();
    let outcome = session(
        &site,
        Demand::Sequential(10),
        BlockClientOptions::default(),
        90,
    );
    let score = &outcome.record.score;
    assert_eq!(score.requested, 10 * score.lists);
    let last = outcome
        .record
        .histories
        .iter()
        .max_by_key(|one| one.unit)
        .unwrap()
        .unit;
    for one in outcome
        .record
        .histories
        .iter()
        .filter(|one| one.unit < last - 1)
    {
        let mut points = BlockPathPoint::ALL.to_vec();
        if one.cached {
            points.retain(|point| {
                !matches!(point, BlockPathPoint::StartRead | BlockPathPoint::EndRead)
            });
        }
        // The last block of each connection is the only one whose end of writing nobody told.
        points.retain(|point| *point != BlockPathPoint::EndWrite);
        let times: Vec<u64> = points
            .iter()
            .map(|point| one.passed(*point).unwrap().0)
            .collect();
        assert!(times.is_sorted(), "{one:?}");
    }
    let ends = outcome
        .record
        .histories
        .iter()
        .filter(|one| one.passed(BlockPathPoint::EndWrite).is_some())
        .count();
    assert!(ends + 2 >= outcome.record.histories.len(), "{ends}");
}

#[test]
fn a_captured_session_asks_for_the_same_again() {
    let site = Site::new(1);
    site.load(&set("map", 1000, 1)).unwrap();
    let file = site.directory.path().join("lists");
    session(
        &site,
        Demand::Random(5),
        BlockClientOptions {
            capture: Some(file.clone()),
            ..BlockClientOptions::default()
        },
        45,
    );
    let lists = list_file::read_lists(&file).unwrap().remove("map").unwrap();
    assert!(lists.len() >= 9 && lists.iter().all(|(_, blocks)| blocks.len() == 5));
    let blocks = 5 * lists.len();
    let outcome = session(
        &site,
        Demand::CapturedLists(lists.clone()),
        BlockClientOptions::default(),
        blocks,
    );
    assert_eq!(outcome.record.score.requested, blocks as u64);
    let asked: Vec<u64> = lists
        .iter()
        .flat_map(|(_, blocks)| blocks.clone())
        .collect();
    let mut came: Vec<_> = outcome
        .record
        .histories
        .iter()
        .map(|one| (one.unit, one.number))
        .collect();
    came.sort_unstable();
    let (first, _) = came[0];
    assert!(
        came.len() == blocks
            && came
                .iter()
                .all(|(unit, number)| asked[(unit - first) as usize] == *number),
        "{came:?}"
    );
}
