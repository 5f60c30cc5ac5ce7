//! Who may read what a command keeps.

use clap::Args;
use stackline_runs::Access;

/// Who may read what a command keeps.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct Sharing {
    /// Let all users of this machine read the kept run
    #[arg(long)]
    share: bool,
}

impl Sharing {
    /// Who may read it.
    pub(crate) const fn access(self) -> Access {
        if self.share {
            Access::Shared
        } else {
            Access::Private
        }
    }
}
