//! One client at a server: a single thread takes its lists and sends its blocks. It looks for newer lists before it
//! hands blocks to the transport, and takes back what the transport did not begin, so that what a list supersedes is not begun
//! once the list is here.

use super::bell::Bell;
use super::outgoing::Outgoing;
use super::{Block, Shared, now};
use crate::connection::{Ended, Receiver, Sender};
use crate::datagrams::Datagrams;
use stackline_blocks::server::{Woken, Write};
use stackline_blocks::wire::control::Refused;
use stackline_blocks::wire::data::{Attach, Attached, BlockHead};
use stackline_blocks::wire::message::{Message, Transport};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Shared {
    pub(super) fn data(&self, mut receiver: Receiver, mut sender: Sender) {
        let Ok(Message::Attach(attach)) = receiver.message() else { return };
        let Ok(datagrams) = datagrams(&attach, &receiver) else { return };
        let Ok(bell) = Bell::new().map(Arc::new) else { return };
        let connection = self.next.fetch_add(1, Ordering::Relaxed);
        let age = (attach.age > 0).then_some(attach.age);
        let attached = {
            let mut state = self.state();
            state.bells.insert(connection, Arc::clone(&bell));
            state.machine.attach(attach.session, connection, age)
        };
        let answer = match attached {
            Ok(_) => Attached { server: self.id.load(Ordering::Relaxed) }.into(),
            Err(why) => Refused { request: 0, why: why as u8, words: why.words().to_owned() }.into(),
        };
        if sender.message(&answer).is_ok() && attached.is_ok() {
            let mut client = Client { shared: self, session: attach.session, connection, bell: &bell, datagrams };
            // However it ended: nobody is left to be told.
            let _ = client.serve(&mut receiver);
            let _ = receiver.stream().shutdown(Shutdown::Both);
        }
        let mut state = self.state();
        state.bells.remove(&connection);
        state.machine.detach(connection);
    }
}

/// Where blocks go as datagrams, if that was asked for.
fn datagrams(attach: &Attach, receiver: &Receiver) -> Result<Option<Datagrams>, Ended> {
    let transport = Transport::of(attach.transport).map_err(|fault| Ended::Broken(fault.to_string()))?;
    if transport == Transport::Tcp {
        return Ok(None);
    }
    let to = SocketAddr::new(receiver.stream().peer_addr()?.ip(), attach.port);
    Ok(Some(Datagrams::open(to, transport == Transport::Rtp, attach.session)?))
}

/// A client that is attached.
struct Client<'s> {
    shared: &'s Shared,
    session: u128,
    connection: u64,
    bell: &'s Bell,
    datagrams: Option<Datagrams>,
}

/// What there is to do.
enum Next {
    Nothing,
    /// Something is on its way over the connection.
    Stream,
    /// Blocks are to go as datagrams.
    Datagrams(Vec<(BlockHead, Block)>),
}

impl Client<'_> {
    /// Until the connection or the server is gone.
    fn serve(&mut self, receiver: &mut Receiver) -> Result<(), Ended> {
        let (mut outgoing, mut sent) = (Outgoing::default(), Vec::new());
        let mut may_have_come = true;
        while !self.shared.is_stopped() {
            if may_have_come {
                self.lists(receiver)?;
            }
            let next = if outgoing.is_empty() { self.next(&mut outgoing) } else { Next::Stream };
            let mut has_room = true;
            match next {
                Next::Nothing => {
                    may_have_come = self.bell.wait(receiver.stream(), false)?;
                    continue;
                }
                Next::Stream => {
                    outgoing.send(receiver.stream(), &mut sent)?;
                    has_room = outgoing.is_empty();
                }
                Next::Datagrams(blocks) => {
                    sent.extend(blocks.iter().map(|(head, _)| head.unit));
                    if let Some(datagrams) = &mut self.datagrams {
                        datagrams.blocks(&blocks, |block| block.data())?;
                    }
                }
            }
            let is_idle = self.sent(&mut sent, &mut outgoing) && has_room;
            may_have_come = if is_idle || !has_room { self.bell.wait(receiver.stream(), !has_room)? } else { true };
        }
        Ok(())
    }

    /// Takes the lists that have come.
    fn lists(&self, receiver: &mut Receiver) -> Result<(), Ended> {
        let mut more = true;
        while more && !self.shared.is_stopped() {
            more = receiver.take()?;
            while let Some(message) = receiver.come()? {
                let Message::Requests(list) = message else {
                    return Err(Ended::Broken("that message does not belong here".into()));
                };
                if list.session == self.session {
                    self.shared.requests(list);
                }
            }
        }
        Ok(())
    }

    /// Takes what is to be written next: blocks that begin within the bytes that a send buffer is to hold.
    fn next(&self, outgoing: &mut Outgoing) -> Next {
        let (mut state, now) = (self.shared.state(), now());
        let mut woken = Woken::default();
        let (mut bytes, mut apart) = (0, Vec::new());
        // The last goes alone: it tells of those before it, and nothing else may follow for long.
        while bytes == 0 || (bytes < self.shared.options.send_buffer && state.machine.to_write(self.connection) > 1) {
            match state.machine.next_write(now, self.connection, &mut woken) {
                None => break,
                Some(Write::Words(words)) => outgoing.add(&words, None),
                Some(Write::Block(head, block)) => {
                    bytes += block.data().len();
                    let unit = head.unit;
                    match &self.datagrams {
                        Some(_) => apart.push((head, block)),
                        None => outgoing.add(&head.into(), Some((unit, block))),
                    }
                }
            }
        }
        self.shared.wake(&state, &woken);
        match (apart.is_empty(), outgoing.is_empty()) {
            (false, _) => Next::Datagrams(apart),
            (true, false) => Next::Stream,
            (true, true) => {
                self.bell.nothing_to_do();
                Next::Nothing
            }
        }
    }

    /// The transport has those blocks; what it had no room for, and what is not begun, waits at the machine again. Whether
    /// there is nothing else to do.
    fn sent(&self, sent: &mut Vec<u64>, outgoing: &mut Outgoing) -> bool {
        let now = now();
        let mut state = self.shared.state();
        sent.drain(..).for_each(|unit| state.machine.write_done(now, self.connection, unit));
        if !outgoing.is_empty() {
            let under_way = outgoing.take_back();
            state.machine.not_begun(self.connection, under_way);
        }
        let is_idle = outgoing.is_empty() && state.machine.to_write(self.connection) == 0;
        if is_idle {
            self.bell.nothing_to_do();
        }
        is_idle
    }
}
