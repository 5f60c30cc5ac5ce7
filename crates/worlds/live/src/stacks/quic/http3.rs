//! `http3`: HTTP/3 (RFC 9114) of h3, on a QUIC connection of quinn. The exchanges are those of `http2`, each on a stream of its own.

pub(super) mod initiator;
mod pair_requests;
pub(super) mod responder;
pub(super) mod shared;

use super::end::{QuicEnd, as_io};
use super::options::{EXCLUSIVE, LIVE_OPTIONS, NEEDS};
use crate::buffers::LiveThreadBuffers;
use crate::error::{self, Error, Result};
use crate::stacks::byte_channel::ChannelEnd as _;
use crate::stacks::contract::connection_vanished;
use crate::stacks::ip_options::UNMARKED_OPTIONS;
use bytes::Buf;
use h3::error::StreamError;
use stackline_core::catalogue::{OptionKind, OptionTable, ServiceMapping, StackTable};
use stackline_proto::quic;

/// The least window of a stream, bytes: HTTP/3 itself has to fit, also on its control streams.
const LEAST_WINDOW: u64 = 1024;

/// Those of QUIC.
const OPTIONS: [OptionTable; 15] = StackTable::joined(
    &StackTable::joined::<11>(
        &StackTable::joined::<9>(
            &[OptionTable::new(
                "receive_buffer",
                OptionKind::Bytes(LEAST_WINDOW, 1 << 30),
                "1.25 MB",
                "the flow-control window of each stream in bytes",
            )],
            &quic::TABLE.only([
                "congestion",
                "initial_window",
                "send_buffer",
                "mtu",
                "timeout",
                "resume",
                "port",
                "streams",
            ]),
        ),
        &LIVE_OPTIONS,
    ),
    &UNMARKED_OPTIONS,
);

pub(super) const TABLE: StackTable = StackTable {
    name: "http3",
    options: &OPTIONS,
    needs: NEEDS,
    exclusive: EXCLUSIVE,
    summary: "HTTP/3 (RFC 9114; h3) on QUIC (quinn) over UDP",
    mapping: ServiceMapping(
        "\
ConnectRequest -> QUIC's handshake until it completes here, the control stream with SETTINGS; with `streams` this by the first pair, \
then HEADERS of POST /join by each
AwaitConnectIndication -> the same, from the other side
DataRequest -> DATA frames of a stream POST /stream (initiator) or of its response (responder), which the first operation opens; in bulk \
transfers DATA frames of that stream
AwaitDataIndication -> from the stream until DATA of the unit's length has come
RPCCall -> HEADERS and DATA of POST /call on a stream of its own, from it until the response ends
RPCAwaitCallInd -> from the stream until the request ends
RPCReturn -> HEADERS and DATA
StartBulkGet -> HEADERS of GET /get
StartBulkPut -> HEADERS of POST /put
AwaitStartBulkGet, AwaitStartBulkPut -> HEADERS from a new stream
StopBulkGet -> FIN of the stream from the peer
AwaitStopBulkGet -> FIN of the stream
StopBulkPut -> FIN of the stream, the response from it
AwaitStopBulkPut -> FIN from the peer, the response
end of stream (time limit) -> FIN; after calls CONNECTION_CLOSE
DisconnectRequest -> CONNECTION_CLOSE; with `streams` FIN of that request, and this by the last pair
AwaitDisconnectIndication -> CONNECTION_CLOSE from the peer",
    ),
    ..quic::TABLE
};

/// What has come of a body.
#[derive(Default)]
pub(super) struct Http3BodyCount {
    /// How many bytes were received that belong to later units.
    pub(super) ahead: u64,
    pub(super) ended: bool,
}

impl Http3BodyCount {
    /// Counts data units of `bytes` bytes, `times` times, as `more` brings their bytes: `None` at the end of the body.
    pub(super) fn units(
        &mut self,
        bytes: usize,
        times: u64,
        mut more: impl FnMut() -> Result<Option<u64>>,
    ) -> Result<u64> {
        let wanted = (bytes as u64).saturating_mul(times);
        while self.ahead < wanted && !self.ended {
            self.count(more()?);
        }
        if self.ahead >= wanted {
            self.ahead -= wanted;
            return Ok(times);
        }
        let rest = std::mem::take(&mut self.ahead);
        if rest.is_multiple_of(bytes as u64) {
            Ok(rest / bytes as u64)
        } else {
            Err(connection_vanished("in the middle of a data unit"))
        }
    }

    /// Receives the end of the body. Returns how many bytes came before that belong to no unit.
    pub(super) fn end(&mut self, mut more: impl FnMut() -> Result<Option<u64>>) -> Result<u64> {
        while !self.ended {
            self.count(more()?);
        }
        Ok(std::mem::take(&mut self.ahead))
    }

    const fn count(&mut self, came: Option<u64>) {
        match came {
            Some(bytes) => self.ahead += bytes,
            None => self.ended = true,
        }
    }
}

/// Stores what has arrived, and returns how many bytes that were.
pub(crate) fn store<B: Buf>(
    end: &QuicEnd,
    data: Option<B>,
    buffers: &mut LiveThreadBuffers,
) -> Result<Option<u64>> {
    let Some(mut data) = data else {
        return Ok(None);
    };
    let mut came = 0;
    while data.has_remaining() {
        let chunk = data.chunk();
        buffers
            .store(chunk)
            .map_err(|e| error::io_error("writing the destination", &e))?;
        let bytes = chunk.len();
        came += bytes as u64;
        data.advance(bytes);
    }
    end.count(came);
    Ok(Some(came))
}

/// The error of a stream.
pub(crate) fn failed(end: &QuicEnd, error: &StreamError) -> Error {
    match end.connection.close_reason() {
        Some(reason) => end.failure("HTTP/3", &as_io(&reason)),
        None => Error::measurement(format!("HTTP/3 failed: {error}")),
    }
}
