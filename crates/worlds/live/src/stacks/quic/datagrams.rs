//! `quic(datagrams)`: each data unit is an unreliable datagram of the connection (RFC 9221). Units are numbered, and lost ones counted, as
//! over `udp`; control datagrams are repeated until they are answered. The connection's congestion control decides when a datagram leaves.

use super::end::{QuicEnd, as_io};
use crate::buffers::LiveThreadBuffers;
use crate::clock;
use crate::error::{self, Error, Result};
use crate::stacks::byte_channel::ChannelEnd as _;
use crate::stacks::contract::{LiveConnection, connection_vanished};
use bytes::Bytes;
use quinn::{ConnectionError, SendDatagramError};
use stackline_core::run_record::{TransportRecord, UnitLosses};
use stackline_core::time::{Duration as CoreDuration, Instant};
use stackline_endpoint::BulkDirection;
use stackline_events::recorder;
use stackline_proto::datagram::NUMBER;
use stackline_proto::datagram::control::{CONTROL, DatagramControl, read_control, write_control};
use stackline_proto::datagram::conversation::{ControlStep, DatagramConversation, DatagramUnit};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time;

/// How many datagrams are handed to the library before it is let send them: it joins several in a system call.
const UNITS_AT_ONCE: u64 = 16;
/// How long a call waits for its answer where the option `call_timeout` is not written, s.
const CALL_TIMEOUT_S: f64 = 1.0;

/// A conversation in datagrams over a connection.
struct QuicDatagrams {
    end: QuicEnd,
    conversation: DatagramConversation,
    call_timeout: CoreDuration,
    /// The room for datagrams that wait to be sent, when none does, bytes.
    room: usize,
    /// While a run is traced: numbers of the data units that arrived and were not taken by an operation; the number of the one taken last.
    numbers: VecDeque<u64>,
    number: Option<u64>,
}

/// Either side: the handshake has shown that both belong to the run.
pub(super) fn over(end: QuicEnd) -> Box<dyn LiveConnection> {
    let mut conversation = DatagramConversation::new();
    conversation.greet();
    let seconds = end.settings.call_timeout().unwrap_or(CALL_TIMEOUT_S);
    Box::new(QuicDatagrams {
        room: end.connection.datagram_send_buffer_space(),
        end,
        conversation,
        call_timeout: CoreDuration::from_seconds(seconds),
        numbers: VecDeque::new(),
        number: None,
    })
}

impl QuicDatagrams {
    /// Hands a datagram to the library, which may have to make room for it by sending.
    fn put(&self, bytes: Bytes) -> Result<()> {
        let length = bytes.len();
        let sent = self
            .end
            .run(self.end.connection.send_datagram_wait(bytes))?;
        sent.map_err(|error| match error {
            SendDatagramError::TooLarge => self.too_large(length),
            SendDatagramError::ConnectionLost(error) => self.end.failure("send", &as_io(&error)),
            error => Error::measurement(format!("QUIC sends no datagram: {error}")),
        })
    }

    /// The error for a unit that no packet of the path can carry.
    #[cold]
    fn too_large(&self, bytes: usize) -> Error {
        let most = self.end.connection.max_datagram_size().unwrap_or(0);
        Error::input(format!(
            "a data unit of {bytes} B does not fit into a QUIC datagram on this path"
        ))
        .hint(format!(
            "its packets carry at most {most} B of a unit: use smaller units, `mtu = N` where the path carries more, or `quic` without `datagrams`"
        ))
    }

    /// Whether datagrams wait to be sent.
    fn has_unsent(&self) -> bool {
        self.end.connection.datagram_send_buffer_space() < self.room
    }

    fn put_control(&self, kind: u8, value: u64) -> Result<()> {
        let bytes = write_control(&self.end.settings.token, kind, value);
        self.put(Bytes::copy_from_slice(&bytes))?;
        self.end.runtime.push();
        Ok(())
    }

    /// Sends a control datagram repeatedly until it is answered, or fails when the peer has not answered for too long.
    fn exchange(&mut self, kind: DatagramControl, buffers: &mut LiveThreadBuffers) -> Result<()> {
        self.conversation.request(clock::now(), kind);
        loop {
            match self.conversation.poll(clock::now()) {
                ControlStep::Send(kind, value) => self.put_control(kind, value)?,
                ControlStep::Wait => {}
                ControlStep::Answered => return Ok(()),
                // It waits behind units, which leave as congestion control allows.
                ControlStep::GivenUp if self.has_unsent() => {
                    buffers.flags.interrupted()?;
                    self.conversation.request(clock::now(), kind);
                    continue;
                }
                ControlStep::GivenUp => {
                    buffers.flags.interrupted()?;
                    return Err(Error::measurement("the peer has stopped answering")
                        .hint("the peer exited, or the network lost every control datagram for several seconds"));
                }
            }
            let until = self.conversation.deadline();
            self.take(until, buffers)?;
        }
    }

    /// Takes the next datagram, waiting for it until that moment; false if none came. The end of the connection counts as one.
    fn take(&mut self, until: Option<Instant>, buffers: &mut LiveThreadBuffers) -> Result<bool> {
        let read = self.end.connection.read_datagram();
        let patience = until.map(|until| Duration::from_nanos((until - clock::now()).0));
        let came = self.end.run(async {
            match patience {
                Some(patience) => time::timeout(patience, read).await.ok(),
                None => Some(read.await),
            }
        })?;
        match came {
            None => Ok(false),
            Some(Ok(bytes)) => self.arrived(&bytes, buffers).map(|()| true),
            Some(Err(ConnectionError::ApplicationClosed(_) | ConnectionError::LocallyClosed)) => {
                self.conversation.refused();
                Ok(true)
            }
            Some(Err(error)) => Err(self.end.failure("recv", &as_io(&error))),
        }
    }

    fn arrived(&mut self, bytes: &Bytes, buffers: &mut LiveThreadBuffers) -> Result<()> {
        if bytes.len() == CONTROL
            && let Some((kind, value)) = read_control(bytes, &self.end.settings.token)
        {
            if let Some(answer) = self.conversation.handle_control(kind, value) {
                // An answer that cannot be sent counts as lost: the peer repeats its control datagram.
                let _ = self.put_control(answer, 0);
            }
            return Ok(());
        }
        self.end.count(bytes.len() as u64);
        let unit = self.conversation.handle_unit(bytes, bytes.len() as u64);
        if let DatagramUnit::Numbered(number) = unit
            && recorder::is_recording()
        {
            self.numbers.push_back(number);
        }
        buffers
            .store(bytes)
            .map_err(|e| error::io_error("writing the destination", &e))
    }

    /// The next unit of the source, beginning with a number, or with as much of it as there is room for.
    fn unit(bytes: usize, head: [u8; NUMBER], buffers: &mut LiveThreadBuffers) -> Result<Bytes> {
        let unit = buffers.source.outgoing(bytes);
        let unit = unit.map_err(|e| error::io_error("reading the source", &e))?;
        let shown = bytes.min(NUMBER);
        unit[..shown].copy_from_slice(&head[..shown]);
        Ok(Bytes::copy_from_slice(unit))
    }

    /// Waits for so many data units or calls. Returns how many came: fewer if the peer has ended its stream.
    fn take_units(&mut self, times: u64, buffers: &mut LiveThreadBuffers) -> Result<u64> {
        while !self.conversation.has_units(times) {
            self.take(None, buffers)?;
        }
        let units = self.conversation.take_units(times);
        if recorder::is_recording() && units > 0 {
            let taken = self.numbers.len().min(units as usize);
            self.number = self.numbers.drain(..taken).next_back();
        }
        Ok(units)
    }

    fn await_end(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        while !self.conversation.has_ended() {
            self.take(None, buffers)?;
        }
        Ok(())
    }
}

impl LiveConnection for QuicDatagrams {
    fn settle(&mut self, _: &mut LiveThreadBuffers) -> Result<()> {
        self.end.settle()
    }

    fn send(&mut self, bytes: usize, times: u64, buffers: &mut LiveThreadBuffers) -> Result<u64> {
        for done in 0..times {
            if buffers.flags.limit() && times > 1 {
                self.end.runtime.push();
                return Ok(done);
            }
            let number = self.conversation.next_number();
            self.put(Self::unit(bytes, number.to_le_bytes(), buffers)?)?;
            self.conversation.sent(1);
            if (done + 1).is_multiple_of(UNITS_AT_ONCE) || done + 1 == times {
                self.end.runtime.push();
            }
        }
        Ok(times)
    }

    fn receive(&mut self, _: usize, times: u64, buffers: &mut LiveThreadBuffers) -> Result<u64> {
        self.conversation.await_units();
        self.take_units(times, buffers)
    }

    fn closed(&self) -> bool {
        self.conversation.is_closed()
    }

    fn call(
        &mut self,
        request: usize,
        response: usize,
        since: Instant,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<bool> {
        let number = self.conversation.call();
        self.put(Self::unit(request, number.to_le_bytes(), buffers)?)?;
        let shown = NUMBER.min(request).min(response);
        let until = since + self.call_timeout;
        loop {
            if !self.take(Some(until), buffers)? {
                self.conversation.call_lost();
                return Ok(false);
            }
            if self.conversation.take_answer(number, shown) {
                return Ok(true);
            }
            if self.conversation.is_closed() {
                return Err(connection_vanished(
                    "while a call was waiting for its answer",
                ));
            }
        }
    }

    fn await_call(&mut self, _: usize, buffers: &mut LiveThreadBuffers) -> Result<bool> {
        self.conversation.await_call();
        Ok(self.take_units(1, buffers)? == 1)
    }

    fn reply(&mut self, bytes: usize, buffers: &mut LiveThreadBuffers) -> Result<()> {
        let answer = Self::unit(bytes, *self.conversation.head(), buffers)?;
        self.put(answer)?;
        self.end.runtime.push();
        Ok(())
    }

    fn start_bulk(&mut self, _: BulkDirection, buffers: &mut LiveThreadBuffers) -> Result<()> {
        self.exchange(DatagramControl::Start, buffers)
    }

    fn await_start_bulk(
        &mut self,
        _: BulkDirection,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<bool> {
        while !self.conversation.has_started() {
            self.take(None, buffers)?;
        }
        Ok(self.conversation.take_started())
    }

    fn stop_bulk(
        &mut self,
        direction: BulkDirection,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<()> {
        match direction {
            BulkDirection::Get => self.await_end(buffers),
            BulkDirection::Put => self.end_stream(buffers),
        }
    }

    fn await_stop_bulk(
        &mut self,
        direction: BulkDirection,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<()> {
        match direction {
            BulkDirection::Get => self.end_stream(buffers),
            BulkDirection::Put => self.await_end(buffers),
        }
    }

    fn end_stream(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        if self.conversation.end_sent() {
            Ok(())
        } else {
            self.exchange(DatagramControl::End, buffers)
        }
    }

    fn disconnect(mut self: Box<Self>, buffers: &mut LiveThreadBuffers) -> Result<()> {
        // A procedure without data has nothing to count.
        let ended = match self.end.settings.carries_data() {
            true => self.exchange(DatagramControl::Bye, buffers),
            false => Ok(()),
        };
        self.end.close();
        match ended {
            Err(fault) if fault.blame == error::Blame::Interrupted => Err(fault),
            // The answer to BYE may be lost for good if the peer has left: that counts as a disconnect too.
            _ => Ok(()),
        }
    }

    fn await_disconnect(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        while !self.conversation.is_closed() {
            self.take(None, buffers)?;
        }
        Ok(())
    }

    fn transport(&self) -> Option<TransportRecord> {
        self.end.transport()
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = self.end.settings();
        if let Some(most) = self.end.connection.max_datagram_size() {
            settings.insert("largest_datagram".into(), format!("{most} B"));
        }
        settings
    }

    fn losses(&self) -> Option<UnitLosses> {
        self.conversation.losses()
    }

    fn progress(&self) -> Option<(u64, u64)> {
        self.conversation.progress()
    }

    fn received_bytes(&self) -> Option<u64> {
        self.conversation.received_bytes()
    }

    fn number(&self) -> Option<(u64, u32)> {
        if !self.conversation.is_calling() {
            return self.number.map(|number| (number, u64::BITS));
        }
        // Calls are numbered from 1.
        let bits = 8 * self.conversation.head_bytes() as u32;
        let number = u64::from_le_bytes(*self.conversation.head()).wrapping_sub(1);
        (bits > 0).then_some((number, bits))
    }

    fn peer_sent(&self) -> Option<u64> {
        self.conversation.peer_sent()
    }

    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        self.end.addresses()
    }
}
