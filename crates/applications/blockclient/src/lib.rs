//! The block server's client library for programs in C, and in Python over it: connect, open a set, ask for lists of blocks, take
//! them as they come, with the time stamps of every hop.
//!
//! It decides nothing: everything is `stackline_blockserver`'s client. What C sees is `clients/c/stackline_blockclient.h`; what
//! Python sees `python/stackline_blockclient.py`.
//!
//! | module | one idea |
//! | --- | --- |
//! | [`ffi_types`] | structures as the header has them |
//! | [`client_session`] | a client, its sets and predictions, behind a number |
//! | `fault` | the sentence of the last error of a thread |
//! | `sys` | the functions that C calls |

pub mod client_session;
mod fault;
pub mod ffi_types;
mod sys;
