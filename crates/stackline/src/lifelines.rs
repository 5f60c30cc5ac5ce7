//! `stackline lifelines`: where the time of each data unit of a kept run went.

use crate::exit::{Exit, Result};
use crate::flags;
use crate::loaded::Loaded;
use crate::output;
use stackline_analyze::assemble::Options;

/// Shows the lifelines of a run.
pub(crate) fn lifelines(flags: &flags::Lifelines) -> Result {
    let loaded = Loaded::assembled(&flags.run, &Options { unit_field: flags.unit - 1, ..Options::default() })?;
    if !loaded.run.complete {
        let reason = loaded.run.reason.as_deref().unwrap_or("it was killed");
        output::say(&format_args!("warning: the run is incomplete ({reason}); what it holds is shown"));
    }
    output::json(&loaded.lifelines, false)?;
    Ok(Exit::Done)
}
