//! A client library of the block server for programs in C, and in Python through it: connect, open a set, request lists of blocks, and
//! receive them as they come, with the time stamps of every step of their way.
//!
//! It only wraps the client of `stackline_blockserver`. The C interface is `clients/c/stackline_blockclient.h`, the Python one
//! `python/stackline_blockclient.py`.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`ffi_types`] | the structures of the C header |
//! | [`client_session`] | a client with its open sets and predictions, named by a number |
//! | `fault` | the message of each thread's last error |
//! | `sys` | the functions that C calls |

pub mod client_session;
mod fault;
pub mod ffi_types;
mod sys;
