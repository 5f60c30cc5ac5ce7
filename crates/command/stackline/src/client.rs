//! `stackline client`: prints the source code with which a program in C or Python emits events, or an example program
//! that uses it; and the same for a stack of the user's own. The texts are built into this program.

use crate::exit::{Exit, Result};
use crate::flags::{ClientFlags, Language};
use crate::output;

/// Prints a client, or its example.
pub(crate) fn client(flags: &ClientFlags) -> Result {
    output::print_for_programs(match flags.stack {
        true => stack(flags),
        false => events(flags),
    })?;
    Ok(Exit::Done)
}

const fn events(flags: &ClientFlags) -> &'static str {
    match (flags.language, flags.example) {
        (Language::C, false) => include_str!("../../../../clients/c/stackline_events.h"),
        (Language::C, true) => include_str!("../../../../clients/c/example.c"),
        (Language::Python, false) => include_str!("../../../../python/stackline_events.py"),
        (Language::Python, true) => include_str!("../../../../python/example.py"),
    }
}

const fn stack(flags: &ClientFlags) -> &'static str {
    match (flags.language, flags.example) {
        (Language::C, false) => include_str!("../../../../clients/c/stackline_stack.h"),
        (Language::C, true) => include_str!("../../../../clients/c/stack_example.c"),
        (Language::Python, _) => include_str!("../../../../examples/stacks/pair.py"),
    }
}
