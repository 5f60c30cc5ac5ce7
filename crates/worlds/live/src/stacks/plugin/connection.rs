//! A connection over a plug-in: the operations of the language by the functions of its table. Where the library has none for calls or bulk
//! transfers, data units follow one another without framing, one byte starts a bulk transfer, and one byte confirms that a put has arrived.

use super::loaded_plugin::{LoadedPlugin, WatchedHandle};
use crate::buffers::{LARGEST_UNIT, LiveThreadBuffers, READ_BYTES, READ_BYTES_MOST};
use crate::cancel::LiveCancelFlags;
use crate::error::{self, Error, Result};
use crate::foreign_call::ForeignFunction;
use crate::stacks::contract::{LiveConnection, connection_vanished};
use crate::stacks::stream::{CONFIRM, START};
use stackline_core::time::Instant;
use stackline_endpoint::BulkDirection;
use stackline_os::plugin::PluginChannel;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A connection over a plug-in.
pub(super) struct PluginConnection {
    channel: WatchedHandle<PluginChannel>,
    plugin: Arc<LoadedPlugin>,
    /// How many bytes were received that belong to later data units.
    ahead: u64,
    /// Whether the peer has finished.
    ended: bool,
    /// Whether this end has finished.
    finished: bool,
    has_calls: bool,
    has_bulk: bool,
}

impl PluginConnection {
    pub(super) fn new(channel: WatchedHandle<PluginChannel>, plugin: &Arc<LoadedPlugin>) -> Self {
        Self {
            channel,
            ahead: 0,
            ended: false,
            finished: false,
            has_calls: plugin.library.has_calls(),
            has_bulk: plugin.library.has_bulk(),
            plugin: Arc::clone(plugin),
        }
    }

    /// Sends all of these bytes.
    #[inline]
    pub(super) fn send_all(&mut self, bytes: &[u8], flags: &LiveCancelFlags) -> Result<()> {
        let mut sent = 0;
        while sent < bytes.len() {
            let rest = &bytes[sent..];
            let result = self
                .channel
                .call(ForeignFunction::Send, |it| it.send(rest, flags.stop()));
            sent += self.plugin.checked(ForeignFunction::Send, result, flags)?;
        }
        Ok(())
    }

    fn send_unit(&mut self, bytes: usize, buffers: &mut LiveThreadBuffers) -> Result<()> {
        let unit = buffers.source.outgoing(bytes);
        let unit = unit.map_err(|e| error::io_error("reading the source", &e))?;
        self.send_all(unit, &buffers.flags)
    }

    /// Receives at most `most` bytes, at least one, for the destination; 0 when the peer has finished.
    #[inline]
    fn take(&mut self, most: usize, buffers: &mut LiveThreadBuffers) -> Result<usize> {
        let room = buffers.destination.room(most.clamp(1, READ_BYTES_MOST));
        let got = self.receive_some(room, &buffers.flags)?;
        buffers
            .arrived(got)
            .map_err(|e| error::io_error("writing the destination", &e))?;
        Ok(got)
    }

    #[inline]
    fn receive_some(&mut self, room: &mut [u8], flags: &LiveCancelFlags) -> Result<usize> {
        let result = self.channel.call(ForeignFunction::Receive, |it| {
            it.receive(room, flags.stop())
        });
        self.plugin.checked(ForeignFunction::Receive, result, flags)
    }

    /// Receives the control byte `expected`; false when the peer has finished.
    fn expect_byte(&mut self, expected: u8, flags: &LiveCancelFlags) -> Result<bool> {
        if self.ahead > 0 {
            // It was received together with the data units before it, and its value was not kept.
            self.ahead -= 1;
            return Ok(true);
        }
        let mut byte = [0];
        match self.receive_some(&mut byte, flags)? {
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

    /// A function of bulk transfers of the library's own.
    fn bulk<T>(
        &mut self,
        function: ForeignFunction,
        flags: &LiveCancelFlags,
        call: impl FnOnce(&mut PluginChannel) -> stackline_os::plugin::PluginResult<T>,
    ) -> Result<T> {
        let result = self.channel.call(function, call);
        self.plugin.checked(function, result, flags)
    }

    fn finish(&mut self, flags: &LiveCancelFlags) -> Result<()> {
        if std::mem::replace(&mut self.finished, true) {
            return Ok(());
        }
        let result = self
            .channel
            .call(ForeignFunction::Finish, |it| it.finish(flags.stop()));
        self.plugin.checked(ForeignFunction::Finish, result, flags)
    }
}

/// Room for one whole unit of the library's own calls.
fn whole_room(bytes: usize, buffers: &mut LiveThreadBuffers) -> Result<&mut [u8]> {
    if bytes > LARGEST_UNIT {
        return Err(Error::measurement(format!(
            "a data unit of {bytes} B was drawn, but the maximum is 1 GiB"
        )));
    }
    Ok(&mut buffers.destination.room(bytes.max(1))[..bytes])
}

const fn is_put(direction: BulkDirection) -> bool {
    matches!(direction, BulkDirection::Put)
}

impl LiveConnection for PluginConnection {
    fn send(&mut self, bytes: usize, times: u64, buffers: &mut LiveThreadBuffers) -> Result<u64> {
        for done in 0..times {
            if buffers.flags.limit() && times > 1 {
                return Ok(done);
            }
            self.send_unit(bytes, buffers)?;
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
        // A file must get no byte beyond the data units, and what is between them is a bulk function's.
        let is_exact = buffers.keeps() || self.has_bulk || self.has_calls;
        let mut have = self.ahead;
        while have < wanted {
            let most = match is_exact {
                true => at_once.min(wanted - have),
                false => at_once,
            };
            let got = match self.ended {
                true => 0,
                false => self.take(most as usize, buffers)?,
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
        _: Instant,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<bool> {
        if !self.has_calls {
            self.send_unit(request, buffers)?;
            return match self.receive(response, 1, buffers)? {
                1 => Ok(true),
                _ => Err(connection_vanished("before the response arrived")),
            };
        }
        // The room grows once, for the first response that is larger than those before.
        whole_room(response, buffers)?;
        let LiveThreadBuffers {
            flags,
            source,
            destination,
        } = buffers;
        let unit = source.outgoing(request);
        let unit = unit.map_err(|e| error::io_error("reading the source", &e))?;
        let room = &mut destination.room(response.max(1))[..response];
        let result = self.channel.call(ForeignFunction::Call, |it| {
            it.call(unit, room, flags.stop())
        });
        self.plugin.checked(ForeignFunction::Call, result, flags)?;
        buffers
            .arrived(response)
            .map_err(|e| error::io_error("writing the destination", &e))?;
        Ok(true)
    }

    fn await_call(&mut self, bytes: usize, buffers: &mut LiveThreadBuffers) -> Result<bool> {
        if !self.has_calls {
            return Ok(self.receive(bytes, 1, buffers)? == 1);
        }
        whole_room(bytes, buffers)?;
        let LiveThreadBuffers {
            flags, destination, ..
        } = buffers;
        let room = &mut destination.room(bytes.max(1))[..bytes];
        let result = self.channel.call(ForeignFunction::AwaitCall, |it| {
            it.await_call(room, flags.stop())
        });
        let came = self
            .plugin
            .checked(ForeignFunction::AwaitCall, result, flags)?;
        self.ended |= !came;
        if came {
            buffers
                .arrived(bytes)
                .map_err(|e| error::io_error("writing the destination", &e))?;
        }
        Ok(came)
    }

    fn reply(&mut self, bytes: usize, buffers: &mut LiveThreadBuffers) -> Result<()> {
        if !self.has_calls {
            return self.send_unit(bytes, buffers);
        }
        let unit = buffers.source.outgoing(bytes);
        let unit = unit.map_err(|e| error::io_error("reading the source", &e))?;
        let stop = buffers.flags.stop();
        let result = self
            .channel
            .call(ForeignFunction::Reply, |it| it.reply(unit, stop));
        self.plugin
            .checked(ForeignFunction::Reply, result, &buffers.flags)
    }

    fn start_bulk(
        &mut self,
        direction: BulkDirection,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<()> {
        let flags = &buffers.flags;
        if !self.has_bulk {
            return self.send_all(&[START], flags);
        }
        self.bulk(ForeignFunction::StartBulk, flags, |it| {
            it.start_bulk(is_put(direction), flags.stop())
        })
    }

    fn await_start_bulk(
        &mut self,
        direction: BulkDirection,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<bool> {
        let flags = &buffers.flags;
        if self.ended || !self.has_bulk {
            return Ok(!self.ended && self.expect_byte(START, flags)?);
        }
        let came = self.bulk(ForeignFunction::AwaitStartBulk, flags, |it| {
            it.await_start_bulk(is_put(direction), flags.stop())
        })?;
        self.ended |= !came;
        Ok(came)
    }

    fn stop_bulk(
        &mut self,
        direction: BulkDirection,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<()> {
        let flags = &buffers.flags;
        if self.has_bulk {
            return self.bulk(ForeignFunction::StopBulk, flags, |it| {
                it.stop_bulk(is_put(direction), flags.stop())
            });
        }
        if is_put(direction) && !self.expect_byte(CONFIRM, flags)? {
            return Err(connection_vanished(
                "before it confirmed that everything had arrived",
            ));
        }
        Ok(())
    }

    fn await_stop_bulk(
        &mut self,
        direction: BulkDirection,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<()> {
        let flags = &buffers.flags;
        if self.has_bulk {
            return self.bulk(ForeignFunction::AwaitStopBulk, flags, |it| {
                it.await_stop_bulk(is_put(direction), flags.stop())
            });
        }
        match direction {
            BulkDirection::Get => Ok(()),
            BulkDirection::Put => self.send_all(&[CONFIRM], flags),
        }
    }

    fn end_stream(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        self.finish(&buffers.flags)
    }

    fn disconnect(mut self: Box<Self>, buffers: &mut LiveThreadBuffers) -> Result<()> {
        // The peer may have left before: then there is nobody to inform.
        let finished = self.finish(&buffers.flags);
        match buffers.flags.ended() {
            true => finished,
            false => Ok(()),
        }
    }

    fn await_disconnect(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        let more =
            self.ahead > 0 || !self.ended && self.receive_some(&mut [0], &buffers.flags)? > 0;
        if more {
            return Err(Error::measurement(
                "the peer sent data after the last data unit",
            ));
        }
        self.ended = true;
        Ok(())
    }

    fn settings(&self) -> BTreeMap<String, String> {
        self.plugin.settings.clone()
    }
}
