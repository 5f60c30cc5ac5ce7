//! Finds socket buffers that the Linux kernel made smaller than requested. The kernel cuts a request to its sysctl limit without an
//! error and reports twice the granted size (socket(7)).

use stackline_core::plan::World;
use stackline_core::run_record::SideRecord;
use stackline_core::stack::Stack;

/// A buffer that the kernel cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CutBuffer {
    /// The option of the stack that requested it.
    pub(crate) option: &'static str,
    /// The granted size, bytes: half of what the kernel reports.
    pub(crate) given_bytes: u64,
    /// The sysctl that limits it.
    pub(crate) sysctl: &'static str,
}

/// Options that request buffers, with the sysctl that limits each.
pub(crate) const BUFFER_LIMITS: [(&str, &str); 2] = [
    ("receive_buffer", "net.core.rmem_max"),
    ("send_buffer", "net.core.wmem_max"),
];

/// The buffers of a side that are smaller than its stack's options request. None in the simulated world, which has no such limits.
pub(crate) fn find_cut_buffers(
    stack: &Stack,
    world: World,
    side: &SideRecord,
) -> impl Iterator<Item = CutBuffer> {
    let cut = move |(option, sysctl): (&'static str, &'static str)| {
        let asked = stack.number(option)?;
        let memory = side.settings.get(option)?.strip_suffix(" B")?;
        let given_bytes = memory.parse::<u64>().ok()? / 2;
        (given_bytes < asked).then_some(CutBuffer {
            option,
            given_bytes,
            sysctl,
        })
    };
    BUFFER_LIMITS
        .into_iter()
        .filter(move |_| world != World::Simulated)
        .filter_map(cut)
}

#[cfg(test)]
mod tests {
    use crate::summarise;
    use crate::summarise::tests::{get, moved, plan};
    use stackline_core::catalogue::OptionValue;
    use stackline_core::plan::{Composer, World};

    fn flags(asked: u64, memory: &str, world: World) -> Vec<String> {
        let mut part = get("a");
        part.stack
            .options
            .insert("receive_buffer".into(), OptionValue::Number(asked));
        let mut plan = plan(Composer::Basic, vec![part]);
        plan.measurements[0].world = world;
        let records = [0, 1].map(|run| {
            let mut record = moved(0, run, 100);
            record.initiator.settings = [("receive_buffer".to_owned(), memory.to_owned())].into();
            record
        });
        summarise(&plan, &records)[0].flags.clone()
    }

    #[test]
    fn a_buffer_that_the_kernel_cut_is_said() {
        for world in [World::Live, World::Emulated] {
            assert_eq!(
                flags(100_000_000, "8388608 B", world),
                ["cut receive_buffer to 4194304 B by net.core.rmem_max"]
            );
        }
        let none: [&str; 0] = [];
        assert_eq!(flags(65_536, "131072 B", World::Live), none);
        assert_eq!(flags(100_000_000, "8388608 B", World::Simulated), none);
        assert!(crate::flags::meaning("cut receive_buffer to 1 B by net.core.rmem_max").is_some());
    }
}
