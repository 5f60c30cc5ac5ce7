//! The stacks of a world as `stackline stacks --json` lists them: a test that takes them from here tests a new one too.

use super::{Place, skip};
use serde::Deserialize;

/// A stack with what is true of it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Stack {
    pub(crate) name: String,
    pub(crate) reliable: bool,
    pub(crate) one_host: bool,
    pub(crate) files: bool,
}

/// The names of the stacks of a world for which that is true.
pub(crate) fn which(world: &str, wanted: impl Fn(&Stack) -> bool) -> Vec<String> {
    let listed = Place::new().stackline(&["stacks", "--json", "--in", world]).json();
    let mut stacks: Vec<Stack> = serde_json::from_value(listed).unwrap();
    if !std::fs::read_to_string("/proc/sys/net/mptcp/enabled").is_ok_and(|text| text.trim() == "1") {
        skip("mptcp: the kernel lacks it or it is switched off");
        stacks.retain(|stack| stack.name != "mptcp");
    }
    stacks.into_iter().filter(wanted).map(|stack| stack.name).collect()
}

/// All names of a world.
pub(crate) fn all(world: &str) -> Vec<String> {
    which(world, |_| true)
}

/// Those and, of some of them, forms that go another way through the code because of their options.
pub(crate) fn with(stacks: Vec<String>, forms: &[&str]) -> Vec<String> {
    stacks.into_iter().chain(forms.iter().map(|form| (*form).to_owned())).collect()
}
