//! Which flags have an effect in which mode of a replay. A flag without effect is an error, so that none is ignored
//! silently.

use crate::exit::{Error, Result};
use crate::flags::{NetworkWorld, Replay};
use stackline_blocks::wire::message::BlockDataTransport;

/// How a session is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlocksReplayMode {
    Live,
    Emulated,
    Simulated,
}

impl BlocksReplayMode {
    pub(super) const fn from_flags(flags: &Replay) -> Self {
        match (&flags.across, flags.world) {
            (None, _) => Self::Live,
            (Some(_), NetworkWorld::Emulated) => Self::Emulated,
            (Some(_), NetworkWorld::Simulated) => Self::Simulated,
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Live => "against existing servers",
            Self::Emulated => "with --in emulated",
            Self::Simulated => "with --in simulated",
        }
    }
}

use BlocksReplayMode::{Emulated, Live, Simulated};

const ALL: &[BlocksReplayMode] = &[Live, Emulated, Simulated];
const REAL: &[BlocksReplayMode] = &[Live, Emulated];
const ACROSS: &[BlocksReplayMode] = &[Emulated, Simulated];
/// Each flag, by the name of its field, and the modes in which it has an effect.
const FLAGS: &[(&str, &[BlocksReplayMode])] = &[
    ("sets", &[Live]),
    ("master", &[Live]),
    ("across", ACROSS),
    ("network", ACROSS),
    ("world", ACROSS),
    ("client", ACROSS),
    ("master_host", ACROSS),
    ("server", ACROSS),
    ("disks", ACROSS),
    ("disk", ACROSS),
    ("cache", ACROSS),
    ("picture", ACROSS),
    ("replicas", ACROSS),
    ("over", ACROSS),
    ("path", ALL),
    ("speed", ALL),
    ("window", ALL),
    ("blocks", ALL),
    ("random", ALL),
    ("trace", &[Live]),
    ("interval", ALL),
    ("duration", ALL),
    ("keep", ALL),
    ("most", ALL),
    ("append", ALL),
    // In simulated mode only tcp is accepted; `check` tests it below.
    ("transport", ALL),
    ("age", REAL),
    ("receive_buffer", ALL),
    ("pace", REAL),
    ("capture", &[Live]),
    ("seed", ALL),
    ("share", ALL),
    ("name", ALL),
    ("no_history", ALL),
    ("json", ALL),
];

/// Checks that every flag that was given has an effect in this mode.
pub(super) fn check(flags: &Replay, mode: BlocksReplayMode) -> Result<()> {
    for (field, modes) in FLAGS {
        if !modes.contains(&mode) && flags.given.has(field) {
            let flag = match *field {
                "world" => "in".to_owned(),
                field => field.replace('_', "-"),
            };
            let others: Vec<&str> = modes.iter().map(|mode| mode.words()).collect();
            let hint = match mode {
                Live => {
                    "use it with --across SPEC, which starts its own master and servers".to_owned()
                }
                _ => format!("use it {}", others.join(" or ")),
            };
            return Err(
                Error::input(format!("--{flag} has no effect {}", mode.words())).hint(hint),
            );
        }
    }
    if flags.pace.is_some()
        && !matches!(
            flags.transport,
            BlockDataTransport::Udp | BlockDataTransport::Rtp
        )
    {
        return Err(Error::input("--pace applies only to datagrams")
            .hint("use --transport udp or --transport rtp"));
    }
    if mode == Simulated && flags.transport != BlockDataTransport::Tcp {
        return Err(
            Error::input("in the simulated world, blocks can only be sent over tcp")
                .hint("use existing servers or --in emulated for datagrams and blasts"),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, Command};
    use std::collections::BTreeSet;

    #[test]
    fn it_is_known_of_every_flag_where_it_says_something() {
        let command = Replay::augment_args(Command::new("replay"));
        let flags: BTreeSet<&str> = command
            .get_arguments()
            .map(|argument| argument.get_id().as_str())
            .collect();
        assert_eq!(flags, FLAGS.iter().map(|(field, _)| *field).collect());
    }
}
