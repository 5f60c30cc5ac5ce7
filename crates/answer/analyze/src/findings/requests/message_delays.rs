//! What keeps a message from arriving, as parts of its time.

use crate::findings::requests::request::{RequestTimes, TracedRequest};

/// What the network recorded of a message, ns.
#[derive(Clone, Copy)]
struct RequestMessageNetwork {
    is_sender_seen: bool,
    held_ns: i64,
    paused_ns: i64,
    /// Its sender waited for what the other end said.
    awaited_ns: i64,
    window_ns: i64,
    again_ns: i64,
}

/// What keeps a message from arriving: its sender pauses, the stack holds it back, its window is full, parts of it are sent again.
pub(super) struct MessageDelays {
    pub(super) paused: i64,
    pub(super) awaited: i64,
    pub(super) held: i64,
    pub(super) window: i64,
    pub(super) again: i64,
    /// What is left of the time to leave and to travel.
    pub(super) rest: i64,
}

impl MessageDelays {
    /// Of a message that takes so long to leave and to travel, by what the network recorded of it.
    fn of(leaves: i64, travels: i64, net: RequestMessageNetwork) -> Self {
        // Where its sender is not seen, all of it is seen as on its way.
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

/// What keeps a request from arriving.
pub(super) fn request_delays(request: &TracedRequest, times: RequestTimes) -> MessageDelays {
    let net = request.network;
    MessageDelays::of(
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

/// What keeps an answer from arriving.
pub(super) fn answer_delays(request: &TracedRequest, times: RequestTimes) -> MessageDelays {
    let net = request.network;
    MessageDelays::of(
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
