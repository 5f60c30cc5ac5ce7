//! One end of a connection of HTTP: carries pieces between a machine of `proto` and the wire. Pairs that share the connection share it.

use super::wire::SimLayerWire;
use crate::stacks::byte_stream::Got;
use stackline_proto::http::{HttpMachine, HttpWait};
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;

/// Bytes that are read at a time, as the live world does.
const READ_BYTES: usize = 256 << 10;

/// One end of a connection.
pub(super) struct SimHttpEnd {
    pub(super) wire: Rc<SimLayerWire>,
    pub(super) machine: RefCell<Box<dyn HttpMachine>>,
    /// How many pairs use it.
    pub(super) users: Cell<u32>,
    /// The pairs that have joined it, though they may have left.
    pub(super) joined: RefCell<BTreeSet<u32>>,
    /// Bytes that have come of a piece that is not complete.
    come: Cell<u64>,
    /// Whether nothing more comes.
    is_over: Cell<bool>,
}

impl fmt::Debug for SimHttpEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HTTP, {:?}", self.wire)
    }
}

impl SimHttpEnd {
    pub(super) fn new(wire: Rc<SimLayerWire>, machine: Box<dyn HttpMachine>) -> Rc<Self> {
        Rc::new(Self {
            wire,
            machine: RefCell::new(machine),
            users: Cell::new(0),
            joined: RefCell::default(),
            come: Cell::new(0),
            is_over: Cell::new(false),
        })
    }

    /// Whether the peer has closed the connection, or it is broken.
    pub(super) const fn is_over(&self) -> bool {
        self.is_over.get()
    }

    /// Reads what has come.
    pub(super) fn read(&self) {
        while !self.is_over.get() {
            match self.wire.read(READ_BYTES) {
                Got::Bytes(bytes) => self.take_pieces(bytes as u64),
                Got::Nothing => return,
                Got::End | Got::Broken => self.is_over.set(true),
            }
        }
    }

    fn take_pieces(&self, bytes: u64) {
        let mut come = self.come.get() + bytes;
        let mut machine = self.machine.borrow_mut();
        while let Some(piece) = self.wire.take_piece(come) {
            come -= piece.wire_bytes;
            machine.handle(piece.frame);
        }
        self.come.set(come);
    }

    /// Writes what there is room for. Whether everything is written that windows allow.
    pub(super) fn write(&self) -> bool {
        let mut machine = self.machine.borrow_mut();
        loop {
            match self.wire.flush() {
                Some(true) => {}
                Some(false) => return false,
                None => {
                    self.is_over.set(true);
                    return true;
                }
            }
            let pieces = machine.poll();
            if pieces.is_empty() {
                return true;
            }
            let bytes = pieces.iter().map(|piece| piece.wire_bytes).sum();
            pieces
                .into_iter()
                .for_each(|piece| self.wire.put_down(piece));
            self.wire.write(bytes);
        }
    }

    /// What data of that stream waits for, beside the socket.
    pub(super) fn waits_for(&self, stream: u32) -> Option<HttpWait> {
        self.machine.borrow().waits_for(stream)
    }

    /// Makes no more requests and closes the own half of the connection.
    pub(super) fn finish(&self) {
        self.machine.borrow_mut().close();
        self.write();
        self.wire.finish();
    }
}
