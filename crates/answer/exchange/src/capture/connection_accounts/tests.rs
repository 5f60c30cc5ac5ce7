//! Connections as packet traces: what each packet changes in their account.

use super::*;

/// A connection seen at its initiator, 20 ms from the responder; times in ms.
struct Trace {
    accounts: Accounts,
}

/// A segment: flags of `S`, `F`, `R`; where it begins, its bytes, what it acknowledges, its window.
struct Sent<'f>(&'f str, u32, u64, u32, u16);

impl Trace {
    fn begin() -> Self {
        let mut trace = Self {
            accounts: Accounts::default(),
        };
        trace
            .there(0, Sent("S", 0, 0, 0, 60_000))
            .back(20, Sent("S", 0, 0, 1, 60_000))
            .there(20, Sent("", 1, 0, 1, 60_000));
        trace
    }

    fn there(&mut self, ms: u64, sent: Sent<'_>) -> &mut Self {
        self.seen(0, ms, sent, false)
    }

    fn back(&mut self, ms: u64, sent: Sent<'_>) -> &mut Self {
        self.seen(1, ms, sent, false)
    }

    fn seen(
        &mut self,
        back: i64,
        ms: u64,
        Sent(flags, sequence, bytes, acknowledged, window): Sent<'_>,
        repeated: bool,
    ) -> &mut Self {
        let ends = [
            "10.0.0.1:5000".parse().unwrap(),
            "10.0.0.2:80".parse().unwrap(),
        ];
        let syn = flags.contains('S');
        let segment = DissectedSegment {
            ends: (ends[back as usize], ends[1 - back as usize]),
            sequence,
            bytes,
            syn,
            fin: flags.contains('F'),
            reset: flags.contains('R'),
            acknowledged: (back == 1 || !syn).then_some(acknowledged),
            window,
            selectively_acknowledged: None,
            window_scale: syn.then_some(0),
            largest_segment: syn.then_some(1000),
            ttl: 64,
            length: 40 + bytes,
        };
        let at = Location {
            stream: back,
            offset: u64::from(sequence.wrapping_sub(1)),
            repeated,
            fresh: if repeated { 0 } else { bytes },
            is_probe: false,
        };
        self.accounts
            .take("khons", 1_000_000_000 + ms * 1_000_000, &segment, &at);
        self
    }

    fn account(&mut self) -> String {
        let mut table = EventTable::default();
        std::mem::take(&mut self.accounts).finish(&mut table, &mut LeftOut::default());
        // Its pauses follow in a row of their own.
        assert_eq!(table.len(), 2);
        let text = table.event(0).to_string();
        text.strip_prefix("TCP_CONNECTION; khons; 1; 0; 0; 10.0.0.1:5000; 10.0.0.2:80; ")
            .unwrap()
            .to_owned()
    }
}

#[test]
fn a_call_and_its_answer() {
    let mut trace = Trace::begin();
    trace
        .there(30, Sent("", 1, 500, 1, 60_000))
        .back(50, Sent("", 1, 0, 501, 60_000));
    // The responder works, and is waited for.
    trace
        .back(250, Sent("", 1, 2000, 501, 60_000))
        .there(251, Sent("", 501, 0, 2001, 60_000));
    trace
        .there(260, Sent("F", 501, 0, 2001, 60_000))
        .back(280, Sent("F", 2001, 0, 502, 60_000));
    let ms = 1_000_000;
    let expected = format!(
        "{}; {}; {}; {}; 500; 2000; 0; 0; 0; 0; {}; responder; closed",
        280 * ms,
        20 * ms,
        20 * ms,
        ms,
        220 * ms
    );
    assert_eq!(trace.account(), expected);
}

#[test]
fn data_that_is_sent_again_counts_apart_and_has_no_round_trip() {
    let mut trace = Trace::begin();
    trace
        .there(30, Sent("", 1, 1000, 1, 60_000))
        .seen(0, 240, Sent("", 1, 1000, 1, 60_000), true);
    trace.back(260, Sent("", 1, 0, 1001, 60_000));
    assert_eq!(
        trace.account(),
        "260000000; 20000000; ; ; 1000; 0; 1; 0; 0; 0; 210000000; retransmission; open"
    );
}

#[test]
fn a_window_without_room_for_a_segment_is_full_until_it_opens() {
    let mut trace = Trace::begin();
    trace
        .back(25, Sent("", 1, 0, 1, 2500))
        .there(30, Sent("", 1, 1000, 1, 60_000));
    trace.there(31, Sent("", 1001, 1000, 1, 60_000));
    // 500 bytes of room: full from 31 on, then without any window until 100.
    trace
        .back(51, Sent("", 1, 0, 2001, 0))
        .back(100, Sent("", 1, 0, 2001, 5000));
    trace.there(101, Sent("R", 2001, 0, 1, 0));
    assert_eq!(
        trace.account(),
        "101000000; 20000000; 20000000; ; 2000; 0; 0; 0; 1; 69000000; 10000000; initiator; reset"
    );
}

#[test]
fn without_a_handshake_there_is_no_round_trip_of_it_and_no_scale() {
    let mut trace = Trace {
        accounts: Accounts::default(),
    };
    trace
        .there(0, Sent("", 1, 1000, 1, 1))
        .back(9, Sent("", 1, 0, 1001, 1));
    trace.there(10, Sent("", 1001, 1000, 1, 1));
    assert_eq!(
        trace.account(),
        "10000000; ; 9000000; ; 2000; 0; 0; 0; 0; 0; 10000000; initiator; open"
    );
}
