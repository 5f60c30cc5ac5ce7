//! What only the experiments of the papers need: the programs of 1985 at the data link level ([`standalone`]).

pub mod standalone;
