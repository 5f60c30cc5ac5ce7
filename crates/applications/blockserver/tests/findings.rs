//! Simulated sessions whose limits are known: the first finding names them. The five of the paper's causes, then twenty others that
//! were written down before they were run.
#![allow(
    clippy::unwrap_used,
    reason = "what helpers of a test cannot do fails the test"
)]

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

#[test]
fn slow_disks_on_a_fast_network() {
    let one = Given {
        read_ms: 40.0,
        ..given(star(3, ";", "1 Gbit/s 50 us", "1 Gbit/s 50 us"), 3)
    };
    all_right(
        [first(
            "disks",
            &Given { blocks: 120, ..one },
            "stage_limited",
            &[DISKS, "s1", "s2", "s3"],
        )]
        .into_iter(),
    );
}

#[test]
fn a_slow_receiver() {
    let costs = BlockProcessingCosts {
        receive: ms(20),
        ..BlockProcessingCosts::default()
    };
    let one = Given {
        costs,
        blocks: 80,
        ..given(star(2, ";", "155 Mbit/s 100 us", "155 Mbit/s 100 us"), 2)
    };
    all_right([first("receiver", &one, "receiver_limited", &["unread"])].into_iter());
}

#[test]
fn three_servers_before_a_port_of_1500_bytes() {
    let one = Given {
        blocks: 90,
        read_ms: 2.0,
        ..given(star(3, ATM, OC3, OC3), 3)
    };
    all_right(
        [first(
            "collapse",
            &one,
            "queue_drop",
            &[COLLAPSE, "frames damaged"],
        )]
        .into_iter(),
    );
}

#[test]
fn a_link_at_its_rate() {
    let one = Given {
        blocks: 150,
        read_ms: 1.0,
        ..given(star(3, ";", "1 Gbit/s 50 us", "100 Mbit/s 50 us"), 3)
    };
    all_right(
        [first(
            "link",
            &one,
            "network_limited",
            &["x>app", "100 Mbit/s"],
        )]
        .into_iter(),
    );
}

#[test]
fn nothing_limits_what_asks_for_little() {
    let one = Given {
        blocks: 12,
        ..given(star(3, ";", "100 Mbit/s 50 us", "100 Mbit/s 50 us"), 3)
    };
    all_right(
        [first(
            "healthy",
            &one,
            "healthy",
            &["nothing is at its limit"],
        )]
        .into_iter(),
    );
}

/// Twenty others.
#[test]
fn twenty_others() {
    let fast = |servers| star(servers, ";", "622 Mbit/s 80 us", "622 Mbit/s 80 us");
    let cost = |costs: BlockProcessingCosts, servers| Given {
        costs,
        ..given(fast(servers), servers)
    };
    let none = BlockProcessingCosts::default();
    let others: [(&str, Given, &str, &[&str]); 20] = [
        (
            "1 two servers of one disk each",
            Given {
                disks: 1,
                read_ms: 12.0,
                ..given(fast(2), 2)
            },
            "stage_limited",
            &[DISKS],
        ),
        (
            "2 one server, paper's disks",
            Given {
                disks: 4,
                read_ms: 22.0,
                blocks: 60,
                ..given(fast(1), 1)
            },
            "stage_limited",
            &[DISKS, "s1"],
        ),
        (
            "3 eight disks, long lists",
            Given {
                disks: 8,
                read_ms: 60.0,
                blocks: 400,
                every: 500,
                ..given(fast(4), 4)
            },
            "stage_limited",
            &[DISKS],
        ),
        (
            "4 disks, lists that do not supersede",
            Given {
                read_ms: 25.0,
                blocks: 80,
                supersedes: false,
                seconds: 8,
                ..given(fast(2), 2)
            },
            "stage_limited",
            &[DISKS],
        ),
        (
            "5 receiver of 40 ms a block",
            Given {
                blocks: 60,
                read_ms: 3.0,
                ..cost(
                    BlockProcessingCosts {
                        receive: ms(40),
                        ..none
                    },
                    3,
                )
            },
            "receiver_limited",
            &[],
        ),
        (
            "6 receiver of 8 ms a block",
            Given {
                blocks: 150,
                read_ms: 3.0,
                ..cost(
                    BlockProcessingCosts {
                        receive: ms(8),
                        ..none
                    },
                    2,
                )
            },
            "receiver_limited",
            &[],
        ),
        (
            "7 receiver, small receive buffer",
            Given {
                blocks: 100,
                read_ms: 2.0,
                stack: "tcp(receive_buffer = 64 KiB)",
                ..cost(
                    BlockProcessingCosts {
                        receive: ms(15),
                        ..none
                    },
                    2,
                )
            },
            "receiver_limited",
            &[],
        ),
        (
            "8 receiver, lists every second",
            Given {
                blocks: 300,
                every: 1000,
                seconds: 8,
                read_ms: 2.0,
                ..cost(
                    BlockProcessingCosts {
                        receive: ms(25),
                        ..none
                    },
                    2,
                )
            },
            "receiver_limited",
            &[],
        ),
        (
            "9 two servers collapse",
            Given {
                blocks: 100,
                read_ms: 2.0,
                ..given(star(2, ATM, OC3, OC3), 2)
            },
            "queue_drop",
            &["x>app"],
        ),
        (
            "10 five servers collapse",
            Given {
                blocks: 120,
                read_ms: 4.0,
                seconds: 6,
                ..given(star(5, ATM, OC3, OC3), 5)
            },
            "queue_drop",
            &["x>app"],
        ),
        (
            "11 collapse at 3000 bytes",
            Given {
                blocks: 120,
                read_ms: 2.0,
                seed: 7,
                ..given(
                    star(4, "{ buffer 3000 bytes per port; cells 53; }", OC3, OC3),
                    4,
                )
            },
            "queue_drop",
            &["x>app"],
        ),
        (
            "12 a queue of 3 packets, no cells",
            Given {
                blocks: 150,
                read_ms: 2.0,
                ..given(
                    star(4, ";", "1 Gbit/s 100 us", "200 Mbit/s 2 ms queue 4500 B"),
                    4,
                )
            },
            "queue_drop",
            &["x>app"],
        ),
        (
            "13 45 Mbit/s, two servers",
            Given {
                blocks: 80,
                read_ms: 2.0,
                ..given(star(2, ";", "622 Mbit/s 50 us", "45 Mbit/s 500 us"), 2)
            },
            "network_limited",
            &["x>app"],
        ),
        (
            "14 servers' own links at 10 Mbit/s",
            Given {
                blocks: 60,
                read_ms: 2.0,
                ..given(star(3, ";", "10 Mbit/s 100 us", "622 Mbit/s 100 us"), 3)
            },
            "network_limited",
            &["10.0 Mbit/s"],
        ),
        (
            "15 OC-3 full, cells, large buffer",
            Given {
                blocks: 200,
                read_ms: 1.0,
                ..given(star(3, "{ buffer 2 MB per port; cells 53; }", OC3, OC3), 3)
            },
            "network_limited",
            &["x>app"],
        ),
        (
            "16 a link that loses 4 %",
            Given {
                blocks: 150,
                read_ms: 2.0,
                ..given(
                    star(2, ";", "622 Mbit/s 50 us", "155 Mbit/s 5 ms loss 4%"),
                    2,
                )
            },
            "link_loss",
            &["x>app"],
        ),
        (
            "17 a master of 260 ms a list",
            Given {
                blocks: 30,
                ..cost(
                    BlockProcessingCosts {
                        translate: ms(260),
                        ..none
                    },
                    3,
                )
            },
            "stage_limited",
            &[MASTER, "at m "],
        ),
        (
            "18 a long way, a send buffer of 64 KiB",
            Given {
                stack: "tcp(send_buffer = 64 KiB)",
                blocks: 60,
                read_ms: 3.0,
                ..given(star(2, ";", "622 Mbit/s 50 us", "622 Mbit/s 40 ms"), 2)
            },
            "socket_buffer",
            &[],
        ),
        (
            "19 a third of what disks and link can",
            Given {
                blocks: 30,
                read_ms: 8.0,
                ..given(star(3, ";", "155 Mbit/s 1 ms", "155 Mbit/s 1 ms"), 3)
            },
            "healthy",
            &[],
        ),
        (
            "20 costs of 1995, slow lists",
            Given {
                blocks: 20,
                read_ms: 22.0,
                every: 500,
                seconds: 8,
                ..cost(
                    BlockProcessingCosts {
                        translate: ms(5),
                        forward: ms(2),
                        parse: ms(3),
                        enter: ms(8),
                        receive: ms(2),
                        ..BlockProcessingCosts::default()
                    },
                    3,
                )
            },
            "healthy",
            &[],
        ),
    ];
    all_right(
        others
            .iter()
            .map(|(name, given, kind, words)| first(name, given, kind, words)),
    );
}

/// Twelve with reads that are drawn, so that servers are not in step: written down after the twenty were right, and before they were run.
#[test]
fn twelve_whose_reads_are_drawn() {
    let drawn = |network, servers, seed| Given {
        drawn: true,
        seed,
        ..given(network, servers)
    };
    let fast = |servers| star(servers, ";", "622 Mbit/s 80 us", "622 Mbit/s 80 us");
    let none = BlockProcessingCosts::default();
    let others: [(&str, Given, &str, &[&str]); 12] = [
        (
            "a three servers collapse",
            Given {
                blocks: 60,
                read_ms: 10.0,
                ..drawn(star(3, ATM, OC3, OC3), 3, 11)
            },
            "queue_drop",
            &[COLLAPSE],
        ),
        (
            "b four servers collapse",
            Given {
                blocks: 80,
                read_ms: 15.0,
                seconds: 8,
                ..drawn(star(4, ATM, OC3, OC3), 4, 12)
            },
            "queue_drop",
            &[COLLAPSE],
        ),
        (
            "c two servers collapse",
            Given {
                blocks: 70,
                read_ms: 6.0,
                seconds: 8,
                ..drawn(star(2, ATM, OC3, OC3), 2, 13)
            },
            "queue_drop",
            &[COLLAPSE],
        ),
        (
            "d collapse, 20 KB of buffer",
            Given {
                blocks: 120,
                read_ms: 6.0,
                seconds: 6,
                ..drawn(
                    star(4, "{ buffer 20 KB per port; cells 53; }", OC3, OC3),
                    4,
                    14,
                )
            },
            "queue_drop",
            &["x>app"],
        ),
        (
            "e disks of 18 ms",
            Given {
                blocks: 160,
                read_ms: 18.0,
                ..drawn(fast(3), 3, 15)
            },
            "stage_limited",
            &[DISKS],
        ),
        (
            "f one slow disk each",
            Given {
                disks: 1,
                blocks: 30,
                read_ms: 25.0,
                ..drawn(fast(3), 3, 16)
            },
            "stage_limited",
            &[DISKS],
        ),
        (
            "g receiver of 12 ms",
            Given {
                blocks: 100,
                read_ms: 5.0,
                costs: BlockProcessingCosts {
                    receive: ms(12),
                    ..none
                },
                ..drawn(fast(2), 2, 17)
            },
            "receiver_limited",
            &[],
        ),
        (
            "h receiver of 30 ms",
            Given {
                blocks: 50,
                read_ms: 12.0,
                costs: BlockProcessingCosts {
                    receive: ms(30),
                    ..none
                },
                ..drawn(fast(3), 3, 18)
            },
            "receiver_limited",
            &[],
        ),
        (
            "i 100 Mbit/s to the client",
            Given {
                blocks: 100,
                read_ms: 9.0,
                ..drawn(star(4, ";", "622 Mbit/s 80 us", "100 Mbit/s 80 us"), 4, 19)
            },
            "network_limited",
            &["x>app"],
        ),
        (
            "j 34 Mbit/s, a queue of 256 KiB",
            Given {
                blocks: 60,
                read_ms: 9.0,
                ..drawn(
                    star(3, ";", "622 Mbit/s 80 us", "34 Mbit/s 2 ms queue 256 KiB"),
                    3,
                    20,
                )
            },
            "network_limited",
            &["x>app"],
        ),
        (
            "k little is asked for",
            Given {
                blocks: 20,
                read_ms: 10.0,
                ..drawn(fast(3), 3, 21)
            },
            "healthy",
            &[],
        ),
        (
            "l a master of 240 ms",
            Given {
                blocks: 25,
                read_ms: 8.0,
                costs: BlockProcessingCosts {
                    translate: ms(240),
                    ..none
                },
                ..drawn(fast(2), 2, 22)
            },
            "stage_limited",
            &[MASTER],
        ),
    ];
    all_right(
        others
            .iter()
            .map(|(name, given, kind, words)| first(name, given, kind, words)),
    );
}
