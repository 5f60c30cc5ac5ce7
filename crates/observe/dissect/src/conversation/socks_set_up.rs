//! What a client and a SOCKS proxy say before they pass on another connection: versions 4, 4a (its protocol memo of 1998) and 5 (RFC 1928,
//! with the passwords of RFC 1929). What stands behind it is recognised as if it stood at the beginning.

use super::records::RecordFieldReader;
use super::{Dissector, DissectorEvent, ExchangeKind, ExchangeRole, RedactedName};
use stackline_events::unit_ids::EventStreamDirection;

const FOUR: usize = 4;
const FIVE: usize = 5;
/// A version 4 answer.
const ANSWER: usize = 8;
/// The code of one that is granted.
const GRANTED: usize = 0x5a;
/// No method of authentication suits the proxy.
const NO_METHOD: usize = 0xff;
/// The method that is a user and a password.
const PASSWORD: usize = 2;
/// Bytes of each side within which it ends; what is longer is not a set-up.
pub(super) const LONGEST: usize = 1024;

/// How a connection begins, seen from both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SocksSetUp {
    /// Not so.
    Absent,
    /// It may, and goes on.
    Begun,
    /// It was so far.
    Whole {
        /// Bytes of the client.
        there: usize,
        /// Bytes of the proxy.
        back: usize,
    },
    /// The proxy refuses it with a code of that version.
    Refused {
        /// The version.
        version: usize,
        /// Its code; `None`: no way to log in suits it, or the login is wrong.
        code: Option<usize>,
    },
}

/// What codes of version 5 mean (RFC 1928, section 6).
const REFUSALS: [&str; 8] = [
    "ERROR 1, proxy failure",
    "ERROR 2, not allowed",
    "ERROR 3, network unreachable",
    "ERROR 4, host unreachable",
    "ERROR 5, connection refused",
    "ERROR 6, TTL expired",
    "ERROR 7, unsupported command",
    "ERROR 8, unsupported address type",
];

/// What a refusal is called.
pub(super) fn name_refusal(version: usize, code: Option<usize>) -> RedactedName {
    let known = code.and_then(|code| REFUSALS.get(code.checked_sub(1)?));
    match (version, code, known) {
        (_, None, _) => RedactedName::fixed("ERROR, login refused"),
        (FIVE, _, Some(words)) => RedactedName::fixed(words),
        (FOUR, Some(0x5b), _) => RedactedName::fixed("ERROR 91, refused or failed"),
        (_, Some(code), _) => RedactedName::number("ERROR ", code as u64),
    }
}

/// What the first bytes of both sides are.
pub(super) fn find_set_up(there: &[u8], back: &[u8]) -> SocksSetUp {
    let mut sides = [there, back].map(RecordFieldReader);
    let version = sides[0].number(1);
    let read = match version {
        Some(FOUR) => read_four(&mut sides),
        Some(FIVE) => read_five(&mut sides),
        _ => Err(SocksSetUp::Absent),
    };
    match read {
        Ok(()) => SocksSetUp::Whole {
            there: there.len() - sides[0].0.len(),
            back: back.len() - sides[1].0.len(),
        },
        Err(refused @ SocksSetUp::Refused { .. }) => refused,
        Err(_) if there.len() >= LONGEST || back.len() >= LONGEST => SocksSetUp::Absent,
        Err(why) => why,
    }
}

fn read_four([client, proxy]: &mut [RecordFieldReader<'_>; 2]) -> Result<(), SocksSetUp> {
    let wait = |part: Option<usize>| part.ok_or(SocksSetUp::Begun);
    expect(client, &[1, 2])?;
    let (_, address) = (wait(client.number(2))?, wait(client.number(4))?);
    read_text(client)?;
    // An address that cannot be stands for a name behind it.
    if (1..256).contains(&address) {
        read_text(client)?;
    }
    expect(proxy, &[0])?;
    let code = wait(proxy.number(1))?;
    if !(0x5a..=0x5d).contains(&code) {
        return Err(SocksSetUp::Absent);
    }
    if code != GRANTED {
        let code = Some(code);
        return Err(SocksSetUp::Refused {
            version: FOUR,
            code,
        });
    }
    proxy.take(ANSWER - 2).map(|_| ()).ok_or(SocksSetUp::Begun)
}

fn read_five([client, proxy]: &mut [RecordFieldReader<'_>; 2]) -> Result<(), SocksSetUp> {
    read_counted(client)?;
    expect(proxy, &[FIVE])?;
    let refused = |code| SocksSetUp::Refused {
        version: FIVE,
        code,
    };
    let method = proxy.number(1).ok_or(SocksSetUp::Begun)?;
    if method == NO_METHOD {
        return Err(refused(None));
    }
    if method == PASSWORD {
        expect(client, &[1])?;
        read_counted(client)?;
        read_counted(client)?;
        expect(proxy, &[1])?;
        if proxy.number(1).ok_or(SocksSetUp::Begun)? != 0 {
            return Err(refused(None));
        }
    }
    expect(client, &[FIVE])?;
    expect(client, &[1, 2, 3])?;
    read_address(client)?;
    expect(proxy, &[FIVE])?;
    match proxy.number(1).ok_or(SocksSetUp::Begun)? {
        0 => read_address(proxy),
        code => Err(refused(Some(code))),
    }
}

/// One of some numbers.
fn expect(side: &mut RecordFieldReader<'_>, numbers: &[usize]) -> Result<(), SocksSetUp> {
    match side.number(1) {
        None => Err(SocksSetUp::Begun),
        Some(number) if numbers.contains(&number) => Ok(()),
        Some(_) => Err(SocksSetUp::Absent),
    }
}

/// Text with its length before it.
fn read_counted(side: &mut RecordFieldReader<'_>) -> Result<(), SocksSetUp> {
    let length = side.number(1).ok_or(SocksSetUp::Begun)?;
    side.take(length).map(|_| ()).ok_or(SocksSetUp::Begun)
}

/// Text with a zero byte behind it.
fn read_text(side: &mut RecordFieldReader<'_>) -> Result<(), SocksSetUp> {
    let is_whole = side.0.contains(&0);
    let _ = side.text();
    is_whole.then_some(()).ok_or(SocksSetUp::Begun)
}

/// A byte that is zero, an address of one of three kinds, a port.
fn read_address(side: &mut RecordFieldReader<'_>) -> Result<(), SocksSetUp> {
    expect(side, &[0])?;
    match side.number(1).ok_or(SocksSetUp::Begun)? {
        1 => side.take(4).map(|_| ()).ok_or(SocksSetUp::Begun)?,
        3 => read_counted(side)?,
        4 => side.take(16).map(|_| ()).ok_or(SocksSetUp::Begun)?,
        _ => return Err(SocksSetUp::Absent),
    }
    side.take(2).map(|_| ()).ok_or(SocksSetUp::Begun)
}

/// A connection whose set-up was refused: nothing more is said on it that matters.
#[derive(Debug)]
pub(super) struct RefusedSetUp;

impl Dissector for RefusedSetUp {
    fn bytes(&mut self, _: EventStreamDirection, _: u64, _: &[u8], _: &mut Vec<DissectorEvent>) {}

    fn unseen(&mut self, _: EventStreamDirection, _: u64, _: u64, _: &mut Vec<DissectorEvent>) {}

    fn end(&mut self, _: EventStreamDirection, _: u64, _: &mut Vec<DissectorEvent>) {}

    fn protocol(&self) -> &'static str {
        "SOCKS"
    }
}

/// What is found of a set-up that is refused: a request, from the first byte of each side to the last so far.
pub(super) fn find_refusal(
    refusal: RedactedName,
    sides: [(u64, u64); 2],
    found: &mut Vec<DissectorEvent>,
) {
    let [(asks_at, asked_at), (answers_at, answered_at)] = sides;
    let (request, response) = (ExchangeRole::Request, ExchangeRole::Response);
    let name = RedactedName::fixed("SOCKS connect");
    found.extend([
        DissectorEvent::begins(0, request, ExchangeKind::Call, asks_at),
        DissectorEvent::named(0, request, name),
        DissectorEvent::ends(0, request, asked_at),
        DissectorEvent::begins(0, response, ExchangeKind::Call, answers_at),
        DissectorEvent::named(0, response, refusal),
        DissectorEvent::ends(0, response, answered_at),
    ]);
}

#[cfg(test)]
mod tests {
    use super::super::connection::Conversation;
    use super::super::script_testing::describe_event;
    use super::*;
    use proptest::prelude::*;
    use stackline_events::unit_ids::EventStreamDirection::{Back, There};

    const SETS_UP: [(&[u8], &[u8]); 4] = [
        (b"\x04\x01\0\x50\x0a\0\0\x01bob\0", b"\0\x5a\0\0\0\0\0\0"),
        (
            b"\x04\x01\0\x50\0\0\0\x01\0web.test\0",
            b"\0\x5a\0\0\0\0\0\0",
        ),
        (
            b"\x05\x01\0\x05\x01\0\x03\x08web.test\0\x50",
            b"\x05\0\x05\0\0\x01\0\0\0\0\0\0",
        ),
        (
            b"\x05\x02\0\x02\x01\x03bob\x01x\x05\x01\0\x01\x0a\0\0\x01\0\x50",
            b"\x05\x02\x01\0\x05\0\0\x04aaaaaaaaaaaaaaaa\0\0",
        ),
    ];

    #[test]
    fn all_versions_have_their_end_and_nothing_less_is_whole() {
        for (there, back) in SETS_UP {
            let whole = SocksSetUp::Whole {
                there: there.len(),
                back: back.len(),
            };
            assert_eq!(find_set_up(there, back), whole);
            assert_eq!(
                find_set_up(&[there, b"GET /"].concat(), &[back, b"HT"].concat()),
                whole
            );
            for length in 1..there.len() {
                assert_eq!(find_set_up(&there[..length], &[]), SocksSetUp::Begun);
            }
            for length in 0..back.len() {
                assert_eq!(find_set_up(there, &back[..length]), SocksSetUp::Begun);
            }
        }
        for (there, back) in [
            (&b"GET /"[..], &b""[..]),
            (b"", b"x"),
            (b"\x05\x01\0", b"HTTP"),
            (b"\x04\x09", b""),
            (&[5; LONGEST], b""),
        ] {
            assert_eq!(find_set_up(there, back), SocksSetUp::Absent);
        }
    }

    #[test]
    fn what_is_within_is_recognised() {
        for (there, back) in SETS_UP {
            for is_apart in [true, false] {
                let (mut conversation, mut found) = (Conversation::new(1080), Vec::new());
                let (asked, answered) = (
                    &b"GET / HTTP/1.1\r\n\r\n"[..],
                    &b"HTTP/1.1 204 N\r\n\r\n"[..],
                );
                let mut said = |side, at: usize, bytes: &[u8]| {
                    conversation.segment(side, at as u64, bytes, bytes.len() as u64, &mut found);
                };
                if is_apart {
                    said(There, 0, there);
                    said(Back, 0, back);
                    said(There, there.len(), asked);
                    said(Back, back.len(), answered);
                } else {
                    said(There, 0, &[there, asked].concat());
                    said(Back, 0, &[back, answered].concat());
                }
                assert_eq!(conversation.protocol(), Some("HTTP/1.1"));
                let found: Vec<String> = found.iter().map(describe_event).collect();
                assert_eq!(found[0], format!("0 request begins > {}", there.len()));
                assert_eq!(
                    found[5],
                    format!("0 response ends < {}", back.len() + answered.len())
                );
            }
        }
    }

    #[test]
    fn what_a_proxy_refuses_is_a_failed_request() {
        for (there, back, status) in [
            (
                &b"\x05\x01\0\x05\x01\0\x03\x08web.test\0\x50"[..],
                &b"\x05\0\x05\x05\0\x01\0\0\0\0\0\0"[..],
                "ERROR 5, connection refused",
            ),
            (
                b"\x05\x01\0\x05\x01\0\x03\x08web.test\0\x50",
                b"\x05\0\x05\x04\0\x01\0\0\0\0\0\0",
                "ERROR 4, host unreachable",
            ),
            (b"\x05\x01\0", b"\x05\xff", "ERROR, login refused"),
            (
                b"\x05\x01\x02\x01\x03bob\x01x",
                b"\x05\x02\x01\x01",
                "ERROR, login refused",
            ),
            (
                b"\x04\x01\0\x50\x0a\0\0\x01bob\0",
                b"\0\x5b\0\0\0\0\0\0",
                "ERROR 91, refused or failed",
            ),
        ] {
            let (mut conversation, mut found) = (Conversation::new(1080), Vec::new());
            for (side, bytes) in [(There, there), (Back, back)] {
                conversation.segment(side, 0, bytes, bytes.len() as u64, &mut found);
            }
            conversation.end(Back, back.len() as u64, &mut found);
            conversation.end(There, there.len() as u64, &mut found);
            assert_eq!(conversation.protocol(), Some("SOCKS"));
            let found: Vec<String> = found.iter().map(describe_event).collect();
            assert_eq!(
                found,
                [
                    "0 request begins > 0".to_owned(),
                    "0 request is SOCKS connect".to_owned(),
                    format!("0 request ends > {}", there.len()),
                    "0 response begins < 0".to_owned(),
                    format!("0 response is {status}"),
                    format!("0 response ends < {}", back.len()),
                ]
            );
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_harmless(there in proptest::collection::vec(any::<u8>(), 0..99), back in proptest::collection::vec(any::<u8>(), 0..99), version in 4_u8..6) {
            if let SocksSetUp::Whole { there: first, back: second } = find_set_up(&[&[version], &there[..]].concat(), &back) {
                prop_assert!(first <= there.len() + 1 && second <= back.len());
            }
        }
    }
}
