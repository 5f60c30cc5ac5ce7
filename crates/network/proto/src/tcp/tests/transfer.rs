//! Whole transfers: everything sent arrives, once and in order, on any path, and every transfer ends.

use super::path::{Fate, Path};
use crate::tcp::{Algorithm, Recovery, TcpOptions, TcpState};
use proptest::prelude::*;
use stackline_core::time::Duration;

const MS: u64 = 1_000_000;

#[test]
fn a_clean_path_is_filled_and_nothing_is_sent_again() {
    let mut path = Path::new(
        [TcpOptions::default(); 2],
        10_000_000,
        Duration(10 * MS),
        |_, _, _| Fate::Passes,
    );
    let begun = path.now;
    let took = path.transfer(2_000_000).since(begun).seconds();
    let least = 2_000_000.0 * 8.0 / 10e6 * 1500.0 / 1448.0;
    assert!(took > least && took < least + 0.2, "{took} of {least}");
    assert_eq!(path.ends[0].facts(path.now).retransmits, 0);
    assert_eq!(
        path.ends.each_ref().map(|end| end.state()),
        [TcpState::Closed; 2]
    );
}

#[test]
fn a_queue_that_overflows_leaves_the_link_full() {
    for congestion in [Algorithm::Cubic, Algorithm::Reno] {
        let options = TcpOptions {
            congestion,
            ..TcpOptions::default()
        };
        let mut path = Path::new([options; 2], 10_000_000, Duration(20 * MS), |_, _, _| {
            Fate::Passes
        });
        path.queue = 60;
        let begun = path.now;
        let took = path.transfer(20_000_000).since(begun).seconds();
        let rate = 20_000_000.0 * 8.0 / took;
        assert!(
            path.drops > 0 && rate > 9.2e6,
            "{rate} with {} drops",
            path.drops
        );
        let again = path.ends[0].facts(path.now).retransmits;
        assert!(
            again <= path.drops + 2,
            "{again} sent again, {} dropped",
            path.drops
        );
    }
}

#[test]
fn bbr_fills_a_path_without_filling_its_queue_and_losses_do_not_stop_it() {
    let options = TcpOptions {
        congestion: Algorithm::Bbr,
        ..TcpOptions::default()
    };
    // One packet in fifty is lost, which leaves CUBIC a tenth of the rate.
    for (every, least_share) in [(usize::MAX, 0.9), (50, 0.8)] {
        let hand = |side: usize, n: usize, _: &_| {
            if side == 0 && n > 2 && n % every == 7 {
                Fate::Lost
            } else {
                Fate::Passes
            }
        };
        let mut path = Path::new([options; 2], 20_000_000, Duration(20 * MS), hand);
        path.queue = 500;
        let begun = path.now;
        let took = path.transfer(20_000_000).since(begun).seconds();
        let rate = 20_000_000.0 * 8.0 / took;
        assert!(rate > least_share * 20e6, "{rate}, one of {every} lost");
        let facts = path.ends[0].facts(path.now);
        // Twice what the path holds, with what acknowledgements hide.
        assert!(facts.window <= 2 * 67 + 20, "{facts:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_byte_arrives_once_and_in_order(
        fates in proptest::collection::vec(0_u8..20, 100),
        bytes in 1_u64..300_000,
        which in 0_usize..3,
        nodelay: bool,
        patience in prop_oneof![Just(0), Just(40 * MS)],
        buffer in proptest::option::of(1_u64..100_000),
        classic: bool,
    ) {
        let congestion = [Algorithm::Cubic, Algorithm::Reno, Algorithm::Bbr][which];
        let delayed_ack = Duration(patience);
        let mut options = TcpOptions { congestion, nodelay, delayed_ack, receive_buffer: buffer, ..TcpOptions::default() };
        if classic && congestion != Algorithm::Bbr {
            options.recovery = Recovery::Reno;
            (options.first_window, options.quickack) = (1, false);
            (options.timer_tick, options.least_timeout) = (Duration(500 * MS), Duration(1000 * MS));
        }
        // Some things pass, else it is rightly given up.
        let mut row = [0; 2];
        let hand = |side: usize, n: usize, _: &_| match fates.get((n * 2 + side) % 331) {
            Some(0 | 1) if row[side] < 3 => {
                row[side] += 1;
                Fate::Lost
            }
            Some(2) => Fate::Twice,
            Some(3) => Fate::Late(Duration(7 * MS)),
            Some(4) => Fate::Late(Duration(300 * MS)),
            _ => {
                row[side] = 0;
                Fate::Passes
            }
        };
        let mut path = Path::new([options; 2], 10_000_000, Duration(10 * MS), hand);
        path.transfer(bytes);
        prop_assert!(path.ends.iter().all(|end| end.state() == TcpState::Closed), "{:?}", path.ends);
    }
}
