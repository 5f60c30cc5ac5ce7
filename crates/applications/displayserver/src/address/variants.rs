//! The kinds of addresses of displays. What each can do is in the file of its scheme.

use crate::papers::ngp::{NgpChangeDelivery, NgpSentDefinitions};
use stackline_guard::secret::Secret;
use std::path::PathBuf;

/// The address of a display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DisplayAddress {
    /// The path of a unix socket.
    Unix(PathBuf),
    /// The other end of this program's terminal.
    Terminal,
    /// The other ends of this program's standard output and input.
    Pipe,
    /// A host and a UDP port, by V's messages.
    Messages(String),
    /// A host and a UDP port, by PUP streams.
    Pup(String),
    /// A host and a UDP port, by blast streams.
    Blast(String),
    /// Through an internet server: its secret, if known, its host and port, and the address that it connects to.
    Vio(DisplayAddressSecret, String, Box<Self>),
    /// A stream with the network graphics protocol on it.
    Ngp(Box<Self>, NgpSentDefinitions, NgpChangeDelivery),
    /// A host and a TCP port. Every text that belongs to no other scheme is one, or an error.
    Tcp(String),
}

/// The secret that belongs to an address. It is never written as part of the address.
#[derive(Clone, Debug, Default)]
pub struct DisplayAddressSecret(pub(crate) Option<Secret>);

impl PartialEq for DisplayAddressSecret {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(own), Some(other)) => own.is(other.bytes()),
            (None, None) => true,
            _ => false,
        }
    }
}

impl Eq for DisplayAddressSecret {}
