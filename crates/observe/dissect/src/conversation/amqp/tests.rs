//! Conversations in AMQP as scripts, by the specification of 0-9-1 and RabbitMQ's confirmations.

use super::super::script_testing::{
    DialogueScript, is_unharmed_by, lines_however_cut, names_of, run_script, test_hostile_input,
};
use super::*;
use proptest::prelude::*;

fn dissect_lines(script: DialogueScript<'_>) -> Vec<String> {
    lines_however_cut::<Amqp>(script)
}

fn names(script: DialogueScript<'_>) -> Vec<String> {
    names_of(dissect_lines(script))
}

fn frame(kind: u8, channel: u16, payload: &[u8]) -> Vec<u8> {
    [
        &[kind][..],
        &channel.to_be_bytes(),
        &(payload.len() as u32).to_be_bytes(),
        payload,
        &[END],
    ]
    .concat()
}

fn method(channel: u16, class: u8, number: u8, arguments: &[u8]) -> Vec<u8> {
    frame(
        METHOD,
        channel,
        &[&[0, class, 0, number][..], arguments].concat(),
    )
}

fn content(channel: u16, body: &[u8]) -> Vec<u8> {
    let head = [
        &[0, 60, 0, 0][..],
        &(body.len() as u64).to_be_bytes(),
        &[0, 0],
    ]
    .concat();
    let body = if body.is_empty() {
        Vec::new()
    } else {
        frame(BODY, channel, body)
    };
    [frame(CONTENT, channel, &head), body].concat()
}

fn publish(body: &[u8]) -> Vec<u8> {
    [method(1, 60, 40, b"\0\0\0\x06orders\0"), content(1, body)].concat()
}

#[test]
fn a_connection_and_what_is_published_without_confirmation() {
    let start = method(0, 10, 10, b"\0\x09");
    let publish = publish(b"hi");
    let deliver = [
        method(1, 60, 60, b"\x01c\0\0\0\0\0\0\0\x01\0\0\x03log"),
        content(1, b""),
    ]
    .concat();
    let lines = dissect_lines(&[
        ('>', GREETING),
        ('<', &start),
        ('>', &publish),
        ('<', &deliver),
    ]);
    assert_eq!(
        lines,
        [
            "0 request begins > 0 (handshake)".to_owned(),
            "0 request is connection".to_owned(),
            "0 request ends > 8".to_owned(),
            "0 response begins < 0".to_owned(),
            "0 response is OK".to_owned(),
            format!("0 response ends < {}", start.len()),
            "1 request begins > 8 (one way)".to_owned(),
            "1 request is basic.publish orders".to_owned(),
            format!("1 request ends > {}", 8 + publish.len()),
            format!("2 response begins < {} (one way)", start.len()),
            "2 response is basic.deliver log".to_owned(),
            format!("2 response ends < {}", start.len() + deliver.len()),
        ]
    );
}

#[test]
fn methods_are_answered_on_their_channels_and_confirmations_by_their_number() {
    let asked = [
        method(1, 50, 10, b"\0\0\x06orders\0\0\0\0\0"),
        method(2, 50, 10, b"\0\0\x03log\x10\0\0\0\0"),
        method(2, 60, 70, b"\0\0\x03log\0"),
        method(1, 85, 10, b"\0"),
    ];
    let answers = [
        method(2, 60, 72, b"\0"),
        method(1, 50, 11, b"\x06orders\0\0\0\0\0\0\0\0"),
        method(1, 85, 11, b""),
    ];
    let published = [publish(b"1"), publish(b"2"), publish(b"3")].concat();
    let confirmed = [
        method(1, 60, 80, b"\0\0\0\0\0\0\0\x02\x01"),
        method(1, 60, 120, b"\0\0\0\0\0\0\0\x03\0"),
    ]
    .concat();
    let refused = [
        method(1, 50, 10, b"\0\0\x01x\0\0\0\0\0"),
        method(1, 20, 41, b""),
    ]
    .concat();
    let script: DialogueScript<'_> = &[
        ('>', GREETING),
        ('>', &asked.concat()),
        ('<', &answers.concat()),
        ('>', &published),
        ('<', &confirmed),
        ('>', &refused),
        ('<', &method(1, 20, 40, b"\x01\x94\0\0\x32\0\x0a")),
    ];
    assert_eq!(
        names(script)[1..],
        [
            "1 request is queue.declare orders",
            "2 request is queue.declare log",
            "3 request is basic.get log",
            "4 request is confirm.select",
            "3 response is empty",
            "1 response is OK",
            "4 response is OK",
            "5 request is basic.publish orders",
            "6 request is basic.publish orders",
            "7 request is basic.publish orders",
            "5 response is OK",
            "6 response is OK",
            "7 response is ERROR rejected",
            "8 request is queue.declare x",
            "9 request is channel.close-ok",
            "8 response is ERROR 404",
        ]
    );
}

#[test]
fn what_goes_on_beyond_the_bound_is_counted_and_a_side_is_found_again() {
    use crate::conversation::Dissector;
    let many: Vec<u8> = (0..=4096)
        .flat_map(|channel| method(channel, 20, 10, b"\0"))
        .collect();
    let found = run_script(&mut Amqp::default(), &[('>', GREETING), ('>', &many)]);
    assert!(
        found.contains(&"left out: 1 waiting".to_owned())
            || found.contains(&"left out: 2 waiting".to_owned()),
        "{:?}",
        found.last()
    );
    let begun: Vec<u8> = (0..=4096)
        .flat_map(|channel| method(channel, 60, 40, b"\0\0\0\x01a\0"))
        .collect();
    let found = run_script(&mut Amqp::default(), &[('>', GREETING), ('>', &begun)]);
    assert_eq!(
        found.last().map(String::as_str),
        Some("left out: 1 waiting")
    );
    let (mut amqp, mut found) = (Amqp::default(), Vec::new());
    amqp.unseen(EventStreamDirection::There, 0, 5, &mut found);
    amqp.bytes(
        EventStreamDirection::There,
        5,
        &method(1, 20, 10, b"\0"),
        &mut found,
    );
    amqp.bytes(
        EventStreamDirection::Back,
        0,
        &method(1, 20, 11, b"\0\0\0\0"),
        &mut found,
    );
    assert_eq!(found.len(), 6);
}

proptest! {
    #[test]
    fn any_bytes_are_harmless(moves in test_hostile_input(&[
        GREETING, b"\x01\0\x01\0\0\0\x05\0\x14\0\x0a\0\xce", b"\x01\0\x01\0\0\0\x08\0\x14\0\x0b\0\0\0\0\xce",
        b"\x01\0\x01\0\0\0\x09\0\x3c\0\x28\0\0\0\0\0\xce", b"\x02\0\x01\0\0\0\x0e\0\x3c\0\0\0\0\0\0\0\0\0\x01\0\0\xce", b"\x03\0\x01\0\0\0\x01a\xce",
        b"\x01\0\x01\0\0\0\x0d\0\x3c\0\x50\0\0\0\0\0\0\0\0\x01\xce", b"\x01\0\x01\0\0\0\x05\0\x55\0\x0a\0\xce", b"\x01\0\x01\0\0\0\x04\0\x55\0\x0b\xce",
        b"\x01\0\x01\0\0\0\x06\0\x14\0\x28\x01\x94\xce", b"\x01\0\x01\xff\xff\xff\xff",
    ])) {
        prop_assert_eq!(is_unharmed_by(&mut Amqp::default(), &moves), Ok(()));
    }
}
