//! What programs that are started here do at their sockets, by stopping them at each call that may send or receive (seccomp(2),
//! ptrace(2)). It needs no root and sees static programs too.
//!
//! | module | one idea |
//! | --- | --- |
//! | `contents` | what a call sent or received, from the memory of its thread |
//! | [`record`] | what is recorded, and how it passes from the process that stops the program to the one that keeps it |
//! | [`tracee_setup`] | the program's side: waits until it is traced, then lets itself be stopped |
//! | [`tracer`] | the other side: stops, looks, lets go |
//! | `socket` | which socket a descriptor of another process is |
//!
//! Two stops a call cost the program some 25 us, so this is for where the kernel's trace events ([`super::sockets`]) are not to be had. It
//! does not see io_uring, what several datagrams in one call carry, nor when threads run.

mod contents;
pub mod record;
mod socket;
pub mod tracee_setup;
pub mod tracer;
