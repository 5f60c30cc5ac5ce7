//! A plan as a person reads it before anything is done.

use crate::testing::{a_plan, golden, networks};
use stackline_core::catalogue::{Available, Capabilities, OptionKind, OptionTable, StackTable};
use stackline_core::network::{
    DeliveryTrace, Discipline, LinkQueue, LinkRate, LossModel, Network, NetworkHost, NetworkLink,
    RateSchedule,
};
use stackline_core::plan::World;
use stackline_core::time::Duration;

const TCP: StackTable = StackTable {
    name: "tcp",
    summary: "TCP over IPv4 or IPv6",
    largest_unit: u64::MAX,
    options: &[
        OptionTable::new("nodelay", OptionKind::Flag, "off", ""),
        OptionTable::new("congestion", OptionKind::Name, "the host's", ""),
        OptionTable::new(
            "receive_buffer",
            OptionKind::BUFFER,
            "tuned by the kernel",
            "",
        ),
    ],
    ..StackTable::RELIABLE
};

const WORLDS: &[Available<'_>] = &[
    Available {
        can: Capabilities::EVERYTHING,
        stacks: &[TCP],
    },
    Available {
        can: Capabilities {
            world: World::Emulated,
            ..Capabilities::EVERYTHING
        },
        stacks: &[TCP],
    },
    Available {
        can: Capabilities {
            world: World::Simulated,
            processors: false,
            ..Capabilities::EVERYTHING
        },
        stacks: &[StackTable {
            summary: "TCP by the book",
            options: &[],
            ..TCP
        }],
    },
];

#[test]
fn everything_is_written_out() {
    golden("plan.txt", &super::plan(&a_plan(), WORLDS));
}

#[test]
fn an_unknown_stack_still_prints() {
    assert!(super::plan(&a_plan(), &[]).contains("stack      tcp\n"));
}

#[test]
fn a_network_is_written_out() {
    let steps = vec![(Duration(0), 1.544e6), (Duration(5_000_000_000), 0.0)];
    let schedule = RateSchedule {
        steps,
        period: Some(Duration(7_500_000_000)),
    };
    let trace = DeliveryTrace {
        file: "up.trace".into(),
        opportunities_ms: vec![1, 1, 20],
    };
    let codel = Discipline::CoDel {
        target: Duration(5_000_000),
        interval: Duration(100_000_000),
    };
    let fq = Discipline::FqCoDel {
        target: Duration(5_000_000),
        interval: Duration(100_000_000),
        flows: 1024,
        quantum: 1514,
    };
    let mut network = networks::everything();
    network.hosts[1].clock.steps = vec![(Duration(10_000_000_000), -1_500_000)];
    network.switches[1].queue = Some(LinkQueue {
        limit_bytes: Some(10_001),
        discipline: fq,
        ..LinkQueue::default()
    });
    let link = |rate: LinkRate, loss: LossModel, discipline: Discipline| NetworkLink {
        ends: ("edge".into(), "core".into()),
        rate,
        loss,
        queue: Some(LinkQueue {
            discipline,
            ..LinkQueue::default()
        }),
        ..NetworkLink::default()
    };
    let ge = LossModel::GilbertElliott {
        to_bad: 0.01,
        to_good: 0.3,
        loss_good: 0.0,
        loss_bad: 1.0,
    };
    let pie = Discipline::Pie {
        target: Duration(15_000_000),
        update: Duration(15_000_000),
    };
    network.links.extend([
        link(
            LinkRate::Schedule(schedule),
            LossModel::Independent(1e-4),
            codel,
        ),
        link(
            LinkRate::Trace(trace),
            LossModel::BitErrors(1e-6),
            Discipline::DropHead,
        ),
        link(LinkRate::Unlimited, LossModel::List((1..20).collect()), pie),
        link(LinkRate::Constant(155.52e6), ge, Discipline::DropTail),
    ]);
    let lonely = Network {
        name: "lonely".into(),
        hosts: vec![NetworkHost {
            name: "a".into(),
            ..NetworkHost::default()
        }],
        ..Network::default()
    };
    let plan = stackline_core::plan::Plan {
        networks: vec![network, lonely],
        measurements: vec![],
        ..a_plan()
    };
    golden("plan-network.txt", &super::plan(&plan, WORLDS));
}

/// Hosts of a network are not reached by ssh, and a simulated stack has options of its own.
#[test]
fn each_world_is_described_as_it_is() {
    let mut plan = a_plan();
    plan.measurements.truncate(1);
    let said = |plan: &stackline_core::plan::Plan| super::plan(plan, WORLDS);
    assert!(said(&plan).contains("khons: ssh user@10.0.0.5 stackline agent, pinned to core 2"));
    plan.measurements[0].world = World::Simulated;
    let text = said(&plan);
    assert!(
        text.contains("khons: simulated\n") && text.contains("tcp: TCP by the book"),
        "{text}"
    );
    assert!(
        !text.contains("ssh") && !text.contains("core 2") && !text.contains("nodelay"),
        "{text}"
    );
    plan.measurements[0].world = World::Emulated;
    let text = said(&plan);
    assert!(
        text.contains("khons: a child process on this machine, in its own network namespace"),
        "{text}"
    );
    assert!(!text.contains("ssh") && text.contains("nodelay"), "{text}");
}
