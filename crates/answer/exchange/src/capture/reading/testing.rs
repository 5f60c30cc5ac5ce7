//! Requests that nobody sent, for tests.

use super::*;
use stackline_dissect::conversation::ExchangeKind;
use stackline_requests::exchange::{ExchangeEnd, ExchangeMessage};

fn exchange(flow: u32) -> Exchange {
    let place = ExchangeEnd {
        host: None,
        address: "10.0.0.1:80".parse().unwrap(),
    };
    let message = || ExchangeMessage {
        left: Some((1, 2)),
        arrived: Some((3, 4)),
        ..ExchangeMessage::default()
    };
    Exchange {
        flow,
        number: 0,
        kind: ExchangeKind::Call,
        protocol: "",
        exact: true,
        name: stackline_redact::RedactedName::fixed(""),
        status: stackline_redact::RedactedName::fixed(""),
        context: None,
        client: place.clone(),
        server: place,
        seen_at: None,
        reversed: false,
        request: message(),
        response: Some(message()),
        turns: Vec::new(),
        parts: 0,
        lookup: None,
        connect: None,
        connect_again: 0,
        handshake: None,
        round_trip_ns: None,
        void: None,
        is_unopened: false,
        gave_up: None,
    }
}

fn finished(mut each: impl FnMut(&mut SharedCaptureState<'_>)) -> Unknown {
    let plan = CapturePlan::default();
    let options = CaptureReadOptions {
        asked: true,
        ..CaptureReadOptions::default()
    };
    let mut reader =
        CaptureEventReader::open(Vec::new(), &plan, StreamRegistry::default(), options).unwrap();
    each(&mut reader.together);
    reader.finish().unknown
}

/// So many requests are remembered for logs.
pub(in super::super) fn remembered(count: usize) -> Unknown {
    let one = exchange(0);
    finished(|together| (0..count).for_each(|_| together.remember(&one)))
}
