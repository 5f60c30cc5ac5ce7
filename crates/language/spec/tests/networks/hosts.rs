//! Hosts: their interfaces, what their programs take, their clocks.

use super::{MS, network};
use stackline_core::network::{ClockModel, NetworkInterface, ProgramCosts, WorkKind};
use stackline_core::time::Duration;

fn interface(statements: &str) -> NetworkInterface {
    network(&format!("host a {{ {statements} }}"))
        .hosts
        .remove(0)
        .interface
}

fn clock(statements: &str) -> ClockModel {
    network(&format!("host a {{ {statements} }}"))
        .hosts
        .remove(0)
        .clock
}

#[test]
fn hosts_share_what_stands_in_their_braces() {
    let network = network(
        "host a, b { buffer 2 frames; single_buffered; } host c; switch s; link a - s 1 Mbit/s 1 ms; link b - s 1 Mbit/s 1 ms; link c - s 1 Mbit/s 1 ms;",
    );
    let names: Vec<&str> = network
        .hosts
        .iter()
        .map(|host| host.name.as_str())
        .collect();
    assert_eq!(names, ["a", "b", "c"]);
    let alike = NetworkInterface {
        buffer_frames: Some(2),
        single_buffered: true,
        ..NetworkInterface::default()
    };
    assert_eq!(network.hosts[0].interface, alike);
    assert_eq!(network.hosts[1].interface, alike);
    assert_eq!(network.hosts[2].interface, NetworkInterface::default());
}

#[test]
fn interfaces() {
    let none = NetworkInterface::default;
    let both = interface("copy 1.35 ms per packet, 0.47 us per byte; cpu 2.5; pace 30 Mbit/s");
    assert!((both.copy_ns_per_byte - 470.0).abs() < 1e-9);
    assert_eq!(
        (both.copy_per_packet, both.cpu_speed, both.pace_bit_s),
        (Duration(1_350_000), Some(2.5), Some(30e6))
    );
    assert!((interface("COPY 470 ns PER BYTE").copy_ns_per_byte - 470.0).abs() < 1e-9);
    assert_eq!(
        interface("copy 1 us per packet"),
        NetworkInterface {
            copy_per_packet: Duration(1000),
            ..none()
        }
    );
    assert_eq!(
        interface("copy 2 ns per byte, 1 us per packet").copy_per_packet,
        Duration(1000)
    );
    assert_eq!(
        interface("Single-Buffered"),
        NetworkInterface {
            single_buffered: true,
            ..none()
        }
    );
    assert_eq!(
        interface("busy-waiting"),
        NetworkInterface {
            busy_waiting: true,
            ..none()
        }
    );
    let by_itself = NetworkInterface {
        interface_copies: true,
        copy_per_packet: Duration(1000),
        ..none()
    };
    assert_eq!(
        interface("copy 1 us per packet; interface_copies"),
        by_itself
    );
}

#[test]
fn what_programs_take() {
    let work = |statements: &str| {
        network(&format!("host a {{ {statements} }}"))
            .hosts
            .remove(0)
            .work
    };
    let all = work(
        "work 2 ms per operation, 3 us per byte, 1 ms per message; polls 200 ms; priority Messages",
    );
    assert!((all.ns_per_byte - 3000.0).abs() < 1e-9);
    assert_eq!(
        (all.per_operation, all.per_message),
        (Duration(2 * MS), Duration(MS))
    );
    assert_eq!(
        (all.polls, all.first),
        (Some(Duration(200 * MS)), Some(WorkKind::Messages))
    );
    assert_eq!(
        work("work 1 us per message"),
        ProgramCosts {
            per_message: Duration(1000),
            ..ProgramCosts::default()
        }
    );
    assert!(work("cpu 2; copy 1 us per packet").is_nothing());
}

#[test]
fn clocks() {
    assert_eq!(
        clock("clock ahead 20 ms"),
        ClockModel {
            offset_ns: 20_000_000,
            ..ClockModel::default()
        }
    );
    assert_eq!(
        clock("clock behind 1 s; clock slow 20 ppm").offset_ns,
        -1_000_000_000
    );
    assert_eq!(
        clock("clock behind 1 s; clock slow 20 ppm").drift_ppm,
        -20.0
    );
    assert_eq!(clock("clock fast 0.5 ppm").drift_ppm, 0.5);
    let steps = clock("clock behind 2 ms at 10 s; clock ahead 1 ms at 5 s").steps;
    assert_eq!(
        steps,
        [
            (Duration(5000 * MS), 1_000_000),
            (Duration(10_000 * MS), -2_000_000)
        ]
    );
}
