//! Conversations with memcached as scripts: `protocol.txt` and the binary protocol of its wiki.

use super::super::script_testing::{
    DialogueScript, is_unharmed_by, lines_however_cut, names_of, run_script, test_hostile_input,
};
use super::*;
use proptest::prelude::*;

fn dissect_lines(script: DialogueScript<'_>) -> Vec<String> {
    lines_however_cut::<Memcached>(script)
}

fn names(script: DialogueScript<'_>) -> Vec<String> {
    names_of(dissect_lines(script))
}

#[test]
fn commands_and_their_answers() {
    let script: DialogueScript<'_> = &[
        ('>', b"set user:7 0 60 5\r\nhello\r\n"),
        ('<', b"STORED\r\n"),
        ('>', b"get user:7\r\n"),
        ('<', b"VALUE user:7 0 5\r\nhello\r\nEND\r\n"),
    ];
    assert_eq!(
        dissect_lines(script),
        [
            "0 request begins > 0",
            "0 request is set user:7",
            "0 request ends > 26",
            "0 response begins < 0",
            "0 response is STORED",
            "0 response ends < 8",
            "1 request begins > 26",
            "1 request is get user:7",
            "1 request ends > 38",
            "1 response begins < 8",
            "1 response is 1 value",
            "1 response ends < 38",
        ]
    );
}

#[test]
fn pipelined_commands_are_answered_in_their_order_and_errors_are_named() {
    let script: DialogueScript<'_> = &[
        ('>', b"get a b c\r\nincr n 1\r\ndelete x noreply\r\ngat 10 k\r\nbogus\r\ntouch k 5\r\nstats\r\n"),
        ('<', b"VALUE a 0 1\r\n1\r\nVALUE c 0 3\r\nEND\r\nEND\r\n17\r\nEND\r\nERROR\r\n"),
        ('<', b"SERVER_ERROR out of memory storing object\r\nSTAT pid 1\r\nSTAT uptime 2\r\nEND\r\n"),
    ];
    assert_eq!(
        names(script),
        [
            "0 request is get a",
            "1 request is incr n",
            "2 request is delete x",
            "3 request is gat k",
            "4 request is command",
            "5 request is touch k",
            "6 request is stats",
            "0 response is 2 values",
            "1 response is number",
            "3 response is no value",
            "4 response is ERROR",
            "5 response is ERROR (server)",
            "6 response is 2 values",
        ]
    );
}

#[test]
fn meta_commands_and_what_quiet_ones_say() {
    let script: DialogueScript<'_> = &[
        ('>', b"ms k 2 T0\r\nhi\r\nmg k v\r\n"),
        ('<', b"HD\r\nVA 2\r\nhi\r\n"),
        ('>', b"mg a v q\r\nmg b v q\r\nmn\r\n"),
        ('<', b"VA 1\r\nx\r\nMN\r\n"),
        ('>', b"md k\r\n"),
        ('<', b"NF\r\n"),
    ];
    assert_eq!(
        names(script),
        [
            "0 request is ms k",
            "1 request is mg k",
            "0 response is HD",
            "1 response is VA",
            "2 request is mg a",
            "3 request is mg b",
            "4 request is mn",
            "5 response is answer to a quiet command",
            "4 response is MN",
            "6 request is md k",
            "6 response is NF",
        ]
    );
}

fn packet(magic: u8, number: u8, status: u16, extras: &[u8], key: &[u8], value: &[u8]) -> Vec<u8> {
    let body = [extras, key, value].concat();
    let mut head = vec![magic, number, 0, key.len() as u8, extras.len() as u8, 0];
    head.extend(status.to_be_bytes());
    head.extend((body.len() as u32).to_be_bytes());
    head.extend([0; 12]);
    [head, body].concat()
}

#[test]
fn binary_commands() {
    let set = packet(0x80, 1, 0, &[0; 8], b"user:7", b"hello");
    let quiet = packet(0x80, 0x11, 0, &[0; 8], b"q", b"v");
    let get = packet(0x80, 0, 0, &[], b"user:8", &[]);
    let answers = [
        packet(0x81, 1, 0, &[], &[], &[]),
        packet(0x81, 0x11, 2, &[], &[], b"exists"),
        packet(0x81, 0, 0x82, &[], &[], b"Out of memory"),
    ];
    let script: DialogueScript<'_> =
        &[('>', &[set, quiet, get].concat()), ('<', &answers.concat())];
    assert_eq!(
        names(script),
        [
            "0 request is set user:7",
            "1 request is set q",
            "2 request is get user:8",
            "0 response is OK",
            "3 response is answer to a quiet command",
            "2 response is ERROR 130",
        ]
    );
}

#[test]
fn what_was_not_captured_makes_what_waits_unknown_and_a_command_is_found_again() {
    let (mut memcached, mut found) = (Memcached::default(), Vec::new());
    let (there, back) = (EventStreamDirection::There, EventStreamDirection::Back);
    use crate::conversation::Dissector;
    memcached.bytes(there, 0, b"get a\r\n", &mut found);
    memcached.unseen(back, 0, 5, &mut found);
    memcached.bytes(there, 7, b"get b\r\n", &mut found);
    memcached.bytes(back, 5, b"END\r\n", &mut found);
    let found: Vec<String> = found
        .iter()
        .map(super::super::script_testing::describe_event)
        .collect();
    assert_eq!(found[3], "0 void: some of its bytes were not captured");
    assert_eq!(
        found.last().map(String::as_str),
        Some("1 response ends < 10")
    );
}

#[test]
fn the_bound_of_a_line_is_counted() {
    let long = [b"get ".to_vec(), vec![b'k'; Bound::Head.most()]].concat();
    assert!(
        run_script(&mut Memcached::default(), &[('>', &long)])
            .contains(&"left out: 1 head".to_owned())
    );
}

proptest! {
    #[test]
    fn any_bytes_are_harmless(moves in test_hostile_input(&[
        b"get a\r\n", b"set k 0 0 3\r\nabc\r\n", b"mg a v q\r\n", b"mn\r\n", b"MN\r\n", b"VALUE a 0 2\r\nhi\r\n", b"END\r\n", b"VA 1\r\nx\r\n",
        b"STORED\r\n", b"set k 0 0 99999999999999999999\r\n", b"VALUE a 0 18446744073709551615\r\n",
        b"\x80\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0k", b"\x81\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
    ])) {
        prop_assert_eq!(is_unharmed_by(&mut Memcached::default(), &moves), Ok(()));
    }
}
