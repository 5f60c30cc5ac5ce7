//! What both TCP machines share: the addresses of their packets, what the communication operations are mapped to, and options.

use crate::datagram::SimDatagram;
use stackline_core::catalogue::{OptionKind, OptionTable, ServiceMapping};
use stackline_core::procedure::PairSide;
use stackline_net::{EcnMarking, NetworkPacket, NodeIndex, SegmentSizes as Sizes};

/// What each communication operation does on a TCP connection.
pub(super) const MAPPING: ServiceMapping = ServiceMapping(
"\
ConnectRequest -> SYN, SYN-ACK, ACK, then 16 bytes of introduction (in procedures without data: on the first \
connection only)
AwaitConnectIndication -> the same, from the other side
DataRequest -> the whole unit into the send buffer
AwaitDataIndication -> from the receive buffer until the unit is complete; data read ahead serves the next unit
RPCCall -> the request into the send buffer, the response from the receive buffer
RPCAwaitCallInd, RPCReturn -> the same, from the other side
StartBulkGet, StartBulkPut -> 1 byte
StopBulkGet -> none: the last unit has arrived
AwaitStopBulkGet -> Nagle's algorithm off, so that it does not hold back the last segment
StopBulkPut -> Nagle's algorithm off, 1 byte that confirms arrival
AwaitStopBulkPut -> that byte
end of stream (time limit) -> FIN
DisconnectRequest -> FIN (RST when there are unread bytes)
AwaitDisconnectIndication -> FIN from the peer, then a FIN in reply",
);

/// Option: whether Nagle's algorithm is off.
pub(super) const NODELAY: OptionTable = OptionTable::new(
    "nodelay",
    OptionKind::Flag,
    "off: Nagle's algorithm holds back small segments",
    "every data unit is sent at once",
);
/// Option: the largest segment.
pub(super) const MSS: OptionTable = OptionTable::new(
    "mss",
    OptionKind::Number(88, 65_483),
    "from the path's MTU",
    "largest segment in bytes, including options",
);
/// Option: how long an acknowledgement is delayed.
pub(super) const DELAYED_ACK: OptionTable = OptionTable::new(
    "delayed_ack",
    OptionKind::Time,
    "40 ms, but not for the first 16 data segments",
    "how long the acknowledgement of a single segment is delayed; 0 s: not at all",
);
/// Option: when a silent connection is given up.
pub(super) const TIMEOUT: OptionTable = OptionTable::new(
    "timeout",
    OptionKind::Time,
    "none",
    "give up a connection, even an idle one, that receives nothing for this long",
);

/// The sending end of a connection: its pair, its side, and the nodes that its packets go between.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimTcpWire {
    pub(super) pair: u32,
    pub(super) connection: u32,
    pub(super) from: NodeIndex,
    pub(super) to: NodeIndex,
    pub(super) side: PairSide,
    /// Whether its packets are of IPv6.
    pub(super) is_v6: bool,
}

impl SimTcpWire {
    /// A network packet of `bytes` bytes from this end to its peer.
    pub(super) const fn packet(
        &self,
        bytes: usize,
        payload: SimDatagram,
    ) -> NetworkPacket<SimDatagram> {
        let (from, to, segments) = (self.from, self.to, Sizes::one(bytes as u32));
        NetworkPacket {
            number: 0,
            from,
            to,
            flow: self.pair,
            ecn: EcnMarking::NotCapable,
            dscp: 0,
            segments,
            payload,
        }
    }
}
