//! Several senders on one link.

use super::across::Across;
use super::link::Link;
use super::{ours, shares, theirs};

#[test]
fn tcp_keeps_a_third_and_leaves_a_tenth() {
    for (queue, first) in [(0.5, true), (1.0, false)] {
        let mut across = Across::new(Link::new(50.0, 20.0, queue));
        let now = across.now;
        across.add(if first { ours(now) } else { theirs(now) });
        across.run(1.0);
        let now = across.now;
        across.add(if first { theirs(now) } else { ours(now) });
        across.run(15.0);
        let got = shares(&mut across, 20.0);
        let (ours, tcp) = if first {
            (got[0], got[1])
        } else {
            (got[1], got[0])
        };
        assert!(
            tcp > 0.4 && ours > 0.15 && tcp + ours > 0.95,
            "queue {queue}: {tcp} and {ours}"
        );
    }
}

#[test]
fn two_of_ours_share_within_a_factor_of_two() {
    for queue in [0.25, 1.0] {
        let mut across = Across::new(Link::new(100.0, 20.0, queue).losing(0.0005));
        across.add(ours(across.now));
        across.run(2.0);
        across.add(ours(across.now));
        across.run(4.0);
        let got = shares(&mut across, 8.0);
        let (more, less) = (got[0].max(got[1]), got[0].min(got[1]));
        assert!(
            more < 2.0 * less && more + less > 0.9,
            "queue {queue}: {got:?}"
        );
    }
}

#[test]
fn it_takes_the_link_back_when_tcp_has_gone() {
    let mut across = Across::new(Link::new(50.0, 20.0, 1.0));
    across.add(ours(across.now));
    across.add(theirs(across.now));
    across.run(15.0);
    across.stop(1);
    across.run(3.0);
    assert!(shares(&mut across, 2.0)[0] > 0.9);
    assert!(across.link.waiting(across.now) < 0.01);
}
