//! Which users may read what a command keeps.

use clap::Args;
use stackline_runs::RunFileAccess;

/// Access to what a command keeps.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct Sharing {
    /// Let all users of this machine read the kept run
    #[arg(long)]
    share: bool,
}

impl Sharing {
    /// Whether all users may.
    pub(crate) const fn is_shared(self) -> bool {
        self.share
    }

    /// Users that may read it.
    pub(crate) const fn access(self) -> RunFileAccess {
        if self.share {
            RunFileAccess::Shared
        } else {
            RunFileAccess::Private
        }
    }
}
