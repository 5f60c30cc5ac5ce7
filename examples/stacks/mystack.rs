//! A stack for stackline in Rust: a Unix socket, with functions of its own for calls and bulk transfers. It needs the standard library alone.
//!
//! ```sh
//! rustc --edition 2024 -O --crate-type cdylib -o mystack.so examples/stacks/mystack.rs
//! stackline run -e '5 rr 32*1000 over unix, plugin("./mystack.so")'
//! ```
//!
//! The interface, with what a stack has to keep to, is `clients/c/stackline_stack.h`.
#![allow(non_camel_case_types)]

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::atomic::{AtomicU32, Ordering};

const VERSION: u32 = 1;

#[repr(C)]
pub struct stackline_endpoint {
    options: *const c_char,
    bind: *const c_char,
    replica: u32,
}

type Handle = *mut c_void;
type Stop = *const c_int;

#[repr(C)]
pub struct stackline_stack {
    version: u32,
    name: *const c_char,
    listen: unsafe extern "C" fn(*const stackline_endpoint, *mut c_char, *mut Handle) -> c_int,
    accept: unsafe extern "C" fn(Handle, Stop, *mut Handle) -> c_int,
    close_listener: unsafe extern "C" fn(Handle),
    connect: unsafe extern "C" fn(
        *const stackline_endpoint,
        *const c_char,
        Stop,
        *mut Handle,
    ) -> c_int,
    send: unsafe extern "C" fn(Handle, *const c_void, usize, Stop) -> i64,
    receive: unsafe extern "C" fn(Handle, *mut c_void, usize, Stop) -> i64,
    finish: unsafe extern "C" fn(Handle, Stop) -> c_int,
    close: unsafe extern "C" fn(Handle),
    last_error: unsafe extern "C" fn() -> *const c_char,
    call: unsafe extern "C" fn(Handle, *const c_void, usize, *mut c_void, usize, Stop) -> c_int,
    await_call: unsafe extern "C" fn(Handle, *mut c_void, usize, Stop) -> c_int,
    reply: unsafe extern "C" fn(Handle, *const c_void, usize, Stop) -> c_int,
    start_bulk: unsafe extern "C" fn(Handle, c_int, Stop) -> c_int,
    await_start_bulk: unsafe extern "C" fn(Handle, c_int, Stop) -> c_int,
    stop_bulk: unsafe extern "C" fn(Handle, c_int, Stop) -> c_int,
    await_stop_bulk: unsafe extern "C" fn(Handle, c_int, Stop) -> c_int,
}

// SAFETY: nothing in it changes.
unsafe impl Sync for stackline_stack {}

static STACK: stackline_stack = stackline_stack {
    version: VERSION,
    name: c"Unix socket in Rust 1.0".as_ptr(),
    listen,
    accept,
    close_listener,
    connect,
    send,
    receive,
    finish,
    close,
    last_error,
    call,
    await_call,
    reply,
    start_bulk,
    await_start_bulk,
    stop_bulk,
    await_stop_bulk,
};

#[unsafe(no_mangle)]
pub extern "C" fn stackline_stack(version: u32) -> *const stackline_stack {
    if version == VERSION {
        &raw const STACK
    } else {
        std::ptr::null()
    }
}

thread_local! {
    static WHY: RefCell<CString> = RefCell::default();
}

/// Keeps the error for `last_error`; -1.
fn failed<N: From<i8>>(error: &io::Error) -> N {
    WHY.set(CString::new(error.to_string()).unwrap_or_default());
    N::from(-1)
}

unsafe extern "C" fn last_error() -> *const c_char {
    WHY.with_borrow(|why| why.as_ptr())
}

/// An error if a call that was interrupted is to stop; the flag is read anew each time.
fn unless_stopped(stop: Stop) -> io::Result<()> {
    // SAFETY: stackline passes a flag that lives as long as the call.
    match unsafe { stop.read_volatile() } {
        0 => Ok(()),
        _ => Err(io::Error::other("stopped")),
    }
}

/// The value of an interruptible call, which is made again unless it is to stop.
fn uninterrupted<T>(stop: Stop, mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => unless_stopped(stop)?,
            result => return result,
        }
    }
}

unsafe extern "C" {
    fn poll(watched: *mut Polled, count: u64, timeout: c_int) -> c_int;
}

#[repr(C)]
struct Polled {
    fd: c_int,
    events: i16,
    came: i16,
}

/// Waits until a connection comes. The standard library's `accept` would go on after a signal.
fn wait(listener: &UnixListener, stop: Stop) -> io::Result<()> {
    const POLLIN: i16 = 1;
    let mut watched = Polled {
        fd: listener.as_raw_fd(),
        events: POLLIN,
        came: 0,
    };
    uninterrupted(stop, || {
        // SAFETY: one entry, as the count says.
        match unsafe { poll(&raw mut watched, 1, -1) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    })
}

fn give<T>(made: io::Result<T>, place: *mut Handle) -> c_int {
    match made {
        Ok(made) => {
            // SAFETY: stackline passes a place for the handle.
            unsafe { place.write(Box::into_raw(Box::new(made)).cast()) };
            0
        }
        Err(error) => failed(&error),
    }
}

fn done(result: io::Result<()>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(error) => failed(&error),
    }
}

/// 1 if something came, 0 if the peer has finished.
fn came(result: io::Result<bool>) -> c_int {
    match result {
        Ok(came) => c_int::from(came),
        Err(error) => failed(&error),
    }
}

unsafe extern "C" fn listen(
    endpoint: *const stackline_endpoint,
    address: *mut c_char,
    listener: *mut Handle,
) -> c_int {
    static LISTENERS: AtomicU32 = AtomicU32::new(0);
    // SAFETY: stackline passes a live endpoint.
    let replica = unsafe { (*endpoint).replica };
    let number = LISTENERS.fetch_add(1, Ordering::Relaxed);
    let name = format!("mystack-{}-{number}-{replica}", std::process::id());
    let made = SocketAddr::from_abstract_name(&name).and_then(|at| UnixListener::bind_addr(&at));
    // SAFETY: the address has room for 256 bytes, of which these are fewer.
    unsafe { address.copy_from_nonoverlapping(name.as_ptr().cast(), name.len()) };
    // SAFETY: as above.
    unsafe { address.add(name.len()).write(0) };
    give(made, listener)
}

unsafe extern "C" fn accept(listener: Handle, stop: Stop, connection: *mut Handle) -> c_int {
    // SAFETY: a handle that `listen` has given.
    let listener = unsafe { &*listener.cast::<UnixListener>() };
    let accepted = wait(listener, stop).and_then(|()| Ok(listener.accept()?.0));
    give(accepted, connection)
}

unsafe extern "C" fn close_listener(listener: Handle) {
    // SAFETY: a handle that `listen` has given; it is not used again.
    drop(unsafe { Box::from_raw(listener.cast::<UnixListener>()) });
}

unsafe extern "C" fn connect(
    _: *const stackline_endpoint,
    address: *const c_char,
    _: Stop,
    connection: *mut Handle,
) -> c_int {
    // SAFETY: stackline passes a C string.
    let name = unsafe { CStr::from_ptr(address) }.to_bytes();
    let made = SocketAddr::from_abstract_name(name).and_then(|to| UnixStream::connect_addr(&to));
    give(made, connection)
}

unsafe extern "C" fn close(connection: Handle) {
    // SAFETY: a handle that `accept` or `connect` has given; it is not used again.
    drop(unsafe { Box::from_raw(connection.cast::<UnixStream>()) });
}

/// The stream of a handle.
///
/// # Safety
/// The handle is one that `accept` or `connect` has given, and is not closed.
unsafe fn stream<'c>(connection: Handle) -> &'c UnixStream {
    // SAFETY: as the caller says.
    unsafe { &*connection.cast::<UnixStream>() }
}

fn send_all(mut stream: &UnixStream, mut bytes: &[u8], stop: Stop) -> io::Result<()> {
    while !bytes.is_empty() {
        let sent = uninterrupted(stop, || stream.write(bytes))?;
        bytes = &bytes[sent..];
    }
    Ok(())
}

/// Fills the room; false if the peer has finished before the first byte.
fn receive_all(mut stream: &UnixStream, room: &mut [u8], stop: Stop) -> io::Result<bool> {
    let mut have = 0;
    while have < room.len() {
        match uninterrupted(stop, || stream.read(&mut room[have..]))? {
            0 if have == 0 => return Ok(false),
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            got => have += got,
        }
    }
    Ok(true)
}

unsafe extern "C" fn send(to: Handle, bytes: *const c_void, count: usize, stop: Stop) -> i64 {
    // SAFETY: an open handle, and so many bytes.
    let (mut stream, bytes) =
        unsafe { (stream(to), std::slice::from_raw_parts(bytes.cast::<u8>(), count)) };
    match uninterrupted(stop, || stream.write(bytes)) {
        Ok(sent) => sent as i64,
        Err(error) => failed(&error),
    }
}

unsafe extern "C" fn receive(from: Handle, room: *mut c_void, most: usize, stop: Stop) -> i64 {
    // SAFETY: an open handle, and room for so many bytes, which stackline has filled before.
    let (mut stream, room) =
        unsafe { (stream(from), std::slice::from_raw_parts_mut(room.cast::<u8>(), most)) };
    match uninterrupted(stop, || stream.read(room)) {
        Ok(got) => got as i64,
        Err(error) => failed(&error),
    }
}

unsafe extern "C" fn finish(connection: Handle, _: Stop) -> c_int {
    // SAFETY: an open handle.
    match unsafe { stream(connection) }.shutdown(Shutdown::Write) {
        Err(error) if error.kind() != ErrorKind::NotConnected => failed(&error),
        _ => 0,
    }
}

unsafe extern "C" fn call(
    to: Handle,
    bytes: *const c_void,
    request: usize,
    room: *mut c_void,
    response: usize,
    stop: Stop,
) -> c_int {
    // SAFETY: an open handle, so many bytes, and room for so many.
    let (stream, bytes, room) = unsafe {
        (
            stream(to),
            std::slice::from_raw_parts(bytes.cast::<u8>(), request),
            std::slice::from_raw_parts_mut(room.cast::<u8>(), response),
        )
    };
    done(send_all(stream, bytes, stop).and_then(|()| {
        match receive_all(stream, room, stop)? {
            true => Ok(()),
            false => Err(ErrorKind::UnexpectedEof.into()),
        }
    }))
}

unsafe extern "C" fn await_call(
    from: Handle,
    room: *mut c_void,
    request: usize,
    stop: Stop,
) -> c_int {
    // SAFETY: an open handle, and room for so many bytes.
    let (stream, room) =
        unsafe { (stream(from), std::slice::from_raw_parts_mut(room.cast::<u8>(), request)) };
    came(receive_all(stream, room, stop))
}

unsafe extern "C" fn reply(to: Handle, bytes: *const c_void, response: usize, stop: Stop) -> c_int {
    // SAFETY: an open handle, and so many bytes.
    let (stream, bytes) =
        unsafe { (stream(to), std::slice::from_raw_parts(bytes.cast::<u8>(), response)) };
    done(send_all(stream, bytes, stop))
}

/// The byte that starts a bulk transfer; 1 is a put.
const fn start_of(direction: c_int) -> [u8; 1] {
    [if direction == 1 { b'p' } else { b'g' }]
}

unsafe extern "C" fn start_bulk(to: Handle, direction: c_int, stop: Stop) -> c_int {
    // SAFETY: an open handle.
    done(send_all(unsafe { stream(to) }, &start_of(direction), stop))
}

unsafe extern "C" fn await_start_bulk(from: Handle, direction: c_int, stop: Stop) -> c_int {
    let mut byte = [0];
    // SAFETY: an open handle.
    let received = receive_all(unsafe { stream(from) }, &mut byte, stop);
    came(received.and_then(|came| match !came || byte == start_of(direction) {
        true => Ok(came),
        false => Err(io::Error::other("the peer started another transfer")),
    }))
}

unsafe extern "C" fn stop_bulk(from: Handle, direction: c_int, stop: Stop) -> c_int {
    if direction == 0 {
        return 0;
    }
    // SAFETY: an open handle.
    done(match receive_all(unsafe { stream(from) }, &mut [0], stop) {
        Ok(false) => Err(ErrorKind::UnexpectedEof.into()),
        other => other.map(drop),
    })
}

unsafe extern "C" fn await_stop_bulk(to: Handle, direction: c_int, stop: Stop) -> c_int {
    match direction {
        // SAFETY: an open handle.
        1 => done(send_all(unsafe { stream(to) }, b"c", stop)),
        _ => 0,
    }
}
