//! Two SUNs with their 3-Com interfaces on an Ethernet, as in Zwaenepoel 1985.
#![allow(dead_code, reason = "each user takes some of it")]

use stackline_core::network::{Host, Interface, Link, Network, Rate};
use stackline_core::time::Duration;
use stackline_papers::blast::formulas::{self as model, Costs};
use stackline_papers::blast::transfers::Experiment;
use stackline_proto::blast::{Options, Strategy};

pub(crate) const DATA: u32 = 1024;
pub(crate) const ANSWER: u32 = 64;
/// C and Ca in seconds: the programs without an operating system, and MoveTo in the V kernel.
pub(crate) const STANDALONE: (f64, f64) = (1.35e-3, 0.17e-3);
pub(crate) const V_KERNEL: (f64, f64) = (1.83e-3, 0.67e-3);

pub(crate) const STRATEGIES: [(Strategy, model::Strategy); 4] = [
    (Strategy::Full, model::Strategy::Full),
    (Strategy::FullNak, model::Strategy::FullNak),
    (Strategy::Partial, model::Strategy::Partial),
    (Strategy::Selective, model::Strategy::Selective),
];

/// Two SUNs on an Ethernet of 10 Mbit/s whose length takes no time.
pub(crate) fn suns((data, ack): (f64, f64), buffers: u32) -> Network {
    let per_byte = (data - ack) / f64::from(DATA - ANSWER);
    let interface = Interface {
        buffer_frames: Some(2),
        single_buffered: buffers == 1,
        busy_waiting: buffers == 1,
        copy_per_packet: Duration::from_seconds(ack - f64::from(ANSWER) * per_byte),
        copy_ns_per_byte: per_byte * 1e9,
        ..Interface::default()
    };
    let host = |name: &str| Host {
        name: name.into(),
        interface: interface.clone(),
        ..Host::default()
    };
    let ends = ("a".into(), "b".into());
    let link = Link {
        ends,
        rate: Rate::Constant(10e6),
        ..Link::default()
    };
    Network {
        name: "ethernet".into(),
        hosts: vec![host("a"), host("b")],
        links: vec![link],
        ..Network::default()
    }
}

pub(crate) fn costs((copy_data, copy_ack): (f64, f64)) -> Costs {
    Costs {
        copy_data,
        copy_ack,
        send_data: 819.2e-6,
        send_ack: 51.2e-6,
        latency: 0.0,
    }
}

pub(crate) fn experiment<'n>(
    network: &'n Network,
    options: &Options,
    packets: u32,
) -> Experiment<'n> {
    Experiment::new(network, options, packets, ANSWER).expect("two hosts without chance")
}

pub(crate) fn whole(strategy: Strategy, packets: u32) -> Options {
    Options::blast(strategy, DATA, packets * DATA)
}
