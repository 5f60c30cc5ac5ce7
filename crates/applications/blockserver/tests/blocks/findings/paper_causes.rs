//! The five causes of the paper, one session each.

use super::*;

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
