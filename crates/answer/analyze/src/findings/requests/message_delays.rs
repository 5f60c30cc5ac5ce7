//! What delays a message (a request or an answer), as parts of its time.

use crate::findings::requests::request::{RequestTimes, TracedRequest};

/// The delays of a message that were recorded.
#[derive(Clone, Copy)]
struct RequestMessageNetwork {
    /// Whether the sender's side was seen.
    is_sender_seen: bool,
    /// The time that Nagle's algorithm held it back.
    held_ns: i64,
    /// The time that its sender paused although nothing hindered it.
    paused_ns: i64,
    /// The time that its sender waited for the other end (`100 Continue`).
    awaited_ns: i64,
    /// The time that it waited for room in the receive buffer.
    window_ns: i64,
    /// The delay by retransmissions.
    again_ns: i64,
}

/// The parts of the time that a message takes to leave and to travel, ns. They add up to that time.
pub(super) struct MessageDelays {
    /// Its sender paused.
    pub(super) paused: i64,
    /// Its sender waited for the other end.
    pub(super) awaited: i64,
    /// Nagle's algorithm held it back.
    pub(super) held: i64,
    /// It waited for room in the receive buffer.
    pub(super) window: i64,
    /// Parts of it were retransmitted.
    pub(super) again: i64,
    /// The rest of the time.
    pub(super) rest: i64,
}

impl MessageDelays {
    /// Splits the time of a message that takes `leaves` ns to leave and `travels` ns to travel.
    fn new(leaves: i64, travels: i64, net: RequestMessageNetwork) -> Self {
        // If the sender was not seen, all of the time looks like travelling.
        let mut sender_has = if net.is_sender_seen {
            leaves
        } else {
            leaves + travels
        };
        let mut take = |ns: i64| {
            let part = ns.clamp(0, sender_has.max(0));
            sender_has -= part;
            part
        };
        let (held, paused) = (take(net.held_ns), take(net.paused_ns));
        let (awaited, window) = (take(net.awaited_ns), take(net.window_ns));
        let rest = leaves + travels - held - paused - awaited - window;
        let again = net.again_ns.min(rest);
        Self {
            paused,
            awaited,
            held,
            window,
            again,
            rest: rest - again,
        }
    }
}

/// The delays of a request.
pub(super) fn request_delays(request: &TracedRequest, times: RequestTimes) -> MessageDelays {
    let net = request.network;
    MessageDelays::new(
        times.hold,
        times.there,
        RequestMessageNetwork {
            is_sender_seen: !times.is_of_server,
            held_ns: net.held_there_ns,
            paused_ns: net.paused_there_ns,
            awaited_ns: net.awaited_there_ns,
            window_ns: net.window_there_ns,
            again_ns: net.again_there_ns,
        },
    )
}

/// The delays of an answer.
pub(super) fn answer_delays(request: &TracedRequest, times: RequestTimes) -> MessageDelays {
    let net = request.network;
    MessageDelays::new(
        times.sending,
        times.back,
        RequestMessageNetwork {
            is_sender_seen: !times.is_of_client,
            held_ns: net.held_back_ns,
            paused_ns: net.paused_back_ns,
            awaited_ns: 0,
            window_ns: net.window_back_ns,
            again_ns: net.again_back_ns,
        },
    )
}
