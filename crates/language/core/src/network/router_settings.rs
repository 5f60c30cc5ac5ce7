//! What makes a node a router: static routes, answers by ICMP, address translation, a stateful firewall.

use crate::time::Duration;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// The properties of a router beside those that it has as a switch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouterSettings {
    /// Whether it sends no ICMP at all: neither errors nor echo replies. A path with such a router can be a black hole
    /// for packets that are too large (RFC 2923, section 2.1).
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub silent: bool,
    /// Its address translation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nat: Option<NatSettings>,
    /// Its stateful firewall.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firewall: Option<FirewallSettings>,
}

/// Translation of source addresses and ports (NAT44): one address, the router's, stands for all that is not behind the
/// link to `outside`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NatSettings {
    /// The neighbour to which packets leave with translated addresses.
    pub outside: String,
    /// A translation not used for so long is forgotten.
    pub timeout: Duration,
    /// The largest number of translations: pairs of an inner and an outer address and port.
    pub entries: u32,
}

/// A firewall that lets through only what belongs to a connection that was begun from the inside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FirewallSettings {
    /// The neighbour from which nothing comes unasked.
    pub outside: String,
    /// A connection without packets for so long is forgotten.
    pub idle: Duration,
    /// The largest number of connections that it knows at once.
    pub entries: u32,
    /// Whether what it refuses is answered with ICMP "administratively prohibited" instead of silence.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub rejects: bool,
}

/// A route written at a node; it overrides the shortest path there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StaticRoute {
    /// The host it leads to; all for which the node has no other static route when absent.
    pub to: Option<String>,
    /// The neighbours that are next; each flow keeps to one of them.
    pub via: Vec<String>,
}

impl NatSettings {
    /// Default time-out: five minutes, as RFC 4787 (REQ-5) recommends for UDP.
    pub const TIMEOUT: Duration = Duration(300_000_000_000);
    /// Default size of the table.
    pub const ENTRIES: u32 = 4096;
}

impl FirewallSettings {
    /// Default idle time-out: five minutes.
    pub const IDLE: Duration = Duration(300_000_000_000);
    /// Default size of the table.
    pub const ENTRIES: u32 = 4096;
}
