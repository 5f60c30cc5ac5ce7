//! `tls`: the bytes of a TLS session.

use super::stack::LayeredStack;
use super::tables::{TABLE, TCP_OPTIONS};
use super::tls;
use crate::stacks::byte_channel::ByteChannelConnection;
use stackline_core::catalogue::{OptionTable, ServiceMapping, StackTable};

const TLS_TABLE: StackTable = StackTable {
    name: "tls",
    summary: "TLS 1.2 or 1.3 (rustls) over the kernel's TCP",
    options: &ALL_OPTIONS,
    needs: tls::NEEDS,
    exclusive: tls::EXCLUSIVE,
    mapping: ServiceMapping(
        "\
ConnectRequest -> socket, connect, TLS handshake; a 16-byte token precedes the ClientHello (in procedures without data: on the first \
connection only); with `early_data` and a session to resume the ClientHello alone, and the handshake goes on with the operations after it
AwaitConnectIndication -> accept4, recv the 16-byte token (likewise), TLS handshake, until early data is taken where there is some; \
connections without the token are closed
DataRequest -> the whole unit in TLS records, send
AwaitDataIndication -> recv of up to 128 KiB, records deciphered until the unit is complete; data read ahead serves the next unit
RPCCall -> the request in records, send; recv until the response is complete
RPCAwaitCallInd -> recv until the request is complete
RPCReturn -> the response in records, send
StartBulkGet, StartBulkPut -> a record of 1 byte
AwaitStartBulkGet, AwaitStartBulkPut -> recv of that record
StopBulkGet, AwaitStopBulkGet -> none: the last unit has arrived
StopBulkPut -> recv of a record of 1 byte that confirms arrival
AwaitStopBulkPut -> that record
end of stream (time limit) -> close_notify, shutdown(SHUT_WR); the peer's session ends
DisconnectRequest -> close_notify, close
AwaitDisconnectIndication -> recv until the session or the connection ends, close",
    ),
    ..TABLE
};

const ALL_OPTIONS: [OptionTable; 16] = StackTable::joined(&tls::OPTIONS, &TCP_OPTIONS);

/// The stack `tls`.
pub(crate) const TLS: LayeredStack = LayeredStack {
    table: &TLS_TABLE,
    alpn: "",
    always_tls: true,
    connect: |wire, _| Ok(Box::new(ByteChannelConnection::new(wire))),
    accept: |wire, _| Ok(Box::new(ByteChannelConnection::new(wire))),
    shared: None,
};
