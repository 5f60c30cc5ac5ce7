//! `tls`: the bytes of a TLS session.

use super::opener::WireOpener;
use super::tables::{TABLE, TCP_OPTIONS};
use super::wire::SimLayerWire;
use crate::context::SimEndpointContext;
use crate::datagram::SimDatagram;
use crate::error::Result;
use crate::run_state::{ConnectionEnd, SimRunState};
use crate::run_trace::SimTraceLog;
use crate::stacks::pair::{SimConnectionPair, SimStack};
use crate::stacks::stream::SimStream;
use crate::world::Connect;
use stackline_core::catalogue::{OptionTable, ServiceMapping, StackTable};
use stackline_core::procedure::PairSide;
use stackline_core::time::Instant;
use stackline_net::NetworkPacket;
use stackline_proto::tls;
use std::collections::BTreeMap;
use std::rc::Rc;

const TLS_TABLE: StackTable = StackTable {
    name: "tls",
    summary: "TLS 1.2 or 1.3 over TCP in virtual time, with the turns and bytes of rustls",
    options: &ALL_OPTIONS,
    mapping: ServiceMapping(
        "\
ConnectRequest -> SYN, SYN-ACK, ACK, then the TLS handshake; 16 bytes of introduction precede the ClientHello (in procedures without data: \
on the first connection only)
AwaitConnectIndication -> the same, from the other side
DataRequest -> the whole unit in TLS records into the send buffer
AwaitDataIndication -> from the receive buffer, records deciphered until the unit is complete; data read ahead serves the next unit
RPCCall -> the request in records, the response from records
RPCAwaitCallInd, RPCReturn -> the same, from the other side
StartBulkGet, StartBulkPut -> a record of 1 byte
StopBulkGet, AwaitStopBulkGet -> none: the last unit has arrived
StopBulkPut -> a record of 1 byte that confirms arrival
AwaitStopBulkPut -> that record
end of stream (time limit) -> close_notify, FIN
DisconnectRequest -> close_notify, FIN (RST when there are unread bytes)
AwaitDisconnectIndication -> close_notify or FIN from the peer, then a FIN in reply",
    ),
    ..TABLE
};

const ALL_OPTIONS: [OptionTable; 14] = StackTable::joined(&tls::OPTIONS, &TCP_OPTIONS);

/// The stack `tls`.
pub(crate) static TLS: SimStack = SimStack {
    table: &TLS_TABLE,
    group: None,
    pair: |route, stack, seed, introduces| {
        Ok(Rc::new(TlsPair {
            opener: WireOpener::new(route, stack, seed, introduces, Some("")),
        }))
    },
};

/// The connections of a pair, one after the other.
struct TlsPair {
    opener: WireOpener,
}

impl SimConnectionPair for TlsPair {
    fn arrived(
        &self,
        side: PairSide,
        packet: &mut NetworkPacket<SimDatagram>,
        shared: &Rc<SimRunState>,
    ) {
        self.opener.tcp.arrived(side, packet, shared);
    }

    fn timer(&self, connection: u32, side: PairSide, shared: &Rc<SimRunState>) {
        self.opener.tcp.timer(connection, side, shared);
    }

    fn sample(&self, at: Instant, log: &SimTraceLog) -> usize {
        self.opener.tcp.sample(at, log)
    }

    fn forget(&self, end: Rc<dyn ConnectionEnd>) {
        self.opener.tcp.forget(end);
    }
}

impl Connect for TlsPair {
    type Service = SimStream<Rc<SimLayerWire>>;

    async fn connect(self: &Rc<Self>, context: &Rc<SimEndpointContext>) -> Result<Self::Service> {
        Ok(SimStream::new(self.opener.connect(context).await?, context))
    }

    async fn accept(
        self: &Rc<Self>,
        context: &Rc<SimEndpointContext>,
        _first: bool,
    ) -> Result<Self::Service> {
        Ok(SimStream::new(self.opener.accept(context).await?, context))
    }

    fn counts(&self, side: PairSide) -> BTreeMap<String, u64> {
        self.opener.counts(side)
    }
}
