//! Programs that only the replications of papers' experiments need: those of 1985 at the data link level ([`standalone`]).

pub mod standalone;
