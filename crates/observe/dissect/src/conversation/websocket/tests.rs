//! Conversations in WebSocket as scripts, by RFC 6455, behind the upgrade that begins them.

use super::super::http1::Http1;
use super::super::script_testing::{
    DialogueScript, is_unharmed_by, lines_cut, run_script, test_hostile_input,
};
use super::*;
use proptest::prelude::*;

const UPGRADE: &[u8] = b"GET /chat HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
const SWITCHES: &[u8] =
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";

fn after_upgrade(script: DialogueScript<'_>) -> Vec<String> {
    let script: Vec<(char, &[u8])> = [('>', UPGRADE), ('<', SWITCHES)]
        .into_iter()
        .chain(script.iter().copied())
        .collect();
    let whole = run_script(&mut Http1::default(), &script);
    for piece in [1, 2, 3, 7, 50] {
        assert_eq!(
            lines_cut(&mut Http1::default(), &script, piece),
            whole,
            "in pieces of {piece} bytes"
        );
    }
    whole.into_iter().skip(6).collect()
}

#[test]
fn messages_are_one_way_and_may_come_in_several_frames() {
    let long = [&b"\x82\x7e\x01\x2c"[..], &[7; 300]].concat();
    let script: DialogueScript<'_> = &[
        ('>', b"\x81\x82maskhi"),
        ('<', b"\x81\x03abc"),
        ('<', &long),
        ('>', b"\x01\x81maskx\x89\x80mask\x80\x81masky"),
        ('<', b"\x8a\0\x88\x02\x03\xe8"),
    ];
    let (there, back) = (UPGRADE.len(), SWITCHES.len());
    assert_eq!(
        after_upgrade(script),
        [
            format!("1 request begins > {there} (one way)"),
            "1 request is text".to_owned(),
            format!("1 request ends > {}", there + 8),
            format!("2 response begins < {back} (one way)"),
            "2 response is text".to_owned(),
            format!("2 response ends < {}", back + 5),
            format!("3 response begins < {} (one way)", back + 5),
            "3 response is binary".to_owned(),
            format!("3 response ends < {}", back + 309),
            format!("4 request begins > {} (one way)", there + 8),
            "4 request is text".to_owned(),
            format!("5 request begins > {} (one way)", there + 15),
            "5 request is ping".to_owned(),
            format!("5 request ends > {}", there + 21),
            format!("4 request ends > {}", there + 28),
            format!("6 response begins < {} (one way)", back + 309),
            "6 response is pong".to_owned(),
            format!("6 response ends < {}", back + 311),
            format!("7 response begins < {} (one way)", back + 311),
            "7 response is close".to_owned(),
            format!("7 response ends < {}", back + 315),
        ]
    );
}

#[test]
fn a_connection_is_called_by_what_is_spoken_within_it() {
    use crate::conversation::Dissector;
    let mut http = Http1::default();
    let lines = run_script(
        &mut http,
        &[('>', UPGRADE), ('<', SWITCHES), ('>', b"\x81\x80mask")],
    );
    assert_eq!(lines.len(), 9);
    assert_eq!((http.protocol(), http.is_exact()), ("WebSocket", true));
    assert_eq!(http.protocol_of(ExchangeKind::Call, 0), "HTTP/1.1");
    assert_eq!(http.protocol_of(ExchangeKind::OneWay, 1), "WebSocket");
}

proptest! {
    #[test]
    fn any_bytes_are_harmless(moves in test_hostile_input(&[
        b"\x81\x82maskhi", b"\x81\x03abc", b"\x01\x81maskx", b"\x80\x81masky", b"\x89\x80mask", b"\x8a\0", b"\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff", b"\x82\xff\x7f\xff\xff\xff\xff\xff\xff\xffmask",
    ])) {
        prop_assert_eq!(is_unharmed_by(&mut WebSocket::default(), &moves), Ok(()));
    }
}
