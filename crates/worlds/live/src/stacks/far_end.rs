//! Far ends: servers outside the run, such as any web server. Stackline is their client, over one TCP connection or socket of datagrams for
//! each pair.
//!
//! A protocol is a file here: its table, and a [`FarEndProtocol`], which says what the operations of the language are on the wire. What is
//! common is in this file and in `byte_stream`; of protocols in datagrams, in `datagrams`.

mod byte_stream;
mod database;
mod datagram_socket;
mod datagrams;
mod dns;
mod dns_tcp;
mod ftp;
mod grpc;
mod grpc_message;
mod grpc_status;
mod http;
mod http2;
mod http2_opener;
mod http3;
mod http3_client;
mod http_version;
mod icmp_error;
mod iperf3;
mod iperf3_datagrams;
mod iperf3_streams;
mod login;
mod mqtt;
mod mysql;
mod mysql_statement;
mod nats;
mod ntp;
mod ping;
mod postgres;
mod redis;
mod request_sending;
mod scram;
mod small_services;
mod socket;
mod stamp;
mod tls;
mod tls_options;
mod tls_refusal;
mod tls_start;
mod udp_echo;
mod web;
mod websocket;
mod wire_times;
mod words;

use crate::buffers::LiveThreadBuffers;
use crate::cancel::pause;
use crate::error::{self, Blame, Error, Result};
use crate::stacks::contract::{
    Connector, LiveConnectParameters, LiveConnection, LiveListener, LiveStack,
};
use crate::stacks::ip_options::IP_OPTIONS;
use byte_stream::{FarEndStream, OPENING};
use http2::{Http2Connector, Http2Form};
use http3::Http3Connector;
use stackline_core::catalogue::{
    ClosedForm, FlowControl, OptionKind, OptionTable, PacketContent, StackFacts, StackTable,
};
use stackline_core::far_end::FarEndAddress;
use stackline_core::plan::Stack;
use stackline_core::run_record::TransportRecord;
use stackline_endpoint::{BulkDirection, ConnectionOpening};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tls::FarEndTlsClient;
use tls_start::{TlsStart, suspect_tls};

pub(super) use dns::DNS;
#[cfg(any(test, feature = "fuzzing"))]
pub(super) use dns::{DNS_TCP, DNS_UDP};
pub(super) use ftp::{FTP, FTPS};
pub(super) use grpc::{GRPC, GRPCS};
pub(super) use http::{HTTP, HTTPS};
pub use http_version::negotiate_http_version;
pub(super) use iperf3::IPERF3;
pub(super) use mqtt::{MQTT, MQTTS};
pub(super) use mysql::MYSQL;
pub(super) use nats::{NATS, NATS_TLS};
pub(super) use ntp::NTP;
pub(super) use ping::PING;
pub(super) use postgres::POSTGRES;
pub(super) use redis::{REDIS, REDISS};
pub(super) use small_services::{CHARGEN, DISCARD, ECHO, TCPCONNECT};
pub(super) use stamp::{STAMP, TWAMP};
pub(crate) use tls::trusting_client;
pub(super) use udp_echo::UDPECHO;
pub(super) use websocket::{WS, WSS};

/// The base of the tables here: the kernel's TCP, with nothing known of the other end.
const TABLE: StackTable = StackTable {
    far_end: true,
    files: false,
    options: &OPTIONS,
    facts: StackFacts {
        packets: PacketContent::Stream,
        form: ClosedForm::None,
        flow_control: FlowControl::KernelBuffers,
        ..StackTable::RELIABLE.facts
    },
    ..StackTable::RELIABLE
};

/// How long to wait before it is tried again whether a server listens.
const ABSENCE_LOOK: Duration = Duration::from_millis(10);

/// The options of every far end.
const OPTIONS: [OptionTable; 10] = StackTable::joined(&FAR_END_OPTIONS, &IP_OPTIONS);

const FAR_END_OPTIONS: [OptionTable; 5] = [
    OptionTable::new(
        "timeout",
        OptionKind::Time,
        "30 s",
        "how long the server may be silent while something is expected of it",
    ),
    OptionTable::new(
        "nagle",
        OptionKind::Flag,
        "off: TCP_NODELAY is set, as clients of such servers do",
        "Nagle's algorithm holds back small segments",
    ),
    OptionTable::new(
        "send_buffer",
        OptionKind::BUFFER,
        "tuned by the kernel",
        "SO_SNDBUF in bytes (the kernel doubles it)",
    ),
    OptionTable::new(
        "receive_buffer",
        OptionKind::BUFFER,
        "tuned by the kernel",
        "SO_RCVBUF in bytes (the kernel doubles it)",
    ),
    FAMILY,
];

/// Of every far end.
const FAMILY: OptionTable = OptionTable::new(
    "family",
    OptionKind::Word(&["ipv4", "ipv6"]),
    "as the name resolves; the first address that answers",
    "which addresses of the server's name are tried",
);

/// The client of a protocol on one connection: how each operation of the language looks on the wire. An operation that a table's mapping
/// does not name is never called.
trait FarEndProtocol: Send {
    /// How long its servers may listen to nobody, because each listens anew after a client.
    fn absence(&self) -> Duration {
        Duration::ZERO
    }
    /// The rest of `ConnectRequest`: what the protocol says before anything else.
    fn open(&mut self, stream: &mut FarEndStream) -> Result<()> {
        let _ = stream;
        Ok(())
    }
    /// `DisconnectRequest`: what the protocol says before it leaves.
    fn close(&mut self, stream: &mut FarEndStream) {
        let _ = stream;
    }
    /// `RPCCall`: sends a request that carries `request`, and receives the whole answer.
    fn call(&mut self, stream: &mut FarEndStream, request: &[u8]) -> Result<()> {
        let _ = (stream, request);
        Err(unmapped())
    }
    /// `StartBulkGet` and `StartBulkPut`.
    fn start_bulk(&mut self, stream: &mut FarEndStream, direction: BulkDirection) -> Result<()> {
        let _ = (stream, direction);
        Ok(())
    }
    /// What a bulk transfer needs before it starts, where the clock starts with it.
    fn prepare_bulk(&mut self, stream: &mut FarEndStream, direction: BulkDirection) -> Result<()> {
        let _ = (stream, direction);
        Ok(())
    }
    /// What is said of bulk transfers behind their end, when the clock has stopped.
    fn conclude_bulk(&mut self, stream: &mut FarEndStream) -> Result<()> {
        let _ = stream;
        Ok(())
    }
    /// Remarks that make the figures doubtful.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
    /// `DataRequest`: sends a data unit.
    fn send(&mut self, stream: &mut FarEndStream, unit: &[u8]) -> Result<()> {
        let _ = (stream, unit);
        Err(unmapped())
    }
    /// `AwaitDataIndication`: receives `bytes` bytes of data.
    fn receive(&mut self, stream: &mut FarEndStream, bytes: u64) -> Result<()> {
        let _ = (stream, bytes);
        Err(unmapped())
    }
    /// `StopBulkGet` and `StopBulkPut`: after a put, returns when the server has it all.
    fn stop_bulk(&mut self, stream: &mut FarEndStream, direction: BulkDirection) -> Result<()> {
        let _ = (stream, direction);
        Ok(())
    }
    /// The transport's state, of the connection that carries the data.
    fn transport(&self, stream: &FarEndStream) -> Option<TransportRecord> {
        stream.transport()
    }
    /// Whether data goes over TCP, as what controls it does.
    fn sends_data_over_tcp(&self) -> bool {
        true
    }
    /// What is worth knowing of the answers, by name.
    fn settings(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }
}

/// The error of an operation that a table does not map; `check` has refused it before.
fn unmapped() -> Error {
    Error::input("this protocol has nothing for that operation")
}

/// The error of a responder for far ends; `check` has refused it before.
fn no_responder(table: &StackTable) -> Error {
    let message = format!("{} has no responder of stackline's", table.name);
    Error::input(message).hint("name a server: `to \"PROTOCOL://HOST/\"`")
}

/// A protocol of far ends: its table, the port where its servers listen, and how its client begins.
pub(super) struct FarEndStack {
    table: &'static StackTable,
    port: Option<u16>,
    /// When it begins with TLS.
    tls: TlsStart,
    client: FarEndClient,
}

/// Makes the client of one connection to that address, with the options of its stack.
type FarEndClient = fn(&FarEndAddress, &Stack) -> Result<Box<dyn FarEndProtocol>>;

impl LiveStack for FarEndStack {
    fn table(&self) -> &'static StackTable {
        self.table
    }

    fn listen(&self, _: &LiveConnectParameters) -> Result<Box<dyn LiveListener>> {
        Err(no_responder(self.table))
    }

    fn connector(
        &self,
        parameters: &LiveConnectParameters,
        address: &str,
    ) -> Result<Box<dyn Connector>> {
        let address = FarEndAddress::parse(address)?;
        let Some(port) = address.port.or(self.port) else {
            let message = format!(
                "the address `{}://{}` has no port",
                address.scheme, address.host
            );
            return Err(Error::input(message).hint("write `:PORT` after the host"));
        };
        let servers = socket::resolve(&address.socket(port), &parameters.stack)?;
        let client = self.client;
        // What is wrong with the address is reported before anything is measured.
        client(&address, &parameters.stack)?;
        let tls = self
            .tls
            .client(&address, &parameters.stack, self.table.name)?;
        match (parameters.stack.word("version"), &tls) {
            (Some("http2"), _) => {
                let uri = web::request_uri(&address)?;
                let form = Http2Form {
                    uri,
                    upload: web::UploadForm::in_options(&parameters.stack),
                    is_grpc: false,
                    message: None,
                };
                let connector = Http2Connector::new(parameters, servers, tls, form)?;
                return Ok(Box::new(connector));
            }
            (Some("http3"), Some(tls)) => {
                let connector = Http3Connector::new(parameters, &address, &servers, tls)?;
                return Ok(Box::new(connector));
            }
            _ => {}
        }
        Ok(Box::new(FarEndConnector {
            tls,
            secure: self.tls.secure_scheme(),
            address,
            servers,
            client,
            parameters: parameters.clone(),
        }))
    }
}

struct FarEndConnector {
    address: FarEndAddress,
    /// Where the server may be reached: the first that answers is kept.
    servers: Vec<SocketAddr>,
    tls: Option<FarEndTlsClient>,
    /// How addresses of the same protocol over TLS begin, if this one has none.
    secure: Option<&'static str>,
    client: FarEndClient,
    parameters: LiveConnectParameters,
}

impl Connector for FarEndConnector {
    fn connect(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        let mut protocol = (self.client)(&self.address, &self.parameters.stack)?;
        let (begun, flags) = (Instant::now(), &buffers.flags);
        let mut stream = loop {
            let tls = self.tls.clone();
            match FarEndStream::connect(&self.parameters, &mut self.servers, tls, flags) {
                Err(error)
                    if error.blame == Blame::Environment
                        && begun.elapsed() < protocol.absence() =>
                {
                    pause(ABSENCE_LOOK);
                }
                stream => break stream?,
            }
        };
        let opened = stream.within(OPENING, |stream| protocol.open(stream));
        let connection = FarEndConnection {
            stream,
            protocol,
            secure: self.secure,
        };
        connection.explain(opened)?;
        Ok(Box::new(connection))
    }

    fn counts(&self) -> BTreeMap<String, u64> {
        FarEndTlsClient::counts(self.tls.as_ref())
    }
}

/// An open connection to a far end.
struct FarEndConnection {
    stream: FarEndStream,
    protocol: Box<dyn FarEndProtocol>,
    secure: Option<&'static str>,
}

impl FarEndConnection {
    /// What was done, or why not, as far as that can be seen from the connection.
    fn explain<T>(&self, done: Result<T>) -> Result<T> {
        done.map_err(|error| suspect_tls(&self.stream, self.secure, error))
    }
}

impl LiveConnection for FarEndConnection {
    fn send(&mut self, bytes: usize, times: u64, buffers: &mut LiveThreadBuffers) -> Result<u64> {
        for done in 0..times {
            if buffers.flags.limit() && times > 1 {
                return Ok(done);
            }
            let unit = outgoing(buffers, bytes)?;
            let sent = self.protocol.send(&mut self.stream, unit);
            self.explain(sent)?;
        }
        Ok(times)
    }

    fn receive(
        &mut self,
        bytes: usize,
        times: u64,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<u64> {
        // No server knows of the time limit, so what has come by then is the end.
        for done in 0..times {
            if buffers.flags.limit() {
                return Ok(done);
            }
            let received = self.protocol.receive(&mut self.stream, bytes as u64);
            self.explain(received)?;
        }
        Ok(times)
    }

    fn call(
        &mut self,
        request: usize,
        _: usize,
        _: stackline_core::time::Instant,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<bool> {
        let request = outgoing(buffers, request)?;
        let called = self.protocol.call(&mut self.stream, request);
        self.explain(called)?;
        Ok(true)
    }

    fn closed(&self) -> bool {
        false
    }

    fn start_bulk(&mut self, direction: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        let started = self.protocol.start_bulk(&mut self.stream, direction);
        self.explain(started)
    }

    fn prepare_bulk(&mut self, direction: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        let prepared = self.protocol.prepare_bulk(&mut self.stream, direction);
        self.explain(prepared)
    }

    fn conclude_bulk(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        let concluded = self.protocol.conclude_bulk(&mut self.stream);
        self.explain(concluded)
    }

    fn await_start_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<bool> {
        Err(unmapped())
    }

    fn stop_bulk(&mut self, direction: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        let stopped = self.protocol.stop_bulk(&mut self.stream, direction);
        self.explain(stopped)
    }

    fn await_stop_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        Err(unmapped())
    }

    fn end_stream(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        Ok(())
    }

    fn disconnect(mut self: Box<Self>, _: &mut LiveThreadBuffers) -> Result<()> {
        self.protocol.close(&mut self.stream);
        self.stream.close();
        Ok(())
    }

    fn await_disconnect(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        Err(unmapped())
    }

    fn transport(&self) -> Option<TransportRecord> {
        self.protocol.transport(&self.stream)
    }

    fn opening(&self) -> Option<ConnectionOpening> {
        Some(self.stream.opening())
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = self.stream.settings();
        if !self.protocol.sends_data_over_tcp() {
            settings.remove("congestion");
        }
        settings.extend(self.protocol.settings());
        settings
    }

    fn places(&self) -> Option<(u64, u64)> {
        Some(self.stream.places())
    }

    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        self.stream.addresses()
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.stream.notes();
        notes.extend(self.protocol.notes());
        notes
    }
}

/// The next data unit to send.
fn outgoing(buffers: &mut LiveThreadBuffers, bytes: usize) -> Result<&[u8]> {
    let unit = buffers.source.outgoing(bytes);
    unit.map(|unit| &*unit)
        .map_err(|e| error::io_error("reading the source", &e))
}

/// Lets the bytes that wait in a socket answer two calls and 100 bytes of data, for the fuzz target.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn answer(which: usize, socket: socket2::Socket) -> Result<()> {
    let stacks = [
        &HTTP, &REDIS, &WS, &NATS, &MQTT, &POSTGRES, &MYSQL, &FTP, &IPERF3, &DNS_TCP,
    ];
    let stack = stacks[which % stacks.len()];
    // With a path and without one, a client may do something else, and so may one that lets a database prepare its query.
    let is_other = which / stacks.len() % 2 == 1;
    let path = if is_other { "path" } else { "" };
    let address = FarEndAddress::parse(&format!("{}://127.0.0.1:1/{path}", stack.table.scheme()))?;
    let prepared = stackline_core::catalogue::OptionValue::Word("prepared".into());
    let options = stack.table.option("protocol").filter(|_| is_other);
    let options = options.map(|option| (option.name.into(), prepared));
    let options = options.into_iter().collect();
    let parameters = LiveConnectParameters {
        stack: stack.table.stack(options),
        token: [0; 16],
        carries_data: true,
        replica: 0,
        bind: std::net::Ipv4Addr::LOCALHOST.into(),
        member: None,
        foreign: std::sync::Arc::default(),
    };
    let mut client = (stack.client)(&address, &parameters.stack)?;
    let mut stream = FarEndStream::over(socket, parameters);
    client.open(&mut stream)?;
    client.call(&mut stream, &[])?;
    client.call(&mut stream, b"data")?;
    client.receive(&mut stream, 100)
}

/// Lets datagrams answer two calls of a client, for the fuzz target: each begins with a byte that is its length.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn answer_in_datagrams(which: usize, mut bytes: &[u8]) -> Result<()> {
    let stacks = [
        (&PING, ""),
        (&DNS_UDP, "/a.test"),
        (&STAMP, ""),
        (&NTP, ""),
        (&UDPECHO, ""),
    ];
    let (stack, path) = stacks[which % stacks.len()];
    let address = FarEndAddress::parse(&format!("{}://127.0.0.1{path}", stack.table.name))?;
    let mut client = (stack.client)(&address, &stack.table.stack(BTreeMap::new()))?;
    let data = vec![0; stack.table.least_unit as usize];
    let mut request = Vec::new();
    let mut failed = Ok(());
    for _ in 0..2 {
        request.clear();
        client.request(&data, &mut request)?;
        while let Some((length, rest)) = bytes.split_first() {
            let (datagram, rest) = rest.split_at(rest.len().min(usize::from(*length)));
            bytes = rest;
            match client.answer(datagram) {
                Ok(datagrams::DatagramAnswer::Present) => break,
                Ok(_) => {}
                Err(error) => failed = Err(error),
            }
        }
    }
    let _ = (client.has_sent(bytes), client.settings(), client.notes());
    failed
}
