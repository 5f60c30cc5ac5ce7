//! `iperf3`: a client of iperf3 servers, over TCP or in datagrams. Each bulk transfer is a test, with one stream or several.

use super::byte_stream::FarEndStream;
use super::iperf3_datagrams::{DatagramTally, HEAD_BYTES, Iperf3Datagrams};
use super::iperf3_streams::Iperf3Streams;
use super::tls_start::TlsStart;
use super::{FarEndProtocol, FarEndStack, OPTIONS, TABLE};
use crate::cancel::pause;
use crate::error::{Error, Result};
use crate::iperf3_messages::{
    COOKIE, Iperf3Parameters, Iperf3Results, Iperf3Stream, JSON_MOST, state, stream_id,
};
use serde::Deserialize;
use serde::Serialize;
use stackline_core::catalogue::{OptionKind, OptionTable, ServiceMapping, StackTable};
use stackline_core::plan::Stack;
use stackline_core::run_record::TransportRecord;
use stackline_core::units;
use stackline_endpoint::BulkDirection;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

pub(crate) static IPERF3: FarEndStack = FarEndStack {
    table: &StackTable {
        name: "iperf3",
        summary: "client of an iperf3 server, over TCP or in datagrams: a test with one stream, or `streams`, for each bulk transfer",
        options: &IPERF3_OPTIONS,
        needs: &[("bandwidth", "udp"), ("length", "udp")],
        mapping: ServiceMapping(
            "\
ConnectRequest -> socket, connect, send of a cookie, recv of PARAM_EXCHANGE
StartBulkGet, StartBulkPut -> send of the parameters, recv of CREATE_STREAMS; socket, connect, send of the cookie for each stream (udp: \
of its first datagram, recv of the answer); recv of TEST_START and TEST_RUNNING; before the clock starts if the transfer starts with it
AwaitDataIndication -> recv from the streams until the unit is complete
DataRequest -> send of the whole unit on the streams; udp: of a datagram with time and number on the next stream
StopBulkGet -> none
StopBulkPut -> nothing until the server's kernel has acknowledged everything
StopMeasurement, or what follows -> send of TEST_END, exchange of results, recv of DISPLAY_RESULTS, send of IPERF_DONE
DisconnectRequest -> close",
        ),
        ..TABLE
    },
    port: Some(5201),
    tls: TlsStart::Never(None),
    client: |_, stack| Ok(Box::new(Iperf3Client::new(stack)?)),
};

const IPERF3_OPTIONS: [OptionTable; 14] = StackTable::joined(
    &OPTIONS,
    &[
        OptionTable::new(
            "streams",
            OptionKind::Number(1, 128),
            "1",
            "how many streams a test has (iperf3 -P); data go on those that can go on",
        ),
        OptionTable::flag(
            "udp",
            "datagrams instead of TCP (iperf3 -u): each data unit of a put is one; write its pace as a rate",
        ),
        OptionTable::new(
            "bandwidth",
            OptionKind::Number(1, 1_000_000_000_000),
            "1048576, as iperf3 has it",
            "udp: at how many bits a second the server sends each stream of a get (iperf3 -b)",
        ),
        OptionTable::new(
            "length",
            OptionKind::Bytes(LEAST_DATAGRAM, LARGEST_DATAGRAM),
            "1448 B",
            "udp: how long the datagrams are (iperf3 -l); of a put, data units have this size",
        ),
    ],
);

/// Bytes of a datagram: its head and the least of data, and what UDP over IPv4 carries.
const LEAST_DATAGRAM: u64 = 16;
const LARGEST_DATAGRAM: u64 = 65_507;
/// The options `length` and `bandwidth` when they are not written: what iperf3 has on Ethernet, B, and its own, bit/s.
const USUAL_DATAGRAM: u64 = 1448;
const USUAL_BANDWIDTH: u64 = 1 << 20;

/// How long a server may take to be ready for a test.
const READY: Duration = Duration::from_secs(5);
/// How long a server may take after a test to listen for the next one: it closes its listening socket and opens another.
const ABSENCE: Duration = Duration::from_secs(1);
/// How long to wait before it is tried again.
const ABSENCE_LOOK: Duration = Duration::from_millis(10);
/// The letters of cookies, as iperf3 has them.
const COOKIE_LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// The version of the client that the server is given.
const VERSION: &str = "3.12";

struct Iperf3Client {
    cookie: [u8; COOKIE],
    streams: u64,
    /// Whether data go in datagrams, and what the server is asked for then.
    datagrams: Option<DatagramWish>,
    data: Iperf3Data,
    /// The memory of an earlier stream.
    spare: Option<FarEndStream>,
    /// The kernel's record of the only stream of the last test.
    record: Option<TransportRecord>,
    /// Whether the connection has carried a test: servers close it then.
    is_used: bool,
    direction: BulkDirection,
    /// Bytes of the present test on its only stream.
    moved: u64,
    begun: Instant,
    phase: Iperf3Phase,
    /// What the server said of the streams of the last one, and what this end saw of datagrams.
    said: Vec<Iperf3Stream>,
    seen: Vec<DatagramTally>,
}

/// Where the present test is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Iperf3Phase {
    /// There is none.
    None,
    /// The server runs it already; its transfer is still to start.
    Prepared,
    Transfers,
    /// Its transfer took that long; the server does not know yet.
    Done(Duration),
}

/// How datagrams are, and how fast a server sends them.
#[derive(Clone, Copy)]
struct DatagramWish {
    /// Bytes of each.
    length: u64,
    /// Of each stream.
    bit_s: u64,
}

/// The streams of the present test.
enum Iperf3Data {
    None,
    One(Box<FarEndStream>),
    Several(Iperf3Streams),
    Datagrams(Iperf3Datagrams),
}

impl Iperf3Client {
    fn new(stack: &Stack) -> Result<Self> {
        let mut cookie = [0; COOKIE];
        getrandom::fill(&mut cookie[..COOKIE - 1])
            .map_err(|e| Error::environment(format!("cannot draw a cookie: {e}")))?;
        for letter in &mut cookie[..COOKIE - 1] {
            *letter = COOKIE_LETTERS[usize::from(*letter) % COOKIE_LETTERS.len()];
        }
        Ok(Self {
            cookie,
            streams: stack.number("streams").unwrap_or(1),
            datagrams: stack.flag("udp").then(|| DatagramWish {
                length: stack.number("length").unwrap_or(USUAL_DATAGRAM),
                bit_s: stack.number("bandwidth").unwrap_or(USUAL_BANDWIDTH),
            }),
            data: Iperf3Data::None,
            spare: None,
            record: None,
            is_used: false,
            direction: BulkDirection::Get,
            moved: 0,
            begun: Instant::now(),
            phase: Iperf3Phase::None,
            said: Vec::new(),
            seen: Vec::new(),
        })
    }

    fn say(&self, stream: &mut FarEndStream, bytes: &[u8]) -> Result<()> {
        match stream.send(bytes)? {
            true => Ok(()),
            false => Err(stream.cut_short("a test")),
        }
    }

    /// Awaits a state of the server.
    fn expect(&self, stream: &mut FarEndStream, wanted: u8) -> Result<()> {
        stream.require(1, "its state")?;
        let got = stream.unused()[0];
        stream.take(1);
        if got == wanted {
            return Ok(());
        }
        let server = stream.server();
        Err(match got {
            state::ACCESS_DENIED => Error::measurement(format!(
                "the iperf3 server at {server} is busy with another test"
            ))
            .hint("it has one test at a time: use one pair, or try again later"),
            state::SERVER_TERMINATE => {
                Error::measurement(format!("the iperf3 server at {server} has ended the test"))
            }
            state::SERVER_ERROR => {
                Error::measurement(format!("the iperf3 server at {server} reported an error"))
                    .hint("its own output has the reason")
            }
            _ => Error::measurement(format!(
                "the server at {server} sent the state {got} instead of {wanted}"
            ))
            .hint("is it iperf3? Versions before 3 speak another protocol"),
        })
    }

    fn write_json(&self, stream: &mut FarEndStream, message: &impl Serialize) -> Result<()> {
        let text = serde_json::to_vec(message)
            .map_err(|e| Error::measurement(format!("cannot write JSON: {e}")))?;
        let length = (text.len() as u32).to_be_bytes();
        self.say(stream, &[&length[..], &text].concat())
    }

    fn read_json<T: for<'d> Deserialize<'d>>(&self, stream: &mut FarEndStream) -> Result<T> {
        let wrong = |stream: &FarEndStream, what: String| {
            Error::measurement(format!(
                "the iperf3 server at {} sent {what}",
                stream.server()
            ))
        };
        stream.require(4, "its results")?;
        let length = stream.unused()[..4]
            .try_into()
            .map_or(0, u32::from_be_bytes) as usize;
        stream.take(4);
        if length > JSON_MOST {
            return Err(wrong(stream, format!("a message of {length} bytes")));
        }
        stream.require(length, "its results")?;
        let read = serde_json::from_slice(&stream.unused()[..length]);
        stream.take(length);
        read.map_err(|e| wrong(stream, format!("results that are not valid JSON: {e}")))
    }

    /// Opens the streams of a test.
    fn open_streams(&mut self, stream: &FarEndStream) -> Result<()> {
        let control = stream.socket();
        if self.datagrams.is_some() {
            self.data = Iperf3Data::Datagrams(Iperf3Datagrams::open(control, self.streams)?);
            return Ok(());
        }
        let mut opened = Vec::new();
        for _ in 0..self.streams {
            let mut socket = control.connect_beside(stream.server().port())?;
            if !socket.send(&self.cookie)? {
                let server = socket.server();
                let message = format!("the server at {server} closed the connection of a stream");
                return Err(Error::measurement(message));
            }
            opened.push(socket);
        }
        self.data = match (opened.len(), opened.pop()) {
            (1, Some(socket)) => Iperf3Data::One(Box::new(FarEndStream::over_socket(
                socket,
                self.spare.take(),
            ))),
            (_, last) => {
                Iperf3Data::Several(Iperf3Streams::new(opened.into_iter().chain(last).collect()))
            }
        };
        Ok(())
    }

    /// What is asked of the server for a test.
    fn parameters(&self, direction: BulkDirection) -> Iperf3Parameters {
        let reverse = direction == BulkDirection::Get;
        // Its server reads that many bytes at a time, so no datagram may be shorter.
        let len = self.datagrams.map_or(128 << 10, |wish| wish.length);
        let bandwidth = self.datagrams.filter(|_| reverse);
        let bandwidth = bandwidth.map_or(0, |wish| wish.bit_s);
        Iperf3Parameters {
            tcp: self.datagrams.is_none(),
            udp: self.datagrams.is_some(),
            parallel: self.streams,
            reverse,
            len,
            bandwidth,
            client_version: VERSION.into(),
            ..Iperf3Parameters::default()
        }
    }

    /// What this end says of the streams of a test.
    fn results(&self, took: Duration) -> Iperf3Results {
        let end_time = took.as_secs_f64();
        let tcp = |bytes: u64| Iperf3Stream {
            bytes,
            retransmits: -1,
            ..Iperf3Stream::default()
        };
        let mut streams: Vec<Iperf3Stream> = match &self.data {
            Iperf3Data::None => Vec::new(),
            Iperf3Data::One(_) => vec![tcp(self.moved)],
            Iperf3Data::Several(streams) => streams.moved().iter().copied().map(tcp).collect(),
            Iperf3Data::Datagrams(streams) => {
                let said = streams.tallies().into_iter().map(|tally| Iperf3Stream {
                    jitter: tally.jitter_s,
                    errors: tally.missing as i64,
                    packets: tally.packets as i64,
                    ..tcp(tally.bytes)
                });
                said.collect()
            }
        };
        for (stream, place) in streams.iter_mut().zip(0..) {
            (stream.id, stream.end_time) = (stream_id(place), end_time);
        }
        Iperf3Results {
            sender_has_retransmits: -1,
            streams,
            ..Iperf3Results::default()
        }
    }

    /// Notes what was seen of a test that has ended, and closes its streams.
    fn leave_streams(&mut self) {
        (self.record, self.seen) = (None, Vec::new());
        match std::mem::replace(&mut self.data, Iperf3Data::None) {
            Iperf3Data::None | Iperf3Data::Several(_) => {}
            Iperf3Data::One(data) => {
                self.record = data.transport();
                self.spare = Some(*data);
            }
            Iperf3Data::Datagrams(streams) => self.seen = streams.tallies(),
        }
    }
}

/// Waits for what the server says first; false if it has closed the connection.
fn ready(stream: &mut FarEndStream) -> Result<bool> {
    let ready = stream.within(READY, |stream| stream.receive_more(1, "its state"));
    ready.map_err(|error| match stream.socket().was_silent() {
        true => error.hint(
            "a server that has a test already may say nothing: use one pair, or try again later",
        ),
        false => error,
    })
}

impl FarEndProtocol for Iperf3Client {
    fn absence(&self) -> Duration {
        ABSENCE
    }

    fn open(&mut self, stream: &mut FarEndStream) -> Result<()> {
        let (begun, cookie) = (Instant::now(), self.cookie);
        loop {
            if stream.send(&cookie)? && ready(stream)? {
                return self.expect(stream, state::PARAM_EXCHANGE);
            }
            // It took the connection on a socket that it has closed since, to listen on another.
            let mut again = Err(stream.cut_short("a test"));
            while again.is_err() && begun.elapsed() < ABSENCE {
                pause(ABSENCE_LOOK);
                again = stream.reconnect();
            }
            again?;
        }
    }

    fn prepare_bulk(&mut self, stream: &mut FarEndStream, direction: BulkDirection) -> Result<()> {
        self.conclude_bulk(stream)?;
        if std::mem::replace(&mut self.is_used, true) {
            stream.reconnect()?;
            self.open(stream)?;
        }
        self.write_json(stream, &self.parameters(direction))?;
        self.expect(stream, state::CREATE_STREAMS)?;
        self.open_streams(stream)?;
        self.expect(stream, state::TEST_START)?;
        self.expect(stream, state::TEST_RUNNING)?;
        (self.direction, self.moved) = (direction, 0);
        self.phase = Iperf3Phase::Prepared;
        Ok(())
    }

    fn start_bulk(&mut self, stream: &mut FarEndStream, direction: BulkDirection) -> Result<()> {
        if self.phase != Iperf3Phase::Prepared {
            self.prepare_bulk(stream, direction)?;
        }
        (self.phase, self.begun) = (Iperf3Phase::Transfers, Instant::now());
        Ok(())
    }

    fn conclude_bulk(&mut self, stream: &mut FarEndStream) -> Result<()> {
        let Iperf3Phase::Done(took) = self.phase else {
            return Ok(());
        };
        self.say(stream, &[state::TEST_END])?;
        self.expect(stream, state::EXCHANGE_RESULTS)?;
        let own = self.results(took);
        self.write_json(stream, &own)?;
        let said: Iperf3Results = self.read_json(stream)?;
        self.said = said.streams;
        self.expect(stream, state::DISPLAY_RESULTS)?;
        self.say(stream, &[state::IPERF_DONE])?;
        self.leave_streams();
        self.phase = Iperf3Phase::None;
        Ok(())
    }

    fn close(&mut self, stream: &mut FarEndStream) {
        // Whether the server hears of the end does not matter any more.
        let _ = self.conclude_bulk(stream);
    }

    fn send(&mut self, stream: &mut FarEndStream, unit: &[u8]) -> Result<()> {
        match &mut self.data {
            Iperf3Data::None => Err(super::unmapped()),
            Iperf3Data::One(data) => {
                self.moved += unit.len() as u64;
                match data.send(unit)? {
                    true => Ok(()),
                    false => Err(data.cut_short("a test")),
                }
            }
            Iperf3Data::Several(streams) => streams.send(unit),
            Iperf3Data::Datagrams(streams) => {
                let bytes = unit.len() as u64;
                let length = self.datagrams.map_or(bytes, |wish| wish.length);
                if bytes != length {
                    let message = format!(
                        "a datagram of this test has {length} B, and this data unit {bytes} B"
                    );
                    return Err(Error::input(message).hint(format!(
                        "write `iperf3(udp, length = {bytes} B)`, which is iperf3's -l"
                    )));
                }
                streams.send(stream.socket(), unit)
            }
        }
    }

    fn receive(&mut self, stream: &mut FarEndStream, bytes: u64) -> Result<()> {
        match &mut self.data {
            Iperf3Data::None => Err(super::unmapped()),
            Iperf3Data::One(data) => {
                self.moved += bytes;
                data.skip(bytes, "its data")
            }
            Iperf3Data::Several(streams) => streams.receive(bytes),
            Iperf3Data::Datagrams(streams) => streams.receive(stream.socket(), bytes),
        }
    }

    fn stop_bulk(&mut self, _: &mut FarEndStream, direction: BulkDirection) -> Result<()> {
        match (&self.data, direction) {
            (Iperf3Data::One(data), BulkDirection::Put) => data.socket().settle()?,
            (Iperf3Data::Several(streams), BulkDirection::Put) => streams.settle()?,
            _ => {}
        }
        self.phase = Iperf3Phase::Done(self.begun.elapsed());
        Ok(())
    }

    fn transport(&self, _: &FarEndStream) -> Option<TransportRecord> {
        match &self.data {
            Iperf3Data::One(data) => data.transport(),
            _ => self.record,
        }
    }

    fn sends_data_over_tcp(&self) -> bool {
        self.datagrams.is_none()
    }

    fn notes(&self) -> Vec<String> {
        let (missing, packets) = self.missing();
        match self.datagrams {
            Some(_) if missing > 0 => vec![format!("{missing} of {packets} datagrams were lost")],
            _ => Vec::new(),
        }
    }

    fn settings(&self) -> BTreeMap<String, String> {
        if self.said.is_empty() {
            return BTreeMap::new();
        }
        let name = match self.direction {
            BulkDirection::Get => "server_sent",
            BulkDirection::Put => "server_received",
        };
        let streams = self.said.iter();
        let bytes = streams
            .clone()
            .fold(0_u64, |sum, one| sum.saturating_add(one.bytes));
        let mut settings = BTreeMap::from([(name.to_owned(), format!("{bytes} B"))]);
        if self.streams > 1 {
            settings.insert("streams".into(), self.streams.to_string());
        }
        let known = streams.clone().filter(|one| one.retransmits >= 0);
        let sums = known.map(|one| one.retransmits).reduce(i64::saturating_add);
        if let (Some(sum), None) = (sums, self.datagrams) {
            settings.insert("server_retransmits".into(), sum.to_string());
        }
        if self.datagrams.is_some() {
            self.describe_datagrams(&mut settings);
        }
        settings
    }
}

impl Iperf3Client {
    /// What the receiver of datagrams says of each stream: the server of a put, this end of a get.
    fn tallies(&self) -> Vec<DatagramTally> {
        match self.direction {
            BulkDirection::Get => self.seen.clone(),
            BulkDirection::Put => {
                let said = self.said.iter().map(|one| DatagramTally {
                    bytes: one.bytes,
                    packets: one.packets.try_into().unwrap_or(0),
                    missing: one.errors.try_into().unwrap_or(0),
                    jitter_s: one.jitter,
                });
                said.collect()
            }
        }
    }

    /// How many datagrams are missing, of how many.
    fn missing(&self) -> (u64, u64) {
        let tallies = self.tallies();
        let add = |value: fn(&DatagramTally) -> u64| {
            tallies.iter().map(value).fold(0, u64::saturating_add)
        };
        (add(|one| one.missing), add(|one| one.packets))
    }

    /// The receiver's figures.
    fn describe_datagrams(&self, settings: &mut BTreeMap<String, String>) {
        let prefix = match self.direction {
            BulkDirection::Get => "",
            BulkDirection::Put => "server_",
        };
        let (tallies, (missing, packets)) = (self.tallies(), self.missing());
        let jitter_s = tallies.iter().map(|one| one.jitter_s).sum::<f64>();
        let jitter = units::format_time(jitter_s / tallies.len().max(1) as f64);
        let lost = format!("{missing} of {packets} datagrams");
        settings.insert(format!("{prefix}lost"), lost);
        settings.insert(format!("{prefix}jitter"), jitter);
    }
}

const _: () = assert!(HEAD_BYTES as u64 <= LEAST_DATAGRAM);
