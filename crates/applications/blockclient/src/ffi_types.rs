//! Structures as `stackline_blockclient.h` has them. A test compares their sizes and places.

use std::ffi::c_char;

/// What a client is like; zero is what is usual.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct FfiClientOptions {
    /// 0 TCP, 1 UDP, 2 RTP, 3 blast.
    pub transport: u32,
    /// 1: checksums of blocks are not compared.
    pub no_check: u32,
    /// 1: servers tell what a newer list discards.
    pub report: u32,
    /// Zero.
    pub reserved: u32,
    /// Blocks that were asked for longer ago are dropped at the server, ns; 0: never.
    pub age_ns: u64,
    /// Bytes of the receive buffer of each connection; 0: the system's.
    pub receive_buffer: u64,
    /// Bytes a second at which the datagrams of each server leave, of UDP and RTP; 0: as fast as they can.
    pub pace: u64,
}

/// A set that is open.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct FfiDataSet {
    /// Its number.
    pub id: u32,
    /// Bytes of each block but the last.
    pub block_size: u32,
    /// How many blocks it has.
    pub blocks: u64,
    /// Bytes of all of them.
    pub bytes: u64,
}

/// How blocks are played.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct FfiPlayoutOptions {
    /// One is due so long after the one before.
    pub interval_ns: u64,
    /// It begins when so many are held.
    pub depth: u32,
    /// 1: one that is not there when it is due is waited for; 0: it is skipped.
    pub wait: u32,
}

/// What became of blocks that were not there in time.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct FfiPlayoutCounts {
    /// They came behind their turn.
    pub late: u64,
    /// They were left out.
    pub skipped: u64,
    /// All stood still so often.
    pub stalls: u64,
}

/// [`FfiClientEvent::kind`]: a block came.
pub const BLOCK: i32 = 1;
/// A block will not come; `words` says why.
pub const FAILED: i32 = 2;
/// A newer list discarded `count` blocks: `units`.
pub const FLUSHED: i32 = 3;
/// The server `words` is gone.
pub const SERVER_GONE: i32 = 4;
/// The server `words` is there.
pub const SERVER_CAME: i32 = 5;
/// The master is gone; sets that are open are read on.
pub const MASTER_GONE: i32 = 6;

/// What happened. Times are ns since the Epoch, 0 where there is none.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FfiClientEvent {
    /// What it is.
    pub kind: i32,
    /// Of which set.
    pub set: u32,
    /// The block's number in the set.
    pub number: u64,
    /// The block's unit: that of its list's first block, and its place there.
    pub unit: u64,
    /// Its list.
    pub serial: u64,
    /// Whose block it is.
    pub server: u16,
    /// On which disk.
    pub disk: u16,
    /// Whether it was still wanted.
    pub wanted: u8,
    /// Whether it was in the server's memory.
    pub cached: u8,
    /// Zero.
    pub reserved: u16,
    /// When the list was sent.
    pub app_send: u64,
    /// When it was at the master.
    pub master_in: u64,
    /// When it left the master.
    pub master_out: u64,
    /// When it was at the server.
    pub server_in: u64,
    /// When reading began.
    pub start_read: u64,
    /// When reading ended.
    pub end_read: u64,
    /// When writing began.
    pub start_write: u64,
    /// When the block had come whole.
    pub app_receive: u64,
    /// A block before it over the same connection, by its unit, and when its writing ended.
    pub before: u64,
    /// See `before`.
    pub before_end_write: u64,
    /// The block's bytes.
    pub data: *const u8,
    /// How many they are.
    pub length: u64,
    /// Units of discarded blocks.
    pub units: *const u64,
    /// How many they are.
    pub count: u64,
    /// A name or a reason.
    pub words: *const c_char,
    /// What holds `data`, `units` and `words`.
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
