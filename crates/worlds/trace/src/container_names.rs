//! What the containers of processes are called. Runtimes' state is read once there is a process that may be in one.

use stackline_monitor::containers::list::{ContainerList, ContainerPlaces, may_be_contained};

/// The names of containers.
#[derive(Debug, Default)]
pub(crate) struct ContainerNames {
    are_wanted: bool,
    list: Option<ContainerList>,
}

impl ContainerNames {
    /// Names are looked for where they are wanted: hosts of an emulated network are no containers.
    pub(crate) fn new(are_wanted: bool) -> Self {
        Self {
            are_wanted,
            list: None,
        }
    }

    /// The container of a process, by the number that this process sees; none where it is this process's own.
    pub(crate) fn name_of(&mut self, pid: u32) -> Option<String> {
        if !self.are_wanted || !may_be_contained(pid) {
            return None;
        }
        let list = self
            .list
            .get_or_insert_with(|| ContainerList::read(ContainerPlaces::of_this_machine()));
        let own = list.name_of_process(std::process::id());
        list.name_of_process(pid)
            .filter(|_| own.is_none() || own != list.name_of_process(pid))
    }
}
