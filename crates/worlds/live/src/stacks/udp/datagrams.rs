//! One connection over UDP: sends and receives data units, and exchanges control datagrams (HELLO, START, END, BYE).

use super::LiveUdpSocket;
use crate::buffers::LiveThreadBuffers;
use crate::clock;
use crate::error::{self as fault, Error as Fault, Result};
use crate::stacks::contract::{LiveConnection, connection_vanished};
use crate::stacks::ip_options;
use crate::stacks::stream::Receive;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use stackline_core::run_record::UnitLosses;
use stackline_core::time::Instant;
use stackline_endpoint::BulkDirection;
use stackline_events::{recorder, scope};
use stackline_os::datagram_batch::{DatagramBatch, LARGEST_DATAGRAM, receive_joined};
use stackline_os::message_batch::MessageBatch;
use stackline_os::stream_socket::{self as socket, RecvFlags, SendFlags};
use stackline_proto::datagram::control::{
    ANSWER, CONTROL, DatagramControl, read_control, write_control,
};
use stackline_proto::datagram::conversation::{ControlStep, DatagramConversation, DatagramUnit};
use stackline_proto::datagram::{DatagramToken, NUMBER};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;

/// How many data units of `bytes` bytes are sent as one message that the kernel segments.
fn segments_at_once(bytes: usize) -> u64 {
    (LARGEST_DATAGRAM / bytes.max(1)).clamp(1, SEGMENTS) as u64
}

/// Most segments that the kernel accepts in one message (`UDP_MAX_SEGMENTS` of older kernels).
pub(super) const SEGMENTS: usize = 64;

/// One connection over UDP.
pub(super) struct LiveUdpConversation {
    wire: LiveUdpSocket,
    token: DatagramToken,
    /// Buffers for `sendmmsg` and `recvmmsg`, if they are used.
    outgoing: Option<DatagramBatch>,
    incoming: Option<DatagramBatch>,
    joined: Vec<u8>,
    /// The message for the units that the kernel segments.
    run: MessageBatch,
    conversation: DatagramConversation,
    /// While a run is traced: numbers of the data units that arrived and were not taken by an operation; the number of the one taken last.
    numbers: VecDeque<u64>,
    number: Option<u64>,
    /// Whether units were sent one at a time although `gso` or `batch` was asked for.
    singly: bool,
    /// Whether any operation sent several units.
    together: bool,
}

impl LiveUdpConversation {
    pub(super) fn new(wire: &LiveUdpSocket, token: &DatagramToken) -> Self {
        let batch = |on: bool| {
            (on && wire.batch > 1).then(|| DatagramBatch::new(wire.batch, LARGEST_DATAGRAM))
        };
        Self {
            outgoing: batch(!wire.gso),
            incoming: batch(!wire.gro),
            joined: if wire.gro {
                vec![0; 1 << 16]
            } else {
                Vec::new()
            },
            run: MessageBatch::new(1, 1),
            wire: wire.clone(),
            token: *token,
            conversation: DatagramConversation::new(),
            numbers: VecDeque::new(),
            number: None,
            singly: false,
            together: false,
        }
    }

    // --- control ---

    /// Answers the HELLO that the listener received.
    pub(super) fn greet(&mut self) -> Result<()> {
        self.conversation.greet();
        self.send_control(DatagramControl::Hello as u8 | ANSWER, 0)
    }

    pub(super) fn await_hello(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        while !self.conversation.is_greeted() {
            self.take(buffers)?;
            // Data units that came before HELLO were meant for an earlier connection.
            self.numbers.clear();
        }
        Ok(())
    }

    pub(super) fn say_hello(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        self.exchange(DatagramControl::Hello, buffers)
    }

    fn send_control(&self, kind: u8, value: u64) -> Result<()> {
        let bytes = write_control(&self.token, kind, value);
        match scope::run_outside_unit(|| send(&self.wire.socket, &bytes)) {
            // ECONNREFUSED reports that an earlier datagram found no peer; a caller that waits for an answer notices that itself.
            Err(error)
                if !matches!(
                    error.kind(),
                    io::ErrorKind::ConnectionRefused | io::ErrorKind::Interrupted
                ) =>
            {
                Err(fault::io_error("send", &error))
            }
            _ => Ok(()),
        }
    }

    /// Sends a control datagram repeatedly until it is answered, or fails when the peer has not answered for too long.
    fn exchange(&mut self, kind: DatagramControl, buffers: &mut LiveThreadBuffers) -> Result<()> {
        self.conversation.request(clock::now(), kind);
        let mut repeated = false;
        loop {
            match self.conversation.poll(clock::now()) {
                ControlStep::Send(kind, value) => {
                    if std::mem::replace(&mut repeated, true) {
                        buffers.flags.interrupted()?;
                    }
                    self.send_control(kind, value)?;
                }
                ControlStep::Wait => {}
                ControlStep::Answered => return Ok(()),
                ControlStep::GivenUp => {
                    buffers.flags.interrupted()?;
                    return Err(Fault::measurement("the peer has stopped answering")
                        .hint("the peer exited, the network lost every control datagram for several seconds, or data sent without pacing is still waiting in a queue (the link's `queue` limits its length)"));
                }
            }
            self.await_control(buffers)?;
        }
    }

    /// Waits for a datagram until the deadline of the control datagram that was sent, and processes it.
    fn await_control(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        if let Some(until) = self.conversation.deadline() {
            self.wait_readable(until);
        }
        let Err(error) = self.take_once(RecvFlags::DONTWAIT, buffers) else {
            return Ok(());
        };
        match error.kind() {
            io::ErrorKind::WouldBlock => Ok(()),
            io::ErrorKind::Interrupted => buffers.flags.interrupted(),
            io::ErrorKind::ConnectionRefused => {
                self.conversation.refused();
                Ok(())
            }
            _ => Err(fault::io_error("recv", &error)),
        }
    }

    /// Sleeps until a datagram has arrived, a signal comes or the moment has come; returns at once if the option says to spin.
    fn wait_readable(&self, until: Instant) {
        if self.wire.receive == Receive::Spin {
            return;
        }
        let left = until - clock::now();
        let timeout = TimeSpec::from_duration(Duration::from_nanos(left.0));
        let mut watched = [PollFd::new(self.wire.socket.as_fd(), PollFlags::POLLIN)];
        // The result is ignored: the caller tries to receive in any case.
        let _ = ppoll(&mut watched, Some(timeout), None);
    }

    // --- what arrives ---

    /// Waits for at least one datagram and processes what has arrived.
    fn take(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        let flags = self.wire.receive_flags();
        let mut tries = 0_u32;
        loop {
            match self.take_once(flags, buffers) {
                Ok(()) => return Ok(()),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => {
                        tries = tries.wrapping_add(1);
                        if tries.is_multiple_of(1024) {
                            buffers.flags.interrupted()?;
                        }
                        std::hint::spin_loop();
                    }
                    io::ErrorKind::Interrupted => buffers.flags.interrupted()?,
                    // The peer's socket is closed: its BYE, or the answer to it, was lost.
                    io::ErrorKind::ConnectionRefused => {
                        self.conversation.refused();
                        return Ok(());
                    }
                    _ => return Err(fault::io_error("recv", &error)),
                },
            }
        }
    }

    #[inline]
    fn take_once(&mut self, flags: RecvFlags, buffers: &mut LiveThreadBuffers) -> io::Result<()> {
        if self.wire.gro {
            return self.take_joined(flags);
        }
        if let Some(mut batch) = self.incoming.take() {
            let mut count = 0;
            let got = scope::receiving(batch.slots() * LARGEST_DATAGRAM, || {
                count = batch.receive(self.wire.socket.as_fd(), flags)?;
                Ok((0..count).map(|index| batch.received(index)).sum())
            });
            for index in 0..count {
                let length = batch.received(index).min(batch.slot(index).len());
                self.datagram_arrived(&batch.slot(index)[..length]);
            }
            self.incoming = Some(batch);
            return got.map(drop);
        }
        let room = buffers.room(1 << 16);
        let most = room.len();
        let got = scope::receiving(most, || {
            socket::receive(self.wire.socket.as_fd(), room, flags)
        })?;
        self.datagram_arrived(&room[..got]);
        buffers.arrived(got)
    }

    fn take_joined(&mut self, flags: RecvFlags) -> io::Result<()> {
        let mut buffer = std::mem::take(&mut self.joined);
        let mut segment = 1;
        let got = scope::receiving(buffer.len(), || {
            let length;
            (length, segment) = receive_joined(self.wire.socket.as_fd(), &mut buffer, flags)?;
            Ok(length)
        });
        if let Ok(length) = &got {
            for datagram in buffer[..*length].chunks(segment) {
                self.datagram_arrived(datagram);
            }
        }
        self.joined = buffer;
        got.map(drop)
    }

    #[inline]
    fn datagram_arrived(&mut self, bytes: &[u8]) {
        if bytes.len() == CONTROL
            && let Some((kind, value)) = read_control(bytes, &self.token)
        {
            if let Some(answer) = self.conversation.handle_control(kind, value) {
                // An answer that cannot be sent counts as lost: the peer repeats its control datagram.
                let _ = self.send_control(answer, 0);
            }
        } else if let DatagramUnit::Numbered(number) =
            self.conversation.handle_unit(bytes, bytes.len() as u64)
            && recorder::is_recording()
        {
            self.numbers.push_back(number);
        }
    }

    // --- what leaves ---

    #[inline]
    fn stamp(unit: &mut [u8], number: u64) {
        match unit.first_chunk_mut::<NUMBER>() {
            Some(head) => *head = number.to_le_bytes(),
            None => unit.copy_from_slice(&number.to_le_bytes()[..unit.len()]),
        }
    }

    #[inline]
    fn send_one(&mut self, bytes: usize, buffers: &mut LiveThreadBuffers) -> Result<()> {
        let unit = buffers
            .source
            .outgoing(bytes)
            .map_err(|e| fault::io_error("reading the source", &e))?;
        Self::stamp(unit, self.conversation.next_number());
        self.conversation.sent(1);
        loop {
            match send(&self.wire.socket, unit) {
                Ok(_) => return Ok(()),
                Err(error) => went_wrong(&error, bytes, &buffers.flags)?,
            }
        }
    }

    fn send_batches(
        &mut self,
        bytes: usize,
        times: u64,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<u64> {
        let Some(batch) = &mut self.outgoing else {
            return Ok(0);
        };
        let mut done = 0;
        while done < times && !(buffers.flags.limit() && times > 1) {
            let n = (times - done).min(batch.slots() as u64) as usize;
            if bytes > batch.slot(0).len() {
                return Err(Fault::input(format!(
                    "a batch of {} datagrams of {bytes} B is too large",
                    batch.slots()
                ))
                .hint("use a smaller `batch`"));
            }
            for index in 0..n {
                Self::stamp(
                    &mut batch.slot(index)[..bytes],
                    self.conversation.next_number() + index as u64,
                );
            }
            let mut sent = 0;
            let went = scope::sending(n * bytes, || {
                sent = batch.send(self.wire.socket.as_fd(), n, bytes)?;
                Ok(sent * bytes)
            });
            match went {
                Ok(_) => {
                    self.conversation.sent(sent as u64);
                    done += sent as u64;
                }
                Err(error) => went_wrong(&error, bytes, &buffers.flags)?,
            }
        }
        Ok(done)
    }

    fn send_segments(
        &mut self,
        bytes: usize,
        times: u64,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<u64> {
        let most = segments_at_once(bytes);
        let mut done = 0;
        while done < times && !(buffers.flags.limit() && times > 1) {
            let n = (times - done).min(most) as usize;
            let run = buffers
                .source
                .outgoing(n * bytes)
                .map_err(|e| fault::io_error("reading the source", &e))?;
            for (index, unit) in run.chunks_exact_mut(bytes).enumerate() {
                Self::stamp(unit, self.conversation.next_number() + index as u64);
            }
            let segmented = || {
                let mut message = self.run.write();
                message.push(run);
                message.end_message(bytes as u16);
                message.send(self.wire.socket.as_fd(), SendFlags::NOSIGNAL)?;
                io::Result::Ok(n * bytes)
            };
            match scope::sending(n * bytes, segmented) {
                Ok(_) => {
                    self.conversation.sent(n as u64);
                    done += n as u64;
                }
                Err(error)
                    if matches!(
                        error.raw_os_error(),
                        Some(libc::EIO | libc::EINVAL | libc::EOPNOTSUPP)
                    ) =>
                {
                    self.fall_back(&error);
                    return Ok(done + self.send_batches(bytes, times - done, buffers)?);
                }
                Err(error) => went_wrong(&error, bytes, &buffers.flags)?,
            }
        }
        Ok(done)
    }

    /// Switches to `sendmmsg` because the kernel refused to segment (for this interface or this unit size).
    fn fall_back(&mut self, error: &io::Error) {
        self.wire.gso = false;
        self.wire.notes.push(format!(
            "gso was refused ({error}): sendmmsg is used instead"
        ));
        self.outgoing = Some(DatagramBatch::new(SEGMENTS, LARGEST_DATAGRAM));
    }

    /// Waits for `times` data units or calls, whichever are awaited. Returns how many came: fewer if the peer has ended its stream.
    fn take_units(&mut self, times: u64, buffers: &mut LiveThreadBuffers) -> Result<u64> {
        while !self.conversation.has_units(times) {
            self.take(buffers)?;
        }
        let units = self.conversation.take_units(times);
        if recorder::is_recording() && units > 0 {
            self.number = self
                .numbers
                .drain(..self.numbers.len().min(units as usize))
                .next_back();
        }
        Ok(units)
    }

    /// Waits for the response that carries `number` in its first `n` bytes. Returns false if none came within the timeout, counted from
    /// `since`.
    fn await_answer(
        &mut self,
        number: u64,
        n: usize,
        since: Instant,
        buffers: &mut LiveThreadBuffers,
    ) -> Result<bool> {
        let flags = self.wire.receive_flags();
        let mut tries = 0_u32;
        loop {
            match self.take_once(flags, buffers) {
                Ok(()) => {
                    if self.conversation.take_answer(number, n) {
                        return Ok(true);
                    }
                }
                Err(error) => match error.kind() {
                    // The agent interrupts a waiting call at every tick of the job: no clock has to be read while responses come.
                    io::ErrorKind::Interrupted => {
                        buffers.flags.interrupted()?;
                        if clock::now() - since >= self.wire.timeout {
                            return Ok(false);
                        }
                    }
                    io::ErrorKind::WouldBlock => {
                        tries = tries.wrapping_add(1);
                        if tries.is_multiple_of(4096) {
                            buffers.flags.interrupted()?;
                            if clock::now() - since >= self.wire.timeout {
                                return Ok(false);
                            }
                        }
                        std::hint::spin_loop();
                    }
                    io::ErrorKind::ConnectionRefused => {
                        return Err(connection_vanished(
                            "while a call was waiting for its answer",
                        ));
                    }
                    _ => return Err(fault::io_error("recv", &error)),
                },
            }
        }
    }
}

#[inline]
fn send(socket: &socket2::Socket, bytes: &[u8]) -> io::Result<usize> {
    scope::sending(bytes.len(), || {
        socket::send(socket.as_fd(), bytes, SendFlags::empty())
    })
}

/// Handles a send that failed: Ok means that the caller tries again.
#[cold]
fn went_wrong(
    error: &io::Error,
    bytes: usize,
    flags: &crate::cancel::LiveCancelFlags,
) -> Result<()> {
    match error.raw_os_error() {
        Some(libc::EINTR) => flags.interrupted(),
        // The device's queue is full, as happens to a sender without flow control: give up the processor once, as for a full buffer.
        Some(libc::ENOBUFS | libc::EAGAIN) => {
            std::thread::yield_now();
            flags.interrupted()
        }
        Some(libc::ECONNREFUSED) => Err(connection_vanished("while data was in flight")),
        Some(libc::EMSGSIZE) => Err(Fault::input(format!(
            "a datagram of {bytes} B is too long for this path"
        ))
        .hint("udp carries at most 65507 B, or less where fragmentation is forbidden")),
        _ => Err(fault::io_error("send", error)),
    }
}

impl LiveConnection for LiveUdpConversation {
    fn send(&mut self, bytes: usize, times: u64, buffers: &mut LiveThreadBuffers) -> Result<u64> {
        self.together |= times > 1;
        if self.wire.gso && times > 1 {
            return self.send_segments(bytes, times, buffers);
        }
        if self.outgoing.is_some() && times > 1 {
            return self.send_batches(bytes, times, buffers);
        }
        self.singly |= self.wire.gso || self.outgoing.is_some();
        for done in 0..times {
            if buffers.flags.limit() && times > 1 {
                return Ok(done);
            }
            self.send_one(bytes, buffers)?;
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
        let unit = buffers
            .source
            .outgoing(request)
            .map_err(|e| fault::io_error("reading the source", &e))?;
        Self::stamp(unit, number);
        loop {
            match send(&self.wire.socket, unit) {
                Ok(_) => break,
                Err(error) => went_wrong(&error, request, &buffers.flags)?,
            }
        }
        let answered =
            self.await_answer(number, NUMBER.min(request).min(response), since, buffers)?;
        if !answered {
            self.conversation.call_lost();
        }
        Ok(answered)
    }

    fn await_call(&mut self, _: usize, buffers: &mut LiveThreadBuffers) -> Result<bool> {
        self.conversation.await_call();
        Ok(self.take_units(1, buffers)? == 1)
    }

    fn reply(&mut self, bytes: usize, buffers: &mut LiveThreadBuffers) -> Result<()> {
        let unit = buffers
            .source
            .outgoing(bytes)
            .map_err(|e| fault::io_error("reading the source", &e))?;
        let n = bytes.min(NUMBER);
        unit[..n].copy_from_slice(&self.conversation.head()[..n]);
        loop {
            match send(&self.wire.socket, unit) {
                Ok(_) => return Ok(()),
                // The calling peer has given up and closed its socket.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    self.conversation.refused();
                    return Ok(());
                }
                Err(error) => went_wrong(&error, bytes, &buffers.flags)?,
            }
        }
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
            self.take(buffers)?;
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
        // The answer to BYE may be lost for good if the peer has closed its socket: that counts as a disconnect too.
        match self.exchange(DatagramControl::Bye, buffers) {
            Err(fault) if fault.blame == fault::Blame::Interrupted => Err(fault),
            _ => Ok(()),
        }
    }

    fn await_disconnect(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        while !self.conversation.is_closed() {
            self.take(buffers)?;
        }
        Ok(())
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let mut settings = ip_options::marks(&self.wire.socket);
        let on = |on: bool| if on { "on" } else { "off" }.to_string();
        settings.insert("receive".into(), self.wire.receive.name().into());
        settings.insert("batch".into(), self.wire.batch.to_string());
        settings.insert("gso".into(), on(self.wire.gso));
        settings.insert("gro".into(), on(self.wire.gro));
        for (name, size) in [
            ("send_buffer", self.wire.socket.send_buffer_size()),
            ("receive_buffer", self.wire.socket.recv_buffer_size()),
        ] {
            if let Ok(bytes) = size {
                settings.insert(name.into(), format!("{bytes} B"));
            }
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

    fn together(&self, bytes: usize) -> u64 {
        match &self.outgoing {
            _ if self.wire.gso => segments_at_once(bytes),
            Some(batch) => batch.slots() as u64,
            None => 1,
        }
    }

    fn number(&self) -> Option<(u64, u32)> {
        if !self.conversation.is_calling() {
            return self.number.map(|number| (number, u64::BITS));
        }
        // Calls are numbered from 1.
        let bits = 8 * self.conversation.head_bytes() as u32;
        (bits > 0).then(|| {
            (
                u64::from_le_bytes(*self.conversation.head()).wrapping_sub(1),
                bits,
            )
        })
    }

    fn peer_sent(&self) -> Option<u64> {
        self.conversation.peer_sent()
    }

    fn addresses(&self) -> Option<(SocketAddr, SocketAddr)> {
        let socket = &self.wire.socket;
        Some((
            socket.local_addr().ok()?.as_socket()?,
            socket.peer_addr().ok()?.as_socket()?,
        ))
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.wire.notes.clone();
        // A single unit, sent by itself after several that went together, is not worth a note.
        if self.singly && !self.together {
            notes.push(
                "data units that were paced or varied in size were sent one per call: gso and batch did not apply to them".to_string(),
            );
        }
        notes
    }
}

impl LiveUdpConversation {
    fn await_end(&mut self, buffers: &mut LiveThreadBuffers) -> Result<()> {
        while !self.conversation.has_ended() {
            self.take(buffers)?;
        }
        Ok(())
    }
}
