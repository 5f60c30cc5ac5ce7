//! Conversations with Kafka as scripts, by the guide to its protocol.

use super::super::script_testing::{
    DialogueScript, is_unharmed_by, lines_however_cut, names_of, run_script, test_hostile_input,
};
use super::*;
use proptest::prelude::*;

fn dissect_lines(script: DialogueScript<'_>) -> Vec<String> {
    lines_however_cut::<Kafka>(script)
}

fn names(script: DialogueScript<'_>) -> Vec<String> {
    names_of(dissect_lines(script))
}

fn framed(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_be_bytes()[..], body].concat()
}

fn request(key: u16, version: u16, number: u32, body: &[u8]) -> Vec<u8> {
    let head = [
        &key.to_be_bytes()[..],
        &version.to_be_bytes(),
        &number.to_be_bytes(),
        b"\0\x03app",
    ]
    .concat();
    framed(&[&head, body].concat())
}

fn answer(number: u32, body: &[u8]) -> Vec<u8> {
    framed(&[&number.to_be_bytes()[..], body].concat())
}

#[test]
fn a_request_and_its_answer() {
    let ask = request(18, 0, 1, &[]);
    let back = answer(1, &[0, 0, 0, 0, 0, 0]);
    assert_eq!(
        dissect_lines(&[('>', &ask), ('<', &back)]),
        [
            "0 request begins > 0",
            "0 request is ApiVersions",
            "0 request ends > 17",
            "0 response begins < 0",
            "0 response is OK",
            "0 response ends < 14",
        ]
    );
}

#[test]
fn topics_are_named_and_what_is_not_acknowledged_is_one_way() {
    let produce = |acknowledgements: &[u8]| {
        [
            b"\xff\xff",
            acknowledgements,
            b"\0\0\x10\0\0\0\0\x01\0\x06orders\0\0\0\x01",
        ]
        .concat()
    };
    let flexible = b"\0\0\0\x01\0\0\x10\0\x02\x07orders\x02";
    let fetch =
        b"\xff\xff\xff\xff\0\0\x01\xf4\0\0\0\x01\0\0\0\x10\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\x06orders";
    let asked = [
        request(0, 7, 1, &produce(b"\0\x01")),
        request(0, 7, 2, &produce(b"\0\0")),
        request(0, 9, 3, flexible),
        request(1, 7, 4, fetch),
        request(3, 4, 5, b"\0\0\0\x01\0\x03log"),
        request(11, 4, 6, b"\0\x01g"),
        request(12, 3, 7, b""),
    ];
    let answered = [
        answer(4, &[0; 10]),
        answer(1, b"\0\0\0\x01\0\x06orders\0\0\0\x01\0\0\0\0\0\x06"),
        answer(3, b"\0\x02\x07orders\x02\0\0\0\0\0\x03"),
        answer(6, b"\0\0\0\0\0\x4f"),
        answer(7, b"\0\0\0\0\0\x1b"),
    ];
    assert_eq!(
        names(&[('>', &asked.concat()), ('<', &answered.concat())]),
        [
            "0 request is Produce orders",
            "1 request is Produce orders",
            "2 request is Produce orders",
            "3 request is Fetch orders, blocking",
            "4 request is Metadata log",
            "5 request is JoinGroup, blocking",
            "6 request is Heartbeat",
            "3 response is OK",
            "0 response is ERROR 6",
            "2 response is ERROR 3",
            "5 response is member id required",
            "6 response is ERROR 27",
        ]
    );
    assert!(run_script(&mut Kafka::default(), &[('>', &asked[1])])[0].ends_with("(one way)"));
}

#[test]
fn what_waits_beyond_the_bound_is_counted_and_each_side_is_found_again() {
    use crate::conversation::Dissector;
    let many: Vec<u8> = (0..=4096)
        .flat_map(|number| request(12, 3, number, b""))
        .collect();
    assert_eq!(
        run_script(&mut Kafka::default(), &[('>', &many)])
            .last()
            .map(String::as_str),
        Some("left out: 1 waiting")
    );
    let (mut kafka, mut found) = (Kafka::default(), Vec::new());
    kafka.unseen(EventStreamDirection::There, 0, 5, &mut found);
    kafka.bytes(
        EventStreamDirection::There,
        5,
        &request(12, 3, 8, b""),
        &mut found,
    );
    kafka.bytes(
        EventStreamDirection::Back,
        0,
        &answer(8, &[0; 6]),
        &mut found,
    );
    assert_eq!(found.len(), 6);
}

proptest! {
    #[test]
    fn any_bytes_are_harmless(moves in test_hostile_input(&[
        b"\0\0\0\x0d\0\x12\0\0\0\0\0\x01\0\x03app", b"\0\0\0\x0a\0\0\0\x01\0\0\0\0", b"\0\0\0\x0e\0\0\0\x09\0\0\0\x02\xff\xff\0\0",
        b"\x7f\xff\xff\xff\0\0\0\0\0\0\0\x01", b"\0\0\0\x14\0\x01\0\x0c\0\0\0\x03\xff\xff\0\xff\xff\xff\xff\xff\xff\xff",
    ])) {
        prop_assert_eq!(is_unharmed_by(&mut Kafka::default(), &moves), Ok(()));
    }
}
