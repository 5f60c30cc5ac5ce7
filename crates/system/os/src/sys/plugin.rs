//! Stacks in shared libraries: loads one and calls the functions of its table. The C interface, with what a library has to keep to, is
//! `clients/c/stackline_stack.h`; the layouts here are that header's.
//!
//! A library that breaks its word about memory breaks this process; nothing here can prevent that. It is why agents, which are processes
//! of their own, load libraries and the command does not.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::AtomicI32;

/// The version of the interface: `STACKLINE_STACK_VERSION` of the header.
pub const PLUGIN_VERSION: u32 = 1;
/// Bytes of an address, with the 0 at its end: `STACKLINE_ADDRESS_SIZE`.
const ADDRESS_SIZE: usize = 256;
/// Most bytes that are taken of a text of a library.
const MOST_TEXT: usize = 512;

/// `struct stackline_endpoint`.
#[repr(C)]
struct RawPluginEndpoint {
    options: *const c_char,
    bind: *const c_char,
    replica: u32,
}

type PluginStop = *const c_int;
type PluginHandle = *mut c_void;
type PluginFinish = unsafe extern "C" fn(PluginHandle, PluginStop) -> c_int;
type PluginClose = unsafe extern "C" fn(PluginHandle);
type PluginBulk = unsafe extern "C" fn(PluginHandle, c_int, PluginStop) -> c_int;

/// `struct stackline_stack`.
#[repr(C)]
struct RawPluginTable {
    version: u32,
    name: *const c_char,
    listen: Option<
        unsafe extern "C" fn(*const RawPluginEndpoint, *mut c_char, *mut PluginHandle) -> c_int,
    >,
    accept: Option<unsafe extern "C" fn(PluginHandle, PluginStop, *mut PluginHandle) -> c_int>,
    close_listener: Option<PluginClose>,
    connect: Option<
        unsafe extern "C" fn(
            *const RawPluginEndpoint,
            *const c_char,
            PluginStop,
            *mut PluginHandle,
        ) -> c_int,
    >,
    send: Option<unsafe extern "C" fn(PluginHandle, *const c_void, usize, PluginStop) -> i64>,
    receive: Option<unsafe extern "C" fn(PluginHandle, *mut c_void, usize, PluginStop) -> i64>,
    finish: Option<PluginFinish>,
    close: Option<PluginClose>,
    last_error: Option<unsafe extern "C" fn() -> *const c_char>,
    call: Option<
        unsafe extern "C" fn(
            PluginHandle,
            *const c_void,
            usize,
            *mut c_void,
            usize,
            PluginStop,
        ) -> c_int,
    >,
    await_call: Option<unsafe extern "C" fn(PluginHandle, *mut c_void, usize, PluginStop) -> c_int>,
    reply: Option<unsafe extern "C" fn(PluginHandle, *const c_void, usize, PluginStop) -> c_int>,
    start_bulk: Option<PluginBulk>,
    await_start_bulk: Option<PluginBulk>,
    stop_bulk: Option<PluginBulk>,
    await_stop_bulk: Option<PluginBulk>,
}

// SAFETY: the interface says that a table never changes and that its functions may be called by several threads at a time.
unsafe impl Sync for RawPluginTable {}

/// Why a library cannot be used as a stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginRefusal {
    /// The loader's words, without the path.
    NotLoaded(String),
    /// It exports no function `stackline_stack`.
    NoEntry,
    /// It says that it has not been made for [`PLUGIN_VERSION`].
    NotForThisVersion,
    /// Its table is of this version.
    OtherVersion(u32),
    /// It lacks this function, which every stack has.
    Lacks(&'static str),
    /// It has some functions of a group and lacks this one.
    HalfAGroup(&'static str),
}

/// What a function of a library did that is not a success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PluginFailure {
    /// It failed, with the library's own words, which may be empty.
    Failed(String),
    /// It returned what it may not return.
    Broke(String),
}

impl fmt::Display for PluginFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(why) | Self::Broke(why) => f.write_str(why),
        }
    }
}

/// The result of a function of a library.
pub type PluginResult<T> = Result<T, PluginFailure>;

/// A stack in a shared library that is loaded.
#[derive(Clone, Copy)]
pub struct PluginLibrary(&'static RawPluginTable);

/// Which endpoint a listener or a connection is of.
#[derive(Clone, Debug)]
pub struct PluginEndpoint {
    options: CString,
    bind: CString,
    replica: u32,
}

impl PluginEndpoint {
    /// With the options as text, the IP address to listen at and the number of the pair. Texts end where they have a 0.
    #[must_use]
    pub fn new(options: &str, bind: &str, replica: u32) -> Self {
        Self {
            options: c_text(options),
            bind: c_text(bind),
            replica,
        }
    }

    fn raw(&self) -> RawPluginEndpoint {
        RawPluginEndpoint {
            options: self.options.as_ptr(),
            bind: self.bind.as_ptr(),
            replica: self.replica,
        }
    }
}

/// A text as C has it.
fn c_text(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or_default()).unwrap_or_default()
}

impl PluginLibrary {
    /// Loads the library at this path, for good, and asks it for its table. A relative path begins at the working directory.
    ///
    /// # Errors
    /// A [`PluginRefusal`].
    pub fn load(path: &Path) -> Result<Self, PluginRefusal> {
        // Without a slash the loader would search the system's directories.
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        let name = CString::new(absolute.as_os_str().as_bytes()).unwrap_or_default();
        // SAFETY: the name is a live C string. What the library does as it is loaded is its own.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            let words = loader_words();
            let path = format!("{}: ", absolute.display());
            let words = words.strip_prefix(&path).unwrap_or(&words);
            return Err(PluginRefusal::NotLoaded(words.to_owned()));
        }
        // SAFETY: the handle is that of a loaded library, which is never unloaded; the name is a C string.
        let entry = unsafe { libc::dlsym(library, c"stackline_stack".as_ptr()) };
        if entry.is_null() {
            return Err(PluginRefusal::NoEntry);
        }
        // SAFETY: the interface says that this symbol is a function of this type.
        let entry = unsafe {
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(u32) -> *const RawPluginTable>(
                entry,
            )
        };
        // SAFETY: it is called as the interface says, and returns null or a table that stays valid and unchanged.
        let table = unsafe { entry(PLUGIN_VERSION).as_ref() };
        let table = table.ok_or(PluginRefusal::NotForThisVersion)?;
        if table.version != PLUGIN_VERSION {
            return Err(PluginRefusal::OtherVersion(table.version));
        }
        table.complete().map(|()| Self(table))
    }

    /// What it says that it is; empty if it says nothing.
    #[must_use]
    pub fn name(self) -> String {
        text_of(self.0.name)
    }

    /// Whether it has functions of its own for remote calls.
    #[must_use]
    pub const fn has_calls(self) -> bool {
        self.0.call.is_some()
    }

    /// Whether it has functions of its own for bulk transfers.
    #[must_use]
    pub const fn has_bulk(self) -> bool {
        self.0.start_bulk.is_some()
    }

    /// Opens a responder's end. Returns it with its address.
    ///
    /// # Errors
    /// A [`PluginFailure`].
    pub fn listen(self, endpoint: &PluginEndpoint) -> PluginResult<(PluginListener, String)> {
        let (raw, mut address) = (endpoint.raw(), [0_u8; ADDRESS_SIZE]);
        let mut handle = null_mut();
        let call = self.0.listen.ok_or_else(missing)?;
        // SAFETY: called as the interface says: all pointers are to live values, and the address has that many bytes.
        let returned =
            unsafe { call(&raw const raw, address.as_mut_ptr().cast(), &raw mut handle) };
        self.done(returned)?;
        let listener = PluginListener {
            library: self,
            handle: given(handle)?,
        };
        let address = CStr::from_bytes_until_nul(&address)
            .map_err(|_| broke("an address that does not end"))?
            .to_str()
            .map_err(|_| broke("an address that is not UTF-8"))?;
        Ok((listener, address.to_owned()))
    }

    /// Connects to a listener.
    ///
    /// # Errors
    /// A [`PluginFailure`].
    pub fn connect(
        self,
        endpoint: &PluginEndpoint,
        address: &str,
        stop: &AtomicI32,
    ) -> PluginResult<PluginChannel> {
        let (raw, address, mut handle) = (endpoint.raw(), c_text(address), null_mut());
        let call = self.0.connect.ok_or_else(missing)?;
        // SAFETY: called as the interface says: all pointers are to live values.
        let returned = unsafe {
            call(
                &raw const raw,
                address.as_ptr(),
                stop.as_ptr(),
                &raw mut handle,
            )
        };
        self.done(returned)?;
        Ok(PluginChannel {
            library: self,
            handle: given(handle)?,
        })
    }

    /// The failure that a function has just returned, with the library's words.
    #[cold]
    fn failure(self) -> PluginFailure {
        // SAFETY: called as the interface says, on the thread of the failed call.
        let words = self.0.last_error.map(|call| unsafe { call() });
        PluginFailure::Failed(words.map_or_else(String::new, text_of))
    }

    /// A function that returns 0 or -1.
    fn done(self, returned: c_int) -> PluginResult<()> {
        match returned {
            0 => Ok(()),
            -1 => Err(self.failure()),
            other => Err(broke(&format!("{other}, which is neither 0 nor -1"))),
        }
    }

    /// A function that returns 1, 0 or -1.
    fn came(self, returned: c_int) -> PluginResult<bool> {
        match returned {
            0 => Ok(false),
            1 => Ok(true),
            -1 => Err(self.failure()),
            other => Err(broke(&format!("{other}, which is none of 1, 0 and -1"))),
        }
    }

    /// A function that returns a number of bytes, at most `most`, or -1.
    #[inline]
    fn counted(self, returned: i64, most: usize) -> PluginResult<usize> {
        match usize::try_from(returned) {
            Ok(count) if count <= most => Ok(count),
            Err(_) if returned == -1 => Err(self.failure()),
            _ => Err(broke(&format!(
                "{returned}, although {most} bytes were passed"
            ))),
        }
    }
}

impl RawPluginTable {
    /// Checks that it has all functions that every stack has, and groups as a whole or not at all.
    fn complete(&self) -> Result<(), PluginRefusal> {
        let required = [
            ("listen", self.listen.is_some()),
            ("accept", self.accept.is_some()),
            ("close_listener", self.close_listener.is_some()),
            ("connect", self.connect.is_some()),
            ("send", self.send.is_some()),
            ("receive", self.receive.is_some()),
            ("finish", self.finish.is_some()),
            ("close", self.close.is_some()),
        ];
        if let Some((lacks, _)) = required.iter().find(|(_, is_there)| !is_there) {
            return Err(PluginRefusal::Lacks(lacks));
        }
        let calls = [
            ("call", self.call.is_some()),
            ("await_call", self.await_call.is_some()),
            ("reply", self.reply.is_some()),
        ];
        let bulk = [
            ("start_bulk", self.start_bulk.is_some()),
            ("await_start_bulk", self.await_start_bulk.is_some()),
            ("stop_bulk", self.stop_bulk.is_some()),
            ("await_stop_bulk", self.await_stop_bulk.is_some()),
        ];
        for group in [&calls[..], &bulk[..]] {
            let lacks = group.iter().find(|(_, is_there)| !is_there);
            if let Some((lacks, _)) = lacks.filter(|_| group.iter().any(|(_, is_there)| *is_there))
            {
                return Err(PluginRefusal::HalfAGroup(lacks));
            }
        }
        Ok(())
    }
}

/// A responder's end.
pub struct PluginListener {
    library: PluginLibrary,
    handle: NonNull<c_void>,
}

// SAFETY: the handle is used through `&mut self` alone, by one thread at a time; the endpoint that makes it is the only one to use it.
unsafe impl Send for PluginListener {}

impl PluginListener {
    /// Waits for the next connection.
    ///
    /// # Errors
    /// A [`PluginFailure`].
    pub fn accept(&mut self, stop: &AtomicI32) -> PluginResult<PluginChannel> {
        let mut handle = null_mut();
        let call = self.library.0.accept.ok_or_else(missing)?;
        // SAFETY: called as the interface says, with a handle that `listen` returned and that is not closed.
        let returned = unsafe { call(self.handle.as_ptr(), stop.as_ptr(), &raw mut handle) };
        self.library.done(returned)?;
        Ok(PluginChannel {
            library: self.library,
            handle: given(handle)?,
        })
    }
}

impl Drop for PluginListener {
    fn drop(&mut self) {
        if let Some(close) = self.library.0.close_listener {
            // SAFETY: the handle is one that `listen` returned; it is not used any more.
            unsafe { close(self.handle.as_ptr()) };
        }
    }
}

/// A connection.
pub struct PluginChannel {
    library: PluginLibrary,
    handle: NonNull<c_void>,
}

// SAFETY: as for `PluginListener`.
unsafe impl Send for PluginChannel {}

impl PluginChannel {
    /// The library that it is of.
    #[must_use]
    pub const fn library(&self) -> PluginLibrary {
        self.library
    }

    /// Sends some of the bytes, at least one. Returns how many.
    ///
    /// # Errors
    /// A [`PluginFailure`].
    #[inline]
    pub fn send(&mut self, bytes: &[u8], stop: &AtomicI32) -> PluginResult<usize> {
        let (to, call) = (
            self.handle.as_ptr(),
            self.library.0.send.ok_or_else(missing)?,
        );
        // SAFETY: called as the interface says, with an open handle and so many readable bytes.
        let returned = unsafe { call(to, bytes.as_ptr().cast(), bytes.len(), stop.as_ptr()) };
        match self.library.counted(returned, bytes.len())? {
            0 if !bytes.is_empty() => Err(broke("0, although it has to send at least one byte")),
            sent => Ok(sent),
        }
    }

    /// Receives some bytes, at least one. Returns how many; 0 when the peer has finished.
    ///
    /// # Errors
    /// A [`PluginFailure`].
    #[inline]
    pub fn receive(&mut self, room: &mut [u8], stop: &AtomicI32) -> PluginResult<usize> {
        let call = self.library.0.receive.ok_or_else(missing)?;
        let (from, most) = (self.handle.as_ptr(), room.len());
        // SAFETY: called as the interface says, with an open handle and room for so many bytes.
        let returned = unsafe { call(from, room.as_mut_ptr().cast(), most, stop.as_ptr()) };
        self.library.counted(returned, most)
    }

    /// Says that no more is sent.
    ///
    /// # Errors
    /// A [`PluginFailure`].
    pub fn finish(&mut self, stop: &AtomicI32) -> PluginResult<()> {
        let call = self.library.0.finish.ok_or_else(missing)?;
        // SAFETY: called as the interface says, with an open handle.
        self.library
            .done(unsafe { call(self.handle.as_ptr(), stop.as_ptr()) })
    }

    /// Sends a request and waits for the response, which fills the room.
    ///
    /// # Errors
    /// A [`PluginFailure`].
    pub fn call(
        &mut self,
        request: &[u8],
        response: &mut [u8],
        stop: &AtomicI32,
    ) -> PluginResult<()> {
        let call = self.library.0.call.ok_or_else(missing)?;
        let (handle, bytes, room) = (
            self.handle.as_ptr(),
            request.as_ptr().cast(),
            response.as_mut_ptr().cast(),
        );
        // SAFETY: called as the interface says, with an open handle, so many readable bytes and room for so many.
        let returned = unsafe {
            call(
                handle,
                bytes,
                request.len(),
                room,
                response.len(),
                stop.as_ptr(),
            )
        };
        self.library.done(returned)
    }

    /// Waits for a request that fills the room; false when the peer has finished.
    ///
    /// # Errors
    /// A [`PluginFailure`].
    pub fn await_call(&mut self, room: &mut [u8], stop: &AtomicI32) -> PluginResult<bool> {
        let call = self.library.0.await_call.ok_or_else(missing)?;
        let (handle, most) = (self.handle.as_ptr(), room.len());
        // SAFETY: called as the interface says, with an open handle and room for so many bytes.
        let returned = unsafe { call(handle, room.as_mut_ptr().cast(), most, stop.as_ptr()) };
        self.library.came(returned)
    }

    /// Sends a response.
    ///
    /// # Errors
    /// A [`PluginFailure`].
    pub fn reply(&mut self, response: &[u8], stop: &AtomicI32) -> PluginResult<()> {
        let call = self.library.0.reply.ok_or_else(missing)?;
        let (handle, bytes) = (self.handle.as_ptr(), response.as_ptr().cast());
        // SAFETY: called as the interface says, with an open handle and so many readable bytes.
        let returned = unsafe { call(handle, bytes, response.len(), stop.as_ptr()) };
        self.library.done(returned)
    }

    /// Starts a bulk transfer: a put, or else a get.
    ///
    /// # Errors
    /// A [`PluginFailure`].
    pub fn start_bulk(&mut self, is_put: bool, stop: &AtomicI32) -> PluginResult<()> {
        let returned = self.bulk(self.library.0.start_bulk, is_put, stop)?;
        self.library.done(returned)
    }

    /// Waits for the start of a bulk transfer; false when the peer has finished.
    ///
    /// # Errors
    /// A [`PluginFailure`].
    pub fn await_start_bulk(&mut self, is_put: bool, stop: &AtomicI32) -> PluginResult<bool> {
        let returned = self.bulk(self.library.0.await_start_bulk, is_put, stop)?;
        self.library.came(returned)
    }

    /// Ends a bulk transfer.
    ///
    /// # Errors
    /// A [`PluginFailure`].
    pub fn stop_bulk(&mut self, is_put: bool, stop: &AtomicI32) -> PluginResult<()> {
        let returned = self.bulk(self.library.0.stop_bulk, is_put, stop)?;
        self.library.done(returned)
    }

    /// Waits for the end of a bulk transfer.
    ///
    /// # Errors
    /// A [`PluginFailure`].
    pub fn await_stop_bulk(&mut self, is_put: bool, stop: &AtomicI32) -> PluginResult<()> {
        let returned = self.bulk(self.library.0.await_stop_bulk, is_put, stop)?;
        self.library.done(returned)
    }

    fn bulk(
        &self,
        call: Option<PluginBulk>,
        is_put: bool,
        stop: &AtomicI32,
    ) -> PluginResult<c_int> {
        let call = call.ok_or_else(missing)?;
        // SAFETY: called as the interface says, with an open handle and a direction of the header's.
        Ok(unsafe { call(self.handle.as_ptr(), c_int::from(is_put), stop.as_ptr()) })
    }
}

impl Drop for PluginChannel {
    fn drop(&mut self) {
        if let Some(close) = self.library.0.close {
            // SAFETY: the handle is one that `accept` or `connect` returned; it is not used any more.
            unsafe { close(self.handle.as_ptr()) };
        }
    }
}

/// The failure of a function that the library lacks; who calls it has asked whether it is there.
#[cold]
fn missing() -> PluginFailure {
    PluginFailure::Broke("it lacks that function".into())
}

/// The failure of a function that returned what it may not return.
#[cold]
fn broke(what: &str) -> PluginFailure {
    PluginFailure::Broke(format!("it returned {what}"))
}

/// A handle that a function has returned with success.
fn given(handle: PluginHandle) -> PluginResult<NonNull<c_void>> {
    NonNull::new(handle).ok_or_else(|| broke("success without a handle"))
}

/// The loader's words on what failed last on this thread.
fn loader_words() -> String {
    // SAFETY: returns null or a C string that is valid until the next call of the loader on this thread.
    let words = unsafe { libc::dlerror() };
    text_of(words)
}

/// A text of a library, cut after [`MOST_TEXT`] bytes; without control characters.
fn text_of(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the interface says that it is a C string; at most so many bytes before its end are read.
    let length = unsafe { libc::strnlen(text, MOST_TEXT) };
    // SAFETY: so many bytes were read just now.
    let bytes = unsafe { std::slice::from_raw_parts(text.cast::<u8>(), length) };
    let words = String::from_utf8_lossy(bytes);
    words.replace(char::is_control, " ").trim().to_owned()
}
