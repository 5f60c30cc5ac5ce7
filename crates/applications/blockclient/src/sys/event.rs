//! Converts events for C. The memory that an event points to lives until C frees the event.

use crate::ffi_types;
use stackline_blockserver::client::{BlockClientEvent, ReceivedBlock};
use std::ffi::{CString, c_void};
use std::ptr;

/// The memory that an event's pointers point to.
#[derive(Default)]
struct Owner {
    data: Vec<u8>,
    units: Vec<u64>,
    words: CString,
}

/// Converts an event. Its memory is freed by [`free`].
pub(super) fn convert_event(event: BlockClientEvent) -> ffi_types::FfiClientEvent {
    let mut shape = ffi_types::FfiClientEvent::default();
    let mut owner = Owner::default();
    match event {
        BlockClientEvent::Block(block) => owner.data = block_of(&mut shape, *block),
        BlockClientEvent::Failed { set, number, why } => {
            (shape.kind, shape.set, shape.number) = (ffi_types::FAILED, set, number);
            owner.words = words(why.words());
        }
        BlockClientEvent::Flushed(flushed) => {
            (shape.kind, shape.set, shape.serial) =
                (ffi_types::FLUSHED, flushed.set, flushed.serial);
            (shape.server, shape.app_receive) = (flushed.server, flushed.at);
            owner.units = flushed
                .blocks
                .iter()
                .map(|block| flushed.first_unit + u64::from(block.index))
                .collect();
        }
        BlockClientEvent::ServerGone { name, .. } => {
            shape.kind = ffi_types::SERVER_GONE;
            owner.words = words(&name);
        }
        BlockClientEvent::ServerCame { name } => {
            shape.kind = ffi_types::SERVER_CAME;
            owner.words = words(&name);
        }
        BlockClientEvent::MasterGone => shape.kind = ffi_types::MASTER_GONE,
    }
    let owner = Box::leak(Box::new(owner));
    (shape.data, shape.length) = (owner.data.as_ptr(), owner.data.len() as u64);
    (shape.units, shape.count) = (owner.units.as_ptr(), owner.units.len() as u64);
    shape.words = owner.words.as_ptr();
    shape.owner = ptr::from_mut(owner).cast();
    shape
}

fn block_of(shape: &mut ffi_types::FfiClientEvent, block: ReceivedBlock) -> Vec<u8> {
    let ReceivedBlock {
        head,
        data,
        at,
        wanted,
    } = block;
    *shape = ffi_types::FfiClientEvent {
        kind: ffi_types::BLOCK,
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
        ..ffi_types::FfiClientEvent::default()
    };
    data
}

fn words(words: &str) -> CString {
    CString::new(words.replace('\0', " ")).unwrap_or_default()
}

/// Frees the memory that an event's pointers point to.
///
/// # Safety
/// It is null, or an owner that [`convert_event`] made and nobody gave back.
pub(super) unsafe fn free(owner: *mut c_void) {
    if !owner.is_null() {
        // SAFETY: as the caller promises.
        drop(unsafe { Box::from_raw(owner.cast::<Owner>()) });
    }
}
