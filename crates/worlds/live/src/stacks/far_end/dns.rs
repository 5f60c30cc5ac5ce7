//! `dns`: a query of the Domain Name System (RFC 1035) for each call, over UDP or TCP, and the answer to it.

use super::datagrams::{
    DATAGRAM_OPTIONS, DATAGRAM_TABLE, DatagramAnswer, DatagramProtocol, FarEndDatagramStack,
};
use super::dns_tcp::DnsOverTcp;
use super::tls_start::TlsStart;
use super::{FarEndStack, no_responder};
use crate::error::{Error, Result};
use crate::stacks::contract::{Connector, LiveConnectParameters, LiveListener, LiveStack};
use stackline_core::catalogue::{OptionTable, ServiceMapping, StackTable};
use stackline_core::far_end::FarEndAddress;
use stackline_core::plan::Stack;
use std::collections::BTreeMap;

const DNS_TABLE: StackTable = StackTable {
        name: "dns",
        summary: "client of a name server over UDP, or with `tcp` over TCP: the question of the address, as in dns://127.0.0.1/www.example.com?type=AAAA; type A if none is written",
        // The question is the address's.
        least_unit: 0,
        largest_unit: 0,
        options: &DNS_OPTIONS,
        mapping: ServiceMapping(
            "\
ConnectRequest -> socket, connect
RPCCall -> send of a query with an id of its own, recursion desired, and EDNS for 1232 B; recv of the answer with that id and question; \
without one within `timeout` the call counts as lost; with tcp a length stands before each, and silence of 30 s, or `timeout`, is an error
DisconnectRequest -> close",
        ),
        ..DATAGRAM_TABLE
};

/// Name servers, over UDP or TCP.
pub(crate) struct DnsFarEnd;

pub(crate) static DNS: DnsFarEnd = DnsFarEnd;

/// The port of name servers.
const PORT: u16 = 53;

pub(crate) static DNS_UDP: FarEndDatagramStack = FarEndDatagramStack {
    table: &DNS_TABLE,
    port: PORT,
    client: |address, stack| Ok(Box::new(DnsClient::new(address, stack)?)),
};

pub(crate) static DNS_TCP: FarEndStack = FarEndStack {
    table: &DNS_TABLE,
    port: Some(PORT),
    tls: TlsStart::Never(None),
    client: |address, stack| Ok(Box::new(DnsOverTcp::new(DnsClient::new(address, stack)?))),
};

impl LiveStack for DnsFarEnd {
    fn table(&self) -> &'static StackTable {
        &DNS_TABLE
    }

    fn listen(&self, _: &LiveConnectParameters) -> Result<Box<dyn LiveListener>> {
        Err(no_responder(&DNS_TABLE))
    }

    fn connector(
        &self,
        parameters: &LiveConnectParameters,
        address: &str,
    ) -> Result<Box<dyn Connector>> {
        if parameters.stack.flag("tcp") {
            DNS_TCP.connector(parameters, address)
        } else {
            DNS_UDP.connector(parameters, address)
        }
    }
}

const DNS_OPTIONS: [OptionTable; 9] = StackTable::joined(
    &[
        OptionTable::flag(
            "any_answer",
            "answers with the code of an error, such as NXDOMAIN or SERVFAIL, count as answers",
        ),
        OptionTable::flag(
            "tcp",
            "asks over one TCP connection (RFC 7766) instead of UDP",
        ),
    ],
    &DATAGRAM_OPTIONS,
);

/// The header of a message.
const HEADER_BYTES: usize = 12;
/// The longest name on the wire, and the longest of its labels (RFC 1035, 2.3.4).
const LONGEST_NAME: usize = 255;
const LONGEST_LABEL: usize = 63;
/// How large answers may be: the least MTU of IPv6 without its headers.
const ANSWER_BYTES: u16 = 1232;
/// The type of the record that carries that (RFC 6891).
const OPT: u16 = 41;
/// The class of the Internet.
const INTERNET: u16 = 1;
/// In the flags of a message: that it is an answer, that it was cut, that recursion is desired.
const IS_ANSWER: u16 = 1 << 15;
const OPCODE: u16 = 15 << 11;
const TRUNCATED: u16 = 1 << 9;
const RECURSE: u16 = 1 << 8;

/// Types of records by name; others are written as TYPE65280 (RFC 3597).
const TYPES: &[(&str, u16)] = &[
    ("A", 1),
    ("NS", 2),
    ("CNAME", 5),
    ("SOA", 6),
    ("PTR", 12),
    ("MX", 15),
    ("TXT", 16),
    ("AAAA", 28),
    ("SRV", 33),
    ("NAPTR", 35),
    ("DS", 43),
    ("RRSIG", 46),
    ("NSEC", 47),
    ("DNSKEY", 48),
    ("SVCB", 64),
    ("HTTPS", 65),
    ("ANY", 255),
    ("CAA", 257),
];

/// Codes of answers that say why there is none (RFC 1035, RFC 2136), each with what it means.
const CODES: &[(u8, &str, &str)] = &[
    (1, "FORMERR", "it does not understand the query"),
    (2, "SERVFAIL", "it failed"),
    (3, "NXDOMAIN", "there is no such name"),
    (4, "NOTIMP", "it cannot answer such queries"),
    (5, "REFUSED", "it refuses to answer this client"),
    (9, "NOTAUTH", "it is not responsible for the zone"),
];

pub(super) struct DnsClient {
    server: String,
    /// The name, type and class of the question, on the wire.
    question: Vec<u8>,
    /// The name as text.
    name: String,
    any_answer: bool,
    /// The id of the last query; the first one's is random.
    id: u16,
    calls: u64,
    /// What the last answer held: its code, its records, and whether it was cut.
    last: Option<DnsAnswer>,
    truncated: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DnsAnswer {
    id: u16,
    code: u8,
    records: u16,
    truncated: bool,
}

impl DnsClient {
    fn new(address: &FarEndAddress, stack: &Stack) -> Result<Self> {
        let (name, query) = address.path.split_once('?').unwrap_or((&address.path, ""));
        let name = name.strip_prefix('/').unwrap_or(name);
        if name.is_empty() {
            return Err(Error::input("the address says no name to ask for").hint(
                "write it behind the server: `dns://SERVER/www.example.com`; the root is `/.`",
            ));
        }
        let mut question = encode_name(name)?;
        let (mut kind, mut class) = (1, INTERNET);
        for parameter in query.split(['&', ';']).filter(|text| !text.is_empty()) {
            match parameter.split_once('=') {
                Some((key, value)) if key.eq_ignore_ascii_case("type") => {
                    kind = record_type(value)?
                }
                Some((key, value)) if key.eq_ignore_ascii_case("class") => {
                    class = match value.to_ascii_uppercase().as_str() {
                        "IN" => INTERNET,
                        "CH" => 3,
                        _ => {
                            return Err(Error::input(format!("`{value}` is not a class of DNS"))
                                .hint("classes are IN and CH"));
                        }
                    };
                }
                _ => {
                    let message = format!("`{parameter}` means nothing in a question of DNS");
                    return Err(Error::input(message)
                        .hint("write as in `dns://SERVER/www.example.com?type=AAAA`"));
                }
            }
        }
        question.extend_from_slice(&kind.to_be_bytes());
        question.extend_from_slice(&class.to_be_bytes());
        let mut id = [0; 2];
        getrandom::fill(&mut id)
            .map_err(|e| Error::environment(format!("the kernel gives no random bytes: {e}")))?;
        Ok(Self {
            server: address.socket(PORT),
            question,
            name: name.to_owned(),
            any_answer: stack.flag("any_answer"),
            id: u16::from_ne_bytes(id),
            calls: 0,
            last: None,
            truncated: 0,
        })
    }

    /// The error for an answer that has no answer, or `Ok` where any is one.
    fn judge(&self, answer: DnsAnswer) -> Result<()> {
        if answer.code == 0 || self.any_answer {
            return Ok(());
        }
        let (server, name) = (&self.server, &self.name);
        let known = CODES.iter().find(|(code, ..)| *code == answer.code);
        let (short, why) = known.map_or(
            ("", "it has a reason that has no name here"),
            |(_, short, why)| (*short, *why),
        );
        let failure = Error::measurement(format!(
            "the name server at {server} does not answer for {name}: {why} ({})",
            if short.is_empty() {
                format!("code {}", answer.code)
            } else {
                short.to_owned()
            }
        ));
        Err(failure.hint(match short {
            "NXDOMAIN" => "check the name; `over dns(any_answer)` measures such answers too",
            "REFUSED" => "name servers answer only their own clients, or only for their own zones",
            "SERVFAIL" => "the servers that it asks do not answer, or their signatures are wrong; `over dns(any_answer)` measures such answers too",
            _ => "`over dns(any_answer)` measures such answers too",
        }))
    }
}

impl DatagramProtocol for DnsClient {
    fn request(&mut self, _: &[u8], datagram: &mut Vec<u8>) -> Result<()> {
        self.id = self.id.wrapping_add(1);
        self.calls += 1;
        for field in [self.id, RECURSE, 1, 0, 0, 1] {
            datagram.extend_from_slice(&field.to_be_bytes());
        }
        datagram.extend_from_slice(&self.question);
        datagram.push(0);
        for field in [OPT, ANSWER_BYTES, 0, 0, 0] {
            datagram.extend_from_slice(&field.to_be_bytes());
        }
        Ok(())
    }

    fn answer(&mut self, datagram: &[u8]) -> Result<DatagramAnswer> {
        let answer = read_answer(datagram, &self.question).map_err(|why| {
            Error::measurement(format!("the server at {} sent {why}", self.server))
                .hint("is it a name server?")
        })?;
        let Some(answer) = answer else {
            return Ok(DatagramAnswer::Stray);
        };
        let ago = u64::from(self.id.wrapping_sub(answer.id));
        if ago > 0 {
            return Ok(if ago < self.calls {
                DatagramAnswer::Earlier(ago)
            } else {
                DatagramAnswer::Stray
            });
        }
        self.judge(answer)?;
        self.truncated += u64::from(answer.truncated);
        self.last = Some(answer);
        Ok(DatagramAnswer::Present)
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let Some(answer) = self.last else {
            return BTreeMap::new();
        };
        let mut settings = BTreeMap::from([("records".to_owned(), answer.records.to_string())]);
        if answer.code > 0 {
            let known = CODES.iter().find(|(code, ..)| *code == answer.code);
            let code = known.map_or(answer.code.to_string(), |(_, short, _)| (*short).to_owned());
            settings.insert("code".to_owned(), code);
        }
        settings
    }

    fn notes(&self) -> Vec<String> {
        match self.truncated {
            0 => Vec::new(),
            n => vec![format!(
                "{n} of the answers were cut (TC), because all of it is larger than {ANSWER_BYTES} B or than the server sends over UDP: a resolver would ask again over TCP"
            )],
        }
    }
}

/// Reads an answer to a question: `None` if it is to another one.
///
/// # Errors
/// What the datagram is instead.
fn read_answer(datagram: &[u8], question: &[u8]) -> Result<Option<DnsAnswer>, &'static str> {
    let Some((header, body)) = datagram.split_first_chunk::<HEADER_BYTES>() else {
        return Err("a datagram too short for an answer of DNS");
    };
    let field = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let (id, flags) = (field(0), field(2));
    if flags & IS_ANSWER == 0 || flags & OPCODE != 0 {
        return Err("a datagram that is not an answer of DNS");
    }
    let answer = DnsAnswer {
        id,
        code: (flags & 15) as u8,
        records: field(6),
        truncated: flags & TRUNCATED != 0,
    };
    match field(4) {
        // A server that does not understand the query, or fails, may leave the question out.
        0 if answer.code > 0 => return Ok(Some(answer)),
        1 => {}
        _ => return Ok(None),
    }
    let Some(asked) = body.get(..question.len()) else {
        return Err("an answer of DNS without its question");
    };
    // Lengths of labels are below `A`, so that the case of letters alone is ignored; type and class follow the name.
    let (name, rest) = question.split_at(question.len() - 4);
    let (asked_name, asked_rest) = asked.split_at(name.len());
    if !asked_name.eq_ignore_ascii_case(name) || asked_rest != rest {
        return Ok(None);
    }
    if !answer.truncated && !holds_records(&body[question.len()..], answer.records) {
        return Err("an answer of DNS that is not whole");
    }
    Ok(Some(answer))
}

/// Whether so many records stand at the beginning of these bytes.
fn holds_records(mut bytes: &[u8], records: u16) -> bool {
    for _ in 0..records {
        let Some(after_name) = skip_name(bytes) else {
            return false;
        };
        // Type, class, time to live and length.
        let Some((head, data)) = after_name.split_first_chunk::<10>() else {
            return false;
        };
        let length = usize::from(u16::from_be_bytes([head[8], head[9]]));
        let Some(rest) = data.get(length..) else {
            return false;
        };
        bytes = rest;
    }
    true
}

/// What follows a name, which ends with an empty label or with a pointer to the rest of it.
fn skip_name(mut bytes: &[u8]) -> Option<&[u8]> {
    for _ in 0..LONGEST_NAME {
        let (length, rest) = bytes.split_first()?;
        match length {
            0 => return Some(rest),
            1..=63 => bytes = rest.get(usize::from(*length)..)?,
            192.. => return rest.get(1..),
            _ => return None,
        }
    }
    None
}

/// A name on the wire: its labels, each behind its length, and an empty one.
fn encode_name(name: &str) -> Result<Vec<u8>> {
    let wrong = |why: &str| {
        Err(
            Error::input(format!("`{name}` is not a name of DNS: {why}"))
                .hint("write as in `dns://SERVER/www.example.com`"),
        )
    };
    let mut bytes = Vec::new();
    let plain = name.strip_suffix('.').unwrap_or(name);
    for label in plain.split('.').filter(|_| !plain.is_empty()) {
        match label.len() {
            0 => return wrong("a label is empty"),
            1..=LONGEST_LABEL => {}
            _ => return wrong("a label has more than 63 characters"),
        }
        if label.contains(['%', '/']) {
            return wrong("it has a character that names of hosts do not have");
        }
        bytes.push(label.len() as u8);
        bytes.extend_from_slice(label.as_bytes());
    }
    bytes.push(0);
    if bytes.len() > LONGEST_NAME {
        return wrong("it has more than 253 characters");
    }
    Ok(bytes)
}

fn record_type(text: &str) -> Result<u16> {
    let upper = text.to_ascii_uppercase();
    let known = TYPES.iter().find(|(name, _)| *name == upper);
    let number = || upper.strip_prefix("TYPE")?.parse().ok();
    known
        .map(|(_, number)| *number)
        .or_else(number)
        .ok_or_else(|| {
            let names: Vec<&str> = TYPES.iter().map(|(name, _)| *name).collect();
            Error::input(format!("`{text}` is not a type of records")).hint(format!(
                "types are {}, or TYPE and a number",
                names.join(", ")
            ))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(path: &str) -> Result<DnsClient> {
        let address = FarEndAddress::parse(&format!("dns://127.0.0.1/{path}"))?;
        DnsClient::new(&address, &Stack::plain("dns"))
    }

    /// The answer to a query with these flags and records.
    fn answer(query: &[u8], flags: u16, records: &[&[u8]]) -> Vec<u8> {
        let question = query.len() - 11;
        let mut bytes = query[..question].to_vec();
        bytes[2..4].copy_from_slice(&(IS_ANSWER | flags).to_be_bytes());
        bytes[6..8].copy_from_slice(&(records.len() as u16).to_be_bytes());
        bytes[10..12].fill(0);
        records
            .iter()
            .for_each(|record| bytes.extend_from_slice(record));
        bytes
    }

    /// The name of the question, by a pointer to it, with an address.
    const RECORD: &[u8] = b"\xc0\x0c\0\x01\0\x01\0\0\0\x3c\0\x04\x7f\0\0\x01";

    #[test]
    fn a_query_is_as_rfc_1035_writes_it() {
        let mut dns = client("www.Example.com.?type=aaaa;class=in").unwrap();
        dns.id = 6;
        let mut query = Vec::new();
        dns.request(&[], &mut query).unwrap();
        let expected = b"\0\x07\x01\0\0\x01\0\0\0\0\0\x01\x03www\x07Example\x03com\0\0\x1c\0\x01\0\0\x29\x04\xd0\0\0\0\0\0\0";
        assert_eq!(query, expected);
        let answered = answer(&query, 0, &[RECORD, RECORD]).to_ascii_lowercase();
        assert_eq!(dns.answer(&answered).unwrap(), DatagramAnswer::Present);
        assert_eq!(dns.settings()["records"], "2");
    }

    #[test]
    fn answers_are_known_by_id_and_question() {
        let mut dns = client("a.test").unwrap();
        let (mut first, mut second) = (Vec::new(), Vec::new());
        dns.request(&[], &mut first).unwrap();
        dns.request(&[], &mut second).unwrap();
        let mut answered = |bytes: &[u8]| dns.answer(bytes).map_err(|error| error.message);
        assert_eq!(
            answered(&answer(&first, 0, &[])),
            Ok(DatagramAnswer::Earlier(1))
        );
        let mut other = answer(&second, 0, &[]);
        other[13] = b'b';
        assert_eq!(answered(&other), Ok(DatagramAnswer::Stray));
        assert_eq!(
            answered(&answer(&second, TRUNCATED, &[RECORD, b""])),
            Ok(DatagramAnswer::Present)
        );
        for (wrong, why) in [
            (answer(&second, 3, &[]), "there is no such name (NXDOMAIN)"),
            (answer(&second, 13, &[]), "has no name here (code 13)"),
            (
                answer(&second, 0, &[RECORD, b"\xc0\x0c"]),
                "that is not whole",
            ),
            (answer(&second, 0, &[b"\x40"]), "that is not whole"),
            (second.clone(), "is not an answer of DNS"),
            (second[..11].to_vec(), "too short for an answer"),
            (
                answer(&second, 0, &[])[..15].to_vec(),
                "without its question",
            ),
        ] {
            let refused = answered(&wrong).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
        assert!(dns.notes()[0].starts_with("1 of the answers were cut"));
    }

    #[test]
    fn what_no_name_server_is_asked_is_refused() {
        let long = format!("{}a", "a.".repeat(130));
        for (path, why) in [
            ("", "no name to ask for"),
            ("?type=A", "no name to ask for"),
            ("a..b", "a label is empty"),
            (&"a".repeat(64), "more than 63"),
            (&long, "more than 253"),
            ("a%20b", "a character that"),
            ("a?type=B", "`B` is not a type of records"),
            ("a?typ=A", "`typ=A` means nothing"),
            ("a?class=HS", "`HS` is not a class"),
        ] {
            let refused = client(path).err().unwrap().message;
            assert!(refused.contains(why), "{path}: {refused}");
        }
        assert_eq!(client(".").unwrap().question, [0, 0, 1, 0, 1]);
        assert_eq!(record_type("type65280").unwrap(), 65_280);
    }
}
