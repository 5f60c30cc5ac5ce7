//! The stacks of a world by their own tables: a test that takes them from here tests a new one too.

use super::skip;
use stackline_core::catalogue::{PacketContent, StackTable};

/// The names of the stacks of a world for which that is true. Those across IMPs need a network of these, those of far ends a server, those of
/// the user's own code that code (`own_stacks.rs`): they have tests of their own.
pub(crate) fn which(world: &str, wanted: impl Fn(&StackTable) -> bool) -> Vec<String> {
    let simulated = world == "simulated";
    let mut stacks = if simulated {
        stackline_sim::stack_tables()
    } else {
        stackline_live::stacks::stack_tables()
    };
    if !std::fs::read_to_string("/proc/sys/net/mptcp/enabled").is_ok_and(|text| text.trim() == "1")
    {
        skip("mptcp: the kernel lacks it or it is switched off");
        stacks.retain(|stack| stack.name != "mptcp");
    }
    stacks
        .into_iter()
        .filter(|stack| !stack.imps && !stack.far_end && stack.required.is_empty())
        .filter(wanted)
        .map(|stack| stack.name.to_owned())
        .collect()
}

/// Those of a world over which every application type runs, because the responder may send too, and the protocol has calls.
pub(crate) fn that_answer(world: &str) -> Vec<String> {
    which(world, |stack| {
        !stack.one_way && stack.mapping.maps("RPCCall")
    })
}

/// Those whose packets show which bytes of a stream they carry.
pub(crate) fn that_show_their_bytes(world: &str) -> Vec<String> {
    which(world, |stack| {
        matches!(
            stack.facts.packets,
            PacketContent::Stream | PacketContent::Blasts
        )
    })
}

/// Those whose data units are in records or frames of a protocol above TCP.
pub(crate) fn that_frame_units(world: &str) -> Vec<String> {
    which(world, |stack| stack.facts.packets == PacketContent::Framed)
}

/// Names and, of some stacks, forms that go another way through the code because of their options.
pub(crate) fn with(stacks: Vec<String>, forms: &[&str]) -> Vec<String> {
    stacks
        .into_iter()
        .chain(forms.iter().map(|form| (*form).to_owned()))
        .collect()
}
