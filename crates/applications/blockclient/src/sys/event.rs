//! An event as C sees it, and what holds its bytes until they are given back.

use crate::shapes;
use stackline_blockserver::client::{Block, Event};
use std::ffi::{CString, c_void};
use std::ptr;

/// What an event's pointers lead into.
#[derive(Default)]
struct Owner {
    data: Vec<u8>,
    units: Vec<u64>,
    words: CString,
}

/// The event with its own memory, which [`free`] gives back.
pub(super) fn tell(event: Event) -> shapes::Event {
    let mut shape = shapes::Event::default();
    let mut owner = Owner::default();
    match event {
        Event::Block(block) => owner.data = block_of(&mut shape, *block),
        Event::Failed { set, number, why } => {
            (shape.kind, shape.set, shape.number) = (shapes::FAILED, set, number);
            owner.words = words(why.words());
        }
        Event::Flushed(flushed) => {
            (shape.kind, shape.set, shape.serial) = (shapes::FLUSHED, flushed.set, flushed.serial);
            (shape.server, shape.app_receive) = (flushed.server, flushed.at);
            owner.units = flushed
                .blocks
                .iter()
                .map(|block| flushed.first_unit + u64::from(block.index))
                .collect();
        }
        Event::ServerGone { name, .. } => {
            shape.kind = shapes::SERVER_GONE;
            owner.words = words(&name);
        }
        Event::ServerCame { name } => {
            shape.kind = shapes::SERVER_CAME;
            owner.words = words(&name);
        }
        Event::MasterGone => shape.kind = shapes::MASTER_GONE,
    }
    let owner = Box::leak(Box::new(owner));
    (shape.data, shape.length) = (owner.data.as_ptr(), owner.data.len() as u64);
    (shape.units, shape.count) = (owner.units.as_ptr(), owner.units.len() as u64);
    shape.words = owner.words.as_ptr();
    shape.owner = ptr::from_mut(owner).cast();
    shape
}

fn block_of(shape: &mut shapes::Event, block: Block) -> Vec<u8> {
    let Block {
        head,
        data,
        at,
        wanted,
    } = block;
    *shape = shapes::Event {
        kind: shapes::BLOCK,
        set: head.set,
        number: head.number,
        unit: head.unit,
        serial: head.serial,
        server: head.server,
        disk: head.disk,
        wanted: wanted.into(),
        cached: head.cached.into(),
        app_send: head.app_send,
        master_in: head.master_in,
        master_out: head.master_out,
        server_in: head.server_in,
        start_read: head.start_read,
        end_read: head.end_read,
        start_write: head.start_write,
        app_receive: at.0,
        before: head.before,
        before_end_write: head.before_end_write,
        ..shapes::Event::default()
    };
    data
}

fn words(words: &str) -> CString {
    CString::new(words.replace('\0', " ")).unwrap_or_default()
}

/// Gives back what an event's pointers lead into.
///
/// # Safety
/// It is null, or an owner that [`tell`] made and nobody gave back.
pub(super) unsafe fn free(owner: *mut c_void) {
    if !owner.is_null() {
        // SAFETY: as the caller promises.
        drop(unsafe { Box::from_raw(owner.cast::<Owner>()) });
    }
}
