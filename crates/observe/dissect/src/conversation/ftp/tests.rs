//! FTP control connections as scripts, by RFC 959.

use super::super::script_testing::{
    DialogueScript, is_unharmed_by, lines_however_cut, names_of, run_script, test_hostile_input,
};
use super::*;
use crate::left_out::Bound;
use proptest::prelude::*;

fn names(script: DialogueScript<'_>) -> Vec<String> {
    names_of(run_script(&mut Ftp::default(), script))
}

#[test]
fn a_command_is_answered_by_its_last_reply_and_arguments_are_left_out() {
    let script: DialogueScript<'_> = &[
        ('<', b"220-welcome\r\n220 ready\r\n"),
        ('>', b"USER secret\r\n"),
        ('<', b"331 password?\r\n"),
        ('>', b"RETR a/b\r\n"),
        ('<', b"150 opening\r\n"),
        ('<', b"226 done\r\n"),
    ];
    assert_eq!(
        lines_however_cut::<Ftp>(script),
        [
            "0 response begins < 13 (one way)",
            "0 response is 220",
            "0 response ends < 24",
            "1 request begins > 0",
            "1 request is USER",
            "1 request ends > 13",
            "1 response begins < 24",
            "1 response is 331",
            "1 response ends < 39",
            "2 request begins > 13",
            "2 request is RETR",
            "2 request ends > 23",
            "2 response begins < 52",
            "2 response is 226",
            "2 response ends < 62",
        ]
    );
}

#[test]
fn lines_of_a_reply_may_look_like_replies() {
    let script: DialogueScript<'_> = &[
        ('<', b"220 ready\r\n"),
        ('>', b"feat\r\nxyzzy\r\n"),
        (
            '<',
            b"211-Features\r\n 226 no reply\r\n500 inside\r\n211 end\r\n500 what\r\n",
        ),
    ];
    let found = names(script).join(", ");
    assert!(
        found.contains("1 response is 211") && found.contains("2 response is 500"),
        "{found}"
    );
    assert!(found.contains("1 request is FEAT") && found.contains("2 request is unknown command"));
}

#[test]
fn after_an_accepted_auth_the_rest_is_tls() {
    let script: DialogueScript<'_> = &[
        ('<', b"220 ready\r\n"),
        ('>', b"AUTH TLS\r\n"),
        ('<', b"234 go\r\n"),
        ('>', b"\x16\x03\x01\x00\x05hello"),
    ];
    let mut ftp = Ftp::default();
    run_script(&mut ftp, script);
    assert_eq!(ftp.name(), "FTP over TLS, alternating");
}

#[test]
fn the_bounds_of_lines_and_of_commands_that_wait_are_counted() {
    let long = [b"RETR ".to_vec(), vec![b'k'; Bound::Head.most()]].concat();
    let found = run_script(&mut Ftp::default(), &[('>', &long)]);
    assert!(found.contains(&"left out: 1 head".to_owned()), "{found:?}");
    let many = "NOOP\r\n".repeat(Bound::Waiting.most() + 1);
    let found = run_script(&mut Ftp::default(), &[('>', many.as_bytes())]);
    assert_eq!(
        found.last().map(String::as_str),
        Some("left out: 1 waiting")
    );
}

proptest! {
    #[test]
    fn any_bytes_are_harmless(moves in test_hostile_input(&[
        b"220 ready\r\n", b"USER x\r\n", b"211-a\r\n", b"211 b\r\n", b"AUTH TLS\r\n", b"234 go\r\n", b"150 x\r\n", b"226\r\n", b"999 x\r\n",
        b"\r\n", b"\n",
    ])) {
        prop_assert_eq!(is_unharmed_by(&mut Ftp::default(), &moves), Ok(()));
    }
}
