//! Twenty sessions whose reads all take the same time.

use super::*;

/// Twenty others.
#[test]
fn twenty_others() {
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
