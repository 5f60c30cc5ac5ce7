//! Writes network events to the log of the host or switch where they happened, stamped with that node's own clock.

use super::names::TapNames;
use super::packet::{Identity, PacketStreams, WirePayload};
use serde::{Deserialize, Serialize};
use stackline_core::network::{ClockModel, Network};
use stackline_core::time::Instant;
use stackline_dissect::frame_locator::Began;
use stackline_events::catalogue::families::{NetPacket, NetPacketEvent};
use stackline_events::catalogue::rows::{NetDrop, NetEnqueue, NetFlow};
use stackline_events::unit_ids::{self, EventStreamDirection};
use stackline_events::{EventLog, EventLogs, EventValue};
use stackline_net::{NetworkEvent, NetworkLocation, NetworkPacket};
use stackline_runs::events::disk_sample::DiskSample;

/// How instants of the network's time become times of events.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct TraceClockStamp {
    /// What a right clock reads at the beginning of the network's time, ns.
    pub(crate) origin_ns: u64,
    /// By node: its clock. Nodes beyond the end of the list have right clocks.
    pub(crate) clocks: Vec<ClockModel>,
}

impl TraceClockStamp {
    /// The stamp of a simulated network, whose hosts have clocks of their own.
    pub(crate) fn simulated(network: &Network, origin_ns: u64) -> Self {
        Self {
            origin_ns,
            clocks: network
                .hosts
                .iter()
                .map(|host| host.clock.clone())
                .collect(),
        }
    }

    /// The time that a node's clock reads at an instant, ns.
    fn at_ns(&self, node: u32, at: Instant) -> u64 {
        let reading = self
            .clocks
            .get(node as usize)
            .map_or(i128::from(at.0), |clock| clock.reading_ns(at));
        u64::try_from((i128::from(self.origin_ns) + reading).max(0)).unwrap_or(u64::MAX)
    }
}

/// Writes the events of one network.
#[derive(Debug)]
pub(super) struct NetworkEventLogs {
    event_logs: EventLogs,
    stamp: TraceClockStamp,
    streams: PacketStreams,
    /// Chooses the events that are kept when disk space is limited; `None` keeps all.
    sample: Option<DiskSample>,
}

impl NetworkEventLogs {
    pub(super) const fn new(
        event_logs: EventLogs,
        stamp: TraceClockStamp,
        streams: PacketStreams,
    ) -> Self {
        Self {
            event_logs,
            stamp,
            streams,
            sample: None,
        }
    }

    pub(super) fn within(mut self, most_bytes: u64) -> Self {
        self.sample = Some(DiskSample::new(most_bytes));
        self
    }

    pub(super) const fn begin(&mut self, origin_ns: u64) {
        self.stamp.origin_ns = origin_ns;
    }

    /// Writes one event, unless the sample leaves it out.
    pub(super) fn record<P: WirePayload>(
        &mut self,
        names: &TapNames,
        at: Instant,
        place: NetworkLocation,
        what: NetworkEvent,
        packet: &NetworkPacket<P>,
    ) {
        let (node, place) = names.place(place);
        let range = P::range(packet, &mut self.streams).unwrap_or_default();
        if let Some(began) = self.streams.frames.began() {
            self.began(node, at, &began);
        }
        let at_ns = self.stamp.at_ns(node, at);
        if let Some(sample) = &mut self.sample {
            sample.has_written(self.event_logs.handed_on());
            if !sample.takes(at_ns) {
                return;
            }
        }
        let Identity { flow, number, .. } = Identity::from_packet(packet);
        let ends = names.ends(packet.from, packet.to);
        let data = NetPacket {
            unit: range.unit.into(),
            stream: range.stream.into(),
            offset: range.offset.into(),
            bytes: range.bytes.into(),
            place: EventValue::Text(place),
            way: EventValue::Text(&ends),
            flow: flow.into(),
            number: number.into(),
            segments: packet.segments.count.into(),
            length: packet.bytes().into(),
        };
        let of_packet = |event: NetPacketEvent, log: &mut EventLog| event.write(&data, log, at_ns);
        self.event_logs.write(node as usize, |log| match what {
            NetworkEvent::Enqueue(queued) => NetEnqueue {
                queued: queued.into(),
                ..data.into()
            }
            .write(log, at_ns),
            NetworkEvent::Drop(why) => NetDrop {
                reason: EventValue::Text(&why.to_string()),
                ..data.into()
            }
            .write(log, at_ns),
            NetworkEvent::Dequeue => of_packet(NetPacketEvent::NetDequeue, log),
            NetworkEvent::Mark => of_packet(NetPacketEvent::NetMark, log),
            NetworkEvent::Duplicate => of_packet(NetPacketEvent::NetDuplicate, log),
            NetworkEvent::Deliver => of_packet(NetPacketEvent::NetDeliver, log),
        });
        if range.repeated && matches!(what, NetworkEvent::Enqueue(_)) && node == packet.from.0 {
            self.event_logs.write(node as usize, |log| {
                of_packet(NetPacketEvent::NetAgain, log)
            });
        }
    }

    /// Writes `NET_FLOW` at the first packet of a flow that was not known before.
    fn began(&mut self, node: u32, at: Instant, began: &Began) {
        let (initiator, responder) = (began.initiator.to_string(), began.responder.to_string());
        let data = NetFlow {
            stream: unit_ids::stream(began.flow, EventStreamDirection::There).into(),
            initiator: EventValue::Text(&initiator),
            responder: EventValue::Text(&responder),
            first_sequence: began.first_sequence.into(),
        };
        let at_ns = self.stamp.at_ns(node, at);
        self.event_logs
            .write(node as usize, |log| data.write(log, at_ns));
    }

    /// Hands on the remaining events.
    ///
    /// # Errors
    /// Why something could not be kept, or what was left out.
    pub(super) fn finish(self) -> Result<(), String> {
        let mut left_out = self.streams.frames.left_out().lines();
        left_out.extend(
            self.sample
                .and_then(|sample| sample.note("events of packets")),
        );
        self.event_logs.finish()?;
        if left_out.is_empty() {
            Ok(())
        } else {
            Err(left_out.join("; "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network_tap::RunTapRecorder;
    use crate::network_tap::testing::{FIRST, SECOND, network, packet};
    use stackline_core::time::Duration;
    use stackline_events::event_logs::MemoryEventLogs;
    use stackline_events::{EventTable, text::TextEvent};
    use stackline_net::{DropReason, NodeIndex, PortIndex, Tap};

    /// Reports these, in that order, and gives the events, node by node.
    fn recorded(
        stamp: TraceClockStamp,
        happened: &[(u64, NetworkLocation, NetworkEvent, u64)],
    ) -> Vec<String> {
        let kept = MemoryEventLogs::default();
        let into = kept.clone();
        let network = network();
        let put = move |host: &str, event_log: &_| into.add(host, event_log);
        let mut recorder =
            RunTapRecorder::new(&network).events(put, stamp, PacketStreams::default());
        for (at, place, what, number) in happened {
            recorder.record(Instant(*at), *place, *what, &packet(*number));
        }
        recorder.finish().unwrap();
        lines(&kept)
    }

    /// The events that were kept, node by node.
    fn lines(kept: &MemoryEventLogs) -> Vec<String> {
        let lines = |event_log: &EventLog| {
            let mut table = EventTable::default();
            table.push_event_log(event_log);
            (0..table.len())
                .map(|row| TextEvent::to_string(&table.event(row)))
                .collect::<Vec<_>>()
        };
        kept.event_logs().values().flat_map(lines).collect()
    }

    #[test]
    fn events_are_kept_by_node_and_carry_their_data() {
        let happened = [
            (10, FIRST, NetworkEvent::Enqueue(3000), 1),
            (120_010, FIRST, NetworkEvent::Dequeue, 1),
            (20, SECOND, NetworkEvent::Drop(DropReason::QueueFull), 2),
            (
                120_010,
                NetworkLocation::Port(PortIndex(3)),
                NetworkEvent::Mark,
                9,
            ),
            (
                1_000_000_001,
                NetworkLocation::Host(NodeIndex(1)),
                NetworkEvent::Deliver,
                1,
            ),
        ];
        let expected = [
            "NET_DROP; edge; 0; 20; ; 3; 2000; 1460; edge>udjat; khons>udjat; 7; 2; 1; 1500; queue full",
            "NET_ENQUEUE; khons; 0; 10; ; 3; 1000; 1460; khons>edge; khons>udjat; 7; 1; 1; 1500; 3000",
            "NET_DEQUEUE; khons; 0; 120010; ; 3; 1000; 1460; khons>edge; khons>udjat; 7; 1; 1; 1500",
            "NET_MARK; udjat; 0; 120010; ; 3; 9000; 1460; udjat>edge; khons>udjat; 7; 9; 1; 1500",
            "NET_DELIVER; udjat; 1; 1; ; 3; 1000; 1460; udjat; khons>udjat; 7; 1; 1; 1500",
        ];
        assert_eq!(recorded(TraceClockStamp::default(), &happened), expected);
    }

    #[test]
    fn events_of_a_long_run_are_a_sample_that_is_reported() {
        let kept = MemoryEventLogs::default();
        let into = kept.clone();
        let put = move |host: &str, event_log: &_| into.add(host, event_log);
        let most_bytes = 8 << 20;
        let mut recorder = RunTapRecorder::new(&network())
            .events(put, TraceClockStamp::default(), PacketStreams::default())
            .within(most_bytes);
        let millisecond = 1_000_000;
        for at in 0..200_000 {
            let what = NetworkEvent::Enqueue(3000);
            recorder.record(Instant(at * millisecond), FIRST, what, &packet(at));
        }
        let said = recorder.finish().unwrap_err();
        assert!(
            said.starts_with("events of packets are a sample, ") && said.contains("at most 8 MiB"),
            "{said}"
        );
        let written: usize = kept
            .event_logs()
            .values()
            .map(|event_log| event_log.bytes().len())
            .sum();
        assert!((4 << 20..=8 << 20).contains(&written), "{written} bytes");
        let lines = lines(&kept);
        let late = lines.iter().filter(|line| line.contains("; khons; 19"));
        assert!(late.count() > 0, "some of the last seconds are kept");
    }

    /// An IPv4 packet with a TCP segment from the first host to the second.
    fn tcp(sequence: u32, flags: u8, data: usize) -> Vec<u8> {
        let mut packet = vec![
            0x45,
            0,
            0,
            40 + data as u8,
            0,
            0,
            0,
            0,
            64,
            6,
            0,
            0,
            10,
            0,
            0,
            1,
            10,
            0,
            0,
            2,
        ];
        packet.extend([0x9c, 0x40, 0, 80]);
        packet.extend(sequence.to_be_bytes());
        packet.extend([0, 0, 0, 0, 0x50, flags, 0, 0, 0, 0, 0, 0]);
        packet.resize(40 + data, 0);
        packet
    }

    #[test]
    fn connections_that_nobody_knew_begin_with_their_ends() {
        let kept = MemoryEventLogs::default();
        let into = kept.clone();
        let put = move |host: &str, event_log: &_| into.add(host, event_log);
        let streams = PacketStreams {
            frames: stackline_dissect::frame_locator::FrameLocator::learning(),
            ..PacketStreams::default()
        };
        let mut recorder =
            RunTapRecorder::new(&network()).events(put, TraceClockStamp::default(), streams);
        let mut record = |at, place, what, bytes: &[u8]| {
            let packet = NetworkPacket {
                number: at,
                from: NodeIndex(0),
                to: NodeIndex(1),
                flow: 7,
                ecn: stackline_net::EcnMarking::NotCapable,
                dscp: 0,
                segments: stackline_net::SegmentSizes::one(bytes.len() as u32),
                payload: bytes,
            };
            recorder.record(Instant(at), place, what, &packet);
        };
        record(1, FIRST, NetworkEvent::Enqueue(40), &tcp(99, 2, 0));
        record(2, FIRST, NetworkEvent::Enqueue(140), &tcp(100, 16, 60));
        record(3, SECOND, NetworkEvent::Enqueue(100), &tcp(100, 16, 60));
        record(4, FIRST, NetworkEvent::Enqueue(100), &tcp(100, 16, 60));
        recorder.finish().unwrap();
        let expected = [
            "NET_ENQUEUE; edge; 0; 3; ; 0; 0; 60; edge>udjat; khons>udjat; 7; 3; 1; 100; 100",
            "NET_FLOW; khons; 0; 1; 0; 10.0.0.1:40000; 10.0.0.2:80; 100",
            "NET_ENQUEUE; khons; 0; 1; ; 0; ; 0; khons>edge; khons>udjat; 7; 1; 1; 40; 40",
            "NET_ENQUEUE; khons; 0; 2; ; 0; 0; 60; khons>edge; khons>udjat; 7; 2; 1; 100; 140",
            "NET_ENQUEUE; khons; 0; 4; ; 0; 0; 60; khons>edge; khons>udjat; 7; 4; 1; 100; 100",
            "NET_AGAIN; khons; 0; 4; ; 0; 0; 60; khons>edge; khons>udjat; 7; 4; 1; 100",
        ];
        assert_eq!(lines(&kept), expected);
    }

    #[test]
    fn a_host_stamps_with_its_own_clock_and_a_switch_with_the_right_one() {
        let slow = ClockModel {
            offset_ns: -700,
            steps: vec![(Duration(500), 50)],
            ..ClockModel::default()
        };
        let stamp = TraceClockStamp {
            origin_ns: 1000,
            clocks: vec![slow],
        };
        let happened = [(200, FIRST), (600, FIRST), (600, SECOND)]
            .map(|(at, place)| (at, place, NetworkEvent::Dequeue, 1));
        let lines = recorded(stamp, &happened);
        let times: Vec<&str> = lines
            .iter()
            .filter_map(|line| line.split("; ").nth(3))
            .collect();
        assert_eq!(times, ["1600", "500", "950"]);
    }
}
