//! The functions that C calls. They check and convert pointers, and leave the rest to `client_session`. No panic crosses the boundary, and
//! a null pointer where one is needed is an error.
#![allow(
    unsafe_code,
    reason = "callbacks from C take raw C pointers; each use documents what the caller must guarantee"
)]

mod event;

use crate::client_session::{self, ClientPredictor};
use crate::ffi_types::{
    FfiClientEvent, FfiClientOptions, FfiDataSet, FfiPlayoutCounts, FfiPlayoutOptions,
};
use crate::{fault, sys::event::convert_event};
use stackline_blocks::wire::message::BlockDataTransport;
use stackline_blockserver::block_playout::{self, MissingBlockPolicy};
use stackline_blockserver::client;
use stackline_blockserver::range_read;
use stackline_core::error::{Error, Result};
use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// A function that stores up to `room` blocks that may be needed after `list` in `next`, and returns how many.
type PredictionCallback = unsafe extern "C" fn(
    context: *mut c_void,
    list: *const u64,
    count: u64,
    next: *mut u64,
    room: u64,
) -> u64;
/// A function that is called with the number of bytes read so far and the number of all; a result other than 0 stops reading.
type ProgressCallback = unsafe extern "C" fn(context: *mut c_void, done: u64, all: u64) -> i32;
/// A function that is called with each block when it is due, without data if the block is skipped; a result other than 0 stops playing.
type Give =
    unsafe extern "C" fn(context: *mut c_void, number: u64, data: *const u8, length: u64) -> i32;

/// The pointer that the caller's function is given with each call.
#[derive(Clone, Copy)]
struct CallbackContext(*mut c_void);

// SAFETY: the header requires that what it points to may be used by any thread that calls the library.
unsafe impl Send for CallbackContext {}

/// Runs a function, catches a panic, and stores the error for [`blockclient_error`].
fn guarded(what: impl FnOnce() -> Result<i32>) -> i32 {
    let done = catch_unwind(AssertUnwindSafe(what));
    let failed = |_| {
        Error::measurement("internal error in the library")
            .hint("please report this along with the call that failed")
    };
    done.unwrap_or_else(|panic| Err(failed(panic)))
        .unwrap_or_else(|error| fault::keep_last_error(&error))
}

fn none(what: &str) -> Error {
    Error::input(format!("{what} is NULL"))
}

/// # Safety
/// It is null, or ends with a zero and lives for the call.
unsafe fn text<'t>(pointer: *const c_char, what: &str) -> Result<&'t str> {
    if pointer.is_null() {
        return Err(none(what));
    }
    // SAFETY: as the caller promises.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str()
        .map_err(|_| Error::input(format!("{what} is not UTF-8")))
}

/// # Safety
/// It is null or valid for a write of a `T`.
unsafe fn put<T>(pointer: *mut T, value: T, what: &str) -> Result<()> {
    if pointer.is_null() {
        return Err(none(what));
    }
    // SAFETY: as the caller promises; it need not be aligned or hold anything.
    unsafe { pointer.write_unaligned(value) };
    Ok(())
}

fn options(given: &FfiClientOptions) -> Result<client::BlockClientOptions> {
    let transport = match given.transport {
        0 => BlockDataTransport::Tcp,
        1 => BlockDataTransport::Udp,
        2 => BlockDataTransport::Rtp,
        3 => BlockDataTransport::Blast,
        other => {
            return Err(Error::input(format!("unknown transport {other}"))
                .hint("0 is TCP, 1 UDP, 2 RTP, 3 blast"));
        }
    };
    if given.reserved != 0 {
        return Err(Error::input("reserved bits of the options are not zero")
            .hint("zero-initialise the options first"));
    }
    let receive_buffer = usize::try_from(given.receive_buffer)
        .ok()
        .filter(|bytes| *bytes > 0);
    Ok(client::BlockClientOptions {
        transport,
        age: (given.age_ns > 0).then_some(given.age_ns),
        receive_buffer,
        pace: (given.pace > 0).then_some(given.pace),
        check: given.no_check == 0,
        report: given.report != 0,
        ..client::BlockClientOptions::default()
    })
}

/// Connects to a master, to read.
///
/// # Safety
/// `master` ends with a zero; `given` is null or valid; `number` is valid for a write.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn blockclient_connect(
    master: *const c_char,
    given: *const FfiClientOptions,
    number: *mut u64,
) -> i32 {
    guarded(|| {
        if number.is_null() {
            return Err(none("the client"));
        }
        // SAFETY: as the caller promises.
        let master = unsafe { text(master, "the master's address") }?;
        let given = if given.is_null() {
            FfiClientOptions::default()
        } else {
            // SAFETY: valid for a read where it is not null, as the caller promises.
            unsafe { given.read_unaligned() }
        };
        let session = client_session::connect(master, options(&given)?)?;
        // SAFETY: as the caller promises.
        unsafe { put(number, session, "the client") }?;
        Ok(0)
    })
}

/// Closes a client.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn blockclient_close(number: u64) -> i32 {
    guarded(|| client_session::close(number).map(|()| 0))
}

/// Opens a set.
///
/// # Safety
/// `name` ends with a zero; `set` is valid for a write.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn blockclient_open(
    number: u64,
    name: *const c_char,
    set: *mut FfiDataSet,
) -> i32 {
    guarded(|| {
        if set.is_null() {
            return Err(none("the set"));
        }
        // SAFETY: as the caller promises.
        let name = unsafe { text(name, "the set's name") }?;
        let open = client_session::find_session(number)?.open(name)?;
        let about = &open.about;
        let shape = FfiDataSet {
            id: open.id,
            block_size: about.block_size,
            blocks: about.blocks(),
            bytes: about.bytes,
        };
        // SAFETY: as the caller promises.
        unsafe { put(set, shape, "the set") }?;
        Ok(0)
    })
}

/// Requests blocks.
///
/// # Safety
/// `blocks` is valid for `count` numbers.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn blockclient_request(
    number: u64,
    set: u32,
    blocks: *const u64,
    count: u64,
    supersedes: i32,
) -> i32 {
    guarded(|| {
        let blocks = if count == 0 {
            Vec::new()
        } else if blocks.is_null() {
            return Err(none("the list"));
        } else {
            let count = usize::try_from(count).map_err(|_| Error::input("the list is too long"))?;
            // SAFETY: as the caller promises.
            unsafe { std::slice::from_raw_parts(blocks, count) }.to_vec()
        };
        client_session::find_session(number)?
            .request(set, blocks, supersedes != 0)
            .map(|()| 0)
    })
}

/// Wraps the caller's C function as a predictor.
fn predicting(function: PredictionCallback, context: CallbackContext) -> ClientPredictor {
    Box::new(move |list: &[u64]| {
        // This captures the whole struct, which is `Send`, and not the pointer alone.
        let whole = context;
        let mut next = vec![0; stackline_blocks::limits::LONGEST_LIST];
        let (count, room) = (list.len() as u64, next.len() as u64);
        // SAFETY: both arrays are as long as said, and the header asks for a function that keeps to it.
        let named = unsafe { function(whole.0, list.as_ptr(), count, next.as_mut_ptr(), room) };
        next.truncate(usize::try_from(named).unwrap_or(0));
        next
    })
}

/// From here on the blocks that the function names are requested after each list of the set; a null function ends this.
///
/// # Safety
/// The function may be called with `context` by any thread that calls [`blockclient_request`], until another is given.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn blockclient_predict(
    number: u64,
    set: u32,
    function: Option<PredictionCallback>,
    context: *mut c_void,
    most: u32,
) -> i32 {
    guarded(|| {
        let predict = function.map(|function| predicting(function, CallbackContext(context)));
        let most = (most > 0).then_some(most as usize);
        client_session::find_session(number)?
            .predict(set, most, predict)
            .map(|()| 0)
    })
}

/// Waits for the next event: 1 if there is one, 0 if the time is over.
///
/// # Safety
/// `event` is valid for a write.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn blockclient_next(
    number: u64,
    within_ns: i64,
    event: *mut FfiClientEvent,
) -> i32 {
    guarded(|| {
        if event.is_null() {
            return Err(none("the event"));
        }
        let within = u64::try_from(within_ns).ok().map(Duration::from_nanos);
        let happened = client_session::find_session(number)?.next(within)?;
        let shape = happened.map(convert_event);
        // SAFETY: as the caller promises.
        unsafe { put(event, shape.unwrap_or_default(), "the event") }?;
        Ok(i32::from(shape.is_some()))
    })
}

/// Frees the memory of an event and clears it, so that a second call does nothing.
///
/// # Safety
/// `event` is null, or what [`blockclient_next`] wrote and nobody changed.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn blockclient_free(event: *mut FfiClientEvent) {
    if event.is_null() {
        return;
    }
    // SAFETY: as the caller promises.
    let shape = unsafe { event.read_unaligned() };
    // SAFETY: the owner is what `convert_event` made, and is cleared below, so it is freed once.
    unsafe { event::free(shape.owner) };
    // SAFETY: as the caller promises.
    unsafe { event.write_unaligned(FfiClientEvent::default()) };
}

/// The number of blocks of a set that are wanted and have not come, or a negative error.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn blockclient_waiting(number: u64, set: u32) -> i64 {
    let mut waiting = 0;
    let failed = guarded(|| {
        waiting = client_session::find_session(number)?.client().waiting(set);
        Ok(0)
    });
    if failed < 0 {
        failed.into()
    } else {
        i64::try_from(waiting).unwrap_or(i64::MAX)
    }
}

/// Reads blocks `first` to `first + count` at full speed into `memory`.
///
/// # Safety
/// `memory` is valid for writes of `size` bytes; the function may be called with `context`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn blockclient_read(
    number: u64,
    set: u32,
    first: u64,
    count: u64,
    memory: *mut c_void,
    size: u64,
    progress: Option<ProgressCallback>,
    context: *mut c_void,
) -> i32 {
    guarded(|| {
        let session = client_session::find_session(number)?;
        let set = session.set(set)?;
        let (block, end) = (u64::from(set.about.block_size), first.saturating_add(count));
        if end > set.about.blocks() {
            let words = format!(
                "{}: block count {}, but range ends at {end}",
                set.about.name,
                set.about.blocks()
            );
            return Err(Error::input(words));
        }
        let all = end
            .saturating_mul(block)
            .min(set.about.bytes)
            .saturating_sub(first.saturating_mul(block));
        if memory.is_null() && all > 0 {
            return Err(none("the memory"));
        }
        if size < all {
            return Err(Error::input(format!(
                "cannot fit {all} bytes into {size} bytes"
            )));
        }
        let mut done = 0;
        range_read::read_range(
            session.client(),
            &set,
            first,
            count,
            |block_number, data| {
                let at = usize::try_from((block_number - first) * block).unwrap_or(usize::MAX);
                // SAFETY: the block lies within `all` bytes, which were compared with the caller's `size`.
                unsafe {
                    memory
                        .cast::<u8>()
                        .add(at)
                        .copy_from_nonoverlapping(data.as_ptr(), data.len())
                };
                done += data.len() as u64;
                // SAFETY: the header asks for a function that may be called with its context.
                let stop = progress.map_or(0, |progress| unsafe { progress(context, done, all) });
                if stop == 0 {
                    Ok(())
                } else {
                    Err(Error::interrupted())
                }
            },
        )
        .map(|()| 0)
    })
}

/// Plays blocks `first` to `first + count`: `give` is called with each when it is due.
///
/// # Safety
/// `pace` is valid for a read, `played` null or valid for a write; the function may be called with `context`.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn blockclient_play(
    number: u64,
    set: u32,
    first: u64,
    count: u64,
    pace: *const FfiPlayoutOptions,
    give: Option<Give>,
    context: *mut c_void,
    played: *mut FfiPlayoutCounts,
) -> i32 {
    guarded(|| {
        let (Some(give), false) = (give, pace.is_null()) else {
            return Err(none("the pace or the function"));
        };
        // SAFETY: as the caller promises.
        let pace = unsafe { pace.read_unaligned() };
        let session = client_session::find_session(number)?;
        let set = session.set(set)?;
        let pace = block_playout::BlockPlayoutOptions {
            numbers: first..first.saturating_add(count),
            depth: pace.depth as usize,
            interval: stackline_core::time::Duration(pace.interval_ns),
            missing: if pace.wait == 0 {
                MissingBlockPolicy::Skip
            } else {
                MissingBlockPolicy::Wait
            },
        };
        let counts = block_playout::play(session.client(), &set, &pace, |block_number, block| {
            let data = block.as_ref().map_or(&[][..], |block| &block.data);
            let pointer = if block.is_some() {
                data.as_ptr()
            } else {
                std::ptr::null()
            };
            // SAFETY: the block lives for the call, and the header asks for a function that may be called with its context.
            let stop = unsafe { give(context, block_number, pointer, data.len() as u64) };
            if stop == 0 {
                Ok(())
            } else {
                Err(Error::interrupted())
            }
        })?;
        if !played.is_null() {
            let block_playout::BlockPlayoutCounts {
                late,
                skipped,
                stalls,
            } = counts;
            // SAFETY: as the caller promises.
            unsafe {
                put(
                    played,
                    FfiPlayoutCounts {
                        late,
                        skipped,
                        stalls,
                    },
                    "what was played",
                )
            }?;
        }
        Ok(0)
    })
}

/// The message of the last error of this thread.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn blockclient_error() -> *const c_char {
    fault::sentence()
}

/// The hint of the last error of this thread; empty if there is none.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn blockclient_hint() -> *const c_char {
    fault::hint()
}
