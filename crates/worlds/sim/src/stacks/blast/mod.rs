//! The stacks `saw` (stop-and-wait), `window` (sliding window) and `blast`: the machines of `proto::blast` over UDP, packet by packet as
//! in the live world.
//!
//! The machines run by themselves, as if in a kernel: while its application does something else, an end still acknowledges, and grants
//! its peer what its buffer can hold.

mod end;
mod transfers;

use end::{SimBlastEnd, SimBlastMachine};
use transfers::Transfers;

use super::packet_pair::{PacketPair, PacketPairStack};
use super::packet_wire::{self, ArrivedSimPacket, BELOW};
use super::pair::{SimEndpointPair, SimPairRoute, SimStack};
use crate::context::SimEndpointContext;
use crate::error::{Error, Result};
use stackline_core::catalogue::{OptionTable, StackTable};
use stackline_core::plan;
use stackline_proto::blast::wire::{BlastHeader, BlastPacketKind, HEADER, SEAL};
use stackline_proto::blast::{BlastConnection, BlastOptions, stack as words};
use stackline_proto::datagram::DatagramToken;
use std::collections::BTreeMap;
use std::rc::Rc;

// The live world's options for how to wait, which port to use and what carries the packets are left out: here no processor waits, no
// port can be taken, and everything travels in IPv4 packets.
static SAW_OPTIONS: [OptionTable; 6] = StackTable::joined(
    &words::SAW.only(["packet", "interval", "buffer", "patience", "sealed"]),
    &[super::ip_options::DSCP],
);
static WINDOW_OPTIONS: [OptionTable; 9] = StackTable::joined(
    &words::WINDOW.only([
        "n", "packet", "interval", "buffer", "patience", "pacing", "rate", "sealed",
    ]),
    &[super::ip_options::DSCP],
);
static BLAST_OPTIONS: [OptionTable; 15] = StackTable::joined(
    &words::BLAST.only([
        "full",
        "full_nak",
        "partial",
        "selective",
        "size",
        "flight",
        "packet",
        "interval",
        "buffer",
        "patience",
        "pacing",
        "rate",
        "checked",
        "sealed",
    ]),
    &[super::ip_options::DSCP],
);

static SAW_TABLE: StackTable = StackTable {
    options: &SAW_OPTIONS,
    files: false,
    ..words::SAW
};
static WINDOW_TABLE: StackTable = StackTable {
    options: &WINDOW_OPTIONS,
    files: false,
    ..words::WINDOW
};
static BLAST_TABLE: StackTable = StackTable {
    options: &BLAST_OPTIONS,
    files: false,
    ..words::BLAST
};

/// The stack `saw`: stop-and-wait.
pub(super) static SAW: SimStack = SimStack {
    table: &SAW_TABLE,
    group: None,
    pair,
};
/// The stack `window`: a sliding window.
pub(super) static WINDOW: SimStack = SimStack {
    table: &WINDOW_TABLE,
    group: None,
    pair,
};
/// The stack `blast`: many packets with one acknowledgement.
pub(super) static BLAST: SimStack = SimStack {
    table: &BLAST_TABLE,
    group: None,
    pair,
};

fn pair(
    route: SimPairRoute,
    stack: &plan::Stack,
    seed: u64,
    _introduces: bool,
) -> Result<Rc<dyn SimEndpointPair>> {
    let seal = if stack.flag("sealed") { SEAL as u32 } else { 0 };
    Ok(Rc::new(PacketPair::new(
        SimBlastStack::new(&route, stack, seed, seal)?,
        route,
        seal,
    )))
}

/// The machine's options; `packet` is the largest number of data bytes that a packet of the path can carry.
fn options(stack: &plan::Stack, packet: u32) -> Result<BlastOptions, String> {
    words::options(
        stack,
        packet,
        stack.number("buffer").unwrap_or(words::GRANT),
    )
}

/// The options and the token of all connections of a pair.
struct SimBlastStack {
    name: String,
    options: BlastOptions,
    token: DatagramToken,
    sealed: bool,
}

impl SimBlastStack {
    /// # Errors
    /// An [`Error`] when the packets do not fit the path.
    fn new(route: &SimPairRoute, stack: &plan::Stack, seed: u64, seal: u32) -> Result<Self> {
        let headers = (BELOW + HEADER) as u64 + u64::from(seal);
        let packet = packet_wire::payload_room(route, headers);
        let hint = "omit `packet` to use the largest that the path carries, or give its links a larger `mtu`";
        if packet == 0 {
            let cause = format!(
                "a path with packets of at most {} B leaves no room for data after {headers} B of headers",
                route.mtu
            );
            return Err(Error::input(cause).hint(hint));
        }
        let options = options(stack, packet).map_err(|cause| Error::input(cause).hint(hint))?;
        Ok(Self {
            name: stack.name.clone(),
            options,
            token: packet_wire::seeded_token(seed),
            sealed: seal > 0,
        })
    }

    fn settings(&self, options: &BlastOptions) -> BTreeMap<String, String> {
        let sealed = ("sealed", if self.sealed { "on" } else { "off" }.to_string());
        let all = words::settings(&self.name, options)
            .into_iter()
            .chain([sealed]);
        all.map(|(name, value)| (name.to_string(), value)).collect()
    }
}

impl PacketPairStack for SimBlastStack {
    type Machine = SimBlastMachine;
    type Service = Transfers;

    fn opens(&self, arrived: &ArrivedSimPacket<'_>) -> bool {
        arrived.header.kind == BlastPacketKind::Open
    }

    fn listen(&self, _number: u32) -> SimBlastMachine {
        SimBlastMachine::new(BlastConnection::listen(&self.options, self.token, [0; 16]))
    }

    /// Answers for a connection that is gone: a peer that repeats its Close has not got the answer.
    fn answer(&self, arrived: &ArrivedSimPacket<'_>) -> Option<BlastHeader> {
        (arrived.header.kind == BlastPacketKind::Close)
            .then(|| BlastHeader::new(BlastPacketKind::Closed, arrived.header.connection))
    }

    async fn connect(
        pair: &Rc<PacketPair<Self>>,
        context: &Rc<SimEndpointContext>,
    ) -> Result<Transfers> {
        Transfers::connect(pair, context).await
    }

    async fn accept(
        pair: &Rc<PacketPair<Self>>,
        end: Rc<SimBlastEnd>,
        context: &Rc<SimEndpointContext>,
    ) -> Result<Transfers> {
        Ok(Transfers::new(pair, end, context))
    }
}
