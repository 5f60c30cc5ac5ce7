//! Simulated sessions whose limits are known: the first finding names them. The five of the paper's causes, then twenty others that
//! were written down before they were run, then twelve whose reads are drawn.
mod drawn_reads;
mod fixed_reads;
mod paper_causes;

use stackline_analyze::findings::{Finding, of_events};
use stackline_blocks::demand::{BlockListSchedule, Demand};
use stackline_blocks::placement::BlockPlacementPolicy;
use stackline_blocks::set::BlockSet;
use stackline_blockserver::simulated::{
    BlockProcessingCosts, BlockScene, SimulatedServer, carry_out, event_table,
};
use stackline_core::distribution::Distribution;
use stackline_core::plan::Plan;
use stackline_core::random::Seed;
use stackline_core::time::Duration;
use stackline_sim::{CAPABILITIES, stack_tables};
use stackline_spec::{Available, CheckContext, Overrides, check};

const fn ms(ms: u64) -> Duration {
    Duration(ms * 1_000_000)
}

/// A session: so many servers of so many disks with reads of so many ms, lists of so many blocks every so many ms, for `seconds`.
#[derive(Clone)]
struct Given {
    network: String,
    stack: &'static str,
    servers: usize,
    disks: usize,
    read_ms: f64,
    blocks: u32,
    every: u64,
    seconds: u64,
    costs: BlockProcessingCosts,
    supersedes: bool,
    seed: u64,
    /// Whether reads are drawn, by an exponential distribution.
    drawn: bool,
}

fn given(network: String, servers: usize) -> Given {
    let costs = BlockProcessingCosts::default();
    let (stack, disks, read_ms, blocks, every, seconds, supersedes, seed) =
        ("tcp", 4, 5.0, 40, 200, 4, true, 1);
    Given {
        network,
        stack,
        servers,
        disks,
        read_ms,
        blocks,
        every,
        seconds,
        costs,
        supersedes,
        seed,
        drawn: false,
    }
}

/// A switch with so many servers at it, `server` and `client` being the words of their links.
fn star(servers: usize, switch: &str, server: &str, client: &str) -> String {
    let names: String = (1..=servers).map(|at| format!(", s{at}")).collect();
    let links: String = (1..=servers)
        .map(|at| format!("link s{at} - x {server}; "))
        .collect();
    format!(
        "network net {{ host app, m{names}; switch x {switch} link app - x {client}; link m - x {server}; {links}}}"
    )
}

/// A switch with so many servers at it, all links of 622 Mbit/s.
fn fast(servers: usize) -> String {
    star(servers, ";", "622 Mbit/s 80 us", "622 Mbit/s 80 us")
}

fn plan(network: &str, stack: &str) -> Plan {
    let stacks = stack_tables();
    let read_file = |_: &str| Err("no file".to_string());
    let worlds = [Available {
        can: CAPABILITIES,
        stacks: &stacks,
    }];
    let text = format!("{network} 1 from app to m rr 1*1 over {stack} across net;");
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

fn diagnosed(given: &Given) -> Vec<Finding> {
    let plan = plan(&given.network, given.stack);
    let mean = given.read_ms / 1e3;
    let read = if given.drawn {
        Distribution::Exponential(mean)
    } else {
        Distribution::Constant(mean)
    };
    let server = |at: usize| SimulatedServer {
        host: format!("s{at}"),
        disks: vec![read.clone(); given.disks],
        cache: 0,
    };
    let (block_size, placement, picture) = (49_152, BlockPlacementPolicy::RoundRobin, None);
    let set = BlockSet {
        name: "set".into(),
        block_size,
        bytes: 65_536 * 49_152,
        replicas: 1,
        placement,
        picture,
    };
    let scene = BlockScene {
        network: &plan.networks[0],
        master: "m".into(),
        client: "app".into(),
        servers: (1..=given.servers).map(server).collect(),
        stack: &plan.measurements[0].parts[0].stack,
        costs: given.costs,
        given: Vec::new(),
        sets: vec![(set, Demand::Sequential(given.blocks))],
        schedule: BlockListSchedule {
            interval: ms(given.every),
            duration: ms(1000 * given.seconds),
        },
        keeps: 0,
        most: 8192,
        supersedes: given.supersedes,
        histories: true,
        seed: Seed::root(given.seed),
    };
    let outcome = carry_out(&scene, ()).unwrap().0;
    of_events(&event_table(&scene, &outcome))
}

/// The first finding is of that kind and says those words.
fn first(name: &str, given: &Given, kind: &str, words: &[&str]) -> Option<String> {
    let found = diagnosed(given);
    let says = |finding: &Finding| {
        finding.kind == kind && words.iter().all(|words| finding.sentence.contains(words))
    };
    let all: Vec<String> = found
        .iter()
        .map(|one| format!("{} {:.2}: {}", one.kind, one.rank(), one.sentence))
        .collect();
    let proved = |finding: &Finding| {
        !finding.evidence.is_empty() && (kind == "healthy" || !finding.tries.is_empty())
    };
    let right = found
        .first()
        .is_some_and(|first| says(first) && proved(first));
    (!right).then(|| format!("{name}: {kind} {words:?} expected, found {all:#?}"))
}

fn all_right(wrong: impl Iterator<Item = Option<String>>) {
    let wrong: Vec<String> = wrong.flatten().collect();
    assert!(
        wrong.is_empty(),
        "{} wrong\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

const DISKS: &str = "DPSS_START_READ to DPSS_END_READ";
const MASTER: &str = "DPSS_MASTER_IN to DPSS_MASTER_OUT";
const ATM: &str = "{ buffer 1500 bytes per port; cells 53; }";
const OC3: &str = "155.52 Mbit/s 100 us mtu 9180";
const COLLAPSE: &str = "x>app (capacity 1500 B)";
