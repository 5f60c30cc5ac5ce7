//! A connection within another one, such as behind HTTP CONNECT: its protocol is recognised by its first bytes.

use super::http1::{self, Http1};
use super::opening::{ConversationOpening, ProtocolVerdict};
use super::tls;
use super::tls::session_secrets::Secrets;
use super::{Dissector, DissectorEvent, ExchangeKind, OpenTls};
use stackline_events::unit_ids::EventStreamDirection;

/// The port that is used for recognition, where no port hints at the protocol.
const NO_PORT: u16 = 0;
/// How many bytes of each side are used for recognition.
const FIRST_BYTES: usize = 64;

/// The function that chooses a dissector by the first bytes; the flag says that no more bytes will come.
pub(super) type Recognise = fn(&ConversationOpening<'_>, bool) -> Option<Box<dyn Dissector>>;

/// The dissector of a tunnel.
#[derive(Debug)]
pub(super) struct Tunnel {
    recognise: Recognise,
    /// The bytes before the protocol is recognised: side, offset, bytes.
    early: Vec<(EventStreamDirection, u64, Vec<u8>)>,
    /// The TLS secrets, and the function that creates the TLS dissector.
    secrets: Option<(Secrets, OpenTls)>,
    /// The dissector of the recognised protocol.
    inner: Option<Box<dyn Dissector>>,
}

impl Tunnel {
    /// A tunnel whose protocol is recognised by this function.
    pub(super) const fn new(recognise: Recognise) -> Self {
        Self {
            recognise,
            early: Vec::new(),
            secrets: None,
            inner: None,
        }
    }

    /// Chooses a dissector, if enough bytes are known or `last` says that no more will come, and passes it all bytes so far.
    fn decide(&mut self, last: bool, found: &mut Vec<DissectorEvent>) {
        if self.inner.is_some() {
            return;
        }
        let first = |side: EventStreamDirection| {
            let of_side = self.early.iter().filter(|(from, ..)| *from == side);
            let bytes = of_side.flat_map(|(_, _, bytes)| bytes).copied();
            bytes.take(FIRST_BYTES).collect::<Vec<u8>>()
        };
        let (there, back) = (
            first(EventStreamDirection::There),
            first(EventStreamDirection::Back),
        );
        let opening = ConversationOpening {
            there: &there,
            back: &back,
            port: NO_PORT,
        };
        // HTTP within a tunnel gets no tunnels of its own, so that they cannot be nested without end.
        let is_http = http1::recognise(&opening) == ProtocolVerdict::Yes;
        let is_tls = tls::is_client_hello(&there);
        let inner = match (is_http, self.secrets.take_if(|_| is_tls)) {
            (true, _) => Some(Box::<Http1>::default() as Box<dyn Dissector>),
            (false, Some((secrets, open))) => Some(open(secrets)),
            (false, None) => (self.recognise)(&opening, last),
        };
        if let Some(mut inner) = inner {
            for (side, at, bytes) in self.early.drain(..) {
                inner.bytes(side, at, &bytes, found);
            }
            self.inner = Some(inner);
        }
    }
}

impl Dissector for Tunnel {
    fn bytes(
        &mut self,
        side: EventStreamDirection,
        at: u64,
        bytes: &[u8],
        found: &mut Vec<DissectorEvent>,
    ) {
        match &mut self.inner {
            Some(inner) => inner.bytes(side, at, bytes, found),
            None => {
                self.early.push((side, at, bytes.to_vec()));
                self.decide(false, found);
            }
        }
    }

    fn unseen(
        &mut self,
        side: EventStreamDirection,
        at: u64,
        count: u64,
        found: &mut Vec<DissectorEvent>,
    ) {
        self.decide(true, found);
        if let Some(inner) = &mut self.inner {
            inner.unseen(side, at, count, found);
        }
    }

    fn end(&mut self, side: EventStreamDirection, at: u64, found: &mut Vec<DissectorEvent>) {
        self.decide(!self.early.is_empty(), found);
        if let Some(inner) = &mut self.inner {
            inner.end(side, at, found);
        }
    }

    fn protocol(&self) -> &'static str {
        self.inner
            .as_ref()
            .map_or("HTTP/1.1", |inner| inner.protocol())
    }

    fn protocol_of(&self, kind: ExchangeKind, number: u64) -> &'static str {
        self.inner
            .as_ref()
            .map_or("HTTP/1.1", |inner| inner.protocol_of(kind, number))
    }

    fn know_secrets(&mut self, secrets: Secrets, open: OpenTls) {
        self.secrets = Some((secrets, open));
    }

    fn is_exact(&self) -> bool {
        self.inner.as_ref().is_none_or(|inner| inner.is_exact())
    }

    fn held(&self) -> usize {
        let early: usize = self.early.iter().map(|(.., bytes)| bytes.len() + 64).sum();
        early + self.inner.as_ref().map_or(0, |inner| inner.held())
    }
}

#[cfg(test)]
mod tests {
    use super::super::protocol_recognition;
    use super::super::script_testing::{DialogueScript, lines_cut, run_script};
    use super::*;

    const ASKED: &[u8] = b"CONNECT web.test:443 HTTP/1.1\r\nHost: web.test:443\r\n\r\n";
    const GRANTED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

    fn within(script: DialogueScript<'_>) -> (Vec<String>, &'static str) {
        let whole: Vec<(char, &[u8])> = [('>', ASKED), ('<', GRANTED)]
            .into_iter()
            .chain(script.iter().copied())
            .collect();
        let new = || Http1::with_tunnels(|| Box::new(Tunnel::new(protocol_recognition::recognise)));
        let mut dissector = new();
        let lines = run_script(&mut dissector, &whole);
        for piece in [1, 3, 50] {
            assert_eq!(lines_cut(&mut new(), &whole, piece), lines);
        }
        let protocol = dissector.protocol_of(ExchangeKind::Call, 1);
        let named = |line: &String| line.contains(" is ");
        (lines.into_iter().filter(named).collect(), protocol)
    }

    #[test]
    fn http_behind_a_connect_is_http() {
        let (names, protocol) = within(&[
            ('>', b"GET /slow/7 HTTP/1.1\r\nHost: web.test\r\n\r\n"),
            ('<', b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"),
        ]);
        assert_eq!(
            names,
            [
                "0 request is CONNECT web.test:443",
                "0 response is 200",
                "1 request is GET /slow/7",
                "1 response is 503",
            ]
        );
        assert_eq!(protocol, "HTTP/1.1");
    }

    #[test]
    fn redis_behind_a_connect_is_redis() {
        let (names, protocol) = within(&[
            ('>', b"*2\r\n$3\r\nGET\r\n$3\r\nk:1\r\n"),
            ('<', b"$-1\r\n"),
        ]);
        assert_eq!(names[2..], ["1 request is GET k:1", "1 response is nil"]);
        assert_eq!(protocol, "RESP");
    }

    #[test]
    fn tls_behind_a_connect_is_tls() {
        let hello = b"\x16\x03\x01\x00\x2f\x01\x00\x00\x2b\x03\x03\
            0123456789abcdef0123456789abcdef\x00\x00\x02\x13\x01\x01\x00\x00\x00";
        let refusal = b"\x15\x03\x03\x00\x02\x02\x46";
        let (names, protocol) = within(&[('>', hello), ('<', refusal)]);
        assert_eq!(
            names[2..],
            ["1 request is TLS handshake", "1 response is alert 70"]
        );
        assert_eq!(protocol, "TLS, alternating");
    }

    #[test]
    fn a_connect_that_is_refused_has_nothing_within() {
        let script: DialogueScript<'_> = &[
            ('>', ASKED),
            (
                '<',
                b"HTTP/1.1 502 Bad gateway\r\nContent-Length: 3\r\n\r\nno\n",
            ),
        ];
        let lines = run_script(&mut Http1::default(), script);
        assert!(lines.contains(&"0 response is 502".to_owned()), "{lines:?}");
    }

    #[test]
    fn tunnels_are_not_nested() {
        let (names, protocol) = within(&[('>', ASKED), ('<', GRANTED), ('>', ASKED), ('<', b"x")]);
        assert_eq!(
            names[2..4],
            ["1 request is CONNECT web.test:443", "1 response is 200"]
        );
        // The second CONNECT itself is HTTP; what goes through it is not.
        assert_eq!(protocol, "HTTP/1.1");
    }
}
