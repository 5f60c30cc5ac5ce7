//! `stackline reproduce`: the tables and figures of a paper, beside what was printed.

mod blast;
mod here;
mod pictures;
mod profile;

use crate::exit::{Error, Exit, Result};
use crate::flags;
use crate::output;
pub(crate) use here::measure;

/// A paper whose experiments can be made again.
struct Known {
    name: &'static str,
    title: &'static str,
    reproduce: fn(&flags::Reproduce) -> Result,
    /// Its host profiles, in the language.
    profile: &'static str,
}

const PAPERS: [Known; 1] = [Known {
    name: "blast",
    title: "Zwaenepoel 1985, Protocols for large data transfers over local networks: Tables 1 to 3, Figures 4 to 6",
    reproduce: blast::reproduce,
    profile: profile::TEXT,
}];

/// Lists the papers, or makes one again.
pub(crate) fn reproduce(flags: &flags::Reproduce) -> Result {
    let Some(name) = &flags.paper else { return list(flags) };
    let known = PAPERS.iter().find(|paper| paper.name.eq_ignore_ascii_case(name)).ok_or_else(|| {
        let names: Vec<&str> = PAPERS.iter().map(|paper| paper.name).collect();
        Error::input(format!("there is no paper named {name}")).hint(format!("there are: {}", names.join(", ")))
    })?;
    if flags.profile {
        output::print(known.profile)?;
        return Ok(Exit::Done);
    }
    (known.reproduce)(flags)
}

/// What there is to reproduce.
fn list(flags: &flags::Reproduce) -> Result {
    if flags.json {
        let papers = PAPERS.iter().map(|paper| serde_json::json!({ "paper": paper.name, "title": paper.title }));
        output::json(&serde_json::json!({ "papers": papers.collect::<Vec<_>>() }), false)?;
    } else {
        let lines = PAPERS.iter().map(|paper| format!("{:<8} {}\n", paper.name, paper.title));
        output::print(&(lines.collect::<String>() + "\n`stackline reproduce PAPER` makes one again.\n"))?;
    }
    Ok(Exit::Done)
}
