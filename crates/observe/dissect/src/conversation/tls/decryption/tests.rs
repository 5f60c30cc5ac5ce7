//! Conversations of a real TLS, opened with the secrets that it writes down.

use super::*;
use crate::conversation::script_testing::{
    is_unharmed_by, lines_cut, run_script, test_hostile_input,
};
use proptest::prelude::*;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, ServerConnection, SupportedCipherSuite, SupportedProtocolVersion};
use stackline_testing::tls_pair::{TlsPair, WrittenTlsSecrets};
use std::io::{Read as _, Write as _};
use std::sync::Arc;

/// Both ends of a connection, and what went over it.
struct Wire {
    client: ClientConnection,
    server: ServerConnection,
    written: Arc<WrittenTlsSecrets>,
    went: Vec<(char, Vec<u8>)>,
}

impl Wire {
    fn new(version: &'static SupportedProtocolVersion, suite: SupportedCipherSuite) -> Self {
        let provider = CryptoProvider {
            cipher_suites: vec![suite],
            ..ring::default_provider()
        };
        let TlsPair {
            client,
            server,
            secrets: written,
        } = TlsPair::new(provider, &[version], "a.local");
        let name = ServerName::try_from("a.local").unwrap();
        Self {
            client: ClientConnection::new(Arc::new(client), name).unwrap(),
            server: ServerConnection::new(Arc::new(server)).unwrap(),
            written,
            went: Vec::new(),
        }
    }

    /// Carries until both are silent.
    fn carry(&mut self) {
        while self.client.wants_write() || self.server.wants_write() {
            let mut bytes = Vec::new();
            while self.client.wants_write() {
                self.client.write_tls(&mut bytes).unwrap();
            }
            self.server.read_tls(&mut &bytes[..]).unwrap();
            self.server.process_new_packets().unwrap();
            self.went.push(('>', bytes));
            let mut bytes = Vec::new();
            while self.server.wants_write() {
                self.server.write_tls(&mut bytes).unwrap();
            }
            self.client.read_tls(&mut &bytes[..]).unwrap();
            self.client.process_new_packets().unwrap();
            self.went.push(('<', bytes));
        }
    }

    fn ask(&mut self, request: &[u8], answer: &[u8]) {
        self.client.writer().write_all(request).unwrap();
        self.carry();
        let mut came = vec![0; request.len()];
        self.server.reader().read_exact(&mut came).unwrap();
        self.server.writer().write_all(answer).unwrap();
        self.carry();
    }

    /// A handshake, two requests, and the secrets.
    fn two_requests(
        version: &'static SupportedProtocolVersion,
        suite: SupportedCipherSuite,
    ) -> (Self, Secrets) {
        let mut wire = Self::new(version, suite);
        wire.carry();
        let long = [
            &b"HTTP/1.1 200 OK\r\nContent-Length: 40000\r\n\r\n"[..],
            &[b'x'; 40_000],
        ]
        .concat();
        wire.ask(b"GET /long HTTP/1.1\r\n\r\n", &long);
        wire.ask(
            b"GET /none HTTP/1.1\r\n\r\n",
            b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n",
        );
        let secrets = Secrets::default();
        assert!(secrets.learn(&wire.written.text()) > 0);
        (wire, secrets)
    }

    fn script(&self) -> Vec<(char, &[u8])> {
        self.went
            .iter()
            .map(|(side, bytes)| (*side, &bytes[..]))
            .collect()
    }
}

fn suites() -> Vec<(&'static SupportedProtocolVersion, SupportedCipherSuite)> {
    let of = |suite: &SupportedCipherSuite| match suite.tls13() {
        Some(_) => (&rustls::version::TLS13, *suite),
        None => (&rustls::version::TLS12, *suite),
    };
    // The certificate's key is of a curve.
    let is_usable = |suite: &&SupportedCipherSuite| !format!("{:?}", suite.suite()).contains("RSA");
    ring::ALL_CIPHER_SUITES
        .iter()
        .filter(is_usable)
        .map(of)
        .collect()
}

#[test]
fn requests_within_are_reported_where_secrets_are_known() {
    assert_eq!(suites().len(), 6);
    for (version, suite) in suites() {
        let (wire, secrets) = Wire::two_requests(version, suite);
        let dissected = run_script(&mut Deciphered::new(secrets.clone(), 443), &wire.script());
        let what: Vec<&str> = dissected
            .iter()
            .map(String::as_str)
            .filter(|line| line.contains(" is "))
            .collect();
        let name = if suite.tls13().is_some() {
            "0 response is TLS 1.3"
        } else {
            "0 response is TLS 1.2"
        };
        for line in [
            name,
            "1 request is GET /long",
            "1 response is 200",
            "2 request is GET /none",
            "2 response is 404",
        ] {
            assert!(
                what.contains(&line),
                "{suite:?}: no {line} in {dissected:#?}"
            );
        }
        assert!(
            !dissected
                .iter()
                .any(|line| line.contains("void") || line.starts_with("3 ")),
            "{dissected:#?}"
        );
        for piece in [1, 7, 1000] {
            let cut = lines_cut(
                &mut Deciphered::new(secrets.clone(), 443),
                &wire.script(),
                piece,
            );
            assert_eq!(cut, dissected, "{suite:?} in pieces of {piece}");
        }
    }
}

#[test]
fn messages_are_where_their_records_are() {
    let (wire, secrets) = Wire::two_requests(&rustls::version::TLS13, suites()[0].1);
    let mut dissector = Deciphered::new(secrets, 443);
    let (mut at, mut found) = ([0, 0], Vec::new());
    let mut ends = Vec::new();
    for (side, bytes) in &wire.went {
        let side = if *side == '>' {
            EventStreamDirection::There
        } else {
            EventStreamDirection::Back
        };
        dissector.bytes(side, at[side as usize], bytes, &mut found);
        at[side as usize] += bytes.len() as u64;
        ends.push(at);
    }
    let long = found.iter().filter_map(|found| match found {
        DissectorEvent::Begins {
            exchange: 1,
            side: EventStreamDirection::Back,
            at,
            ..
        } => Some(*at),
        DissectorEvent::Ends {
            exchange: 1,
            side: EventStreamDirection::Back,
            at,
            ..
        } => Some(*at),
        _ => None,
    });
    let [begin, end] = long.collect::<Vec<_>>()[..] else {
        panic!("{found:#?}")
    };
    let whole = wire
        .went
        .iter()
        .find(|(side, bytes)| *side == '<' && bytes.len() > 40_000)
        .unwrap()
        .1
        .len() as u64;
    assert_eq!(
        end - begin,
        whole,
        "three records with their heads and proofs"
    );
}

#[test]
fn without_secrets_it_goes_by_turns() {
    let (wire, _) = Wire::two_requests(&rustls::version::TLS13, suites()[0].1);
    let dissected = run_script(
        &mut Deciphered::new(Secrets::default(), 443),
        &wire.script(),
    );
    assert_eq!(
        dissected,
        run_script(&mut TlsDissector::default(), &wire.script())
    );
}

#[test]
fn a_record_that_was_not_seen_makes_its_request_unknown_alone() {
    let (wire, secrets) = Wire::two_requests(&rustls::version::TLS13, suites()[0].1);
    let mut dissector = Deciphered::new(secrets, 443);
    let (mut at, mut found) = ([0, 0], Vec::new());
    for (side, bytes) in &wire.went {
        let side = if *side == '>' {
            EventStreamDirection::There
        } else {
            EventStreamDirection::Back
        };
        let from = at[side as usize];
        if bytes.len() > 40_000 {
            // Within the second of its records.
            dissector.bytes(side, from, &bytes[..20_000], &mut found);
            dissector.unseen(side, from + 20_000, 5_000, &mut found);
            dissector.bytes(side, from + 25_000, &bytes[25_000..], &mut found);
        } else {
            dissector.bytes(side, from, bytes, &mut found);
        }
        at[side as usize] += bytes.len() as u64;
    }
    let is_named = |name: &str| {
        found.iter().any(
            |found| matches!(found, DissectorEvent::Named { name: of, .. } if of.kept() == name),
        )
    };
    assert!(
        is_named("200") && is_named("404"),
        "a hole in a body does no harm: {found:#?}"
    );
}

const WORDS: &[&[u8]] = &[
    b"\x16\x03\x03\0\x04\x01\0\0\0",
    b"\x17\x03\x03\0\x02ab",
    b"\x14\x03\x03\0\x01\x01",
    b"\x15\x03\x03\0\x02\x01\0",
];

/// What went over a wire, and the secrets of it.
type Kept = (Vec<(char, Vec<u8>)>, Secrets);

/// A conversation of either version, made once.
fn damaged(version: usize) -> &'static Kept {
    static MADE: std::sync::OnceLock<[Kept; 2]> = std::sync::OnceLock::new();
    let made = MADE.get_or_init(|| {
        let all = suites();
        let of = |(version, suite)| {
            let (wire, secrets) = Wire::two_requests(version, suite);
            (wire.went, secrets)
        };
        [of(all[0]), of(all[all.len() - 1])]
    });
    &made[version]
}

proptest! {
    #[test]
    fn whatever_comes_is_harmless(script in test_hostile_input(WORDS)) {
        let mut dissector = Deciphered::new(Secrets::default(), 443);
        prop_assert_eq!(is_unharmed_by(&mut dissector, &script), Ok(()));
    }

    /// A real conversation of which bytes are others, or are not seen.
    #[test]
    fn what_is_damaged_is_harmless(version in 0..2_usize, damage in proptest::collection::vec((any::<proptest::sample::Index>(), 0..3_u8), 1..6)) {
        let (wire, secrets) = damaged(version);
        let mut moves: Vec<(bool, u8, Vec<u8>)> =
            wire.iter().flat_map(|(side, bytes)| bytes.chunks(700).map(|piece| (*side == '<', 9, piece.to_vec()))).collect();
        for (at, how) in damage {
            let (_, what, bytes) = at.get_mut(&mut moves);
            match how {
                0 => *what = 1,
                1 => bytes[0] ^= 1,
                _ => bytes.truncate(bytes.len() / 2),
            }
        }
        let mut dissector = Deciphered::new(secrets.clone(), 443);
        prop_assert_eq!(is_unharmed_by(&mut dissector, &moves), Ok(()));
    }
}

#[test]
fn messages_that_began_too_many_records_before_are_counted() {
    use crate::conversation::ExchangeRole;
    use crate::left_out::{Bound, LeftOut};
    Bound::Places.assert_reported(|records| {
        let mut connection = Deciphered::new(Secrets::default(), 80);
        (0..records as u64).for_each(|at| connection.sides[0].holds(10, [at * 32, at * 32 + 32]));
        let (mut found, mut left_out) = (Vec::new(), LeftOut::default());
        let (exchange, role, kind, side, at) = (
            0,
            ExchangeRole::Request,
            ExchangeKind::Call,
            EventStreamDirection::There,
            0,
        );
        let begins = DissectorEvent::Begins {
            exchange,
            role,
            kind,
            side,
            at,
        };
        connection.within(&mut found, |_, found| found.push(begins));
        for found in found {
            if let DissectorEvent::LeftOut(bound, count) = found {
                left_out.add(bound, count);
            }
        }
        left_out
    });
}
