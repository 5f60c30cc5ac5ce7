//! `ntp`: a query of a time server, as a client of NTP (RFC 5905, mode 3) sends it, for each call, and the answer to it.

use super::datagrams::{DATAGRAM_TABLE, DatagramAnswer, DatagramProtocol, FarEndDatagramStack};
use super::wire_times::{SampledMedian, format_ns, ntp_difference_ns, ntp_now};
use crate::error::{Error, Result};
use stackline_core::catalogue::{ServiceMapping, StackTable};
use stackline_core::far_end::FarEndAddress;
use std::collections::BTreeMap;

pub(crate) static NTP: FarEndDatagramStack = FarEndDatagramStack {
    table: &StackTable {
        name: "ntp",
        summary: "client of a time server (NTP, RFC 5905); it sets no clock",
        // A query carries no data.
        least_unit: 0,
        largest_unit: 0,
        mapping: ServiceMapping(
            "\
ConnectRequest -> socket, connect
RPCCall -> send of a query of 48 B (mode 3), recv of the answer with its number; without one within `timeout` the call counts as lost
DisconnectRequest -> close",
        ),
        ..DATAGRAM_TABLE
    },
    port: 123,
    client: |address, _| Ok(Box::new(NtpClient::new(address)?)),
};

/// A packet without extensions.
const PACKET_BYTES: usize = 48;
/// Version 4 and the modes of clients and of servers, in the first byte.
const CLIENT: u8 = 4 << 3 | 3;
const SERVER_MODE: u8 = 4;
/// The leap indicator of a clock that is not synchronised.
const UNSYNCHRONISED: u8 = 3;
/// Why a server sends no time (RFC 5905, 7.4), each with what it means.
const KISSES: &[(&[u8; 4], &str)] = &[
    (b"RATE", "it is asked too often"),
    (b"DENY", "it serves not this client"),
    (b"RSTR", "it serves not this client"),
    (b"INIT", "it has no time itself yet"),
];

struct NtpClient {
    server: String,
    /// What the last query has in place of a timestamp, which the answer repeats: numbers from a random one on. The own time stays here.
    number: u64,
    calls: u64,
    sent_at: u64,
    /// How far the server's clock is ahead of this one's, ns, as if both ways took as long.
    ahead: SampledMedian,
    last: Option<NtpAnswer>,
}

struct NtpAnswer {
    stratum: u8,
    is_synchronised: bool,
}

impl NtpClient {
    fn new(address: &FarEndAddress) -> Result<Self> {
        if !matches!(address.path.as_str(), "" | "/") {
            let message = format!("`{}` means nothing to a time server", address.path);
            return Err(Error::input(message).hint("write `ntp://HOST`"));
        }
        let mut number = [0; 8];
        getrandom::fill(&mut number)
            .map_err(|e| Error::environment(format!("the kernel gives no random bytes: {e}")))?;
        Ok(Self {
            server: address.socket(NTP.port),
            number: u64::from_ne_bytes(number),
            calls: 0,
            sent_at: 0,
            ahead: SampledMedian::default(),
            last: None,
        })
    }
}

impl DatagramProtocol for NtpClient {
    fn request(&mut self, _: &[u8], datagram: &mut Vec<u8>) -> Result<()> {
        self.number = self.number.wrapping_add(1);
        self.calls += 1;
        datagram.resize(PACKET_BYTES - 8, 0);
        datagram[0] = CLIENT;
        datagram.extend_from_slice(&self.number.to_be_bytes());
        self.sent_at = ntp_now();
        Ok(())
    }

    fn answer(&mut self, datagram: &[u8]) -> Result<DatagramAnswer> {
        let received_at = ntp_now();
        let odd = |what: &str| {
            Error::measurement(format!("the server at {} {what}", self.server))
                .hint("is it a time server?")
        };
        let Some(packet) = datagram.first_chunk::<PACKET_BYTES>() else {
            let what = format!("sent {} B, which is not an answer of NTP", datagram.len());
            return Err(odd(&what));
        };
        if packet[0] & 7 != SERVER_MODE {
            return Err(odd("sent a packet that is not a server's answer"));
        }
        let time = |at: usize| {
            packet[at..at + 8]
                .iter()
                .fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte))
        };
        let ago = self.number.wrapping_sub(time(24));
        match ago {
            0 => {}
            ago if ago < self.calls => return Ok(DatagramAnswer::Earlier(ago)),
            _ => return Ok(DatagramAnswer::Stray),
        }
        let stratum = packet[1];
        if stratum == 0 {
            let code = &packet[12..16];
            let why = KISSES.iter().find(|(kiss, _)| *kiss == code);
            let why = why.map_or("it gives a reason that has no name here", |(_, why)| why);
            let message = format!(
                "the time server at {} sends no time: {why} ({})",
                self.server,
                code.escape_ascii()
            );
            return Err(Error::measurement(message)
                .hint("public servers expect a query in a minute or so; measure your own, or write a pace (`1/s`)"));
        }
        let there = ntp_difference_ns(self.sent_at, time(32));
        let back = ntp_difference_ns(time(40), received_at);
        self.ahead.add(there / 2 - back / 2);
        self.last = Some(NtpAnswer {
            stratum,
            is_synchronised: packet[0] >> 6 != UNSYNCHRONISED,
        });
        Ok(DatagramAnswer::Present)
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let Some(answer) = &self.last else {
            return BTreeMap::new();
        };
        let clock = if answer.is_synchronised {
            "synchronised"
        } else {
            "not synchronised"
        };
        let mut settings = BTreeMap::from([
            ("stratum".to_owned(), answer.stratum.to_string()),
            ("server_clock".to_owned(), clock.to_owned()),
        ]);
        if let Some(ahead) = self.ahead.median() {
            let side = if ahead < 0 { "behind" } else { "ahead" };
            let text = format!("{} {side}", format_ns(ahead.saturating_abs()));
            settings.insert("apparent_offset".to_owned(), text);
        }
        settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer of a server whose clock is an hour ahead.
    fn answer(query: &[u8], stratum: u8) -> Vec<u8> {
        let mut bytes = vec![4 << 3 | SERVER_MODE, stratum];
        bytes.resize(12, 0);
        bytes.extend_from_slice(b"RATE");
        bytes.resize(24, 0);
        bytes.extend_from_slice(&query[40..]);
        let now = (ntp_now() + (3600 << 32)).to_be_bytes();
        bytes.extend_from_slice(&now);
        bytes.extend_from_slice(&now);
        bytes
    }

    #[test]
    fn answers_repeat_the_number_of_their_query() {
        let address = FarEndAddress::parse("ntp://127.0.0.1").unwrap();
        let mut ntp = NtpClient::new(&address).unwrap();
        let (mut first, mut second) = (Vec::new(), Vec::new());
        ntp.request(&[], &mut first).unwrap();
        ntp.request(&[], &mut second).unwrap();
        assert_eq!((second.len(), second[0]), (48, 0x23));
        assert_eq!(
            ntp.answer(&answer(&first, 2)).unwrap(),
            DatagramAnswer::Earlier(1)
        );
        assert_eq!(
            ntp.answer(&answer(&second, 2)).unwrap(),
            DatagramAnswer::Present
        );
        let settings = ntp.settings();
        assert_eq!(settings["stratum"], "2");
        assert!(settings["apparent_offset"].ends_with(" ahead"));
        assert!(
            settings["apparent_offset"].starts_with("3600 s"),
            "{settings:?}"
        );
        for (wrong, why) in [
            (answer(&second, 0), "it is asked too often (RATE)"),
            (second.clone(), "not a server's answer"),
            (second[..20].to_vec(), "sent 20 B"),
        ] {
            let refused = ntp.answer(&wrong).unwrap_err().message;
            assert!(refused.contains(why), "{refused}");
        }
    }
}
