//! Flags of `session`.

use clap::Args;

pub(crate) const AFTER: &str = "\
When stdin ends, requests are cancelled; after a last line {\"quit\": true} they are answered first. \
docs/JSON.md, section `session`, describes them. The Python package `stackline` sends them for you: docs/howto/PYTHON.md.";

#[derive(Args, Debug)]
pub(crate) struct SessionFlags {}
