//! Observes what started programs do at their sockets, by stopping them at each call that may send or receive (seccomp(2),
//! ptrace(2)). It needs no root, and sees statically linked programs too.
//!
//! | module | one idea |
//! | --- | --- |
//! | `contents` | the bytes that a call sent or received, from the memory of its thread |
//! | [`record`] | the records, and the pipe from the process that stops the program to the one that reads them |
//! | [`tracee_setup`] | the program's side: waits until it is traced, then lets itself be stopped |
//! | [`tracer`] | the tracing side: stops threads, looks at their calls, lets them go on |
//! | `socket` | which socket a descriptor of another process refers to |
//!
//! The two stops of a call cost the program about 25 us, so this is used where the kernel's trace events ([`super::sockets`]) are
//! not available. It does not see io_uring, the single datagrams of calls that carry several, nor when threads run.

mod contents;
pub mod record;
mod socket;
pub mod tracee_setup;
pub mod tracer;
