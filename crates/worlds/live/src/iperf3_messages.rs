//! What clients and servers of iperf3 say to each other on their control connection: a byte for each state, and JSON with its length before
//! it. There is no specification; this is what iperf3 3.x does.

use serde::{Deserialize, Deserializer, Serialize};
use std::io::{self, Read, Write};

/// Bytes of the cookie with which each connection of a test begins, its closing zero included.
pub(crate) const COOKIE: usize = 37;
/// Most bytes of a message of JSON.
pub(crate) const JSON_MOST: usize = 1 << 20;

/// The states, as bytes.
pub(crate) mod state {
    pub(crate) const TEST_START: u8 = 1;
    pub(crate) const TEST_RUNNING: u8 = 2;
    pub(crate) const TEST_END: u8 = 4;
    pub(crate) const PARAM_EXCHANGE: u8 = 9;
    pub(crate) const CREATE_STREAMS: u8 = 10;
    pub(crate) const SERVER_TERMINATE: u8 = 11;
    pub(crate) const CLIENT_TERMINATE: u8 = 12;
    pub(crate) const EXCHANGE_RESULTS: u8 = 13;
    pub(crate) const DISPLAY_RESULTS: u8 = 14;
    pub(crate) const IPERF_DONE: u8 = 16;
    /// The server has a test already.
    pub(crate) const ACCESS_DENIED: u8 = -1_i8 as u8;
    pub(crate) const SERVER_ERROR: u8 = -2_i8 as u8;
}

/// What a client asks for. Numbers that are not written are 0; servers take what is written as asked for, whatever its value.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Iperf3Parameters {
    #[serde(skip_serializing_if = "is_unset")]
    pub(crate) tcp: bool,
    #[serde(skip_serializing_if = "is_unset")]
    pub(crate) udp: bool,
    /// Seconds that are left out at the begin.
    pub(crate) omit: u64,
    /// Seconds; 0 until the client ends it.
    pub(crate) time: u64,
    /// Bytes, unless 0.
    pub(crate) num: u64,
    /// Blocks of `len` bytes, unless 0.
    pub(crate) blockcount: u64,
    /// Streams in each direction.
    pub(crate) parallel: u64,
    /// Whether the server sends.
    #[serde(skip_serializing_if = "is_unset")]
    pub(crate) reverse: bool,
    /// Whether both send.
    #[serde(skip_serializing_if = "is_unset")]
    pub(crate) bidirectional: bool,
    /// Bytes of a block or a datagram.
    pub(crate) len: u64,
    /// Bits a second of each stream, unless 0.
    #[serde(skip_serializing_if = "is_unset")]
    pub(crate) bandwidth: u64,
    /// Whether datagrams have counters of 64 bits; present as a number.
    #[serde(skip_serializing_if = "is_unset")]
    pub(crate) udp_counters_64bit: u64,
    pub(crate) client_version: String,
}

/// What one side says of its end of a test.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Iperf3Results {
    pub(crate) cpu_util_total: f64,
    pub(crate) cpu_util_user: f64,
    pub(crate) cpu_util_system: f64,
    /// Whether its senders count retransmissions: 1, 0, or -1 if it has none.
    #[serde(deserialize_with = "wrapped")]
    pub(crate) sender_has_retransmits: i64,
    /// Clients of iperf3 end with a fault if it is null.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) congestion_used: Option<String>,
    pub(crate) streams: Vec<Iperf3Stream>,
}

/// What it says of one stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Iperf3Stream {
    pub(crate) id: u64,
    pub(crate) bytes: u64,
    #[serde(deserialize_with = "wrapped")]
    pub(crate) retransmits: i64,
    /// Seconds.
    pub(crate) jitter: f64,
    /// Datagrams that are missing.
    #[serde(deserialize_with = "wrapped")]
    pub(crate) errors: i64,
    #[serde(deserialize_with = "wrapped")]
    pub(crate) packets: i64,
    pub(crate) start_time: f64,
    pub(crate) end_time: f64,
}

fn is_unset<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A number that iperf3 writes as one of 64 bits without a sign: -1 is 2^64 - 1.
fn wrapped<'d, D: Deserializer<'d>>(from: D) -> Result<i64, D::Error> {
    let number = serde_json::Number::deserialize(from)?;
    let wrapped = number.as_i64();
    let wrapped = wrapped.or(number.as_u64().map(u64::cast_signed));
    Ok(wrapped.unwrap_or(number.as_f64().unwrap_or_default() as i64))
}

/// The number of the stream at that place: 1, 3, 4, 5 and so on, as iperf3 counts.
pub(crate) const fn stream_id(place: u64) -> u64 {
    if place == 0 { 1 } else { place + 2 }
}

/// Reads a message of JSON.
pub(crate) fn read_json<T: for<'d> Deserialize<'d>>(from: &mut impl Read) -> io::Result<T> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > JSON_MOST {
        return Err(io::Error::other(format!("a message of {length} bytes")));
    }
    let mut text = Vec::new();
    from.take(length as u64).read_to_end(&mut text)?;
    if text.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    serde_json::from_slice(&text).map_err(io::Error::other)
}

/// Writes a message of JSON.
pub(crate) fn write_json(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_vec(message).map_err(io::Error::other)?;
    let mut bytes = (text.len() as u32).to_be_bytes().to_vec();
    bytes.extend(text);
    to.write_all(&bytes)
}

/// Reads a state.
pub(crate) fn read_state(from: &mut impl Read) -> io::Result<u8> {
    let mut state = [0];
    from.read_exact(&mut state)?;
    Ok(state[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_their_length_before_them_and_a_bound() {
        let mut bytes = Vec::new();
        let asked = Iperf3Parameters {
            tcp: true,
            parallel: 2,
            ..Iperf3Parameters::default()
        };
        write_json(&mut bytes, &asked).unwrap();
        let read: Iperf3Parameters = read_json(&mut bytes.as_slice()).unwrap();
        assert!(read.tcp && read.parallel == 2);
        // What is not written is 0, and what is not known is left out.
        let mut other = b"\0\0\0\x1a{\"time\":3,\"MSS\":9,\"x\":[]}".to_vec();
        other[3] = (other.len() - 4) as u8;
        let read: Iperf3Parameters = read_json(&mut other.as_slice()).unwrap();
        assert_eq!((read.time, read.parallel), (3, 0));
        let odd = b"\0\0\0\x2b{\"streams\":[{\"retransmits\":18446744073709551615}]}";
        let mut odd = odd.to_vec();
        odd[3] = (odd.len() - 4) as u8;
        let read: Iperf3Results = read_json(&mut odd.as_slice()).unwrap();
        assert_eq!(read.streams[0].retransmits, -1);
        for wrong in [
            &b"\0\x20\0\x01"[..],
            b"\0\0\0\x09{}",
            b"\0\0\0\x02{x",
            b"\0\0",
        ] {
            assert!(read_json::<Iperf3Parameters>(&mut &wrong[..]).is_err());
        }
        assert_eq!([0, 1, 2].map(stream_id), [1, 3, 4]);
    }
}
