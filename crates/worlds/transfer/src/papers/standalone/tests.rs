//! The programs over a veth pair and loopback, in a network of the test's own; and their statistics.

use super::*;
use crate::frames::raw;
use crate::room::inside;
use stackline_os::packet_socket::{bind, interface_properties};
use std::os::fd::AsFd;

#[test]
fn samples_are_described() {
    let sample = StandaloneSample::new(vec![4.0, 2.0, 9.0, 1.0]);
    assert_eq!(
        (sample.n, sample.mean, sample.min, sample.median, sample.max),
        (4, 4.0, 1.0, 3.0, 9.0)
    );
    assert!((sample.sd - (38.0_f64 / 3.0).sqrt()).abs() < 1e-12);
    assert_eq!(
        StandaloneSample::new(vec![7.0]),
        StandaloneSample {
            n: 1,
            mean: 7.0,
            sd: 0.0,
            min: 7.0,
            median: 7.0,
            max: 7.0
        }
    );
    assert_eq!(
        StandaloneSample::new(Vec::new()),
        StandaloneSample::default()
    );
}

/// Where nothing is lost, whoever is late has only not been given a processor.
fn patient(
    sender: &'static str,
    receiver: &'static str,
    packets: u32,
    runs: u32,
) -> StandaloneSetup<'static> {
    StandaloneSetup {
        patience: Duration::from_secs(60),
        ..StandaloneSetup::new(sender, receiver, packets, runs)
    }
}

#[test]
fn every_program_carries_every_byte() {
    inside(
        concat!(module_path!(), "::every_program_carries_every_byte"),
        || {
            elapsed(&patient("near", "far", 512, 1)).unwrap();
            for (sender, receiver) in [("near", "far"), ("far", "near"), ("lo", "lo")] {
                for packets in [1, 2, 64] {
                    let elapsed = elapsed(&patient(sender, receiver, packets, 3)).unwrap();
                    for sample in elapsed.all() {
                        assert_eq!(sample.n, 3);
                        assert!(
                            0.0 < sample.min
                                && sample.min <= sample.median
                                && sample.median <= sample.max
                        );
                    }
                }
            }
        },
    );
}

#[test]
fn the_parts_of_an_exchange_are_timed() {
    inside(
        concat!(module_path!(), "::the_parts_of_an_exchange_are_timed"),
        || {
            let costs = costs(&patient("near", "far", 64, 20)).unwrap();
            let parts = [
                costs.send_data,
                costs.take_data,
                costs.send_acknowledgement,
                costs.take_acknowledgement,
            ];
            assert!(parts.iter().all(|part| part.n == 20 && part.min > 0.0));
            assert_eq!(costs.observed.n, 20);
            assert!(
                (costs.sum() - parts.iter().map(|part| part.median).sum::<f64>()).abs() < 1e-12
            );
        },
    );
}

#[test]
fn a_lost_frame_halts_the_transfer_and_is_reported() {
    inside(
        concat!(
            module_path!(),
            "::a_lost_frame_halts_the_transfer_and_is_reported"
        ),
        || {
            // What is sent over loopback never comes to the other end of a veth pair.
            let setup = StandaloneSetup {
                patience: Duration::from_millis(5),
                ..StandaloneSetup::new("lo", "far", 4, 1)
            };
            let halt = elapsed(&setup).unwrap_err();
            let Halt::Late(progress, patience) = &halt else {
                panic!("{halt}")
            };
            assert_eq!(
                (*patience, progress.program),
                (setup.patience, StandaloneProgram::StopAndWait)
            );
            assert_eq!((progress.packets, progress.came, progress.heard), (4, 0, 0));
            let expected_message = "stop-and-wait (packets: 4): no acknowledgement within 5ms; data packets received: 0, acknowledgements received: 0";
            assert!(halt.to_string().starts_with(expected_message), "{halt}");
        },
    );
}

#[test]
fn data_of_somebody_else_is_noticed() {
    inside(
        concat!(module_path!(), "::data_of_somebody_else_is_noticed"),
        || {
            let setup = StandaloneSetup::new("near", "far", 2, 1);
            let (near, far) = station::open_stations(&setup).unwrap();
            let stranger = raw().unwrap();
            let interface = interface_properties(stranger.as_fd(), "near").unwrap();
            bind(stranger.as_fd(), interface.index, 0).unwrap();
            let mut frame = [9; 14 + DATA];
            frame[12..14].copy_from_slice(&crate::frames::ETHERTYPE.to_be_bytes());
            stranger.send(&frame).unwrap();
            let halt = both(
                &setup,
                near,
                far,
                iter::once(StandaloneProgram::Blast),
                |_, _| {},
            )
            .err()
            .unwrap();
            assert!(
                matches!(halt, Halt::Altered(StandaloneProgram::Blast)),
                "{halt}"
            );
        },
    );
}

#[test]
fn what_cannot_be_run_is_refused() {
    for packets in [0, 513] {
        assert!(
            matches!(elapsed(&StandaloneSetup::new("lo", "lo", packets, 1)), Err(Halt::Packets(n)) if n == packets)
        );
    }
    inside(
        concat!(module_path!(), "::what_cannot_be_run_is_refused"),
        || {
            let halt = elapsed(&StandaloneSetup::new("none-such", "lo", 1, 1)).unwrap_err();
            assert!(
                halt.to_string()
                    .contains("unknown network interface `none-such`\nhint:"),
                "{halt}"
            );
        },
    );
}
