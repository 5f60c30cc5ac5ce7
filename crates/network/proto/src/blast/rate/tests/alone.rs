//! One sender with a link of its own.

use super::across::{Across, Flow};
use super::blasts::Blasts;
use super::link::Link;
use super::{ours, shares, theirs};
use crate::blast::BlastPacing;
use crate::blast::rate::{Answered, Rate};
use alloc::boxed::Box;
use stackline_core::time::{Duration, Instant};

const MS: u64 = 1_000_000;

fn across(link: Link) -> Across {
    let mut across = Across::new(link);
    across.add(ours(across.now));
    across
}

/// What it gets in `seconds` after `warm` seconds, and what it sends more than arrives, both as shares.
fn steady(link: Link, warm: f64, seconds: f64) -> (f64, f64) {
    let mut across = across(link);
    across.run(warm);
    let before = across.blasts(0).sent();
    let share = shares(&mut across, seconds)[0];
    let (again, all) = across.blasts(0).sent();
    (share, (again - before.0) as f64 / (all - before.1) as f64)
}

#[test]
fn nine_tenths_of_a_long_path_with_random_loss_and_hardly_anything_twice() {
    for queue in [0.25, 1.0] {
        let (share, redundant) = steady(Link::new(500.0, 20.0, queue).losing(0.001), 1.0, 2.0);
        assert!(
            share > 0.9 && redundant < 0.005,
            "queue {queue}: {share} {redundant}"
        );
    }
}

#[test]
fn it_keeps_a_deep_queue_short() {
    let mut across = across(Link::new(100.0, 20.0, 4.0));
    across.run(2.0);
    for _ in 0..200 {
        across.run(0.01);
        assert!(across.link.waiting(across.now) < 0.016);
    }
}

#[test]
fn random_loss_that_breaks_tcp_slows_it_little() {
    for (loss, least) in [(0.01, 0.85), (0.02, 0.75)] {
        let link = || Link::new(100.0, 20.0, 1.0).losing(loss);
        let (share, redundant) = steady(link(), 2.0, 8.0);
        assert!(
            share > least && redundant < 1.5 * loss,
            "{share} {redundant}"
        );
        let mut tcp = Across::new(link());
        tcp.add(theirs(tcp.now));
        tcp.run(2.0);
        assert!(shares(&mut tcp, 8.0)[0] < 0.2);
    }
}

#[test]
fn it_starts_within_some_round_trips_and_drains_the_excess() {
    let mut across = across(Link::new(100.0, 20.0, 1.0));
    across.run(0.3);
    assert!(shares(&mut across, 0.2)[0] > 0.7);
    across.run(0.3);
    assert!(
        across.link.waiting(across.now) < 0.006,
        "{}",
        across.link.waiting(across.now)
    );
}

#[test]
fn a_narrow_link_holds_it_back_without_a_collapse() {
    for queue in [0.5, 1.0, 4.0] {
        let (share, redundant) = steady(Link::new(12.0, 20.0, queue), 1.0, 10.0);
        assert!(
            share > 0.9 && redundant < 0.02,
            "queue {queue}: {share} {redundant}"
        );
    }
}

#[test]
fn a_link_that_becomes_narrow_and_wide_again_is_followed() {
    let mut across = across(Link::new(200.0, 20.0, 1.0));
    across.run(2.0);
    (across.link.rate, across.link.queue) = (12e6, 30_000.0);
    across.run(3.0);
    let sent = across.blasts(0).sent().1;
    assert!(shares(&mut across, 2.0)[0] > 0.8);
    let packets = (across.blasts(0).sent().1 - sent) as f64;
    assert!(packets < 2.0 * 1000.0 * 1.1, "{packets}");
    (across.link.rate, across.link.queue) = (200e6, 500_000.0);
    across.run(3.0);
    assert!(shares(&mut across, 1.0)[0] > 0.8);
}

#[test]
fn it_comes_back_after_a_path_was_dead() {
    let mut across = across(Link::new(100.0, 20.0, 1.0));
    across.run(2.0);
    across.link.loss = 1.0;
    across.run(2.0);
    across.link.loss = 0.0;
    across.run(4.0);
    assert!(shares(&mut across, 1.0)[0] > 0.8);
}

#[test]
fn a_local_network_with_a_slow_scheduler_does_not_collapse_it() {
    for loss in [0.0, 0.01] {
        let mut link = Link::new(1000.0, 0.05, 40.0).losing(loss);
        link.noise = Duration(3 * MS);
        let mut across = Across::new(link);
        across.add(Flow::Blasts(Box::new(Blasts::new(
            across.now,
            BlastPacing::Ceiling(2e9),
            u64::MAX / 2,
        ))));
        across.run(0.5);
        let share = shares(&mut across, 1.0)[0];
        assert!(share > 0.6, "{share}");
    }
}

#[test]
fn a_longer_route_is_accepted_in_time() {
    let mut across = across(Link::new(50.0, 20.0, 2.0));
    across.run(3.0);
    across.link.delay = Duration(30 * MS);
    across.run(12.0);
    assert!(shares(&mut across, 3.0)[0] > 0.85);
    across.link.delay = Duration(10 * MS);
    across.run(3.0);
    assert!(shares(&mut across, 3.0)[0] > 0.85);
}

#[test]
fn a_sender_with_little_to_send_learns_nothing_of_a_higher_rate() {
    let mut across = across(Link::new(100.0, 20.0, 1.0));
    across.give(0, 0);
    across.run(1.0);
    for _ in 0..300 {
        across.give(0, 10_000);
        across.run(0.1);
    }
    let rate = across.blasts(0).rate().unwrap();
    assert!(rate < 20e6, "{rate}");
}

#[test]
fn the_users_rate_is_a_ceiling() {
    let mut across = Across::new(Link::new(100.0, 20.0, 1.0));
    across.add(Flow::Blasts(Box::new(Blasts::new(
        across.now,
        BlastPacing::Ceiling(10e6),
        u64::MAX / 2,
    ))));
    across.run(1.0);
    let share = shares(&mut across, 2.0)[0];
    // Bytes of data are counted: 10 of the 96 Mbit/s that the link has for them.
    assert!((0.102..0.1045).contains(&share), "{share}");
}

#[test]
fn silence_slows_it_down_and_one_lost_request_does_not() {
    let mut rate = Rate::new(1500, None, None);
    let mut now = Instant(5_000 * MS);
    for round in 1..=8_u64 {
        for _ in 0..10 {
            while let Ok(bytes) = rate.may_send(now) {
                rate.sent(now, bytes);
            }
            now += Duration(2 * MS);
        }
        let sent = Instant(now.0 - 20 * MS);
        rate.answered(
            now,
            Answered {
                sent,
                delivered: round * 15_000,
                packets: 10,
                lost: 0,
            },
        );
    }
    let fast = rate.rate();
    assert!(fast > 50e6, "{fast}");
    rate.silent(now + Duration(30 * MS));
    assert!((rate.rate() - fast).abs() < 1.0);
    for (after, share) in [(50, 0.5), (60, 0.5), (95, 0.25), (100, 0.25), (140, 0.125)] {
        rate.silent(now + Duration(after * MS));
        assert!((rate.rate() / fast - share).abs() < 0.01, "{after}");
    }
    (2..100).for_each(|after| rate.silent(now + Duration(after * 100 * MS)));
    assert!(
        (rate.rate() / fast - 0.0625).abs() < 0.01,
        "{}",
        rate.rate()
    );
}
