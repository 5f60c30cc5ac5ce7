//! One client at a server: a single thread takes its lists and sends its blocks. It looks for a newer list before each block
//! and whenever the transport has no room, so that what a list supersedes is not begun once the list is here.

use super::bell::Bell;
use super::outgoing::Outgoing;
use super::{Shared, now};
use crate::connection::{Ended, Receiver, Sender};
use crate::datagrams::Datagrams;
use stackline_blocks::server::{Woken, Write};
use stackline_blocks::wire::control::Refused;
use stackline_blocks::wire::data::{Attach, Attached};
use stackline_blocks::wire::message::{Message, Transport};
use stackline_core::time::Instant;
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

/// What was begun last.
#[derive(Clone, Copy)]
enum Begun {
    Nothing,
    Words,
    /// A block, by its unit.
    Block(u64),
    /// A block that the transport has since then.
    Sent(u64, Instant),
}

impl Client<'_> {
    /// Until the connection or the server is gone.
    fn serve(&mut self, receiver: &mut Receiver) -> Result<(), Ended> {
        let (mut outgoing, mut begun) = (Outgoing::default(), Begun::Nothing);
        while !self.shared.is_stopped() {
            self.lists(receiver)?;
            if let Begun::Nothing | Begun::Sent(..) = begun {
                begun = self.begin(&mut outgoing, begun)?;
            }
            begun = match begun {
                Begun::Nothing => {
                    self.bell.wait(receiver.stream(), false)?;
                    Begun::Nothing
                }
                Begun::Words if outgoing.send(receiver.stream())? => Begun::Nothing,
                Begun::Block(unit) if outgoing.send(receiver.stream())? => Begun::Sent(unit, now()),
                Begun::Words | Begun::Block(_) => {
                    self.bell.wait(receiver.stream(), true)?;
                    begun
                }
                Begun::Sent(..) => begun,
            }
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

    /// Begins with what is to be written next, after what was sent before.
    fn begin(&mut self, outgoing: &mut Outgoing, before: Begun) -> Result<Begun, Ended> {
        let write = {
            let mut state = self.shared.state();
            if let Begun::Sent(unit, at) = before {
                state.machine.write_done(at, self.connection, unit);
            }
            let mut woken = Woken::default();
            let write = state.machine.next_write(now(), self.connection, &mut woken);
            self.shared.wake(&state, &woken);
            if write.is_none() {
                self.bell.nothing_to_do();
            }
            write
        };
        Ok(match (write, &mut self.datagrams) {
            (None, _) => Begun::Nothing,
            (Some(Write::Words(words)), _) => {
                outgoing.begin(&words, None);
                Begun::Words
            }
            (Some(Write::Block(head, block)), None) => {
                let unit = head.unit;
                outgoing.begin(&head.into(), Some(block));
                Begun::Block(unit)
            }
            (Some(Write::Block(head, block)), Some(datagrams)) => {
                let unit = head.unit;
                datagrams.block(head, block.data())?;
                Begun::Sent(unit, now())
            }
        })
    }
}
