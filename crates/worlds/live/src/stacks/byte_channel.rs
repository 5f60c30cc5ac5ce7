//! The operations of the language over a channel that carries bytes in both directions, such as TLS: data units follow one another without
//! framing of ours, because both endpoints' programs know their sizes. One byte starts a bulk transfer, and one byte confirms that a put has
//! arrived, as over `tcp`.

use crate::buffers::{LiveThreadBuffers, READ_BYTES};
use crate::error::{Error, Result};
use crate::stacks::contract::{LiveConnection, connection_vanished};
use crate::stacks::http_exchange::SharedUnits;
use crate::stacks::stream::{CONFIRM, START};
use bytes::Bytes;
use stackline_core::run_record::TransportRecord;
use stackline_core::time::Instant as CoreInstant;
use stackline_endpoint::BulkDirection;
use stackline_events::scope;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

/// This end of what a channel or an exchange of HTTP is spoken over: a socket, a TLS session, a QUIC connection.
pub(super) trait ChannelEnd {
    /// The error when it failed: `what` was being done.
    fn failure(&self, what: &str, error: &io::Error) -> Error;
    /// Waits until nothing that connecting sent is in transit.
    fn settle(&self) -> Result<()>;
    /// The transport's present state.
    fn transport(&self) -> Option<TransportRecord>;
    /// The settings in force, by option name.
    fn settings(&self) -> BTreeMap<String, String>;
    /// The addresses of the two ends, the local one first.
    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)>;
}

/// A channel that carries bytes in both directions.
pub(super) trait ByteChannel: Send {
    /// Sends all bytes.
    fn send(&mut self, bytes: Bytes) -> io::Result<()>;
    /// Sends all bytes; the caller receives next, so that what is not sent before is sent then.
    fn ask(&mut self, bytes: Bytes) -> io::Result<()> {
        self.send(bytes)
    }
    /// Receives some bytes, at least one; 0 when the peer sends no more.
    fn receive(&mut self, room: &mut [u8]) -> io::Result<usize>;
    /// Receives as [`Self::receive`] does, at most `most` bytes for the destination.
    fn receive_data(&mut self, most: usize, buffers: &mut LiveThreadBuffers) -> io::Result<usize> {
        let got = self.receive(buffers.room(most))?;
        buffers.arrived(got)?;
        Ok(got)
    }
    /// Says that nothing more is sent.
    fn finish(&mut self) -> io::Result<()>;
    /// Leaves.
    fn close(&mut self) -> io::Result<()> {
        self.finish()
    }
    /// Answers that the peer has left.
    fn part(&mut self) {}
    /// What it is spoken over.
    fn end(&self) -> &dyn ChannelEnd;
}

/// A connection over a channel.
pub(super) struct ByteChannelConnection<C> {
    channel: C,
    units: SharedUnits,
    /// How many bytes were received that belong to later data units.
    ahead: u64,
    /// Whether the peer has ended its direction.
    ended: bool,
}

impl<C: ByteChannel> ByteChannelConnection<C> {
    pub(super) fn new(channel: C) -> Self {
        Self {
            channel,
            units: SharedUnits::default(),
            ahead: 0,
            ended: false,
        }
    }

    fn failure(&self, what: &str, error: &io::Error) -> Error {
        self.channel.end().failure(what, error)
    }

    fn send_bytes(&mut self, bytes: Bytes) -> Result<()> {
        let sent = self.channel.send(bytes);
        sent.map_err(|e| self.failure("send", &e))
    }

    /// Receives the control byte `expected`; false when the peer has ended its direction.
    fn expect_byte(&mut self, expected: u8) -> Result<bool> {
        if self.ahead > 0 {
            // It was received together with the data units before it, and its value was not kept.
            self.ahead -= 1;
            return Ok(true);
        }
        let mut byte = [0];
        let got = self.channel.receive(&mut byte);
        match got.map_err(|e| self.failure("recv", &e))? {
            0 => {
                self.ended = true;
                Ok(false)
            }
            _ if byte[0] == expected => Ok(true),
            _ => Err(Error::measurement(
                "the peer sent data where a control byte was expected",
            )),
        }
    }
}

impl<C: ByteChannel> LiveConnection for ByteChannelConnection<C> {
    fn settle(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        self.channel.end().settle()
    }

    fn send(&mut self, bytes: usize, times: u64, buffers: &mut LiveThreadBuffers) -> Result<u64> {
        for done in 0..times {
            if buffers.flags.limit() && times > 1 {
                return Ok(done);
            }
            let unit = self.units.next(bytes, buffers)?;
            self.send_bytes(unit)?;
        }
        Ok(times)
    }

    fn receive(
        &mut self,
        bytes: usize,
        times: u64,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<u64> {
        let wanted = (bytes as u64).saturating_mul(times);
        let at_once = bytes.max(READ_BYTES) as u64;
        let mut have = self.ahead;
        while have < wanted {
            // A file must get no byte beyond the data units.
            let most = if buffers.keeps() {
                at_once.min(wanted - have)
            } else {
                at_once
            };
            let got = if self.ended {
                0
            } else {
                let got = self.channel.receive_data(most as usize, buffers);
                got.map_err(|e| self.failure("recv", &e))?
            };
            if got == 0 {
                self.ended = true;
                self.ahead = 0;
                return if have.is_multiple_of(bytes as u64) {
                    Ok(have / bytes as u64)
                } else {
                    Err(connection_vanished("in the middle of a data unit"))
                };
            }
            have += got as u64;
        }
        self.ahead = have - wanted;
        Ok(times)
    }

    fn call(
        &mut self,
        request: usize,
        response: usize,
        _: CoreInstant,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<bool> {
        let unit = self.units.next(request, buffers)?;
        let asked = self.channel.ask(unit);
        asked.map_err(|e| self.failure("send", &e))?;
        scope::unit_framed();
        if self.receive(response, 1, buffers)? == 1 {
            Ok(true)
        } else {
            Err(connection_vanished("before the response arrived"))
        }
    }

    fn start_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        self.send_bytes(Bytes::from_static(&[START]))
    }

    fn await_start_bulk(&mut self, _: BulkDirection, _: &mut LiveThreadBuffers) -> Result<bool> {
        Ok(!self.ended && self.expect_byte(START)?)
    }

    fn stop_bulk(&mut self, direction: BulkDirection, _: &mut LiveThreadBuffers) -> Result<()> {
        if direction == BulkDirection::Put && !self.expect_byte(CONFIRM)? {
            return Err(connection_vanished(
                "before it confirmed that everything had arrived",
            ));
        }
        Ok(())
    }

    fn await_stop_bulk(
        &mut self,
        direction: BulkDirection,
        _: &mut LiveThreadBuffers,
    ) -> Result<()> {
        match direction {
            BulkDirection::Get => Ok(()),
            BulkDirection::Put => self.send_bytes(Bytes::from_static(&[CONFIRM])),
        }
    }

    fn end_stream(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        self.channel
            .finish()
            .map_err(|e| self.failure("shutdown", &e))
    }

    fn disconnect(mut self: Box<Self>, _: &mut LiveThreadBuffers) -> Result<()> {
        // The peer may have left before: then there is nobody to inform.
        let _ = self.channel.close();
        Ok(())
    }

    fn await_disconnect(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        let more = self.ahead > 0
            || !self.ended
                && match self.channel.receive(&mut [0]) {
                    Ok(got) => got > 0,
                    // Closed without a notice of the protocol: the units before are known to have arrived.
                    Err(error)
                        if matches!(
                            error.kind(),
                            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset
                        ) =>
                    {
                        false
                    }
                    Err(error) => return Err(self.failure("recv", &error)),
                };
        if more {
            return Err(Error::measurement(
                "the peer sent data after the last data unit",
            ));
        }
        self.channel.part();
        Ok(())
    }

    fn transport(&self) -> Option<TransportRecord> {
        self.channel.end().transport()
    }

    fn settings(&self) -> BTreeMap<String, String> {
        self.channel.end().settings()
    }

    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        self.channel.end().addresses()
    }
}
