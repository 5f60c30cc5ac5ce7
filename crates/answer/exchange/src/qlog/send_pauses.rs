//! Finds how long the end that logs could have sent on a connection and did not: everything that it had sent on streams was acknowledged, and
//! its peer had not just given it more room.

use super::values::{count_of, first_text};
use serde_json::Value as Json;

/// What hinders the sender of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct QlogSendPauses {
    /// The number of the latest packet with stream data; a packet without a number is never acknowledged.
    latest: Option<u64>,
    /// Since when all of it has been acknowledged, or the peer gave more room after that, ns.
    free_since_ns: Option<u64>,
}

impl QlogSendPauses {
    /// A packet with stream data leaves. Returns for how long nothing had hindered that, ns.
    pub(super) fn send(&mut self, packet: Option<u64>, at_ns: u64) -> u64 {
        self.latest = Some(packet.unwrap_or(u64::MAX));
        let since_ns = self.free_since_ns.take();
        since_ns.map_or(0, |since_ns| at_ns.saturating_sub(since_ns))
    }

    /// A packet with application data arrives: it may acknowledge everything, or give more room (RFC 9000, 4.1), for which the sender may
    /// have waited until now.
    pub(super) fn receive(&mut self, frames: &[Json], at_ns: u64) {
        for frame in frames {
            match first_text(frame, &["frame_type"]).unwrap_or_default() {
                "ack" if self.is_acknowledged(frame) => {
                    self.free_since_ns.get_or_insert(at_ns);
                }
                "max_data" | "max_stream_data" if self.free_since_ns.is_some() => {
                    self.free_since_ns = Some(at_ns);
                }
                _ => {}
            }
        }
    }

    /// Whether an ACK frame covers the latest packet with stream data.
    fn is_acknowledged(&self, frame: &Json) -> bool {
        let ranges = frame["acked_ranges"].as_array();
        let greatest = |range: &Json| match range {
            Json::Array(ends) => ends.last().and_then(count_of),
            packet => count_of(packet),
        };
        let acknowledged = ranges.into_iter().flatten().filter_map(greatest).max();
        acknowledged.is_some_and(|packet| self.latest.is_some_and(|latest| packet >= latest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn acknowledge(pauses: &mut QlogSendPauses, ranges: Json, at_ns: u64) {
        pauses.receive(
            &[json!({"frame_type": "ack", "acked_ranges": ranges})],
            at_ns,
        );
    }

    #[test]
    fn a_sender_pauses_from_the_acknowledgement_of_all_on() {
        let mut pauses = QlogSendPauses::default();
        assert_eq!(pauses.send(Some(7), 100), 0);
        assert_eq!(pauses.send(Some(8), 101), 0);
        acknowledge(&mut pauses, json!([[0, 7]]), 120);
        assert_eq!(pauses.send(Some(9), 150), 0, "packet 8 is in flight");
        acknowledge(&mut pauses, json!([["0", "9"]]), 170);
        acknowledge(&mut pauses, json!([[0, 9]]), 180);
        assert_eq!(pauses.send(Some(10), 500), 330);
        acknowledge(&mut pauses, json!([10]), 520);
        assert_eq!(pauses.send(None, 530), 10);
        acknowledge(&mut pauses, json!([[0, 11]]), 540);
        assert_eq!(pauses.send(Some(12), 600), 0, "packet 11 had no number");
    }

    #[test]
    fn a_wait_for_room_is_no_pause() {
        let mut pauses = QlogSendPauses::default();
        pauses.send(Some(1), 100);
        acknowledge(&mut pauses, json!([[0, 1]]), 120);
        pauses.receive(&[json!({"frame_type": "max_stream_data"})], 400);
        assert_eq!(pauses.send(Some(2), 401), 1);
        // Room that comes while packets are in flight frees nobody.
        pauses.receive(&[json!({"frame_type": "max_data"})], 410);
        assert_eq!(pauses.send(Some(3), 420), 0);
    }
}
