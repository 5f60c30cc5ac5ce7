//! Two SUNs with their 3-Com interfaces on an Ethernet, as in Zwaenepoel 1985.
#![allow(dead_code, reason = "each user takes some of it")]

use stackline_core::network::{LinkRate, Network, NetworkHost, NetworkInterface, NetworkLink};
use stackline_core::time::Duration;
use stackline_papers::blast::formulas::{self as model, BlastCostModel};
use stackline_papers::blast::transfers::BlastExperiment;
use stackline_proto::blast::{BlastOptions, BlastStrategy};

pub(crate) const DATA: u32 = 1024;
pub(crate) const ANSWER: u32 = 64;
/// C and Ca in seconds: the programs without an operating system, and MoveTo in the V kernel.
pub(crate) const STANDALONE: (f64, f64) = (1.35e-3, 0.17e-3);
pub(crate) const V_KERNEL: (f64, f64) = (1.83e-3, 0.67e-3);

pub(crate) const STRATEGIES: [(BlastStrategy, model::BlastResendStrategy); 4] = [
    (BlastStrategy::Full, model::BlastResendStrategy::Full),
    (BlastStrategy::FullNak, model::BlastResendStrategy::FullNak),
    (BlastStrategy::Partial, model::BlastResendStrategy::Partial),
    (
        BlastStrategy::Selective,
        model::BlastResendStrategy::Selective,
    ),
];

/// Two SUNs on an Ethernet of 10 Mbit/s whose length takes no time.
pub(crate) fn suns((data, ack): (f64, f64), buffers: u32) -> Network {
    let per_byte = (data - ack) / f64::from(DATA - ANSWER);
    let interface = NetworkInterface {
        buffer_frames: Some(2),
        single_buffered: buffers == 1,
        busy_waiting: buffers == 1,
        copy_per_packet: Duration::from_seconds(ack - f64::from(ANSWER) * per_byte),
        copy_ns_per_byte: per_byte * 1e9,
        ..NetworkInterface::default()
    };
    let host = |name: &str| NetworkHost {
        name: name.into(),
        interface: interface.clone(),
        ..NetworkHost::default()
    };
    let ends = ("a".into(), "b".into());
    let link = NetworkLink {
        ends,
        rate: LinkRate::Constant(10e6),
        ..NetworkLink::default()
    };
    Network {
        name: "ethernet".into(),
        hosts: vec![host("a"), host("b")],
        links: vec![link],
        ..Network::default()
    }
}

pub(crate) fn costs((copy_data, copy_ack): (f64, f64)) -> BlastCostModel {
    BlastCostModel {
        copy_data,
        copy_ack,
        send_data: 819.2e-6,
        send_ack: 51.2e-6,
        latency: 0.0,
    }
}

pub(crate) fn experiment<'n>(
    network: &'n Network,
    options: &BlastOptions,
    packets: u32,
) -> BlastExperiment<'n> {
    BlastExperiment::new(network, options, packets, ANSWER).expect("two hosts without chance")
}

pub(crate) fn whole(strategy: BlastStrategy, packets: u32) -> BlastOptions {
    BlastOptions::blast(strategy, DATA, packets * DATA)
}
