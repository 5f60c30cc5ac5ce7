//! `redis`: a command for each call, in RESP, the protocol of Redis and of servers that speak it.

use super::byte_stream::FarEndStream;
use super::tls_options::TLS_OPTIONS;
use super::tls_start::TlsStart;
use super::words::{percent_decoded, shown};
use super::{FarEndProtocol, FarEndStack, TABLE};
use crate::error::{Error, Result};
use stackline_core::catalogue::{ServiceMapping, StackTable};
use stackline_core::far_end::FarEndAddress;
use std::collections::BTreeMap;

const REDIS_TABLE: StackTable = StackTable {
    name: "redis",
    // Without data a request is complete.
    least_unit: 0,
    summary: "client of Redis: the command of the address, as in redis://127.0.0.1/GET/key; without one, PING",
    mapping: ServiceMapping(
        "\
ConnectRequest -> socket, connect
RPCCall -> send of the command as an array of strings, with the request's bytes as its last one if there are any; recv until the reply is \
complete
DisconnectRequest -> close",
    ),
    ..TABLE
};

pub(crate) static REDIS: FarEndStack = FarEndStack {
    table: &REDIS_TABLE,
    port: Some(6379),
    tls: TlsStart::Never(Some("rediss")),
    client: |address, _| Ok(Box::new(Redis::new(address)?)),
};

pub(crate) static REDISS: FarEndStack = FarEndStack {
    table: &StackTable {
        name: "rediss",
        summary: "the same over TLS 1.2 or 1.3, whose handshake is part of connecting",
        options: &TLS_OPTIONS,
        ..REDIS_TABLE
    },
    port: Some(6379),
    tls: TlsStart::AtOnce {
        protocol: None,
        plain: "redis",
    },
    client: |address, _| Ok(Box::new(Redis::new(address)?)),
};

/// The longest line of a reply: a simple string, an error, a number or a length.
const LONGEST_LINE: usize = 64 << 10;
/// How deeply arrays of a reply may nest.
const DEEPEST: u32 = 32;
/// Most values of a reply.
const MOST_VALUES: u64 = 1 << 20;

struct Redis {
    /// The words of the command, each as a string of RESP, without the array's head.
    words: Vec<u8>,
    /// How many words there are.
    count: usize,
    /// What is sent before the bytes of a request.
    head: Vec<u8>,
    /// Bytes of the last reply, on the wire.
    reply: u64,
}

impl Redis {
    fn new(address: &FarEndAddress) -> Result<Self> {
        let written: Vec<&str> = address
            .path
            .split('/')
            .filter(|word| !word.is_empty())
            .collect();
        let plain: Vec<&str> = if written.is_empty() {
            vec!["PING"]
        } else {
            written
        };
        let mut words = Vec::new();
        for word in &plain {
            let word = percent_decoded(word)?;
            words.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            words.extend_from_slice(&word);
            words.extend_from_slice(b"\r\n");
        }
        Ok(Self {
            words,
            count: plain.len(),
            head: Vec::new(),
            reply: 0,
        })
    }

    /// The next line of a reply, without its end, as text that may be shown.
    fn line(&mut self, stream: &mut FarEndStream) -> Result<(u8, String)> {
        loop {
            let unused = stream.unused();
            if let Some(end) = unused.windows(2).position(|two| two == b"\r\n") {
                let (kind, text) = match unused.split_first() {
                    Some((kind, rest)) if end > 0 => (*kind, &rest[..end - 1]),
                    _ => (0, &[][..]),
                };
                let text = String::from_utf8_lossy(text).into_owned();
                stream.take(end + 2);
                self.reply += end as u64 + 2;
                return Ok((kind, text));
            }
            if !stream.receive_more(LONGEST_LINE, "a line of a reply")? {
                return Err(stream.cut_short("a reply"));
            }
        }
    }

    /// Receives one value with all that is in it. `left` is how many values the reply may still have.
    fn value(&mut self, stream: &mut FarEndStream, depth: u32, left: &mut u64) -> Result<()> {
        *left = left
            .checked_sub(1)
            .ok_or_else(|| too_much(stream, "too many values"))?;
        let (kind, text) = self.line(stream)?;
        let length = || {
            text.parse::<i64>()
                .map_err(|_| too_much(stream, "a length that is not a number"))
        };
        match kind {
            b'+' | b':' | b'_' | b'#' | b',' | b'(' => Ok(()),
            b'-' | b'!' => Err(refused(stream, &text)),
            b'$' | b'=' => {
                let Ok(bytes) = u64::try_from(length()?) else {
                    return Ok(());
                };
                self.reply += bytes.saturating_add(2);
                stream.skip(bytes.saturating_add(2), "a reply")
            }
            b'*' | b'~' | b'>' | b'%' => {
                let each = if kind == b'%' { 2 } else { 1 };
                let values = u64::try_from(length()?).unwrap_or(0).saturating_mul(each);
                if depth == 0 {
                    return Err(too_much(stream, "arrays nested too deeply"));
                }
                (0..values).try_for_each(|_| self.value(stream, depth - 1, left))
            }
            _ => Err(too_much(stream, "a line that is not of RESP")),
        }
    }
}

impl FarEndProtocol for Redis {
    fn call(&mut self, stream: &mut FarEndStream, request: &[u8]) -> Result<()> {
        self.head.clear();
        let count = self.count + usize::from(!request.is_empty());
        self.head
            .extend_from_slice(format!("*{count}\r\n").as_bytes());
        self.head.extend_from_slice(&self.words);
        if !stream.unused().is_empty() {
            return Err(too_much(stream, "more than the reply to a command"));
        }
        let sent = if request.is_empty() {
            stream.send(&self.head)?
        } else {
            self.head
                .extend_from_slice(format!("${}\r\n", request.len()).as_bytes());
            stream.send_parts([&self.head, request, b"\r\n"])?
        };
        // A server that has left may have said why.
        if !sent && stream.unused().is_empty() && !stream.receive_more(LONGEST_LINE, "a reply")? {
            return Err(stream.cut_short("a command"));
        }
        self.reply = 0;
        self.value(stream, DEEPEST, &mut MOST_VALUES.clone())
    }

    fn settings(&self) -> BTreeMap<String, String> {
        match self.reply {
            0 => BTreeMap::new(),
            bytes => BTreeMap::from([("reply".to_string(), format!("{bytes} B"))]),
        }
    }
}

/// The error for a reply that says that the command failed.
fn refused(stream: &FarEndStream, text: &str) -> Error {
    let failure = Error::measurement(format!(
        "the Redis at {} replied: {}",
        stream.server(),
        shown(text.as_bytes())
    ));
    if text.starts_with("NOAUTH") {
        failure.hint("servers that want a password cannot be measured; allow this client without one (`ACL`)")
    } else {
        failure
    }
}

/// The error for a reply that is not one.
fn too_much(stream: &FarEndStream, what: &str) -> Error {
    Error::measurement(format!("the server at {} sent {what}", stream.server()))
        .hint("is it Redis, or another server that speaks RESP?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_written_as_an_array_of_strings() {
        let address = FarEndAddress::parse("redis://h/SET/a%20b/").unwrap();
        let redis = Redis::new(&address).unwrap();
        assert_eq!(
            (redis.count, redis.words.as_slice()),
            (2, &b"$3\r\nSET\r\n$3\r\na b\r\n"[..])
        );
        let plain = Redis::new(&FarEndAddress::parse("redis://h").unwrap()).unwrap();
        assert_eq!(plain.words, b"$4\r\nPING\r\n");
    }
}
