//! `mqtt`: a client of MQTT brokers (3.1.1). How far a message has to get before a call is over is its quality of service.

use super::byte_stream::FarEndStream;
use super::login::FarEndLogin;
use super::tls_options::TLS_OPTIONS;
use super::tls_start::TlsStart;
use super::words::percent_decoded_text;
use super::{FarEndProtocol, FarEndStack, OPTIONS, TABLE};
use crate::error::{Error, Result};
use stackline_core::catalogue::{OptionKind, OptionTable, ServiceMapping, StackTable};
use stackline_core::far_end::FarEndAddress;
use stackline_core::plan::Stack;
use stackline_endpoint::BulkDirection;
use std::collections::BTreeMap;

const MQTT_TABLE: StackTable = StackTable {
    name: "mqtt",
    // Without data a call is a PINGREQ.
    least_unit: 0,
    // What a packet can have, less room for the topic.
    largest_unit: (256 << 20) - (64 << 10),
    summary: "client of an MQTT broker (3.1.1): publishes on the topic of the address, as in mqtt://127.0.0.1/room/temperature",
    options: &MQTT_OPTIONS,
    mapping: ServiceMapping(
        "\
ConnectRequest -> socket, connect, CONNECT, recv of CONNACK; with qos = 0 also SUBSCRIBE to a topic of its own below that of the address, \
recv of SUBACK
RPCCall -> without data PINGREQ, recv of PINGRESP; else PUBLISH, recv of PUBACK (qos = 1), or PUBREC, PUBREL and PUBCOMP (qos = 2), or of the \
message itself on the topic of its own (qos = 0)
StartBulkGet -> SUBSCRIBE to the topic, recv of SUBACK
AwaitDataIndication -> recv of messages until they have the unit's length; they are acknowledged
StopBulkGet -> UNSUBSCRIBE, recv of UNSUBACK
StartBulkPut -> none
DataRequest -> PUBLISH of the unit; at most 20, or `inflight`, are not acknowledged (qos = 1, 2)
StopBulkPut -> recv of the acknowledgements that are missing; with qos = 0 PINGREQ, recv of PINGRESP
DisconnectRequest -> DISCONNECT, close",
    ),
    ..TABLE
};

pub(crate) static MQTT: FarEndStack = FarEndStack {
    table: &MQTT_TABLE,
    port: Some(1883),
    tls: TlsStart::Never(Some("mqtts")),
    client: |address, stack| Ok(Box::new(MqttClient::new(address, stack)?)),
};

pub(crate) static MQTTS: FarEndStack = FarEndStack {
    table: &StackTable {
        name: "mqtts",
        summary: "the same over TLS 1.2 or 1.3, whose handshake is part of connecting",
        options: &MQTTS_OPTIONS,
        ..MQTT_TABLE
    },
    port: Some(8883),
    tls: TlsStart::AtOnce {
        protocol: None,
        plain: "mqtt",
    },
    client: |address, stack| Ok(Box::new(MqttClient::new(address, stack)?)),
};

const MQTT_OPTIONS: [OptionTable; 12] = StackTable::joined(&OPTIONS, &OWN_OPTIONS);
const MQTTS_OPTIONS: [OptionTable; 13] = StackTable::joined(&TLS_OPTIONS, &OWN_OPTIONS);

const OWN_OPTIONS: [OptionTable; 2] = [
    OptionTable::new(
        "qos",
        OptionKind::Number(0, 2),
        "1",
        "quality of service: a message arrives 0: at most once, 1: at least once, 2: exactly once",
    ),
    OptionTable::new(
        "inflight",
        OptionKind::Number(1, 65_535),
        "20, as clients and brokers commonly allow",
        "how many messages of a put may be without acknowledgement (qos = 1, 2)",
    ),
];

/// The option `inflight` when it is not written.
const IN_FLIGHT: u64 = 20;
/// The longest topic in the address, bytes; one of its own is longer.
const LONGEST_TOPIC: usize = 60_000;

/// The first bytes of packets, with the flags that they must have.
const CONNECT: u8 = 0x10;
const CONNACK: u8 = 0x20;
const PUBLISH: u8 = 0x30;
const PUBACK: u8 = 0x40;
const PUBREC: u8 = 0x50;
const PUBREL: u8 = 0x62;
const PUBCOMP: u8 = 0x70;
const SUBSCRIBE: u8 = 0x82;
const SUBACK: u8 = 0x90;
const UNSUBSCRIBE: u8 = 0xa2;
const UNSUBACK: u8 = 0xb0;
const PINGREQ: u8 = 0xc0;
const PINGRESP: u8 = 0xd0;
const DISCONNECT: u8 = 0xe0;

/// A packet of a broker, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MqttPacket {
    /// CONNACK with its return code.
    Connected(u8),
    /// SUBACK with its return code.
    Subscribed(u8),
    Unsubscribed,
    Pong,
    /// A message, whose data are still to be received; whether it came on the topic of this client's own.
    Message(bool),
    /// The last acknowledgement of a message.
    Acknowledged,
    /// What needs nothing more.
    Handled,
}

/// The data of a message that are still to come, and how it is acknowledged then.
#[derive(Clone, Copy)]
struct MqttMessage {
    left: u64,
    acknowledgement: Option<(u8, u16)>,
}

struct MqttClient {
    topic: String,
    /// A topic below it that no other client uses, for `qos = 0`.
    own_topic: String,
    id: String,
    qos: u8,
    login: FarEndLogin,
    /// What is sent before data, and acknowledgements.
    head: Vec<u8>,
    /// The identifier of the last packet that has one.
    identifier: u16,
    /// How many messages are not acknowledged, and how many may be.
    in_flight: usize,
    most_in_flight: usize,
    begun: Option<MqttMessage>,
    /// Bytes of the last message received.
    message: u64,
}

impl MqttClient {
    fn new(address: &FarEndAddress, stack: &Stack) -> Result<Self> {
        let path = &address.path;
        let topic = percent_decoded_text(path.strip_prefix('/').unwrap_or(path))?;
        if topic.len() > LONGEST_TOPIC || topic.contains('\0') {
            return Err(Error::input(
                "the path of the address is not a topic of MQTT",
            ));
        }
        let id =
            getrandom::u64().map_err(|e| Error::environment(format!("no random numbers: {e}")))?;
        let id = format!("stackline{id:014x}");
        let id = id[..23].to_string();
        Ok(Self {
            own_topic: match topic.as_str() {
                "" => id.clone(),
                topic => format!("{topic}/{id}"),
            },
            topic,
            id,
            qos: stack.number("qos").map_or(1, |qos| qos.min(2) as u8),
            login: FarEndLogin::from_environment("MQTT_USER", "MQTT_PASSWORD"),
            head: Vec::new(),
            identifier: 0,
            in_flight: 0,
            most_in_flight: stack.number("inflight").unwrap_or(IN_FLIGHT) as usize,
            begun: None,
            message: 0,
        })
    }

    /// The next identifier, which is not 0.
    const fn next_identifier(&mut self) -> u16 {
        self.identifier = match self.identifier {
            u16::MAX => 1,
            last => last + 1,
        };
        self.identifier
    }

    /// Sends what is in `head`.
    fn send_head(&mut self, stream: &mut FarEndStream) -> Result<()> {
        let sent = stream.send(&self.head)?;
        self.head.clear();
        if sent {
            Ok(())
        } else {
            Err(stream.cut_short("a packet"))
        }
    }

    /// Receives the next packet; what is left of a message before it is dropped.
    fn packet(&mut self, stream: &mut FarEndStream) -> Result<MqttPacket> {
        if self.begun.is_some() {
            self.receive_rest(stream)?;
        }
        stream.require(2, "a packet of a broker")?;
        let (first, length, used) = self.header(stream)?;
        stream.take(used);
        let kind = first & 0xf0;
        if kind == PUBLISH {
            return self.message_head(stream, first, length);
        }
        // All others are short: SUBACK has one code, since one topic is asked for.
        if length > 5 || first == 0 {
            return Err(unexpected(
                stream,
                "sent a packet that is not of MQTT 3.1.1",
            ));
        }
        stream.require(length as usize, "a packet of a broker")?;
        let mut body = [0; 5];
        body[..length as usize].copy_from_slice(&stream.unused()[..length as usize]);
        stream.take(length as usize);
        match (first, length) {
            (CONNACK, 2) => Ok(MqttPacket::Connected(body[1])),
            (SUBACK, 3) => Ok(MqttPacket::Subscribed(body[2])),
            (UNSUBACK, 2) => Ok(MqttPacket::Unsubscribed),
            (PINGRESP, 0) => Ok(MqttPacket::Pong),
            (PUBREC, 2) => {
                self.head.extend_from_slice(&[PUBREL, 2, body[0], body[1]]);
                self.send_head(stream)?;
                Ok(MqttPacket::Handled)
            }
            (PUBREL, 2) => {
                self.head.extend_from_slice(&[PUBCOMP, 2, body[0], body[1]]);
                self.send_head(stream)?;
                Ok(MqttPacket::Handled)
            }
            (PUBACK | PUBCOMP, 2) => {
                let left = self.in_flight.checked_sub(1);
                self.in_flight =
                    left.ok_or_else(|| unexpected(stream, "acknowledged what was not sent"))?;
                Ok(MqttPacket::Acknowledged)
            }
            _ => Err(unexpected(
                stream,
                "sent a packet that is not of MQTT 3.1.1",
            )),
        }
    }

    /// The first byte of a packet, the length of the rest, and how many bytes say so.
    fn header(&self, stream: &mut FarEndStream) -> Result<(u8, u64, usize)> {
        let (mut length, mut used) = (0, 1);
        loop {
            stream.require(used + 1, "a packet of a broker")?;
            let byte = stream.unused()[used];
            length |= u64::from(byte & 0x7f) << (7 * (used - 1));
            used += 1;
            if byte & 0x80 == 0 {
                return Ok((stream.unused()[0], length, used));
            }
            if used > 4 {
                return Err(unexpected(
                    stream,
                    "sent a packet that is not of MQTT 3.1.1",
                ));
            }
        }
    }

    /// Receives the head of a PUBLISH of `length` bytes.
    fn message_head(
        &mut self,
        stream: &mut FarEndStream,
        first: u8,
        length: u64,
    ) -> Result<MqttPacket> {
        let wrong = "sent a message that is shorter than it says";
        let qos = first >> 1 & 3;
        stream.require(2, "a message")?;
        let topic = usize::from(u16::from_be_bytes([stream.unused()[0], stream.unused()[1]]));
        let head = 2 + topic + if qos > 0 { 2 } else { 0 };
        let Some(left) = length.checked_sub(head as u64) else {
            return Err(unexpected(stream, wrong));
        };
        stream.require(head, "a message")?;
        let bytes = &stream.unused()[..head];
        let is_own = &bytes[2..2 + topic] == self.own_topic.as_bytes();
        let identifier = u16::from_be_bytes([bytes[head - 2], bytes[head - 1]]);
        stream.take(head);
        self.message = left;
        self.begun = Some(MqttMessage {
            left,
            acknowledgement: match qos {
                0 => None,
                1 => Some((PUBACK, identifier)),
                _ => Some((PUBREC, identifier)),
            },
        });
        Ok(MqttPacket::Message(is_own))
    }

    /// Receives what is left of a message, and acknowledges it.
    fn receive_rest(&mut self, stream: &mut FarEndStream) -> Result<()> {
        if let Some(message) = self.begun.take() {
            stream.skip(message.left, "a message")?;
            if let Some((kind, identifier)) = message.acknowledgement {
                let [high, low] = identifier.to_be_bytes();
                self.head.extend_from_slice(&[kind, 2, high, low]);
                self.send_head(stream)?;
            }
        }
        Ok(())
    }

    /// Receives packets until one that is `wanted`.
    fn await_packet(&mut self, stream: &mut FarEndStream, wanted: MqttPacket) -> Result<()> {
        while self.packet(stream)? != wanted {}
        Ok(())
    }

    /// Sends a PUBLISH.
    fn publish(
        &mut self,
        stream: &mut FarEndStream,
        qos: u8,
        is_own: bool,
        data: &[u8],
    ) -> Result<()> {
        let identifier = if qos > 0 { self.next_identifier() } else { 0 };
        let topic = if is_own { &self.own_topic } else { &self.topic };
        let length = 2 + topic.len() + if qos > 0 { 2 } else { 0 } + data.len();
        self.head.clear();
        write_header(&mut self.head, PUBLISH | qos << 1, length);
        write_text(&mut self.head, topic.as_bytes());
        if qos > 0 {
            self.head.extend_from_slice(&identifier.to_be_bytes());
        }
        let sent = stream.send_parts([&self.head, data])?;
        self.head.clear();
        if !sent {
            return Err(dropped(stream));
        }
        self.in_flight += usize::from(qos > 0);
        Ok(())
    }

    fn subscribe(&mut self, stream: &mut FarEndStream, is_own: bool) -> Result<()> {
        let [high, low] = self.next_identifier().to_be_bytes();
        let topic = if is_own { &self.own_topic } else { &self.topic };
        write_header(&mut self.head, SUBSCRIBE, topic.len() + 5);
        self.head.extend_from_slice(&[high, low]);
        write_text(&mut self.head, topic.as_bytes());
        self.head.push(if is_own { 0 } else { self.qos });
        self.send_head(stream)?;
        loop {
            match self.packet(stream)? {
                MqttPacket::Subscribed(0..=2) => return Ok(()),
                MqttPacket::Subscribed(_) => {
                    let server = stream.server();
                    let message = format!("the broker at {server} refuses the subscription");
                    return Err(Error::measurement(message).hint(
                        "is the topic one that its access list allows to this user (MQTT_USER, MQTT_PASSWORD)?",
                    ));
                }
                _ => {}
            }
        }
    }

    fn ping(&mut self, stream: &mut FarEndStream) -> Result<()> {
        self.head.extend_from_slice(&[PINGREQ, 0]);
        self.send_head(stream)?;
        self.await_packet(stream, MqttPacket::Pong)
    }

    /// Receives acknowledgements until at most `most` are missing.
    fn await_acknowledgements(&mut self, stream: &mut FarEndStream, most: usize) -> Result<()> {
        while self.in_flight > most {
            self.packet(stream)?;
        }
        Ok(())
    }

    fn require_topic(&self, receives: bool) -> Result<()> {
        if self.topic.is_empty() {
            return Err(Error::input("the address names no topic")
                .hint("write it as the path: \"mqtt://127.0.0.1/TOPIC\""));
        }
        if !receives && self.topic.contains(['+', '#']) {
            let message = format!("nothing can be published on `{}`", self.topic);
            return Err(Error::input(message)
                .hint("`+` and `#` stand for many topics, which only `bulk_get` can receive"));
        }
        Ok(())
    }

    /// Receives so many bytes of messages.
    fn receive_data(&mut self, stream: &mut FarEndStream, bytes: u64) -> Result<()> {
        let mut wanted = bytes;
        while wanted > 0 {
            if let Some(message) = &mut self.begun {
                let here = message.left.min(wanted);
                stream.skip(here, "a message")?;
                (message.left, wanted) = (message.left - here, wanted - here);
                if message.left > 0 {
                    return Ok(());
                }
            }
            if wanted > 0 {
                self.packet(stream)?;
            }
        }
        Ok(())
    }
}

impl FarEndProtocol for MqttClient {
    fn open(&mut self, stream: &mut FarEndStream) -> Result<()> {
        let mut body = Vec::new();
        write_text(&mut body, b"MQTT");
        // Level 4 is 3.1.1; the session is a clean one, and no keep-alive is due.
        let (user, password) = (&self.login.user, &self.login.password);
        let with_password = user.is_some() && password.is_some();
        let flags = 2 | u8::from(user.is_some()) << 7 | u8::from(with_password) << 6;
        body.extend_from_slice(&[4, flags, 0, 0]);
        write_text(&mut body, self.id.as_bytes());
        for text in [user, password]
            .into_iter()
            .flatten()
            .filter(|_| user.is_some())
        {
            if text.len() > usize::from(u16::MAX) {
                return Err(Error::input(
                    "MQTT_USER or MQTT_PASSWORD is longer than 65535 B",
                ));
            }
            write_text(&mut body, text.as_bytes());
        }
        write_header(&mut self.head, CONNECT, body.len());
        self.head.extend_from_slice(&body);
        self.send_head(stream)?;
        match self.packet(stream)? {
            MqttPacket::Connected(0) => {}
            MqttPacket::Connected(code) => return Err(not_connected(stream, code)),
            _ => return Err(unexpected(stream, "does not answer CONNECT with CONNACK")),
        }
        if self.qos == 0 && !self.topic.contains(['+', '#']) {
            self.subscribe(stream, true)?;
        }
        Ok(())
    }

    fn close(&mut self, stream: &mut FarEndStream) {
        let _ = stream.send(&[DISCONNECT, 0]);
    }

    fn call(&mut self, stream: &mut FarEndStream, request: &[u8]) -> Result<()> {
        if request.is_empty() {
            return self.ping(stream);
        }
        if self.qos > 0 || self.topic.contains(['+', '#']) {
            self.require_topic(false)?;
        }
        self.publish(stream, self.qos, self.qos == 0, request)?;
        if self.qos > 0 {
            return self.await_acknowledgements(stream, 0);
        }
        self.await_packet(stream, MqttPacket::Message(true))?;
        self.receive_rest(stream)
    }

    fn start_bulk(&mut self, stream: &mut FarEndStream, direction: BulkDirection) -> Result<()> {
        self.require_topic(direction == BulkDirection::Get)?;
        match direction {
            BulkDirection::Get => self.subscribe(stream, false),
            BulkDirection::Put => Ok(()),
        }
    }

    fn send(&mut self, stream: &mut FarEndStream, unit: &[u8]) -> Result<()> {
        self.publish(stream, self.qos, false, unit)?;
        // Those that have come already are taken with the one that is waited for.
        while self.in_flight >= self.most_in_flight
            || (self.in_flight > 0 && stream.unused().len() >= 4)
        {
            self.packet(stream)?;
        }
        Ok(())
    }

    fn receive(&mut self, stream: &mut FarEndStream, bytes: u64) -> Result<()> {
        let received = self.receive_data(stream, bytes);
        received.map_err(|error| {
            let topic = &self.topic;
            stream.unasked(error, || {
                format!("does anybody publish on `{topic}` meanwhile?")
            })
        })
    }

    fn stop_bulk(&mut self, stream: &mut FarEndStream, direction: BulkDirection) -> Result<()> {
        match (direction, self.qos) {
            (BulkDirection::Put, 0) => self.ping(stream),
            (BulkDirection::Put, _) => self.await_acknowledgements(stream, 0),
            (BulkDirection::Get, _) => {
                self.receive_rest(stream)?;
                let [high, low] = self.next_identifier().to_be_bytes();
                write_header(&mut self.head, UNSUBSCRIBE, self.topic.len() + 4);
                self.head.extend_from_slice(&[high, low]);
                write_text(&mut self.head, self.topic.as_bytes());
                self.send_head(stream)?;
                self.await_packet(stream, MqttPacket::Unsubscribed)
            }
        }
    }

    fn settings(&self) -> BTreeMap<String, String> {
        match self.message {
            0 => BTreeMap::new(),
            bytes => BTreeMap::from([("message".to_string(), format!("{bytes} B"))]),
        }
    }
}

/// The first byte of a packet and the length of the rest, 7 bits a byte.
fn write_header(packet: &mut Vec<u8>, first: u8, length: usize) {
    packet.push(first);
    let mut left = length;
    loop {
        let more = left > 0x7f;
        packet.push((left & 0x7f) as u8 | u8::from(more) << 7);
        left >>= 7;
        if !more {
            return;
        }
    }
}

/// A text with its length before it; it has at most 65535 bytes.
fn write_text(packet: &mut Vec<u8>, text: &[u8]) {
    packet.extend_from_slice(&(text.len() as u16).to_be_bytes());
    packet.extend_from_slice(text);
}

fn not_connected(stream: &FarEndStream, code: u8) -> Error {
    let why = match code {
        1 => "it does not speak MQTT 3.1.1",
        2 => "it does not accept the client's identifier",
        3 => "it is not available at present",
        4 => "user or password are wrong",
        5 => "this client is not authorized",
        _ => "the reason is one that MQTT 3.1.1 does not have",
    };
    let error = Error::measurement(format!(
        "the broker at {} refuses the connection: {why}",
        stream.server()
    ));
    if matches!(code, 4 | 5) {
        error.hint("set MQTT_USER and MQTT_PASSWORD in the environment of the initiator's agent")
    } else {
        error
    }
}

/// The error when the broker takes nothing more. In 3.1.1 it cannot say why.
fn dropped(stream: &FarEndStream) -> Error {
    stream
        .cut_short("a message")
        .hint("brokers close the connection when a topic is not allowed or a message is too large: its log says which")
}

fn unexpected(stream: &FarEndStream, what: &str) -> Error {
    Error::measurement(format!("the server at {} {what}", stream.server()))
        .hint("is it an MQTT broker?")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_seven_bits_a_byte() {
        for (length, expected) in [
            (0, &[PUBLISH, 0][..]),
            (127, &[PUBLISH, 127]),
            (128, &[PUBLISH, 0x80, 1]),
            (268_435_455, &[PUBLISH, 0xff, 0xff, 0xff, 0x7f]),
        ] {
            let mut packet = Vec::new();
            write_header(&mut packet, PUBLISH, length);
            assert_eq!(packet, expected);
        }
    }

    #[test]
    fn identifiers_are_never_zero() {
        let address = FarEndAddress::parse("mqtt://h/a/b").unwrap();
        let mut client = MqttClient::new(&address, &Stack::plain("mqtt")).unwrap();
        assert_eq!((client.topic.as_str(), client.qos), ("a/b", 1));
        assert!(client.own_topic.starts_with("a/b/stackline") && client.id.len() <= 23);
        client.identifier = u16::MAX;
        assert_eq!(client.next_identifier(), 1);
    }
}
