//! Routers: hops, errors that they report, written routes, address translation, firewalls.

use crate::common::*;
use stackline_core::network::{
    FirewallSettings, NatSettings, Network as Plan, NetworkSwitch, RouterSettings, StaticRoute,
};
use stackline_core::random::Seed;
use stackline_core::time::{Duration, Instant};
use stackline_net::packet::{host_address, router_address};
use stackline_net::routed_packet::{
    CutPacket, FlowEnd, FlowKind, FlowSide, PacketFlow, RoutedHeader, RouterIcmpError,
};
use stackline_net::{
    DropReason, EcnMarking, NetworkPacket, NodeIndex, PacketNetwork, PacketPayload, SegmentSizes,
};

const SECOND: u64 = 1000 * MS;

/// A packet with headers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Headed {
    header: RoutedHeader,
    bytes: u32,
    /// The error that it is, from the router with that address.
    error: Option<(RouterIcmpError, [u8; 4])>,
}

impl PacketPayload for Headed {
    fn split(&mut self, _: u32) -> Self {
        self.clone()
    }
    fn mark(&mut self) {}
    fn set_dscp(&mut self, _: u8) {}
    fn again(&self) -> Self {
        self.clone()
    }
    fn routed_header(&self) -> Option<RoutedHeader> {
        Some(self.header)
    }
    fn count_down(&mut self) {
        self.header.ttl -= 1;
    }
    fn translate(&mut self, side: FlowSide, new: FlowEnd) {
        let Some(flow) = self.header.flow.as_mut() else {
            return;
        };
        match side {
            FlowSide::Source => (flow.source, self.header.source) = (new, new.address),
            FlowSide::Destination => flow.destination = new,
        }
    }
    fn fragment(&mut self, mtu: u64) -> Option<CutPacket<Self>> {
        let first_bytes = u32::try_from(mtu).unwrap_or(u32::MAX);
        if !self.header.may_fragment || self.bytes <= first_bytes {
            return None;
        }
        // Each has a header of 20 bytes.
        let rest_bytes = self.bytes - first_bytes + 20;
        self.bytes = first_bytes;
        let rest = Self {
            bytes: rest_bytes,
            ..self.clone()
        };
        Some(CutPacket {
            first_bytes,
            rest,
            rest_bytes,
        })
    }
    fn icmp_error(&self, error: RouterIcmpError, router: [u8; 4]) -> Option<(Self, u32)> {
        let error = Self {
            header: RoutedHeader {
                ttl: 64,
                source: router,
                flow: None,
                quoted: self.header.flow,
                may_fragment: true,
                may_report: false,
            },
            bytes: 56,
            error: Some((error, router)),
        };
        Some((error, 56))
    }
}

fn router(name: &str, settings: RouterSettings) -> NetworkSwitch {
    NetworkSwitch {
        router: Some(settings),
        ..switch(name)
    }
}

fn plain(name: &str) -> NetworkSwitch {
    router(name, RouterSettings::default())
}

/// a - r - s - b: a millisecond and 12 Mbit/s each; `a` is node 0, `b` 1, the routers 2 and 3.
fn chain(routers: [NetworkSwitch; 2]) -> Plan {
    Plan {
        switches: routers.to_vec(),
        links: vec![
            link("a-r", 12.0, 1.0),
            link("r-s", 12.0, 1.0),
            link("s-b", 12.0, 1.0),
        ],
        ..pair(link("a-b", 0.0, 0.0))
    }
}

fn headed(from: u32, to: u32, bytes: u32, ttl: u8) -> NetworkPacket<Headed> {
    let end = |node| FlowEnd {
        address: host_address(NodeIndex(node)),
        port: 5000,
    };
    let flow = PacketFlow {
        kind: FlowKind::Protocol(17),
        source: end(from),
        destination: end(to),
    };
    NetworkPacket {
        number: 0,
        from: NodeIndex(from),
        to: NodeIndex(to),
        flow: 0,
        ecn: EcnMarking::NotCapable,
        dscp: 0,
        segments: SegmentSizes::one(bytes),
        payload: Headed {
            header: RoutedHeader {
                ttl,
                source: end(from).address,
                flow: Some(flow),
                quoted: None,
                may_fragment: false,
                may_report: true,
            },
            bytes,
            error: None,
        },
    }
}

/// All that arrives: when, where, and what.
fn arrivals(network: &mut PacketNetwork<Headed>) -> Vec<(u64, u32, Headed)> {
    std::iter::from_fn(|| network.poll(Instant(u64::MAX - 1)))
        .map(|d| (d.due.0, d.packet.to.0, d.packet.payload))
        .collect()
}

fn network(plan: &Plan) -> PacketNetwork<Headed> {
    PacketNetwork::new(plan, Seed::root(1), ())
}

fn dropped<P: PacketPayload, T: stackline_net::Tap<P>>(
    network: &PacketNetwork<P, T>,
    reason: DropReason,
) -> u64 {
    let counters = network.counters();
    counters.map(|port| port.drops[reason as usize]).sum()
}

#[test]
fn each_router_reports_its_own_distance() {
    for (ttl, router, due) in [(1, 0, 4), (2, 1, 7)] {
        let mut network = network(&chain([plain("r"), plain("s")]));
        network.handle(Instant(0), headed(0, 1, 1500, ttl));
        let arrived = arrivals(&mut network);
        let [(at, 0, packet)] = arrived.as_slice() else {
            panic!("{arrived:?}");
        };
        let error = Some((RouterIcmpError::TimeExceeded, router_address(router)));
        assert_eq!(packet.error, error);
        // There 2 ms for each hop; back 1 ms for each hop and the time of 56 bytes, rounded down here.
        assert_eq!(at / MS, due - 1);
        assert_eq!(dropped(&network, DropReason::TtlExpired), 1);
    }
    let mut network = network(&chain([plain("r"), plain("s")]));
    network.handle(Instant(0), headed(0, 1, 1500, 3));
    let arrived = arrivals(&mut network);
    assert_eq!((arrived[0].0, arrived[0].1), (6 * MS, 1));
    assert_eq!(arrived[0].2.header.ttl, 1, "two routers counted it down");
}

#[test]
fn switches_count_no_hops() {
    let mut network = network(&chain([switch("r"), switch("s")]));
    network.handle(Instant(0), headed(0, 1, 1500, 1));
    assert_eq!(arrivals(&mut network)[0].2.header.ttl, 1);
}

#[test]
fn errors_are_limited_and_a_silent_router_sends_none() {
    let silent = RouterSettings {
        silent: true,
        ..RouterSettings::default()
    };
    for (settings, expected) in [(RouterSettings::default(), 6), (silent, 0)] {
        let mut network = network(&chain([router("r", settings), plain("s")]));
        for _ in 0..10 {
            network.handle(Instant(0), headed(0, 1, 100, 1));
        }
        assert_eq!(arrivals(&mut network).len(), expected);
        assert_eq!(dropped(&network, DropReason::TtlExpired), 10);
    }
}

#[test]
fn too_large_is_reported_or_cut() {
    let mut plan = chain([plain("r"), plain("s")]);
    plan.links[2].mtu_bytes = Some(1000);
    let mut reported = network(&plan);
    reported.handle(Instant(0), headed(0, 1, 1500, 64));
    let error = RouterIcmpError::FragmentationNeeded { mtu: 1000 };
    let expected = Some((error, router_address(1)));
    assert_eq!(arrivals(&mut reported)[0].2.error, expected);
    assert_eq!(dropped(&reported, DropReason::TooLarge), 1);

    let mut cut = network(&plan);
    let mut packet = headed(0, 1, 1500, 64);
    packet.payload.header.may_fragment = true;
    cut.handle(Instant(0), packet);
    let bytes: Vec<u32> = arrivals(&mut cut)
        .iter()
        .map(|(.., part)| part.bytes)
        .collect();
    assert_eq!(bytes, [1000, 520]);
    assert_eq!(cut.under_way(), 0);
}

#[test]
fn a_router_knows_the_mtu_behind_a_switch() {
    let mut plan = chain([plain("r"), switch("s")]);
    plan.links[2].mtu_bytes = Some(1000);
    let mut network = network(&plan);
    network.handle(Instant(0), headed(0, 1, 1500, 64));
    let error = RouterIcmpError::FragmentationNeeded { mtu: 1000 };
    let expected = Some((error, router_address(0)));
    assert_eq!(arrivals(&mut network)[0].2.error, expected);
}

#[test]
fn what_a_host_knows_of_its_path() {
    let mtus = |routers: [NetworkSwitch; 2]| {
        let mut plan = chain(routers);
        plan.links[0].mtu_bytes = Some(9000);
        let path = network(&plan).path(NodeIndex(0), NodeIndex(1), 0).unwrap();
        (path.first_mtu, path.mtu)
    };
    assert_eq!(mtus([switch("r"), switch("s")]), (1500, 1500));
    assert_eq!(mtus([plain("r"), plain("s")]), (9000, 1500));
    let silent = RouterSettings {
        silent: true,
        ..RouterSettings::default()
    };
    let hole = [router("r", silent), switch("s")];
    assert_eq!(mtus(hole), (9000, 9000), "nobody informs the sender");
}

#[test]
fn a_black_hole_counts_what_it_drops() {
    let silent = RouterSettings {
        silent: true,
        ..RouterSettings::default()
    };
    let mut plan = chain([router("r", silent), plain("s")]);
    plan.links[1].mtu_bytes = Some(1000);
    let mut network = build(&plan);
    network.handle(Instant(0), packet(0, 1, 1500, 1));
    network.handle(Instant(0), packet(0, 1, 1000, 2));
    let arrived: Vec<Vec<u64>> = drain(&mut network).into_iter().map(|(_, n)| n).collect();
    assert_eq!(arrived, [[2]]);
    assert_eq!(dropped(&network, DropReason::TooLarge), 1);
}

fn via(to: Option<&str>, via: &[&str]) -> StaticRoute {
    StaticRoute {
        to: to.map(Into::into),
        via: via.iter().map(|name| String::from(*name)).collect(),
    }
}

/// a and b are joined by r - s and, faster, by r - t - s.
fn two_ways(routes: Vec<StaticRoute>) -> Plan {
    let first = NetworkSwitch {
        routes,
        ..plain("r")
    };
    let mut plan = chain([first, plain("s")]);
    plan.switches.push(plain("t"));
    plan.links[1] = link("r-s", 12.0, 100.0);
    plan.links
        .extend([link("r-t", 12.0, 1.0), link("t-s", 12.0, 1.0)]);
    plan
}

#[test]
fn a_written_route_overrides_the_shortest_path() {
    let ports = |routes: Vec<StaticRoute>, from, to| -> Vec<u32> {
        let network = network(&two_ways(routes));
        let path = network.path(NodeIndex(from), NodeIndex(to), 0).unwrap();
        path.ports.iter().map(|port| port.0).collect()
    };
    assert_eq!(ports(vec![], 0, 1), [0, 6, 8, 4]);
    assert_eq!(ports(vec![via(Some("b"), &["s"])], 0, 1), [0, 2, 4]);
    assert_eq!(
        ports(vec![via(Some("b"), &["s"])], 1, 0),
        [5, 9, 7, 1],
        "back as before"
    );
    assert_eq!(ports(vec![via(None, &["s"])], 0, 1), [0, 2, 4]);
    let both = vec![via(None, &["s"]), via(Some("b"), &["t"])];
    assert_eq!(ports(both, 0, 1), [0, 6, 8, 4]);
}

#[test]
fn flows_spread_over_the_next_hops_of_a_route() {
    let network = network(&two_ways(vec![via(Some("b"), &["s", "t"])]));
    let hops = |flow| {
        network
            .path(NodeIndex(0), NodeIndex(1), flow)
            .unwrap()
            .ports
            .len()
    };
    let long = (0..1000).filter(|flow| hops(*flow) == 4).count();
    assert!((400..600).contains(&long), "{long} of 1000");
}

#[test]
fn a_circle_of_routes_ends_with_the_time_to_live() {
    let mut plan = chain([plain("r"), plain("s")]);
    plan.switches[1].routes = vec![via(Some("b"), &["r"])];
    let mut headers = network(&plan);
    headers.handle(Instant(0), headed(0, 1, 100, 64));
    assert_eq!(arrivals(&mut headers).len(), 1, "the error");
    assert_eq!(dropped(&headers, DropReason::TtlExpired), 1);
    assert_eq!(headers.path(NodeIndex(0), NodeIndex(1), 0), None);
    let mut numbers = build(&plan);
    numbers.handle(Instant(0), packet(0, 1, 100, 1));
    assert!(drain(&mut numbers).is_empty());
    assert_eq!(dropped(&numbers, DropReason::TtlExpired), 1);
}

fn nat(entries: u32) -> RouterSettings {
    RouterSettings {
        nat: Some(NatSettings {
            outside: "s".into(),
            timeout: Duration(30 * SECOND),
            entries,
        }),
        ..RouterSettings::default()
    }
}

#[test]
fn addresses_are_translated_out_and_back() {
    let mut network = network(&chain([router("r", nat(10)), plain("s")]));
    network.handle(Instant(0), headed(0, 1, 100, 64));
    let (.., request) = arrivals(&mut network).remove(0);
    let flow = request.header.flow.unwrap();
    let outside = FlowEnd {
        address: router_address(0),
        port: 5000,
    };
    assert_eq!(flow.source, outside);
    // The answer goes to the router's address, which is node 2.
    let mut answer = headed(1, 2, 100, 64);
    answer.payload.header.flow = Some(flow.reversed());
    network.handle(Instant(10 * MS), answer);
    let (_, to, answer) = arrivals(&mut network).remove(0);
    assert_eq!(to, 0);
    let inside = answer.header.flow.unwrap().destination;
    assert_eq!(inside.address, host_address(NodeIndex(0)));
    assert_eq!(answer.header.ttl, 62);
    // What names the inner host itself does not come through.
    network.handle(Instant(20 * MS), headed(1, 0, 100, 64));
    assert_eq!(arrivals(&mut network).len(), 0);
}

#[test]
fn a_translating_router_reports_what_is_too_large_to_the_inner_host() {
    let mut plan = chain([router("r", nat(10)), plain("s")]);
    plan.links[1].mtu_bytes = Some(1000);
    let mut network = network(&plan);
    network.handle(Instant(0), headed(0, 1, 1500, 64));
    let arrived = arrivals(&mut network);
    let error = RouterIcmpError::FragmentationNeeded { mtu: 1000 };
    assert_eq!(arrived[0].2.error, Some((error, router_address(0))));
    assert_eq!(arrived[0].1, 0);
}

#[test]
fn flows_without_headers_are_translated_alike() {
    let mut network = build(&chain([router("r", nat(1)), plain("s")]));
    let flow = |from, to, flow, number| NetworkPacket {
        flow,
        ..packet(from, to, 100, number)
    };
    let mut sends = |at: u64, packet| {
        network.handle(Instant(at), packet);
        drain(&mut network).len()
    };
    assert_eq!(sends(0, flow(1, 0, 7, 1)), 0, "unasked");
    assert_eq!(sends(SECOND, flow(0, 1, 7, 2)), 1);
    assert_eq!(sends(2 * SECOND, flow(1, 0, 7, 3)), 1);
    assert_eq!(sends(3 * SECOND, flow(1, 0, 8, 4)), 0, "another flow");
    assert_eq!(sends(4 * SECOND, flow(0, 1, 8, 5)), 0, "the table is full");
    assert_eq!(sends(40 * SECOND, flow(1, 0, 7, 6)), 0, "forgotten");
    assert_eq!(sends(41 * SECOND, flow(0, 1, 8, 7)), 1);
    assert_eq!(dropped(&network, DropReason::NotTranslated), 3);
    assert_eq!(dropped(&network, DropReason::NatTableFull), 1);
}

#[test]
fn a_firewall_lets_answers_through() {
    for rejects in [false, true] {
        let settings = RouterSettings {
            firewall: Some(FirewallSettings {
                outside: "s".into(),
                idle: Duration(60 * SECOND),
                entries: 10,
                rejects,
            }),
            ..RouterSettings::default()
        };
        let mut network = network(&chain([router("r", settings), plain("s")]));
        network.handle(Instant(0), headed(1, 0, 100, 64));
        let refused = arrivals(&mut network);
        let errors: Vec<_> = refused
            .iter()
            .map(|(_, to, packet)| (*to, packet.error))
            .collect();
        let error = (1, Some((RouterIcmpError::Prohibited, router_address(0))));
        assert_eq!(errors, if rejects { vec![error] } else { vec![] });
        for (at, packet, expected) in [
            (SECOND, headed(0, 1, 100, 64), 1),
            (2 * SECOND, headed(1, 0, 100, 64), 1),
            (61 * SECOND, headed(1, 0, 100, 64), 1),
            (122 * SECOND, headed(1, 0, 100, 64), usize::from(rejects)),
        ] {
            network.handle(Instant(at), packet);
            assert_eq!(arrivals(&mut network).len(), expected, "at {at}");
        }
        assert_eq!(dropped(&network, DropReason::FirewallRefused), 2);
    }
}
