//! Flags of `clean`.

use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct Clean {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
