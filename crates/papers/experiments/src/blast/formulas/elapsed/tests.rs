//! Times of error-free transfers against the paper, and against two hosts event by event.

use super::*;
use crate::blast::formulas::testing::close;
use proptest::prelude::*;

fn ms(protocol: BlastFigureProtocol, costs: &BlastCostModel, packets: u32) -> f64 {
    1e3 * protocol.elapsed(costs, packets)
}

#[test]
fn elapsed_times_of_both_cost_sets() {
    let rows = [
        (BlastCostModel::STANDALONE, 1, [3.91, 3.91, 3.91, 3.91]),
        (BlastCostModel::STANDALONE, 4, [15.64, 10.76, 10.42, 7.96]),
        (BlastCostModel::STANDALONE, 16, [62.56, 38.84, 36.46, 24.16]),
        (
            BlastCostModel::STANDALONE,
            64,
            [250.24, 151.16, 140.62, 88.96],
        ),
        (BlastCostModel::V_KERNEL, 1, [5.87, 5.87, 5.87, 5.87]),
        (BlastCostModel::V_KERNEL, 4, [23.48, 15.16, 13.82, 11.36]),
        (BlastCostModel::V_KERNEL, 16, [93.92, 55.00, 45.62, 33.32]),
        (
            BlastCostModel::V_KERNEL,
            64,
            [375.68, 214.36, 172.82, 121.16],
        ),
    ];
    for (costs, packets, expected) in rows {
        for (protocol, expected) in BlastFigureProtocol::ALL.into_iter().zip(expected) {
            let found = ms(protocol, &costs, packets);
            assert!(
                close(found, expected, 1e-9),
                "{} {packets}: {found} for {expected}",
                protocol.name()
            );
        }
    }
}

#[test]
fn what_survived_of_the_paper() {
    let printed = |value: f64| format!("{value:.1}");
    // To(1) and To(D) of Figure 5, from the lost Table 3.
    assert_eq!(
        printed(ms(
            BlastFigureProtocol::StopAndWait,
            &BlastCostModel::V_KERNEL,
            1
        )),
        "5.9"
    );
    assert_eq!(
        ms(BlastFigureProtocol::Blast, &BlastCostModel::V_KERNEL, 64).round(),
        173.0
    );
    // The printed sliding window is short by Ca for one packet.
    assert!(close(
        1e3 * sliding_window_printed(&BlastCostModel::STANDALONE, 1),
        3.74,
        1e-9
    ));
    assert!(close(
        1e3 * sliding_window_printed(&BlastCostModel::STANDALONE, 3),
        8.42,
        1e-9
    ));
    // About twice: stop-and-wait beside the others.
    let [saw, window, blast, _] =
        BlastFigureProtocol::ALL.map(|protocol| protocol.elapsed(&BlastCostModel::STANDALONE, 64));
    assert_eq!(
        [saw / blast, saw / window].map(|ratio| format!("{ratio:.2}")),
        ["1.78", "1.66"]
    );
}

#[test]
fn utilisation_of_the_network() {
    let costs = &BlastCostModel::STANDALONE;
    let percent = |share: f64| format!("{:.1}", 100.0 * share);
    assert_eq!(
        percent(utilisation(BlastFigureProtocol::Blast, costs, 64)),
        "37.4"
    );
    // Printed: 38.
    assert_eq!(percent(utilisation_limit(costs)), "37.8");
    assert_eq!(
        percent(utilisation(BlastFigureProtocol::DoubleBuffered, costs, 64)),
        "59.0"
    );
    assert!(
        utilisation(BlastFigureProtocol::Blast, costs, 64)
            > utilisation(BlastFigureProtocol::StopAndWait, costs, 64)
    );
    let nothing = BlastCostModel {
        copy_data: 0.0,
        copy_ack: 0.0,
        send_data: 0.0,
        send_ack: 0.0,
        latency: 0.0,
    };
    assert_eq!(
        (
            utilisation(BlastFigureProtocol::Blast, &nothing, 5),
            utilisation_limit(&nothing)
        ),
        (0.0, 0.0)
    );
}

/// Two hosts, event by event: what is free when.
struct Machines {
    costs: BlastCostModel,
    sender: f64,
    receiver: f64,
}

impl Machines {
    const fn new(costs: BlastCostModel) -> Self {
        Self {
            costs,
            sender: 0.0,
            receiver: 0.0,
        }
    }

    /// The receiver takes a packet that arrived out of its interface.
    fn take(&mut self, arrived: f64) {
        self.receiver = self.receiver.max(arrived) + self.costs.copy_data;
    }

    /// It acknowledges; when the acknowledgement is at the sender.
    fn acknowledge(&mut self) -> f64 {
        self.receiver += self.costs.copy_ack;
        self.receiver + self.costs.send_ack + self.costs.latency
    }

    /// A blast through `buffers` send buffers.
    fn blast(mut self, packets: u32, buffers: usize) -> f64 {
        let BlastCostModel {
            copy_data,
            copy_ack,
            send_data,
            latency,
            ..
        } = self.costs;
        let mut left: Vec<f64> = Vec::new();
        for at in 0..packets as usize {
            let free = if at < buffers {
                0.0
            } else {
                left[at - buffers]
            };
            self.sender = self.sender.max(free) + copy_data;
            let wire = left.last().copied().unwrap_or(0.0).max(self.sender);
            left.push(wire + send_data);
            self.take(left[at] + latency);
        }
        self.acknowledge() + copy_ack
    }

    /// A window that never closes: acknowledgements are copied out between two packets.
    fn window(mut self, packets: u32) -> f64 {
        let BlastCostModel {
            copy_data,
            copy_ack,
            send_data,
            latency,
            ..
        } = self.costs;
        let mut waiting: Vec<f64> = Vec::new();
        for _ in 0..packets {
            let there = waiting.iter().filter(|ack| **ack <= self.sender).count();
            waiting.drain(..there);
            self.sender += f64::from(u32::try_from(there).unwrap()) * copy_ack;
            self.sender += copy_data + send_data;
            self.take(self.sender + latency);
            waiting.push(self.acknowledge());
        }
        waiting
            .into_iter()
            .fold(self.sender, |now, ack| now.max(ack) + copy_ack)
    }
}

fn any_costs() -> impl Strategy<Value = BlastCostModel> {
    (
        1e-6..1e-2_f64,
        1e-6..1e-2_f64,
        1e-6..1e-2_f64,
        1e-6..1e-2_f64,
        0.0..1e-3_f64,
    )
        .prop_map(
            |(copy_data, copy_ack, send_data, send_ack, latency)| BlastCostModel {
                copy_data,
                copy_ack,
                send_data,
                send_ack,
                latency,
            },
        )
}

proptest! {
    #[test]
    fn blasts_are_what_two_hosts_take(costs in any_costs(), packets in 1..200_u32) {
        let found = [1, 2, 3].map(|buffers| Machines::new(costs).blast(packets, buffers));
        prop_assert!(close(blast(&costs, packets), found[0], 1e-9));
        prop_assert!(close(double_buffered(&costs, packets), found[1], 1e-9));
        // A third buffer gains nothing.
        prop_assert!(close(found[2], found[1], 1e-9));
    }

    #[test]
    fn windows_are_what_two_hosts_take(costs in any_costs(), packets in 1..200_u32) {
        let early = costs.copy_ack + costs.send_ack + 2.0 * costs.latency;
        let costs = BlastCostModel { send_data: costs.send_data + early, ..costs };
        prop_assert!(close(sliding_window(&costs, packets), Machines::new(costs).window(packets), 1e-9));
    }

    #[test]
    fn nothing_takes_no_time_and_one_packet_the_same(costs in any_costs()) {
        for protocol in BlastFigureProtocol::ALL {
            prop_assert_eq!(protocol.elapsed(&costs, 0), 0.0);
            prop_assert!(close(protocol.elapsed(&costs, 1), stop_and_wait(&costs, 1), 1e-9));
            prop_assert!((0.0..=1.0).contains(&utilisation(protocol, &costs, 64)));
        }
    }
}
