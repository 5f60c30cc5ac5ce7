//! Conversations in MQTT as scripts, by the standards of OASIS for 3.1.1 and 5.

use super::super::script_testing::{
    DialogueScript, is_unharmed_by, lines_however_cut, names_of, run_script, test_hostile_input,
};
use super::*;
use proptest::prelude::*;

fn dissect_lines(script: DialogueScript<'_>) -> Vec<String> {
    lines_however_cut::<Mqtt>(script)
}

fn names(script: DialogueScript<'_>) -> Vec<String> {
    names_of(dissect_lines(script))
}

const CONNECT_4: &[u8] = b"\x10\x0d\0\x04MQTT\x04\x02\0\x3c\0\x01a";
const CONNECT_5: &[u8] = b"\x10\x0e\0\x04MQTT\x05\x02\0\x3c\0\0\x01a";

#[test]
fn published_by_quality_of_service() {
    let script: DialogueScript<'_> = &[
        ('>', CONNECT_4),
        ('<', b"\x20\x02\0\0"),
        ('>', b"\x30\x05\0\x03a/b"),
        ('>', b"\x32\x08\0\x03a/c\0\x01x"),
        ('<', b"\x30\x06\0\x03n/mx"),
        ('<', b"\x40\x02\0\x01"),
    ];
    assert_eq!(
        dissect_lines(script),
        [
            "0 request begins > 0 (handshake)",
            "0 request is CONNECT",
            "0 request ends > 15",
            "0 response begins < 0",
            "0 response is OK",
            "0 response ends < 4",
            "1 request begins > 15 (one way)",
            "1 request is PUBLISH a/b",
            "1 request ends > 22",
            "2 request begins > 22",
            "2 request is PUBLISH a/c",
            "2 request ends > 32",
            "3 response begins < 4 (one way)",
            "3 response is PUBLISH n/m",
            "3 response ends < 12",
            "2 response begins < 12",
            "2 response is OK",
            "2 response ends < 16",
        ]
    );
}

#[test]
fn packets_are_answered_by_their_numbers_and_codes_are_failures() {
    let script: DialogueScript<'_> = &[
        ('>', CONNECT_5),
        ('<', b"\x20\x03\0\x87\0"),
        (
            '>',
            b"\x34\x09\0\x03a/b\0\x05\0x\x82\x09\0\x06\0\0\x03c/d\x01\xc0\0",
        ),
        ('<', b"\xd0\0\x90\x04\0\x06\0\x87\x50\x02\0\x05"),
        ('>', b"\x62\x02\0\x05"),
        ('<', b"\x70\x02\0\x05"),
        ('>', b"\xe0\0"),
    ];
    assert_eq!(
        names(script),
        [
            "0 request is CONNECT",
            "0 response is ERROR 135",
            "1 request is PUBLISH a/b",
            "2 request is SUBSCRIBE c/d",
            "3 request is PINGREQ",
            "3 response is OK",
            "2 response is ERROR 135",
            "1 response is OK",
            "4 request is PUBREL",
            "4 response is OK",
            "5 request is DISCONNECT",
        ]
    );
}

#[test]
fn what_waits_beyond_the_bound_is_counted() {
    let many: Vec<u8> = (0..=4096_u16)
        .flat_map(|number| [&b"\x32\x05\0\x01a"[..], &number.to_be_bytes()].concat())
        .collect();
    assert_eq!(
        run_script(&mut Mqtt::default(), &[('>', &many)])
            .last()
            .map(String::as_str),
        Some("left out: 1 waiting")
    );
}

proptest! {
    #[test]
    fn any_bytes_are_harmless(moves in test_hostile_input(&[
        CONNECT_4, CONNECT_5, b"\x20\x02\0\0", b"\x32\x08\0\x03a/c\0\x01x", b"\x40\x02\0\x01", b"\x82\x09\0\x06\0\0\x03c/d\x01",
        b"\x30\xff\xff\xff\x7f", b"\x30\xff\xff\xff\xff", b"\x90\0", b"\x82\0", b"\x30\0",
    ])) {
        prop_assert_eq!(is_unharmed_by(&mut Mqtt::default(), &moves), Ok(()));
    }
}
