//! Options of every simulated stack over IP.

use stackline_core::catalogue::{OptionKind, OptionTable};

/// How the packets of both ends are marked, for queues with classes.
pub(crate) const DSCP: OptionTable = OptionTable::new(
    "dscp",
    OptionKind::Number(0, 63),
    "0, best effort",
    "the packets' code point (RFC 2474) from both ends: 46 is EF, 8 is CS1",
);
