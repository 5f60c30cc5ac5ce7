//! The set-up between a client and a SOCKS proxy before the proxied connection: versions 4, 4a (its protocol memo of 1998) and 5 (RFC
//! 1928, with the passwords of RFC 1929). What follows is recognised as if it were the beginning of a connection.

use super::records::RecordFieldReader;
use super::{Dissector, DissectorEvent, ExchangeKind, ExchangeRole, RedactedName};
use stackline_events::unit_ids::EventStreamDirection;

/// Version numbers.
const FOUR: usize = 4;
const FIVE: usize = 5;
/// The length of a version 4 response in bytes.
const ANSWER: usize = 8;
/// The response code of version 4 for a granted request.
const GRANTED: usize = 0x5a;
/// The method that means that no authentication method is acceptable (version 5).
const NO_METHOD: usize = 0xff;
/// The authentication method with user and password (version 5).
const PASSWORD: usize = 2;
/// The longest set-up of each side, in bytes; anything longer is not taken as one.
pub(super) const LONGEST: usize = 1024;

/// What the beginning of a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SocksSetUp {
    /// It is not a SOCKS set-up.
    Absent,
    /// It may be one that is not complete.
    Begun,
    /// It is a complete set-up.
    Whole {
        /// The bytes of the client that belong to it.
        there: usize,
        /// The bytes of the proxy that belong to it.
        back: usize,
    },
    /// The proxy refuses the request.
    Refused {
        /// The version of the protocol.
        version: usize,
        /// The proxy's code; `None` if no authentication method was acceptable or the login failed.
        code: Option<usize>,
    },
}

/// The meaning of the response codes of version 5 (RFC 1928, section 6), from 1 on.
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

/// The status of a refusal.
pub(super) fn name_refusal(version: usize, code: Option<usize>) -> RedactedName {
    let known = code.and_then(|code| REFUSALS.get(code.checked_sub(1)?));
    match (version, code, known) {
        (_, None, _) => RedactedName::fixed("ERROR, login refused"),
        (FIVE, _, Some(words)) => RedactedName::fixed(words),
        (FOUR, Some(0x5b), _) => RedactedName::fixed("ERROR 91, refused or failed"),
        (_, Some(code), _) => RedactedName::number("ERROR ", code as u64),
    }
}

/// Finds a set-up in the first bytes of both sides.
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

/// Reads a set-up of version 4.
fn read_four([client, proxy]: &mut [RecordFieldReader<'_>; 2]) -> Result<(), SocksSetUp> {
    let wait = |part: Option<usize>| part.ok_or(SocksSetUp::Begun);
    expect(client, &[1, 2])?;
    let (_, address) = (wait(client.number(2))?, wait(client.number(4))?);
    read_text(client)?;
    // An address 0.0.0.x stands for a host name that follows (version 4a).
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

/// Reads a set-up of version 5.
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

/// Reads a byte that must be one of these numbers.
fn expect(side: &mut RecordFieldReader<'_>, numbers: &[usize]) -> Result<(), SocksSetUp> {
    match side.number(1) {
        None => Err(SocksSetUp::Begun),
        Some(number) if numbers.contains(&number) => Ok(()),
        Some(_) => Err(SocksSetUp::Absent),
    }
}

/// Skips a text that follows its length.
fn read_counted(side: &mut RecordFieldReader<'_>) -> Result<(), SocksSetUp> {
    let length = side.number(1).ok_or(SocksSetUp::Begun)?;
    side.take(length).map(|_| ()).ok_or(SocksSetUp::Begun)
}

/// Skips a text that ends with a zero byte.
fn read_text(side: &mut RecordFieldReader<'_>) -> Result<(), SocksSetUp> {
    let is_whole = side.0.contains(&0);
    let _ = side.text();
    is_whole.then_some(()).ok_or(SocksSetUp::Begun)
}

/// Skips a zero byte, an address of one of three types, and a port.
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

/// The dissector of a connection whose set-up was refused: nothing that follows is read.
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

/// Reports a refused set-up as a request with its response, each from the first to the last byte of its side.
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
