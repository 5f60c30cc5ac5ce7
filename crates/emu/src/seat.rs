//! Where a host of an emulated network is, for those who enter it. Plain data.

use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// A host that can be entered for as long as the emulator lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seat {
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// The user namespace to enter first, where the hosts have one.
    pub user: Option<PathBuf>,
    /// Its network namespace.
    pub net: PathBuf,
}
