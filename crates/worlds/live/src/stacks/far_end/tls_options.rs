//! The options of far ends over TLS.

use super::OPTIONS;
use stackline_core::catalogue::{OptionTable, StackTable};

const INSECURE: OptionTable = OptionTable::flag(
    "insecure",
    "believes any certificate, such as one of your own that this host does not trust",
);

/// Those of a protocol that begins with TLS.
pub(super) const TLS_OPTIONS: [OptionTable; 11] = StackTable::joined(&OPTIONS, &[INSECURE]);

/// Those of a protocol that changes to TLS once connected, if that is asked for.
pub(super) const UPGRADE_OPTIONS: [OptionTable; 12] = StackTable::joined(
    &OPTIONS,
    &[
        OptionTable::flag(
            "tls",
            "asks the server to go on in TLS 1.2 or 1.3, and checks its certificate",
        ),
        INSECURE,
    ],
);

/// What those need of each other.
pub(super) const UPGRADE_NEEDS: &[(&str, &str)] = &[("insecure", "tls")];
