//! `iperf3`: a client of iperf3 servers, over TCP. Each bulk transfer is a test with one stream.

use super::byte_stream::FarEndStream;
use super::tls_start::TlsStart;
use super::{FarEndProtocol, FarEndStack, TABLE};
use crate::cancel::pause;
use crate::error::{Error, Result};
use crate::iperf3_messages::{
    COOKIE, Iperf3Parameters, Iperf3Results, Iperf3Stream, JSON_MOST, state, stream_id,
};
use serde::Deserialize;
use serde::Serialize;
use stackline_core::catalogue::{ServiceMapping, StackTable};
use stackline_endpoint::BulkDirection;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

pub(crate) static IPERF3: FarEndStack = FarEndStack {
    table: &StackTable {
        name: "iperf3",
        summary: "client of an iperf3 server, over TCP: a test with one stream for each bulk transfer",
        mapping: ServiceMapping(
            "\
ConnectRequest -> socket, connect, send of a cookie, recv of PARAM_EXCHANGE
StartBulkGet, StartBulkPut -> send of the parameters, recv of CREATE_STREAMS; socket, connect, send of the cookie for the stream; recv of \
TEST_START and TEST_RUNNING
AwaitDataIndication -> recv from the stream until the unit is complete
DataRequest -> send of the whole unit on the stream
StopBulkGet -> send of TEST_END, exchange of results, recv of DISPLAY_RESULTS, send of IPERF_DONE
StopBulkPut -> the same, once the server's kernel has acknowledged everything
DisconnectRequest -> close",
        ),
        ..TABLE
    },
    port: Some(5201),
    tls: TlsStart::Never(None),
    client: |_, _| Ok(Box::new(Iperf3Client::new()?)),
};

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
    /// The stream of the present test.
    data: Option<FarEndStream>,
    /// The memory of an earlier one.
    spare: Option<FarEndStream>,
    /// Whether the connection has carried a test: servers close it then.
    is_used: bool,
    direction: BulkDirection,
    /// Bytes of the present test.
    moved: u64,
    begun: Instant,
    /// What the server said of the last one.
    said: Option<Iperf3Stream>,
}

impl Iperf3Client {
    fn new() -> Result<Self> {
        let mut cookie = [0; COOKIE];
        getrandom::fill(&mut cookie[..COOKIE - 1])
            .map_err(|e| Error::environment(format!("cannot draw a cookie: {e}")))?;
        for letter in &mut cookie[..COOKIE - 1] {
            *letter = COOKIE_LETTERS[usize::from(*letter) % COOKIE_LETTERS.len()];
        }
        Ok(Self {
            cookie,
            data: None,
            spare: None,
            is_used: false,
            direction: BulkDirection::Get,
            moved: 0,
            begun: Instant::now(),
            said: None,
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

    /// Opens the stream of a test.
    fn open_stream(&mut self, stream: &mut FarEndStream) -> Result<()> {
        let socket = stream.socket().connect_beside(stream.server().port())?;
        let mut data = FarEndStream::over_socket(socket, self.spare.take());
        let cookie = self.cookie;
        if !data.send(&cookie)? {
            return Err(data.cut_short("a stream"));
        }
        self.data = Some(data);
        Ok(())
    }

    fn results(&self) -> Iperf3Results {
        let stream = Iperf3Stream {
            id: stream_id(0),
            bytes: self.moved,
            retransmits: -1,
            end_time: self.begun.elapsed().as_secs_f64(),
            ..Iperf3Stream::default()
        };
        Iperf3Results {
            sender_has_retransmits: -1,
            streams: vec![stream],
            ..Iperf3Results::default()
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

    fn start_bulk(&mut self, stream: &mut FarEndStream, direction: BulkDirection) -> Result<()> {
        if std::mem::replace(&mut self.is_used, true) {
            stream.reconnect()?;
            self.open(stream)?;
        }
        let asked = Iperf3Parameters {
            tcp: true,
            parallel: 1,
            reverse: direction == BulkDirection::Get,
            len: 128 << 10,
            client_version: VERSION.into(),
            ..Iperf3Parameters::default()
        };
        self.write_json(stream, &asked)?;
        self.expect(stream, state::CREATE_STREAMS)?;
        self.open_stream(stream)?;
        self.expect(stream, state::TEST_START)?;
        self.expect(stream, state::TEST_RUNNING)?;
        (self.direction, self.moved, self.begun) = (direction, 0, Instant::now());
        Ok(())
    }

    fn send(&mut self, _: &mut FarEndStream, unit: &[u8]) -> Result<()> {
        let Some(data) = &mut self.data else {
            return Err(super::unmapped());
        };
        self.moved += unit.len() as u64;
        match data.send(unit)? {
            true => Ok(()),
            false => Err(data.cut_short("a test")),
        }
    }

    fn receive(&mut self, _: &mut FarEndStream, bytes: u64) -> Result<()> {
        let Some(data) = &mut self.data else {
            return Err(super::unmapped());
        };
        self.moved += bytes;
        data.skip(bytes, "its data")
    }

    fn stop_bulk(&mut self, stream: &mut FarEndStream, direction: BulkDirection) -> Result<()> {
        if let (Some(data), BulkDirection::Put) = (&self.data, direction) {
            data.socket().settle()?;
        }
        self.say(stream, &[state::TEST_END])?;
        self.expect(stream, state::EXCHANGE_RESULTS)?;
        let own = self.results();
        self.write_json(stream, &own)?;
        let said: Iperf3Results = self.read_json(stream)?;
        self.said = said.streams.into_iter().next();
        self.expect(stream, state::DISPLAY_RESULTS)?;
        self.say(stream, &[state::IPERF_DONE])?;
        self.spare = self.data.take();
        Ok(())
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let Some(said) = &self.said else {
            return BTreeMap::new();
        };
        let name = match self.direction {
            BulkDirection::Get => "server_sent",
            BulkDirection::Put => "server_received",
        };
        let mut settings = BTreeMap::from([(name.to_owned(), format!("{} B", said.bytes))]);
        if said.retransmits >= 0 {
            settings.insert("server_retransmits".into(), said.retransmits.to_string());
        }
        settings
    }
}
