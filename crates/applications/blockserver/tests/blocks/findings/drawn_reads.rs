//! Twelve sessions whose reads take times that are drawn.

use super::*;

/// Twelve with reads that are drawn, so that servers are not in step: written down after the twenty were right, and before they were run.
#[test]
fn twelve_whose_reads_are_drawn() {
    let drawn = |network, servers, seed| Given {
        drawn: true,
        seed,
        ..given(network, servers)
    };
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
