//! `websocket`: WebSocket (RFC 6455) by tungstenite, on a connection of the kernel's TCP or over TLS.

use super::socket::SharedSocket;
use super::stack::LayeredStack;
use super::tables::{EXCLUSIVE, NEED_TLS, TABLE, WITH_TLS};
use super::wire::LayeredWire;
use crate::buffers::LiveThreadBuffers;
use crate::error::Error;
use crate::stacks::byte_channel::{ByteChannel, ByteChannelConnection, ChannelEnd};
use stackline_core::catalogue::{ServiceMapping, StackTable};
use std::io;
use std::sync::Arc;
use tungstenite::error::ProtocolError;
use tungstenite::handshake::HandshakeRole;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Bytes, HandshakeError, Message, WebSocket};

const WEBSOCKET_TABLE: StackTable = StackTable {
    name: "websocket",
    summary: "WebSocket (RFC 6455; tungstenite) over the kernel's TCP, or over TLS",
    options: &WITH_TLS,
    needs: NEED_TLS,
    exclusive: EXCLUSIVE,
    mapping: ServiceMapping(
        "\
ConnectRequest -> socket, connect, the TLS handshake with `tls`, the opening handshake; a 16-byte token comes first (in procedures \
without data: on the first connection only)
AwaitConnectIndication -> accept4, recv the 16-byte token (likewise), the handshakes; connections without the token are closed
DataRequest -> a binary message, masked by the initiator (FILE: read, then likewise)
AwaitDataIndication -> recv of up to 128 KiB until the message is complete
RPCCall -> a binary message with the request, recv until the response is complete
RPCAwaitCallInd -> recv until the request is complete
RPCReturn -> a binary message with the response
StartBulkGet, StartBulkPut -> a binary message of 1 byte
AwaitStartBulkGet, AwaitStartBulkPut -> recv of that message
StopBulkGet, AwaitStopBulkGet -> none: the last unit has arrived
StopBulkPut -> recv of a message of 1 byte that confirms arrival
AwaitStopBulkPut -> that message
end of stream (time limit) -> a binary message of 0 bytes: WebSocket cannot close one direction alone
DisconnectRequest -> a close frame, close
AwaitDisconnectIndication -> recv until the close frame, close",
    ),
    ..TABLE
};

/// The stack `websocket`.
pub(crate) const WEBSOCKET: LayeredStack = LayeredStack {
    table: &WEBSOCKET_TABLE,
    alpn: "http/1.1",
    always_tls: false,
    connect: |wire, _| {
        let shared = Arc::clone(wire.shared());
        let opened =
            tungstenite::client::client_with_config("ws://stackline/", wire, Some(config()));
        let (messages, _) = opened.map_err(|e| refused(&shared, e))?;
        Ok(Box::new(ByteChannelConnection::new(Messages::new(
            messages,
        ))))
    },
    accept: |wire, _| {
        let shared = Arc::clone(wire.shared());
        let opened = tungstenite::accept_with_config(wire, Some(config()));
        let messages = opened.map_err(|e| refused(&shared, e))?;
        Ok(Box::new(ByteChannelConnection::new(Messages::new(
            messages,
        ))))
    },
    shared: None,
};

/// A data unit is one message in one frame, however large.
fn config() -> WebSocketConfig {
    let largest = usize::try_from(TABLE.largest_unit).ok();
    WebSocketConfig::default()
        .max_message_size(largest)
        .max_frame_size(largest)
}

fn refused<Role: HandshakeRole>(shared: &SharedSocket, error: HandshakeError<Role>) -> Error {
    match error {
        HandshakeError::Failure(tungstenite::Error::Io(error)) => {
            shared.failure("the opening handshake", &error)
        }
        HandshakeError::Failure(error) => Error::measurement(format!(
            "the opening handshake of WebSocket failed: {error}"
        )),
        HandshakeError::Interrupted(_) => Error::interrupted(),
    }
}

/// The messages of a connection as bytes.
struct Messages {
    messages: WebSocket<LayeredWire>,
    /// What is left of the message that was received last.
    rest: Bytes,
}

impl Messages {
    fn new(messages: WebSocket<LayeredWire>) -> Self {
        Self {
            messages,
            rest: Bytes::new(),
        }
    }

    /// The next bytes of a message, at most so many; none when the peer sends no more.
    fn next(&mut self, most: usize) -> io::Result<Bytes> {
        if self.rest.is_empty() {
            self.rest = loop {
                match self.messages.read() {
                    Ok(Message::Binary(bytes)) => break bytes,
                    Ok(Message::Close(_))
                    | Err(
                        tungstenite::Error::ConnectionClosed | tungstenite::Error::AlreadyClosed,
                    ) => {
                        break Bytes::new();
                    }
                    Ok(_) => {}
                    Err(error) => return Err(as_io(error)),
                }
            };
        }
        Ok(self.rest.split_to(most.min(self.rest.len())))
    }
}

impl ByteChannel for Messages {
    fn send(&mut self, bytes: Bytes) -> io::Result<()> {
        self.messages.send(Message::Binary(bytes)).map_err(as_io)
    }

    fn receive_data(&mut self, most: usize, buffers: &mut LiveThreadBuffers) -> io::Result<usize> {
        let taken = self.next(most)?;
        buffers.store(&taken)?;
        Ok(taken.len())
    }

    fn receive(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let taken = self.next(room.len())?;
        room[..taken.len()].copy_from_slice(&taken);
        Ok(taken.len())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.send(Bytes::new())
    }

    fn close(&mut self) -> io::Result<()> {
        self.messages.close(None).map_err(as_io)?;
        self.messages.flush().map_err(as_io)?;
        self.messages.get_mut().leaves();
        Ok(())
    }

    fn end(&self) -> &dyn ChannelEnd {
        self.messages.get_ref()
    }
}

fn as_io(error: tungstenite::Error) -> io::Error {
    match error {
        tungstenite::Error::Io(error) => error,
        tungstenite::Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
            io::ErrorKind::ConnectionReset.into()
        }
        error => io::Error::other(error),
    }
}
