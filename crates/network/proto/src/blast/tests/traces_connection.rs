//! Traces of opening, ending and closing.

use super::script::{ALL, MS, Script, fixed};
use crate::blast::negotiation::{BlastParameters, BlastRefusal};
use crate::blast::wire::{ACK_REQUEST, BlastHeader};
use crate::blast::{
    BlastConnection, BlastFailure, BlastOptions, BlastOutput, BlastPacketKind, BlastState,
    BlastStrategy,
};
use alloc::vec::Vec;
use stackline_core::time::{Duration, Instant};

fn options() -> BlastOptions {
    fixed(BlastStrategy::Selective, 4)
}

fn connecting() -> Script {
    Script::connecting([options(); 2])
}

/// The answer of a connection to a packet.
fn answer_to(
    end: &mut BlastConnection,
    now: Instant,
    header: &BlastHeader,
    body: &[u8],
) -> Option<(BlastPacketKind, u32)> {
    end.handle(now, header, body, body.len());
    match end.poll(now, 1) {
        Some(BlastOutput::Control(header, _)) => Some((header.kind, header.connection)),
        _ => None,
    }
}

#[test]
fn opening_is_repeated_until_it_is_accepted() {
    let mut script = connecting();
    script.lose(&[">Open", ">Open", "<Accept"]);
    let trace = [
        "0 -> (Open)",
        "20 -> (Open)",
        "60 -> Open",
        "61 <- (Accept)",
        "140 -> Open",
        "141 <- Accept",
    ];
    assert_eq!(script.until(2000), trace);
    assert_eq!(
        (script.state(0), script.state(1)),
        (BlastState::Open, BlastState::Open)
    );
    // It is unknown which one was answered.
    assert_eq!(script.end(0).facts().rtt, None);
}

#[test]
fn opening_is_given_up_after_its_patience() {
    let options = BlastOptions {
        patience: Duration(50 * MS),
        ..options()
    };
    let mut script = Script::connecting([options; 2]);
    script.lose(&[ALL]);
    assert_eq!(
        (script.until(49), script.state(0)),
        (
            ["0 -> (Open)", "20 -> (Open)"].map(Into::into).to_vec(),
            BlastState::Opening
        )
    );
    assert_eq!(
        (script.until(50).len(), script.state(0)),
        (0, BlastState::Failed(BlastFailure::Silent))
    );
    assert_eq!(script.until(1000), [] as [&str; 0]);
}

#[test]
fn different_parameters_are_refused_for_good() {
    let mut script = Script::connecting([options(), fixed(BlastStrategy::Full, 4)]);
    let refused = BlastState::Failed(BlastFailure::Refused(BlastRefusal::Parameters));
    assert_eq!(script.until(2), ["0 -> Open", "1 <- Refuse"]);
    assert_eq!(
        (script.state(0), script.state(1)),
        (refused, BlastState::Listening)
    );
    assert_eq!(
        (script.until(60_000), script.state(0)),
        (Vec::new(), refused)
    );
    let now = script.path.now;
    assert_eq!(script.end(0).deadline(now), None);
}

#[test]
fn impossible_parameters_in_an_accept_are_refused_for_good() {
    let mut script = connecting();
    let parameters = BlastParameters::new(&fixed(BlastStrategy::Full, 4), [5; 16], [2; 16]).write();
    script.lose(&[ALL]);
    script.until(1);
    let now = script.path.now;
    script.end(0).handle(
        now,
        &BlastHeader::new(BlastPacketKind::Accept, 77),
        &parameters,
        parameters.len(),
    );
    let refused = BlastState::Failed(BlastFailure::Refused(BlastRefusal::Parameters));
    assert_eq!(
        (script.until(60_000), script.state(0)),
        (Vec::new(), refused)
    );
}

#[test]
fn a_stranger_is_not_answered() {
    let now = Instant(0);
    let mut listener = BlastConnection::listen(&options(), [5; 16], [0; 16]);
    let wrong = BlastParameters::new(&options(), [6; 16], [0; 16]).write();
    assert_eq!(
        answer_to(
            &mut listener,
            now,
            &BlastHeader::new(BlastPacketKind::Open, 77),
            &wrong
        ),
        None
    );
    assert_eq!(
        answer_to(
            &mut listener,
            now,
            &BlastHeader::new(BlastPacketKind::Open, 77),
            &wrong[..20]
        ),
        None
    );
    assert_eq!(
        (listener.state(), listener.deadline(now)),
        (BlastState::Listening, None)
    );
    let mut dialler = BlastConnection::connect(now, &options(), [5; 16], [0; 16], 77);
    dialler.poll(now, 1);
    assert_eq!(
        answer_to(
            &mut dialler,
            now,
            &BlastHeader::new(BlastPacketKind::Accept, 77),
            &wrong
        ),
        None
    );
    assert_eq!(dialler.state(), BlastState::Opening);
}

#[test]
fn the_second_of_two_openers_is_refused() {
    let now = Instant(0);
    let mut listener = BlastConnection::listen(&options(), [5; 16], [0; 16]);
    let parameters = BlastParameters::new(&options(), [5; 16], [0; 16]).write();
    assert_eq!(
        answer_to(
            &mut listener,
            now,
            &BlastHeader::new(BlastPacketKind::Open, 77),
            &parameters
        ),
        Some((BlastPacketKind::Accept, 77))
    );
    assert_eq!(
        answer_to(
            &mut listener,
            now,
            &BlastHeader::new(BlastPacketKind::Open, 78),
            &parameters
        ),
        Some((BlastPacketKind::Refuse, 78))
    );
    assert_eq!(
        answer_to(
            &mut listener,
            now,
            &BlastHeader::new(BlastPacketKind::Open, 77),
            &parameters
        ),
        Some((BlastPacketKind::Accept, 77))
    );
    // An end that is about to close may still have to confirm that it was open.
    listener.send(10);
    listener.close(now);
    assert_eq!(
        answer_to(
            &mut listener,
            now,
            &BlastHeader::new(BlastPacketKind::Open, 77),
            &parameters
        ),
        Some((BlastPacketKind::Accept, 77))
    );
}

#[test]
fn data_written_before_it_is_open_leaves_afterwards() {
    let mut script = connecting();
    script.path.send(0, 1500);
    script.end(0).finish();
    script.end(1).send(10);
    let trace = [
        "0 -> Open",
        "1 <- Accept",
        "1 <- 0.0 0?",
        "2 -> 0.0 all",
        "2 -> 0.0 0 1?",
        "3 <- 0.0 all",
        "4 -> 1.0 end?",
        "5 <- 1.0 all",
    ];
    assert_eq!(script.until(100), trace);
    assert!(script.path.arrived(0, 1500) && script.path.arrived(1, 10));
}

#[test]
fn the_end_of_a_stream_is_as_reliable_as_its_data() {
    let mut script = Script::open(options());
    script.lose(&[">1.0:0", "<1.1"]);
    script.end(0).finish();
    script.path.send(0, 2000);
    assert!(!script.end(1).receiver().ended());
    let trace = [
        "0 -> 0.0 0 1?",
        "1 <- 0.0 all",
        "2 -> 1.0 (end?)",
        "12 -> 1.1 end?",
        "13 <- (1.1 all)",
        "22 -> 1.2 end?",
        "23 <- 1.2 all",
    ];
    assert_eq!(script.until(24), trace);
    assert!(script.end(1).receiver().ended() && script.end(0).sender().is_idle());
    // The other direction goes on.
    script.path.send(1, 10);
    assert_eq!(script.until(100), ["24 <- 0.0 0?", "25 -> 0.0 all"]);
}

#[test]
fn closing_waits_for_sent_data_and_is_repeated() {
    let mut script = Script::open(options());
    script.lose(&[">0.0:1", ">Close", "<Closed"]);
    script.path.send(0, 2000);
    script.close(0);
    let trace = [
        "0 -> 0.0 0 (1?)",
        "10 -> 0.1 1?",
        "11 <- 0.1 all",
        "12 -> (Close)",
        "32 -> Close",
        "33 <- (Closed)",
        "72 -> Close",
        "73 <- Closed",
    ];
    assert_eq!(
        (script.until(73), script.state(0)),
        (trace.map(Into::into).to_vec(), BlastState::Closing)
    );
    assert_eq!(script.until(2000), [] as [&str; 0]);
    assert_eq!(
        (script.state(0), script.state(1)),
        (BlastState::Closed, BlastState::Closed)
    );
    assert!(script.end(1).closed_by_peer() && !script.end(0).closed_by_peer());
}

#[test]
fn both_close_at_once() {
    let mut script = Script::open(options());
    script.close(0);
    script.close(1);
    let trace = ["0 -> Close", "0 <- Close", "1 -> Closed", "1 <- Closed"];
    assert_eq!(script.until(2000), trace);
    assert_eq!(
        (script.state(0), script.state(1)),
        (BlastState::Closed, BlastState::Closed)
    );
}

#[test]
fn the_closing_side_waits_a_second_for_the_answer() {
    let mut script = Script::open(options());
    script.lose(&[ALL]);
    script.close(0);
    assert_eq!(
        (script.until(999).len(), script.state(0)),
        (6, BlastState::Closing)
    );
    assert_eq!(
        (script.until(1000).len(), script.state(0)),
        (0, BlastState::Closed)
    );
    assert_eq!(script.until(60_000), [] as [&str; 0]);
}

#[test]
fn closing_with_unacknowledged_data_fails_after_the_patience() {
    let mut script = Script::open(BlastOptions {
        patience: Duration(45 * MS),
        ..options()
    });
    script.lose(&[ALL]);
    script.path.send(0, 1000);
    script.close(0);
    script.until(44);
    assert_eq!(script.state(0), BlastState::Closing);
    script.until(45);
    assert_eq!(script.state(0), BlastState::Failed(BlastFailure::Silent));
}

#[test]
fn an_opening_that_is_given_up_is_taken_back() {
    let mut script = connecting();
    script.lose(&["<Accept"]);
    script.until(5);
    script.close(0);
    assert_eq!(script.until(2000), ["5 -> Close", "6 <- Closed"]);
    assert_eq!(
        (script.state(0), script.state(1)),
        (BlastState::Closed, BlastState::Closed)
    );
    // Without a listener the repetition ends.
    let mut script = connecting();
    script.lose(&[ALL]);
    script.until(5);
    script.close(0);
    script.until(1005);
    assert_eq!(script.state(0), BlastState::Closed);
    assert_eq!(script.until(60_000), [] as [&str; 0]);
}

#[test]
fn a_close_reports_what_has_arrived() {
    // The answer to the last blast is lost, and the peer is gone.
    let mut script = Script::open(options());
    script.lose(&["<0.0", "<1.0"]);
    script.path.send(0, 2000);
    script.end(0).finish();
    assert_eq!(script.until(1), ["0 -> 0.0 0 1?", "1 <- (0.0 all)"]);
    assert!(!script.end(0).sender().is_idle());
    script.close(1);
    // The end of the stream has not come.
    assert_eq!(script.until(2), ["1 <- Close", "2 -> Closed"]);
    assert!(script.state(0) == BlastState::Closed && !script.end(0).sender().is_idle());

    let mut script = Script::open(options());
    script.lose(&["<0.0"]);
    script.path.send(0, 2000);
    assert_eq!(script.until(1), ["0 -> 0.0 0 1?", "1 <- (0.0 all)"]);
    script.close(1);
    script.until(2);
    assert!(script.state(0) == BlastState::Closed && script.end(0).sender().is_idle());
    assert_eq!(script.end(0).facts().sent.acknowledged, 2000);
}

#[test]
fn answers_leave_before_closed() {
    let now = Instant(0);
    let mut end = BlastConnection::listen(&options(), [5; 16], [0; 16]);
    let parameters = BlastParameters::new(&options(), [5; 16], [0; 16]).write();
    assert_eq!(
        answer_to(
            &mut end,
            now,
            &BlastHeader::new(BlastPacketKind::Open, 77),
            &parameters
        ),
        Some((BlastPacketKind::Accept, 77))
    );
    end.handle(
        now,
        &BlastHeader {
            flags: ACK_REQUEST,
            length: 10,
            ..BlastHeader::new(BlastPacketKind::Data, 77)
        },
        &[],
        10,
    );
    end.close(now);
    let answer = [(); 3].map(|()| match end.poll(now, 1) {
        Some(BlastOutput::Control(header, _)) => Some((header.kind, header.start)),
        _ => None,
    });
    assert_eq!(
        answer,
        [
            Some((BlastPacketKind::Answer, options().buffer)),
            Some((BlastPacketKind::Close, 10)),
            None
        ]
    );
}
