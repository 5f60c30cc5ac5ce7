//! The structures of `stackline_blockclient.h`. A test compares their sizes and field offsets with the header.

use std::ffi::c_char;

/// The options of a client; zero means the default.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct FfiClientOptions {
    /// 0 TCP, 1 UDP, 2 RTP, 3 blast.
    pub transport: u32,
    /// 1: the checksums of blocks are not compared.
    pub no_check: u32,
    /// 1: servers report which blocks a newer list discards.
    pub report: u32,
    /// Must be zero.
    pub reserved: u32,
    /// Blocks that were requested longer ago than this are dropped at the server, ns; 0: none.
    pub age_ns: u64,
    /// Bytes of the receive buffer of each connection; 0: the system's default.
    pub receive_buffer: u64,
    /// Bytes per second at which the datagrams of each server leave, for UDP and RTP; 0: as fast as possible.
    pub pace: u64,
}

/// An open set.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct FfiDataSet {
    /// Its number.
    pub id: u32,
    /// Bytes of each block except the last.
    pub block_size: u32,
    /// The number of blocks.
    pub blocks: u64,
    /// Bytes of all blocks together.
    pub bytes: u64,
}

/// How a range of blocks is played.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct FfiPlayoutOptions {
    /// The time between two blocks, ns.
    pub interval_ns: u64,
    /// Playing begins when this many blocks are held.
    pub depth: u32,
    /// 1: a block that is missing when it is due is waited for; 0: it is skipped.
    pub wait: u32,
}

/// Counts of blocks that were not there in time.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct FfiPlayoutCounts {
    /// Blocks that came after their turn.
    pub late: u64,
    /// Blocks that were skipped.
    pub skipped: u64,
    /// How often playing stopped to wait for a block.
    pub stalls: u64,
}

/// [`FfiClientEvent::kind`]: a block came.
pub const BLOCK: i32 = 1;
/// [`FfiClientEvent::kind`]: a block will not come; `words` says why.
pub const FAILED: i32 = 2;
/// [`FfiClientEvent::kind`]: a newer list discarded `count` blocks, whose units are in `units`.
pub const FLUSHED: i32 = 3;
/// [`FfiClientEvent::kind`]: the server named `words` is gone.
pub const SERVER_GONE: i32 = 4;
/// [`FfiClientEvent::kind`]: the server named `words` is there.
pub const SERVER_CAME: i32 = 5;
/// [`FfiClientEvent::kind`]: the master is gone; open sets can still be read.
pub const MASTER_GONE: i32 = 6;

/// An event. Times are in ns since the Epoch, 0 where there is none.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FfiClientEvent {
    /// The kind of event, [`BLOCK`] to [`MASTER_GONE`]; 0: none.
    pub kind: i32,
    /// The number of the set.
    pub set: u32,
    /// The block's number in the set.
    pub number: u64,
    /// The block's unit: the unit of its list's first block plus its index in the list.
    pub unit: u64,
    /// The serial number of the list.
    pub serial: u64,
    /// The number of the server.
    pub server: u16,
    /// The number of the disk on that server.
    pub disk: u16,
    /// Whether the block was still wanted: 1 or 0.
    pub wanted: u8,
    /// Whether the server had the block in its cache: 1 or 0.
    pub cached: u8,
    /// Zero.
    pub reserved: u16,
    /// When the application sent the list.
    pub app_send: u64,
    /// When the master received the list.
    pub master_in: u64,
    /// When the master sent the list on.
    pub master_out: u64,
    /// When the server received the list.
    pub server_in: u64,
    /// When reading from disk began.
    pub start_read: u64,
    /// When reading ended.
    pub end_read: u64,
    /// When writing to the connection began.
    pub start_write: u64,
    /// When the whole block had come; for [`FLUSHED`], when the server discarded the blocks.
    pub app_receive: u64,
    /// The unit of an earlier block on the same connection; 0 if none is reported.
    pub before: u64,
    /// When the writing of that earlier block ended.
    pub before_end_write: u64,
    /// The block's bytes.
    pub data: *const u8,
    /// The number of bytes in `data`.
    pub length: u64,
    /// The units of discarded blocks.
    pub units: *const u64,
    /// The number of entries in `units`.
    pub count: u64,
    /// A server's name, or a reason.
    pub words: *const c_char,
    /// The memory of `data`, `units` and `words`, which `blockclient_free` frees.
    pub owner: *mut std::ffi::c_void,
}

impl Default for FfiClientEvent {
    fn default() -> Self {
        Self {
            kind: 0,
            set: 0,
            number: 0,
            unit: 0,
            serial: 0,
            server: 0,
            disk: 0,
            wanted: 0,
            cached: 0,
            reserved: 0,
            app_send: 0,
            master_in: 0,
            master_out: 0,
            server_in: 0,
            start_read: 0,
            end_read: 0,
            start_write: 0,
            app_receive: 0,
            before: 0,
            before_end_write: 0,
            data: std::ptr::null(),
            length: 0,
            units: std::ptr::null(),
            count: 0,
            words: std::ptr::null(),
            owner: std::ptr::null_mut(),
        }
    }
}
