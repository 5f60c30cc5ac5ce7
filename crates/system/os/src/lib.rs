//! The interface to the operating system: safe functions for system calls that the standard library does not have, and what the kernel
//! reports of processes, control groups and mounts. Frames are link-layer packets.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`slot_rings`], [`frame_ring`], [`block_ring`] | frames of packet sockets in memory that is shared with the kernel |
//! | [`frame_batch`] | receives many frames with one call |
//! | [`packet_socket`], [`foreign_socket`] | packet sockets: interface, protocol, counts; a socket in another user namespace |
//! | [`bpf`] | an assembler for programs of classic BPF |
//! | [`message_batch`], [`datagram_batch`], [`receive_buffers`] | many messages with one call, segmented and coalesced by the kernel |
//! | [`stream_socket`], [`socket_option`], [`tcp_info`] | sending, receiving, socket options, `struct tcp_info` |
//! | [`clock`], [`epoll`], [`readiness`], [`adjtimex`] | clocks, and waiting to the nanosecond |
//! | [`thread`], [`affinity`], [`coroutine`], [`memory`] | scheduling and pinning threads; coroutines; the allocator |
//! | [`fork`], [`spawn`], [`close_on_exec`] | processes and what they inherit |
//! | [`plugin`] | stacks in shared libraries: the C interface of `clients/c/stackline_stack.h` |
//! | [`own_control_groups`], [`cgroup_formats`], [`mounts`], [`root_directory`] | control groups above this process, and their files |
//! | [`control_groups`] | groups of other processes, and the processes of a group |
//! | [`processor_share`] | a host's share of a processor, by a control group's quota |
//! | `sys` | the only unsafe code |

pub mod affinity;
pub mod bpf;
pub mod cgroup_formats;
pub mod control_groups;
pub mod mounts;
pub mod own_control_groups;
pub mod processor_share;
pub mod readiness;
pub mod root_directory;
mod sys;
pub mod tcp_info;

pub use sys::{
    adjtimex, block_ring, clock, close_on_exec, coroutine, datagram_batch, epoll, foreign_socket,
    fork, frame_batch, frame_ring, memory, message_batch, packet_socket, plugin, receive_buffers,
    slot_rings, socket_option, spawn, stream_socket, thread,
};
