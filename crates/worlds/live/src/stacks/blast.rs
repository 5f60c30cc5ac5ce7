//! `saw`, `window` and `blast`: the protocol state machines of `stackline_proto::blast` over the channels of `stackline_transfer`, directly
//! from and into the endpoint's buffers.
//!
//! Data units follow one another without framing, because both endpoints' programs know their sizes. Every data unit is acknowledged before
//! the operation that sent it returns, so no control message ends a transfer; one byte starts a get.
//!
//! Packets travel in UDP datagrams or in raw Ethernet frames; over frames, a connection is addressed by a number, and the responder's
//! address is the number of its first connection.

use super::ip;
use super::ip_options::{self, IP_OPTIONS};
use super::stream::Receive;
use crate::buffers::{LiveThreadBuffers, READ_BYTES};
use crate::error::{self, Error, Result};
use crate::stacks::contract::{
    Connector, LiveConnectParameters, LiveConnection, LiveListener, LiveStack, connection_vanished,
};
use socket2::SockRef;
use stackline_core::catalogue::{OptionTable, StackTable};
use stackline_core::plan::Stack;
use stackline_core::run_record::TransportRecord;
use stackline_endpoint::BulkDirection;
use stackline_proto::blast::negotiation::PARAMETERS_BYTES;
use stackline_proto::blast::stack;
use stackline_transfer::carrier::{LONGEST_HEAD, PacketCarrier};
use stackline_transfer::frames::{self, FrameCarrier, Unusable};
use stackline_transfer::{
    self as transfer, BlastChannel, BlastChannelOptions, Interrupt, PacketWaiting, SealKey, TAIL,
    udp,
};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// Most bytes of a source file that are in memory at once.
const PIECE: u64 = 64 << 20;

/// One of the three stacks.
pub(super) struct LiveBlastStack(&'static StackTable);

pub(super) const SAW: LiveBlastStack = LiveBlastStack(&StackTable {
    options: &StackTable::joined::<SAW_OPTIONS>(stack::SAW.options, &DATAGRAM_OPTIONS),
    exclusive: EXCLUSIVE,
    ..stack::SAW
});
pub(super) const WINDOW: LiveBlastStack = LiveBlastStack(&StackTable {
    options: &StackTable::joined::<WINDOW_OPTIONS>(stack::WINDOW.options, &DATAGRAM_OPTIONS),
    exclusive: EXCLUSIVE,
    ..stack::WINDOW
});
pub(super) const BLAST: LiveBlastStack = LiveBlastStack(&StackTable {
    options: &StackTable::joined::<BLAST_OPTIONS>(stack::BLAST.options, &DATAGRAM_OPTIONS),
    exclusive: EXCLUSIVE,
    ..stack::BLAST
});

/// How many options each has.
const SAW_OPTIONS: usize = stack::SAW.options.len() + DATAGRAM_OPTIONS.len();
const WINDOW_OPTIONS: usize = stack::WINDOW.options.len() + DATAGRAM_OPTIONS.len();
const BLAST_OPTIONS: usize = stack::BLAST.options.len() + DATAGRAM_OPTIONS.len();

/// Those of stacks over IP; `interface` they have already, as it also names the one for raw frames.
const DATAGRAM_OPTIONS: [OptionTable; 4] =
    [IP_OPTIONS[0], IP_OPTIONS[1], IP_OPTIONS[2], IP_OPTIONS[4]];

/// Raw frames have nothing of IP.
const EXCLUSIVE: &[&[&str]] = &[
    stack::BLAST.exclusive[0],
    &["carrier = ethernet", "dscp"],
    &["carrier = ethernet", "source"],
    &["carrier = ethernet", "source_port"],
    &["carrier = ethernet", "ttl"],
];

impl LiveStack for LiveBlastStack {
    fn table(&self) -> &'static StackTable {
        self.0
    }

    fn listen(&self, parameters: &LiveConnectParameters) -> Result<Box<dyn LiveListener>> {
        if over_ethernet(&parameters.stack) {
            return Ok(Box::new(FrameListener::new(parameters, self.0.name)?));
        }
        let address = SocketAddr::new(parameters.bind, ip::listening_port(parameters)?);
        let listener = transfer::BlastChannelListener::bind(address, &options(parameters)?)
            .map_err(from_transfer)?;
        Ok(Box::new(LiveBlastListener {
            listener,
            name: self.0.name,
        }))
    }

    fn connector(
        &self,
        parameters: &LiveConnectParameters,
        address: &str,
    ) -> Result<Box<dyn Connector>> {
        if over_ethernet(&parameters.stack) {
            return Ok(Box::new(FrameConnector::new(
                parameters,
                address,
                self.0.name,
            )?));
        }
        let found = ip::resolve(address, &parameters.stack)?.as_socket();
        let peer =
            found.ok_or_else(|| Error::environment(format!("{address} is not a host address")))?;
        Ok(Box::new(BlastConnector {
            peer,
            options: options(parameters)?,
            parameters: parameters.clone(),
            shown: address.to_string(),
            name: self.0.name,
        }))
    }
}

/// The options of a channel; those that depend on the path are left to it. If the channel is sealed (encrypted), keys are derived from the
/// token as a shared secret, and the token itself is never sent.
fn options(parameters: &LiveConnectParameters) -> Result<BlastChannelOptions> {
    let stack = &parameters.stack;
    let machine = stack::options(stack, 0, 0).map_err(|what| {
        Error::input(what)
            .hint("omit the option, or see `stackline stacks` for what the stack supports")
    })?;
    let spins = Receive::new(stack) == Receive::Spin;
    let buffer = machine
        .buffer
        .saturating_mul(2)
        .clamp(udp::UdpCarrierOptions::new().receive_buffer as u64, 1 << 30);
    Ok(BlastChannelOptions {
        token: parameters.token,
        key: stack
            .flag("sealed")
            .then(|| SealKey::new(&parameters.token)),
        waiting: if spins {
            PacketWaiting::Spin
        } else {
            PacketWaiting::Block
        },
        udp: ip_options::carried_marks(
            stack,
            udp::UdpCarrierOptions {
                receive_buffer: buffer as usize,
                ..udp::UdpCarrierOptions::new()
            },
        ),
        ..BlastChannelOptions::from_blast(machine)
    })
}

/// A callback by which a channel asks whether the job was ended.
fn interrupt(buffers: &LiveThreadBuffers) -> Interrupt {
    let flags = Arc::clone(&buffers.flags);
    Interrupt::new(move || flags.ended())
}

struct LiveBlastListener {
    listener: transfer::BlastChannelListener,
    name: &'static str,
}

impl LiveListener for LiveBlastListener {
    fn address(&self) -> String {
        self.listener
            .local()
            .map_or_else(|_| String::new(), |address| address.port().to_string())
    }

    fn accept(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        self.listener.interrupted_by(interrupt(buffers));
        let channel = self.listener.accept().map_err(from_transfer)?;
        Ok(Box::new(LiveBlastConnection::over_ip(channel, self.name)))
    }
}

struct BlastConnector {
    peer: SocketAddr,
    options: BlastChannelOptions,
    parameters: LiveConnectParameters,
    shown: String,
    name: &'static str,
}

impl Connector for BlastConnector {
    fn connect(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        self.options.interrupt = Some(interrupt(buffers));
        let socket = ip_options::connected_datagrams(&self.parameters, self.peer)?;
        let carrier = udp::Udp::over(socket, self.options.udp)
            .map_err(|e| error::io_error("setting up the socket", &e))?;
        let channel =
            BlastChannel::connect_over(carrier, &self.options).map_err(|error| match error {
                transfer::Error::Gone => {
                    ip::unreachable(&self.shown, &io::ErrorKind::ConnectionRefused.into())
                }
                transfer::Error::Silent(_) => {
                    ip::unreachable(&self.shown, &io::ErrorKind::TimedOut.into())
                }
                error => from_transfer(error),
            })?;
        Ok(Box::new(LiveBlastConnection::over_ip(channel, self.name)))
    }
}

fn over_ethernet(stack: &Stack) -> bool {
    stack.word("carrier") == Some("ethernet")
}

/// The interface for raw frames.
fn interface(stack: &Stack) -> &str {
    stack.word("interface").unwrap_or("lo")
}

/// The error, with a hint, when raw frames cannot be used on this host.
fn unusable(error: &io::Error) -> Error {
    match error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<Unusable>())
    {
        Some(why) => Error::environment(why.message.clone()).hint(why.hint),
        None => error::io_error("opening a packet socket", error),
    }
}

/// The responder's listener over raw frames. The socket for the next connection is opened before the present connection is answered, so
/// that a fast peer finds it open.
struct FrameListener {
    interface: String,
    options: BlastChannelOptions,
    /// The number of the first connection.
    first: u32,
    /// The number of the connection that `next` listens for.
    number: u32,
    /// The socket that listens for the next connection.
    next: FrameCarrier,
    name: &'static str,
}

impl FrameListener {
    fn new(parameters: &LiveConnectParameters, name: &'static str) -> Result<Self> {
        let options = options(parameters)?;
        // A frame that opens a connection reaches all listeners on the interface; a random first number keeps replicas and runs apart.
        let first = getrandom::u32().map_err(|e| {
            Error::environment(format!("cannot get random bytes from this host: {e}"))
        })?;
        let interface = interface(&parameters.stack).to_string();
        let next = hears(&interface, first, &options)?;
        Ok(Self {
            interface,
            options,
            first,
            number: first,
            next,
            name,
        })
    }
}

/// Opens a socket that listens for the connection with this number.
fn hears(interface: &str, number: u32, options: &BlastChannelOptions) -> Result<FrameCarrier> {
    FrameCarrier::listen(interface, Some(number), frames_of(options))
        .map_err(|error| unusable(&error))
}

/// Options of the frame buffers: each slot is only as long as a packet will be, so that more packets fit.
fn frames_of(options: &BlastChannelOptions) -> frames::FrameCarrierOptions {
    let packet = match options.blast.packet as usize {
        0 => 0,
        // The packet that opens a connection has to fit too.
        data => data.max(PARAMETERS_BYTES) + LONGEST_HEAD,
    };
    frames::FrameCarrierOptions {
        packet,
        ..frames::FrameCarrierOptions::default()
    }
}

impl LiveListener for FrameListener {
    fn address(&self) -> String {
        self.first.to_string()
    }

    fn accept(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        self.options.interrupt = Some(interrupt(buffers));
        self.number = self.number.wrapping_add(1);
        let carrier = std::mem::replace(
            &mut self.next,
            hears(&self.interface, self.number, &self.options)?,
        );
        let channel = BlastChannel::answer(carrier, &self.options).map_err(from_transfer)?;
        Ok(Box::new(LiveBlastConnection::new(channel, self.name)))
    }
}

/// The initiator's connector over raw frames.
struct FrameConnector {
    interface: String,
    options: BlastChannelOptions,
    /// The number of the next connection.
    number: u32,
    name: &'static str,
}

impl FrameConnector {
    fn new(parameters: &LiveConnectParameters, address: &str, name: &'static str) -> Result<Self> {
        let number = address
            .rsplit(':')
            .next()
            .and_then(|number| number.parse().ok());
        let number = number.ok_or_else(|| {
            Error::environment(format!(
                "{address} is not the address of a raw Ethernet connection"
            ))
        })?;
        Ok(Self {
            interface: interface(&parameters.stack).to_string(),
            options: options(parameters)?,
            number,
            name,
        })
    }
}

impl Connector for FrameConnector {
    fn connect(&mut self, buffers: &mut LiveThreadBuffers) -> Result<Box<dyn LiveConnection>> {
        self.options.interrupt = Some(interrupt(buffers));
        self.options.number = Some(self.number);
        self.number = self.number.wrapping_add(1);
        let carrier = FrameCarrier::connect(&self.interface, frames_of(&self.options))
            .map_err(|error| unusable(&error))?;
        let channel = BlastChannel::connect_over(carrier, &self.options).map_err(|error| match error {
            transfer::Error::Silent(_) => {
                Error::environment(format!("no host answers on the interface {}", self.interface)).hint(
                    "raw Ethernet reaches only hosts on the same network; select the interface to that network with the option `interface`",
                )
            }
            error => from_transfer(error),
        })?;
        Ok(Box::new(LiveBlastConnection::new(channel, self.name)))
    }
}

/// An open channel.
struct LiveBlastConnection<C: PacketCarrier> {
    channel: BlastChannel<C>,
    /// Name of the stack.
    name: &'static str,
    /// How its packets are marked, where that is not the usual.
    marks: BTreeMap<String, String>,
    /// Whether the peer was informed that no more data units come.
    finished: bool,
}

impl LiveBlastConnection<udp::Udp> {
    fn over_ip(channel: BlastChannel<udp::Udp>, name: &'static str) -> Self {
        let marks = ip_options::marks(&SockRef::from(channel.carrier()));
        Self {
            marks,
            ..Self::new(channel, name)
        }
    }
}

impl<C: PacketCarrier> LiveBlastConnection<C> {
    const fn new(channel: BlastChannel<C>, name: &'static str) -> Self {
        Self {
            channel,
            name,
            marks: BTreeMap::new(),
            finished: false,
        }
    }

    /// Sends data units from the source file, in pieces of whole units.
    fn send_file(
        &mut self,
        bytes: usize,
        times: u64,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<u64> {
        let at_once = (PIECE / bytes.max(1) as u64).max(1);
        let mut done = 0;
        while done < times && !(times > 1 && buffers.flags.limit()) {
            let units = at_once.min(times - done);
            let piece = buffers
                .source
                .outgoing(bytes * units as usize)
                .map_err(|e| error::io_error("reading the source", &e))?;
            self.channel.send(piece).map_err(from_transfer)?;
            done += units;
        }
        Ok(done)
    }

    /// Receives `wanted` bytes into the destination. Returns how many came: fewer if the peer ended its stream.
    fn take(&mut self, wanted: u64, buffers: &mut LiveThreadBuffers) -> Result<u64> {
        if let Some(round) = buffers.destination.round(READ_BYTES, TAIL) {
            return self
                .channel
                .receive_round(round, wanted)
                .map_err(from_transfer);
        }
        let mut have = 0;
        while have < wanted {
            let room = buffers.room(usize::try_from(wanted - have).unwrap_or(usize::MAX));
            let most = room.len();
            let got = self.channel.receive_into(room).map_err(from_transfer)?;
            buffers
                .arrived(got)
                .map_err(|e| error::io_error("writing the destination", &e))?;
            have += got as u64;
            if got < most {
                break;
            }
        }
        Ok(have)
    }
}

impl<C: PacketCarrier> LiveConnection for LiveBlastConnection<C> {
    fn send(&mut self, bytes: usize, times: u64, buffers: &mut LiveThreadBuffers) -> Result<u64> {
        let flags = Arc::clone(&buffers.flags);
        let Some(round) = buffers.source.round(READ_BYTES, TAIL) else {
            return self.send_file(bytes, times, buffers);
        };
        let unit = bytes as u64;
        let stop = || times > 1 && flags.limit();
        if stop() {
            return Ok(0);
        }
        let sent = self
            .channel
            .send_round(round, unit.saturating_mul(times), unit, stop)
            .map_err(from_transfer)?;
        Ok(sent / unit)
    }

    fn receive(
        &mut self,
        bytes: usize,
        times: u64,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<u64> {
        let unit = bytes as u64;
        let got = self.take(unit.saturating_mul(times), buffers)?;
        if got.is_multiple_of(unit) {
            Ok(got / unit)
        } else {
            Err(connection_vanished("in the middle of a data unit"))
        }
    }

    fn confirms(&self) -> bool {
        true
    }

    fn start_bulk(&mut self, direction: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        match direction {
            BulkDirection::Get => self.channel.send(&[1]).map_err(from_transfer),
            BulkDirection::Put => Ok(()),
        }
    }

    fn await_start_bulk(
        &mut self,
        direction: BulkDirection,
        _: &mut LiveThreadBuffers,
    ) -> Result<bool> {
        match direction {
            BulkDirection::Get => {
                Ok(self.channel.receive_into(&mut [0]).map_err(from_transfer)? == 1)
            }
            BulkDirection::Put => self.channel.await_data().map_err(from_transfer),
        }
    }

    fn stop_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        Ok(())
    }

    fn await_stop_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        Ok(())
    }

    fn end_stream(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        if std::mem::replace(&mut self.finished, true) {
            Ok(())
        } else {
            self.channel.finish().map_err(from_transfer)
        }
    }

    fn disconnect(self: Box<Self>, _: &mut LiveThreadBuffers) -> Result<()> {
        self.channel.close().map_err(from_transfer)
    }

    fn await_disconnect(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        match self.channel.await_close() {
            // A vanished peer counts as disconnected.
            Ok(true) | Err(transfer::Error::Gone) => Ok(()),
            Ok(false) => Err(Error::measurement(
                "the peer sent data after the last data unit",
            )),
            Err(error) => Err(from_transfer(error)),
        }
    }

    fn transport(&self) -> Option<TransportRecord> {
        let facts = self.channel.facts().connection;
        Some(TransportRecord {
            retransmits: facts.sent.repeated,
            rtt_s: facts.rtt.map_or(0.0, |(rtt, ..)| rtt.seconds()),
            rtt_var_s: facts.rtt.map(|(_, variation, _)| variation.seconds()),
            mss_bytes: u64::from(self.channel.options().packet),
            bytes_acked: Some(facts.sent.acknowledged),
            ..TransportRecord::default()
        })
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let mut settings: BTreeMap<String, String> =
            stack::settings(self.name, self.channel.options())
                .into_iter()
                .map(|(name, value)| (name.to_string(), value))
                .collect();
        let carrier = self.channel.facts().carrier;
        let on = |on: bool| if on { "on" } else { "off" }.to_string();
        settings.insert("carrier".into(), carrier.name.into());
        // Several frames may be sent in one call, but each is a separate frame: that is not segmentation offload.
        settings.insert(
            "gso".into(),
            on(carrier.name == "udp" && carrier.joined_out > 1),
        );
        settings.insert("gro".into(), on(carrier.joined_in));
        settings.insert("sealed".into(), on(self.channel.is_sealed()));
        settings.insert(
            "receive_buffer".into(),
            format!("{} B", carrier.receive_buffer),
        );
        settings.extend(self.marks.clone());
        settings
    }

    fn places(&self) -> Option<(u64, u64)> {
        Some(self.channel.places())
    }

    fn together(&self, _: usize) -> u64 {
        u64::MAX
    }

    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        self.channel.addresses()
    }

    fn notes(&self) -> Vec<String> {
        let facts = self.channel.facts();
        let mut notes = Vec::new();
        if facts.counters.fallbacks > 0 {
            notes.push(
                "segmentation offload was refused: packets were sent one at a time from then on"
                    .to_string(),
            );
        }
        if facts.connection.received.violations > 0 {
            let n = facts.connection.received.violations;
            notes.push(format!(
                "packets dropped for violating the negotiated parameters: {n}"
            ));
        }
        notes
    }
}

/// Converts an error of a channel to an error of the run.
fn from_transfer(error: transfer::Error) -> Error {
    match error {
        transfer::Error::Gone | transfer::Error::Closed => connection_vanished("while data was in flight"),
        transfer::Error::Interrupted => Error::interrupted(),
        transfer::Error::Options(what) => Error::input(what),
        transfer::Error::Io(what, error) => error::io_error(what, &error),
        transfer::Error::Silent(patience) => {
            Error::measurement(format!("nothing arrived from the peer for {patience}"))
                .hint("the peer's procedure was busy elsewhere for that long (raise the option `patience`), or the path is down")
        }
        error => Error::measurement(error.to_string()),
    }
}
