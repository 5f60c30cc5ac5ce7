//! Queues of links: their limits and disciplines.

use super::{MS, link};
use stackline_core::network::{ClassService, Discipline, DualPi2Settings, LinkQueue, QueueClass};
use stackline_core::time::Duration;

fn queue(text: &str) -> LinkQueue {
    link(&format!("1 Mbit/s 0 queue {text}"))
        .queue
        .expect("a queue")
}

#[test]
fn queues() {
    let limit_bytes = Some(65_536);
    assert_eq!(
        queue("64 KiB"),
        LinkQueue {
            limit_bytes,
            ..LinkQueue::default()
        }
    );
    assert_eq!(
        queue("64 KiB drop-tail"),
        LinkQueue {
            limit_bytes,
            ..LinkQueue::default()
        }
    );
    assert_eq!(
        queue("100 packets"),
        LinkQueue {
            limit_packets: Some(100),
            ..LinkQueue::default()
        }
    );
    assert_eq!(
        queue("5 packets drop_head").discipline,
        Discipline::DropHead
    );
    let (target, interval) = (Duration(5 * MS), Duration(100 * MS));
    assert_eq!(
        queue("codel ecn"),
        LinkQueue {
            discipline: Discipline::CoDel { target, interval },
            ecn: true,
            ..LinkQueue::default()
        }
    );
    assert_eq!(
        queue("codel(interval = 300 ms)").discipline,
        Discipline::CoDel {
            target,
            interval: Duration(300 * MS)
        }
    );
    let fifteen = Duration(15 * MS);
    assert_eq!(
        queue("1 MB pie").discipline,
        Discipline::Pie {
            target: fifteen,
            update: fifteen
        }
    );
    assert_eq!(
        queue("pie(target = 20 ms)").discipline,
        Discipline::Pie {
            target: Duration(20 * MS),
            update: fifteen
        }
    );
    assert_eq!(
        queue("fq-codel").discipline,
        Discipline::FqCoDel {
            target,
            interval,
            flows: 1024,
            quantum: 1514
        }
    );
    assert_eq!(
        queue("fq_codel(quantum = 300 B, flows = 64, target = 1 ms)").discipline,
        Discipline::FqCoDel {
            target: Duration(MS),
            interval,
            flows: 64,
            quantum: 300
        }
    );
}

#[test]
fn classes_by_code_point() {
    let found = queue(
        "200 packets classes(default weight 1, af41 42 weight 3 64 KiB codel(target = 2 ms), EF cs6 strict 20 packets, 1 strict)",
    );
    let class = |dscps: &[u8], service| QueueClass {
        dscps: dscps.to_vec(),
        service,
        ..QueueClass::default()
    };
    let expected = vec![
        QueueClass {
            limit_packets: Some(20),
            ..class(&[46, 48], ClassService::Strict)
        },
        class(&[1], ClassService::Strict),
        class(&[], ClassService::Weight(1)),
        QueueClass {
            limit_bytes: Some(65_536),
            codel: Some((Duration(2 * MS), Duration(100 * MS))),
            ..class(&[34, 42], ClassService::Weight(3))
        },
    ];
    assert_eq!(
        found,
        LinkQueue {
            limit_packets: Some(200),
            discipline: Discipline::Classes,
            classes: expected,
            ..LinkQueue::default()
        }
    );
    assert!(queue("classes(default weight 1 codel) ecn").ecn);
}

#[test]
fn dualpi2_marks_and_has_the_settings_of_linux() {
    let usual = DualPi2Settings::default();
    let found = queue("100 packets dualpi2");
    assert_eq!(
        (found.discipline, found.ecn),
        (Discipline::DualPi2(usual), true)
    );
    assert_eq!(
        queue("dualpi2(target = 20 ms, coupling = 4, step = 800 us, classic = 25%, alpha = 0.15)")
            .discipline,
        Discipline::DualPi2(DualPi2Settings {
            target: Duration(20 * MS),
            coupling: 4.0,
            step: Duration(800_000),
            classic_share: 0.25,
            alpha: 0.15,
            ..usual
        })
    );
}

#[test]
fn thresholds_of_red_follow_from_the_limit() {
    let red = |min_bytes, max_bytes, most, weight| Discipline::Red {
        min_bytes,
        max_bytes,
        most,
        weight,
    };
    assert_eq!(
        queue("60 kB red").discipline,
        red(10_000, 30_000, 0.1, 0.002)
    );
    assert_eq!(
        queue("60 kB red(min = 5 kB)").discipline,
        red(5_000, 30_000, 0.1, 0.002)
    );
    let all = queue("red(min = 5 kB, max = 15 kB, probability = 2%, weight = 0.01) ecn");
    assert_eq!(
        (all.discipline, all.ecn),
        (red(5_000, 15_000, 0.02, 0.01), true)
    );
}
