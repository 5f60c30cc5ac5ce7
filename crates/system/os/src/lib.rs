//! The operating system, once: system calls that the standard library has no safe door for, and what this machine's kernel says of a process.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`slot_rings`], [`frame_ring`], [`block_ring`] | frames of packet sockets in memory that is shared with the kernel |
//! | [`frame_batch`] | many frames in with one call |
//! | [`packet_socket`], [`foreign_socket`] | packet sockets: interface, protocol, counts; one in another user namespace |
//! | [`bpf`] | programs of classic BPF, assembled |
//! | [`message_batch`], [`datagram_batch`], [`receive_buffers`] | many messages out and in with one call, cut and joined by the kernel |
//! | [`stream_socket`], [`socket_option`], [`tcp_info`] | what is sent and received straight, options, `struct tcp_info` |
//! | [`clock`], [`epoll`], [`readiness`], [`adjtimex`] | clocks, and waiting to the nanosecond |
//! | [`thread`], [`affinity`], [`coroutine`], [`memory`] | how threads are scheduled, interrupted, placed and set aside; how the allocator keeps memory |
//! | [`fork`], [`spawn`], [`descriptors`] | processes and what they inherit |
//! | [`own_control_groups`], [`cgroup_formats`], [`mounts`], [`root_directory`] | control groups above this process, and the files that say so |
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
    adjtimex, block_ring, clock, coroutine, datagram_batch, descriptors, epoll, foreign_socket,
    fork, frame_batch, frame_ring, memory, message_batch, packet_socket, receive_buffers,
    slot_rings, socket_option, spawn, stream_socket, thread,
};
