//! The turns and bytes of rustls beside those that the simulated world counts with (`stackline_proto::tls`).

use crate::stacks::certificate::{NAME, RunCertificate, client_of};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection, version};
use stackline_proto::tls::{TlsEnd, TlsTerms, TlsVersion};
use std::io::{Read as _, Write as _};
use std::sync::Arc;

/// Signatures and serial numbers differ by a few bytes from one certificate to the next.
const SPREAD: u64 = 12;

/// Whether the client sends, and the lengths of the records.
type Turn = (bool, Vec<u64>);
type Turns = Vec<Turn>;

/// The lengths of the records in these bytes.
fn records(mut bytes: &[u8]) -> Vec<u64> {
    let mut lengths = Vec::new();
    while let [_, _, _, high, low, ..] = *bytes {
        let length = 5 + usize::from(u16::from_be_bytes([high, low]));
        lengths.push(length as u64);
        bytes = &bytes[length..];
    }
    lengths
}

/// What an end of rustls wants to send.
fn outgoing(end: &mut Connection) -> Vec<u8> {
    let mut bytes = Vec::new();
    while end.wants_write() {
        let written = end.write_tls(&mut bytes);
        written.expect("a vector takes all");
    }
    bytes
}

/// Gives bytes to an end. Returns how many bytes of data were in them.
fn hear(end: &mut Connection, mut bytes: &[u8]) -> usize {
    let (mut data, mut room) = (0, vec![0; 64 << 10]);
    while !bytes.is_empty() {
        end.read_tls(&mut bytes).expect("there is room");
        end.process_new_packets().expect("the records are right");
        data += end.reader().read(&mut room).unwrap_or(0);
    }
    data
}

/// Lets two ends talk until nobody has anything to send.
fn talk(client: &mut Connection, server: &mut Connection) -> Turns {
    let mut turns = Turns::new();
    loop {
        let asked = outgoing(client);
        if !asked.is_empty() {
            turns.push((true, records(&asked)));
            hear(server, &asked);
        }
        let answered = outgoing(server);
        if !answered.is_empty() {
            turns.push((false, records(&answered)));
            hear(client, &answered);
        }
        if asked.is_empty() && answered.is_empty() {
            return turns;
        }
    }
}

/// Two configurations that make sessions.
struct Configurations {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl Configurations {
    fn new(terms: &TlsTerms) -> Self {
        let versions = match terms.version {
            TlsVersion::Tls12 => [&version::TLS12],
            TlsVersion::Tls13 => [&version::TLS13],
        };
        let certificate = RunCertificate::new().expect("a certificate");
        let mut client = client_of(&certificate.fingerprint(), &versions).expect("a client");
        let mut server = certificate.server(&versions).expect("a server");
        let names = (terms.alpn_bytes > 0).then(|| vec![b'h'; terms.alpn_bytes as usize]);
        client.alpn_protocols = names.clone().into_iter().collect();
        server.alpn_protocols = names.into_iter().collect();
        if !terms.resumes {
            client.resumption = rustls::client::Resumption::disabled();
            server.send_tls13_tickets = 0;
        }
        Self {
            client: Arc::new(client),
            server: Arc::new(server),
        }
    }

    fn ends(&self) -> (Connection, Connection) {
        let name = ServerName::try_from(NAME).expect("a name");
        let client = ClientConnection::new(Arc::clone(&self.client), name).expect("a client");
        let server = ServerConnection::new(Arc::clone(&self.server)).expect("a server");
        (client.into(), server.into())
    }
}

/// What the machines send in their turns.
fn counted(terms: TlsTerms, resumed: bool) -> Turns {
    let mut ends = [
        TlsEnd::new(terms, true, resumed),
        TlsEnd::new(terms, false, resumed),
    ];
    let mut turns = Turns::new();
    for turn in 0.. {
        let is_clients = turn % 2 == 0;
        let [client, server] = &mut ends;
        let (from, to) = match is_clients {
            true => (client, server),
            false => (server, client),
        };
        let sent: Vec<_> = std::iter::from_fn(|| from.poll()).collect();
        if sent.is_empty() {
            break;
        }
        turns.push((
            is_clients,
            sent.iter().map(|record| record.wire_bytes).collect(),
        ));
        sent.into_iter().for_each(|record| to.handle(record));
    }
    turns
}

/// Whether the turns are the same, record by record.
fn are_close(real: &Turns, counted: &Turns) -> bool {
    let same_turn = |turns: (&Turn, &Turn)| {
        let (real, counted) = turns;
        let mut records = real.1.iter().zip(&counted.1);
        real.0 == counted.0
            && real.1.len() == counted.1.len()
            && records.all(|(one, other)| one.abs_diff(*other) <= SPREAD)
    };
    real.len() == counted.len() && real.iter().zip(counted).all(same_turn)
}

#[test]
fn handshakes_have_the_turns_and_bytes_that_the_simulated_world_counts_with() {
    let mut differences = Vec::new();
    let mut compare = |real: Turns, terms: TlsTerms, resumed| {
        let counted = counted(terms, resumed);
        if !are_close(&real, &counted) {
            differences.push(format!(
                "{terms:?}, resumed {resumed}:\n  rustls {real:?}\n  simulated {counted:?}"
            ));
        }
    };
    for version in [TlsVersion::Tls13, TlsVersion::Tls12] {
        for (alpn_bytes, resumes) in [(0, false), (2, false), (8, true)] {
            let terms = TlsTerms {
                version,
                alpn_bytes,
                resumes,
            };
            let configurations = Configurations::new(&terms);
            let (mut client, mut server) = configurations.ends();
            compare(talk(&mut client, &mut server), terms, false);
            if resumes {
                let (mut client, mut server) = configurations.ends();
                compare(talk(&mut client, &mut server), terms, true);
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn data_and_close_notify_have_the_bytes_that_the_simulated_world_counts_with() {
    for version in [TlsVersion::Tls13, TlsVersion::Tls12] {
        let terms = TlsTerms {
            version,
            alpn_bytes: 0,
            resumes: false,
        };
        let (mut client, mut server) = Configurations::new(&terms).ends();
        talk(&mut client, &mut server);
        let mut counts = (
            TlsEnd::new(terms, true, false),
            TlsEnd::new(terms, false, false),
        );
        for _ in 0..4 {
            while let Some(record) = counts.0.poll() {
                counts.1.handle(record);
            }
            while let Some(record) = counts.1.poll() {
                counts.0.handle(record);
            }
        }
        for bytes in [1, 32, 16_384, 40_000] {
            let mut end = counts.0.clone();
            end.write(bytes);
            let counted: Vec<u64> =
                std::iter::from_fn(|| end.poll().map(|record| record.wire_bytes)).collect();
            let written = client.writer().write(&vec![7; bytes as usize]);
            assert_eq!(written.expect("there is room"), bytes as usize);
            let sent = outgoing(&mut client);
            assert_eq!(records(&sent), counted, "{version:?}, {bytes} B");
            let heard = hear(&mut server, &sent);
            assert_eq!(heard as u64, bytes, "{version:?}: all has come");
        }
        let mut end = counts.0.clone();
        end.close();
        client.send_close_notify();
        let sent = records(&outgoing(&mut client));
        assert_eq!(end.poll().map(|record| vec![record.wire_bytes]), Some(sent));
    }
}
