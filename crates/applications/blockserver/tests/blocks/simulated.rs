//! Master, servers and a client in virtual time.
use stackline_blocks::block_history::BlockPathPoint;
use stackline_blocks::demand::{BlockListSchedule, Demand};
use stackline_blocks::placement::BlockPlacementPolicy;
use stackline_blocks::pyramid::Pyramid;
use stackline_blocks::set::BlockSet;
use stackline_blockserver::simulated::{
    BlockProcessingCosts, BlockScene, BlockSceneOutcome, SimulatedServer, carry_out,
};
use stackline_core::distribution::Distribution;
use stackline_core::plan::Plan;
use stackline_core::random::Seed;
use stackline_core::time::Duration;
use stackline_sim::{CAPABILITIES, stack_tables};
use stackline_spec::{Available, CheckContext, Overrides, check};

fn ms(ms: u64) -> Duration {
    Duration(ms * 1_000_000)
}

fn plan(network: &str, stack: &str) -> Plan {
    plan_of(network, "app", "m", stack)
}

fn plan_of(network: &str, from: &str, to: &str, stack: &str) -> Plan {
    let stacks = stack_tables();
    let read_file = |_: &str| Err("no file".to_string());
    let worlds = [Available {
        can: CAPABILITIES,
        stacks: &stacks,
    }];
    let text = format!("{network} 1 from {from} to {to} rr 1*1 over {stack} across net;");
    let checked = check(
        &text,
        &CheckContext {
            worlds: &worlds,
            read_file: &read_file,
            cores: &[],
        },
        &Overrides::default(),
    );
    checked
        .plan
        .unwrap_or_else(|| panic!("{:?}", checked.diagnostics))
}

const LAN: &str = "network net { host app, m, s1, s2; switch x; link app - x 100 Mbit/s 100 us;
    link m - x 100 Mbit/s 100 us; link s1 - x 100 Mbit/s 100 us; link s2 - x 100 Mbit/s 100 us; }";

struct Given<'t> {
    network: &'t str,
    stack: &'t str,
    disk: f64,
    disks: usize,
    costs: BlockProcessingCosts,
    demand: Demand,
    supersedes: bool,
    cache: u64,
}

impl Default for Given<'_> {
    fn default() -> Self {
        let (costs, demand, cache) = (BlockProcessingCosts::default(), Demand::Sequential(20), 0);
        Self {
            network: LAN,
            stack: "tcp",
            disk: 0.01,
            disks: 4,
            costs,
            demand,
            supersedes: true,
            cache,
        }
    }
}

fn run(given: Given<'_>, seed: u64) -> BlockSceneOutcome {
    let plan = plan(given.network, given.stack);
    let server = |host: &str| SimulatedServer {
        host: host.into(),
        disks: vec![Distribution::Constant(given.disk); given.disks],
        cache: given.cache,
    };
    let (block_size, placement, picture) = (49_152, BlockPlacementPolicy::RoundRobin, None);
    let set = BlockSet {
        name: "set".into(),
        block_size,
        bytes: 4096 * 49_152,
        replicas: 1,
        placement,
        picture,
    };
    let scene = BlockScene {
        network: &plan.networks[0],
        master: "m".into(),
        client: "app".into(),
        servers: vec![server("s1"), server("s2")],
        stack: &plan.measurements[0].parts[0].stack,
        costs: given.costs,
        sets: vec![(set, given.demand)],
        given: Vec::new(),
        schedule: BlockListSchedule {
            interval: ms(200),
            duration: ms(2000),
        },
        keeps: 0,
        most: 8192,
        supersedes: given.supersedes,
        histories: true,
        seed: Seed::root(seed),
    };
    carry_out(&scene, ()).unwrap().0
}

#[test]
fn what_the_path_carries_is_delivered_before_it_is_superseded() {
    // 20 blocks of 48 KiB in 200 ms are 39 Mbit/s, less than half of the link and of eight disks of 10 ms.
    let outcome = run(Given::default(), 1);
    let score = &outcome.record.score;
    assert_eq!(
        (score.lists, score.requested, score.delivered),
        (10, 200, 200)
    );
    assert_eq!((score.late, score.servers.len()), (0, 2));
    assert_eq!(
        outcome
            .servers
            .iter()
            .map(|server| server.sent_again)
            .sum::<u64>(),
        0
    );
}

#[test]
fn segments_take_what_costs_disks_and_links_say() {
    let costs = BlockProcessingCosts {
        translate: ms(2),
        forward: ms(5),
        parse: ms(3),
        enter: ms(8),
        ..BlockProcessingCosts::default()
    };
    let mut outcome = run(
        Given {
            costs,
            demand: Demand::Sequential(1),
            disk: 0.022,
            ..Given::default()
        },
        1,
    );
    let score = &mut outcome.record.score;
    let mut median = |at: usize| {
        let times = score.segment(at);
        times[times.len() / 2] as f64 / 1e6
    };
    let medians: Vec<f64> = (0..8).map(&mut median).collect();
    let near = |at: usize, least: f64, most: f64| {
        assert!((least..=most).contains(&medians[at]), "{at}: {medians:?}");
    };
    near(0, 0.2, 0.3);
    near(1, 2.0, 2.0);
    near(2, 5.2, 5.3);
    near(3, 3.0, 3.0);
    near(4, 30.0, 30.0);
    near(5, 0.0, 0.1);
    // 49,270 bytes at 100 Mbit/s with headers, and a switch that stores and forwards; windows may take a round trip more.
    near(6, 4.2, 6.0);
    let sum: f64 = medians[..7].iter().sum();
    assert!((sum - medians[7]).abs() < 1.0, "{medians:?}");
}

#[test]
fn what_is_too_much_is_discarded_at_the_servers_and_the_link_stays_full() {
    // 300 blocks in 200 ms are six times the link; the cache holds all, so the disks are not in the way.
    let outcome = run(
        Given {
            demand: Demand::Sequential(300),
            disk: 0.0001,
            ..Given::default()
        },
        1,
    );
    let score = &outcome.record.score;
    let flushed: u64 = score.servers.values().map(|server| server.flushed).sum();
    let useful = score.useful_bytes as f64 * 8.0 / 2.0;
    assert!(flushed > 2000, "{flushed}");
    assert!(useful > 0.8 * 95e6, "{useful} bit/s");
    // Every block is somewhere: it came, was discarded, or is still on its way.
    let ended = score.delivered + score.late + flushed;
    assert!(
        ended <= score.requested && ended + 320 >= score.requested,
        "{ended} of {}",
        score.requested
    );
    assert!(
        outcome
            .record
            .histories
            .iter()
            .all(|one| one.flushed.is_some() || one.passed(BlockPathPoint::AppReceive).is_some())
    );
}

#[test]
fn slow_disks_leave_lines_that_end_in_the_read_queue() {
    let outcome = run(
        Given {
            demand: Demand::Sequential(60),
            disk: 0.05,
            disks: 2,
            ..Given::default()
        },
        1,
    );
    let flushed: Vec<_> = outcome
        .record
        .histories
        .iter()
        .filter(|one| one.flushed.is_some())
        .collect();
    let unread = flushed
        .iter()
        .filter(|one| one.passed(BlockPathPoint::StartRead).is_none())
        .count();
    assert!(
        unread * 10 > flushed.len() * 8,
        "{unread} of {}",
        flushed.len()
    );
    // Four disks of 50 ms read 16 blocks in 200 ms, of which those that are being read when the next list comes are not sent.
    let per_list = outcome.record.score.delivered as f64 / 10.0;
    assert!((12.0..=16.0).contains(&per_list), "{per_list}");
}

#[test]
fn a_slow_application_leaves_lines_that_end_in_the_write_queue() {
    let costs = BlockProcessingCosts {
        receive: ms(20),
        ..BlockProcessingCosts::default()
    };
    let stack = "tcp(send_buffer = 64 KiB, receive_buffer = 64 KiB)";
    let outcome = run(
        Given {
            demand: Demand::Sequential(60),
            disk: 0.001,
            costs,
            stack,
            ..Given::default()
        },
        1,
    );
    let flushed: Vec<_> = outcome
        .record
        .histories
        .iter()
        .filter(|one| one.flushed.is_some())
        .collect();
    let read = flushed
        .iter()
        .filter(|one| one.passed(BlockPathPoint::EndRead).is_some())
        .count();
    assert!(read * 10 > flushed.len() * 8, "{read} of {}", flushed.len());
}

#[test]
fn what_is_in_memory_is_not_read_again() {
    let demand = Demand::CapturedLists(
        (0..5)
            .map(|list| (ms(200 * list), (0..10).collect()))
            .collect(),
    );
    let outcome = run(
        Given {
            demand,
            cache: 1 << 30,
            ..Given::default()
        },
        1,
    );
    let cached: u64 = outcome
        .record
        .score
        .servers
        .values()
        .map(|server| server.cached)
        .sum();
    assert_eq!((outcome.record.score.delivered, cached), (50, 40));
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let lossy = LAN.replace("100 us;", "100 us loss 1%;");
    let given = || Given {
        network: &lossy,
        demand: Demand::Random(30),
        ..Given::default()
    };
    let (one, other, third) = (run(given(), 1), run(given(), 1), run(given(), 2));
    assert_eq!(one.record.histories, other.record.histories);
    assert_ne!(one.record.histories, third.record.histories);
    assert!(one.servers.iter().any(|server| server.sent_again > 0));
}

/// A session whose lists, each 200 ms, ask for five times what the path carries: useful bytes of each second after the first as a
/// share of what the bottleneck carries.
fn shares(servers: &[&str], (mbit, ms_each_way, queue): (u64, u64, &str), blocks: u32) -> Vec<f64> {
    let links: String = servers
        .iter()
        .map(|server| format!("link {server} - edge 100 Mbit/s 1 ms; "))
        .collect();
    let names = servers.join(", ");
    let network = format!(
        "network net {{ host {names}, app; router edge; {links}
        link edge - app {mbit} Mbit/s {ms_each_way} ms queue {queue}; }}"
    );
    let plan = plan_of(&network, "app", servers[0], "tcp");
    let server = |host: &&str| SimulatedServer {
        host: (*host).into(),
        disks: vec![Distribution::Constant(0.0); 4],
        cache: 256 << 20,
    };
    let (block_size, placement, picture) = (49_152, BlockPlacementPolicy::Tiles, Some(PICTURE));
    let bytes = PICTURE.tiles() * 49_152;
    let set = BlockSet {
        name: "set".into(),
        block_size,
        bytes,
        replicas: 1,
        placement,
        picture,
    };
    let scene = BlockScene {
        network: &plan.networks[0],
        master: "app".into(),
        client: "app".into(),
        servers: servers.iter().map(server).collect(),
        stack: &plan.measurements[0].parts[0].stack,
        costs: BlockProcessingCosts::default(),
        sets: vec![(set, Demand::Sequential(blocks))],
        given: Vec::new(),
        schedule: BlockListSchedule {
            interval: ms(200),
            duration: ms(8000),
        },
        keeps: 0,
        most: 8192,
        supersedes: true,
        histories: true,
        seed: Seed::root(1),
    };
    let outcome = carry_out(&scene, ()).unwrap().0;
    let by_second = &outcome.record.score.by_second[1..8];
    by_second
        .iter()
        .map(|bytes| *bytes as f64 * 8.0 / (mbit as f64 * 1e6))
        .collect()
}

const PICTURE: Pyramid = Pyramid {
    width: 8192,
    height: 8192,
    tile: 128,
    pixel_bytes: 3,
};

#[test]
fn a_path_that_is_asked_for_too_much_carries_what_is_wanted() {
    let (slow, faster) = ((20, 4, "64 KiB"), (50, 9, "160 KiB"));
    for (servers, path, blocks, least) in [
        (&["s1"][..], slow, 51, 0.8),
        (&["s1"], faster, 127, 0.8),
        // Half a block of each server is under way when a list comes, and servers know nothing of one another.
        (&["s1", "s2"], slow, 51, 0.78),
        (&["s1", "s2"], faster, 127, 0.79),
    ] {
        let shares = shares(servers, path, blocks);
        assert!(
            shares.iter().all(|share| *share >= least),
            "{servers:?}, {path:?}: {shares:.3?}"
        );
    }
}
