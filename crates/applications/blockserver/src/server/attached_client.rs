//! Serves one client at a disk server: a single thread takes its lists and sends its blocks. It looks for newer lists before it hands
//! blocks to the transport, and takes back what the transport has not begun, so that no superseded block begins once the newer list is
//! here.

use super::outgoing::{Outgoing, WholeBlockRule};
use super::wake_bell::{Bell, BellWaitPurpose};
use super::{DiskServerShared, KnownConnectionSlot, SharedPooledBlock, now};
use crate::blast_transport::BlockBlastSender;
use crate::connection::{BlockConnectionEnd, BlockMessageReceiver, BlockMessageSender};
use crate::datagrams::BlockDatagramSender;
use stackline_blocks::send_window::{BlockSendWindow, PartStart, RoundTrips};
use stackline_blocks::server::{Woken, Write};
use stackline_blocks::wire::master_messages::BlockRequestRefused;
use stackline_blocks::wire::message::{BlockDataTransport, Message};
use stackline_blocks::wire::server_messages::{Attach, Attached, BlockHead};
use stackline_os::tcp_info::TcpInfo;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// If waiting for the transport took less than this (ns), the transport counts as having had room.
const BRIEF: stackline_core::time::Duration = stackline_core::time::Duration(50_000);
/// Blocks that begin within this many bytes are handed over with one system call, as far as the size of a part allows.
const TOGETHER: usize = 64 << 10;

impl DiskServerShared {
    pub(super) fn data(
        &self,
        mut receiver: BlockMessageReceiver,
        mut sender: BlockMessageSender,
        mut seat: KnownConnectionSlot,
    ) {
        // A peer that says nothing keeps a reader's slot, and the idlest reader gives way.
        let Ok(Message::Attach(attach)) = receiver.message() else {
            return;
        };
        seat.touch();
        let Ok(bell) = Bell::new().map(Arc::new) else {
            return;
        };
        let connection = self.next.fetch_add(1, Ordering::Relaxed);
        let age = (attach.age > 0).then_some(attach.age);
        let attached = {
            let mut state = self.state();
            state.bells.insert(connection, Arc::clone(&bell));
            state.machine.attach(attach.session, connection, age)
        };
        let is_tcp = attach.transport == BlockDataTransport::Tcp as u8;
        let parts = is_tcp && self.options.send_buffer.is_none();
        let answer = match attached {
            Ok(_) => Attached {
                server: self.id.load(Ordering::Relaxed),
                parts,
            }
            .into(),
            Err(why) => BlockRequestRefused {
                request: 0,
                why: why as u8,
                words: why.words().to_owned(),
            }
            .into(),
        };
        if sender.message(&answer).is_ok()
            && attached.is_ok()
            && let Ok(apart) = self.apart(&attach, &receiver)
        {
            let flight = parts.then(|| BlockSendWindow::new(acked(receiver.stream())));
            let session = attach.session;
            let mut client = AttachedBlockClient {
                shared: self,
                session,
                connection,
                bell: &bell,
                seat,
                apart,
                flight,
            };
            // The result does not matter: after any end there is nobody to report to.
            let _ = client.serve(&mut receiver);
        }
        let _ = receiver.stream().shutdown(Shutdown::Both);
        let mut state = self.state();
        state.bells.remove(&connection);
        let woken = state.machine.detach(connection);
        self.wake(&state, &woken);
    }

    /// Opens what carries data beside the connection; `None` if the data goes over the connection.
    fn apart(
        &self,
        attach: &Attach,
        receiver: &BlockMessageReceiver,
    ) -> Result<Option<BlockSideSender>, BlockConnectionEnd> {
        let transport = BlockDataTransport::from_number(attach.transport)
            .map_err(|fault| BlockConnectionEnd::Broken(fault.to_string()))?;
        let to = SocketAddr::new(receiver.stream().peer_addr()?.ip(), attach.port);
        Ok(match transport {
            BlockDataTransport::Tcp => None,
            BlockDataTransport::Udp | BlockDataTransport::Rtp => {
                let datagrams = BlockDatagramSender::open(
                    to,
                    transport == BlockDataTransport::Rtp,
                    attach.session,
                )?;
                Some(BlockSideSender::Datagrams(datagrams.paced(attach.pace)))
            }
            BlockDataTransport::Blast => Some(BlockSideSender::Blasts(
                BlockBlastSender::open(to, attach.session, receiver.stream(), &self.stop)?.into(),
            )),
        })
    }
}

/// The sending end of what carries data beside the connection.
enum BlockSideSender {
    Datagrams(BlockDatagramSender),
    Blasts(Box<BlockBlastSender>),
}

/// Bytes that the other side has acknowledged so far (TCP_INFO).
fn acked(stream: &TcpStream) -> u64 {
    TcpInfo::read(stream.as_fd())
        .ok()
        .and_then(|info| info.acked_bytes)
        .unwrap_or(0)
}

/// Passes the transport's current acknowledgements and round-trip times to the send window.
fn look(flight: &mut BlockSendWindow, stream: &TcpStream) {
    let info = TcpInfo::read(stream.as_fd()).ok();
    let time = |us: u32| stackline_core::time::Duration(u64::from(us) * 1000);
    if let Some((info, acked)) = info.and_then(|info| Some((info, info.acked_bytes?))) {
        let (usual, deviation) = (time(info.rtt_us), time(info.rtt_var_us));
        let least = info.least_rtt_us.map_or(usual, time);
        flight.look(
            now(),
            acked,
            RoundTrips {
                usual,
                least,
                deviation,
            },
        );
    }
}

/// A client that has attached.
struct AttachedBlockClient<'s> {
    shared: &'s DiskServerShared,
    session: u128,
    connection: u64,
    bell: &'s Bell,
    seat: KnownConnectionSlot,
    apart: Option<BlockSideSender>,
    /// The send window of the connection. `None` if data goes beside the connection, or a send buffer of fixed size limits it: then blocks
    /// are sent whole.
    flight: Option<BlockSendWindow>,
}

/// What there is to send.
enum BlockSendStep {
    Nothing,
    /// Something for the connection.
    Stream,
    /// Blocks whose data goes beside the connection.
    Apart(Vec<(BlockHead, SharedPooledBlock)>),
}

impl AttachedBlockClient<'_> {
    /// Serves the client until the connection or the server ends.
    fn serve(&mut self, receiver: &mut BlockMessageReceiver) -> Result<(), BlockConnectionEnd> {
        let (mut outgoing, mut sent) = (Outgoing::default(), Vec::new());
        let (mut until, mut had_room) = (BellWaitPurpose::Now, true);
        while !self.shared.is_stopped() && !self.bell.is_over() {
            let asked = now();
            let ready = self.bell.wait(receiver.stream(), until)?;
            if until.is_for_the_transport() && now().since(asked) > BRIEF {
                if outgoing.under_way().is_none() {
                    self.shared
                        .state()
                        .machine
                        .waits_for_room(asked, self.connection);
                }
                had_room = false;
            }
            if ready.come {
                self.lists(receiver)?;
            }
            until = match until {
                BellWaitPurpose::Room if !ready.room => continue,
                _ if outgoing.is_empty() => self.what_is_missing(receiver.stream(), ready.room),
                _ => BellWaitPurpose::Now,
            };
            if until != BellWaitPurpose::Now {
                continue;
            }
            match if outgoing.is_empty() {
                self.next(&mut outgoing, had_room)
            } else {
                BlockSendStep::Stream
            } {
                BlockSendStep::Nothing => {
                    self.flight.iter_mut().for_each(BlockSendWindow::idle);
                    until = BellWaitPurpose::Work;
                    continue;
                }
                BlockSendStep::Stream => {
                    let taken = outgoing.send(receiver.stream(), &mut sent)?;
                    if taken > 0 {
                        self.bell.move_on(asked);
                        self.seat.touch();
                    }
                    self.flight
                        .iter_mut()
                        .for_each(|flight| flight.handed(taken));
                }
                BlockSendStep::Apart(blocks) => {
                    sent.extend(blocks.iter().map(|(head, _)| head.unit));
                    self.send_apart(receiver, &blocks)?;
                    self.bell.move_on(now());
                    self.seat.touch();
                }
            }
            had_room = outgoing.is_empty();
            let is_idle = self.sent(&mut sent, &mut outgoing);
            until = match had_room {
                true if is_idle => BellWaitPurpose::Work,
                true if self.flight.is_none() => BellWaitPurpose::Now,
                _ => BellWaitPurpose::Room,
            };
        }
        Ok(())
    }

    /// What the next block, or part of one, has to wait for.
    fn what_is_missing(&mut self, stream: &TcpStream, has_room: bool) -> BellWaitPurpose {
        let Some(flight) = &mut self.flight else {
            return BellWaitPurpose::Now;
        };
        match flight.next_part(has_room, |flight| look(flight, stream)) {
            PartStart::Now => BellWaitPurpose::Now,
            PartStart::Room => BellWaitPurpose::Room,
            PartStart::Later(time) => BellWaitPurpose::Later(Duration::from_nanos(time.0)),
        }
    }

    /// Sends blocks whose data goes beside the connection. Between paced datagrams newer lists are taken.
    fn send_apart(
        &mut self,
        receiver: &mut BlockMessageReceiver,
        blocks: &[(BlockHead, SharedPooledBlock)],
    ) -> Result<(), BlockConnectionEnd> {
        let Some(mut apart) = self.apart.take() else {
            return Ok(());
        };
        let done = match &mut apart {
            BlockSideSender::Datagrams(datagrams) => datagrams.blocks_with(
                blocks,
                |block| block.data(),
                |time| {
                    if self.shared.is_stopped() {
                        return Err(BlockConnectionEnd::Closed);
                    }
                    match self
                        .bell
                        .wait(receiver.stream(), BellWaitPurpose::Later(time))?
                        .come
                    {
                        true => self.lists(receiver),
                        false => Ok(()),
                    }
                },
            ),
            BlockSideSender::Blasts(blasts) => blocks.iter().try_for_each(|(head, block)| {
                Ok(blasts.block(receiver.stream(), head, block.data())?)
            }),
        };
        self.apart = Some(apart);
        done
    }

    /// Takes all lists that have come.
    fn lists(&self, receiver: &mut BlockMessageReceiver) -> Result<(), BlockConnectionEnd> {
        let mut more = true;
        while more && !self.shared.is_stopped() && !self.bell.is_over() {
            more = receiver.take()?;
            while let Some(message) = receiver.come()? {
                let Message::Requests(list) = message else {
                    return Err(BlockConnectionEnd::Broken(
                        "that message is not allowed here".into(),
                    ));
                };
                if list.session == self.session {
                    self.shared.requests(list);
                }
            }
        }
        Ok(())
    }

    /// Takes what to send next from the state machine: the rest of the block under way, unless it is superseded, then blocks within the
    /// bytes that are handed over at a time; only one block if the transport took less than it was given, or each block is waited for.
    fn next(&self, outgoing: &mut Outgoing, had_room: bool) -> BlockSendStep {
        let is_awaited = match &self.apart {
            Some(BlockSideSender::Blasts(_)) => true,
            Some(BlockSideSender::Datagrams(datagrams)) => datagrams.is_paced(),
            None => false,
        };
        let one_by_one = !had_room || is_awaited;
        let part = self
            .flight
            .as_ref()
            .map(|flight| flight.part().map_or(usize::MAX / 2, |bytes| bytes as usize));
        let together = part.map_or(TOGETHER, |part| part.min(TOGETHER));
        let most = self
            .shared
            .options
            .send_buffer
            .unwrap_or(if one_by_one { 1 } else { together });
        let whole = part.map_or(WholeBlockRule::Always, WholeBlockRule::Within);
        let (mut state, now) = (self.shared.state(), now());
        let mut woken = Woken::default();
        let (mut bytes, mut apart) = (0, Vec::new());
        if let (Some(unit), Some(part)) = (outgoing.under_way(), part) {
            if state.machine.is_superseded(self.connection, unit) {
                outgoing.cut();
                state.machine.cut(self.connection, unit);
            } else {
                // After the end of a block, others may follow within the same part.
                bytes = outgoing.add_part(part);
            }
        }
        // The last block goes alone: it reports the end of writing of those before it, and nothing else may follow for long.
        while !outgoing.is_in_parts()
            && (bytes == 0 || (bytes < most && state.machine.to_write(self.connection) > 1))
        {
            match state.machine.next_write(now, self.connection, &mut woken) {
                None => break,
                Some(Write::Words(words)) => outgoing.add(&words),
                Some(Write::Block(head, block)) => {
                    let unit = head.unit;
                    bytes += match &self.apart {
                        Some(_) => {
                            let bytes = block.data().len();
                            apart.push((head, block));
                            bytes
                        }
                        None => outgoing.add_block(&head.into(), unit, block, whole),
                    };
                }
            }
        }
        self.shared.wake(&state, &woken);
        match (apart.is_empty(), outgoing.is_empty()) {
            (false, _) => BlockSendStep::Apart(apart),
            (true, false) => BlockSendStep::Stream,
            (true, true) => {
                self.bell.nothing_to_do();
                BlockSendStep::Nothing
            }
        }
    }

    /// Reports blocks that the transport has taken, and returns those that it has not begun to the state machine. Returns whether nothing
    /// is left to do.
    fn sent(&mut self, sent: &mut Vec<u64>, outgoing: &mut Outgoing) -> bool {
        let now = now();
        let mut state = self.shared.state();
        sent.drain(..)
            .for_each(|unit| state.machine.write_done(now, self.connection, unit));
        if !outgoing.is_empty() {
            let under_way = outgoing.take_back();
            state.machine.not_begun(self.connection, under_way);
        }
        let nothing_is_under_way = outgoing.is_empty() && outgoing.under_way().is_none();
        let is_idle = nothing_is_under_way && state.machine.to_write(self.connection) == 0;
        if is_idle {
            self.bell.nothing_to_do();
            self.flight.iter_mut().for_each(BlockSendWindow::idle);
        }
        is_idle
    }
}
