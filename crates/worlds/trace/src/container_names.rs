//! The names of the containers of processes. The files of container runtimes are read only once a process may be in a container.

use stackline_monitor::containers::list::{ContainerList, ContainerPlaces, may_be_contained};

/// Finds the names of containers.
#[derive(Debug, Default)]
pub(crate) struct ContainerNames {
    /// Whether names are looked for.
    are_wanted: bool,
    /// All containers, once they were read.
    list: Option<ContainerList>,
}

impl ContainerNames {
    /// Creates a finder. Names are not wanted for hosts of an emulated network, which are no containers.
    pub(crate) fn new(are_wanted: bool) -> Self {
        Self {
            are_wanted,
            list: None,
        }
    }

    /// The name of the container of a process, by its process ID as seen here; `None` if it has none, or it is this process's own
    /// container.
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
