//! What a stack is, as data: its options with their bounds, what excludes what, the smallest path it needs, how it maps
//! operations. And what a world can do.
//!
//! The stack's own file fills one [`StackTable`], the world's crate one [`Capabilities`]. `check` judges by them, agents and
//! the simulator defend themselves by the same [`StackTable::accepts`], answers use the [`StackFacts`] that a plan carries.

use crate::error::{Error, Result};
use crate::network::{ClockModel, LossModel, Network, NetworkInterface};
use crate::plan::World;
use crate::time::Duration;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Serialize, Serializer};

pub use crate::stack::{
    ClosedForm, FlowControl, OptionValue, PacketContent, PacketsInFlight, Stack, StackFacts,
};

/// What an option's value looks like, and its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OptionKind {
    /// Present or absent; takes no value.
    Flag,
    /// A number of bytes from the first to the second, with size units.
    Bytes(u64, u64),
    /// A whole number from the first to the second.
    Number(u64, u64),
    /// A time, with units.
    Time,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A name that the system resolves, such as a congestion control.
    Name,
}

impl OptionKind {
    /// A buffer: Linux takes no more than half of the largest `int` for a socket's.
    pub const BUFFER: Self = Self::Bytes(1, 1 << 30);
    /// A port.
    pub const PORT: Self = Self::Number(1, 65_535);

    /// Whether a value is of this kind and within its bounds.
    #[must_use]
    pub fn takes(self, value: &OptionValue) -> bool {
        match (self, value) {
            (Self::Flag, OptionValue::Set) | (Self::Name, OptionValue::Word(_)) => true,
            (Self::Bytes(least, most) | Self::Number(least, most), OptionValue::Number(n)) => {
                (least..=most).contains(n)
            }
            (Self::Time, OptionValue::Seconds(s)) => s.is_finite() && *s >= 0.0,
            (Self::Word(words), OptionValue::Word(word)) => words.contains(&word.as_str()),
            _ => false,
        }
    }

    /// What values there are, in words: `1 B to 1 GiB`.
    #[must_use]
    pub fn values(self) -> String {
        match self {
            Self::Flag => "no value".into(),
            Self::Bytes(least, most) => format!(
                "{} to {}",
                crate::units::format_size(least),
                crate::units::format_size(most)
            ),
            Self::Number(least, most) => format!("a whole number from {least} to {most}"),
            Self::Time => "a time of zero or more".into(),
            Self::Word(words) => format!("one of {}", words.join(", ")),
            Self::Name => "a name".into(),
        }
    }
}

/// One option of a stack.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct OptionTable {
    /// Its name in the language.
    pub name: &'static str,
    /// Its value.
    pub kind: OptionKind,
    /// What holds when it is not written.
    pub default: &'static str,
    /// One line of help.
    pub help: &'static str,
}

impl OptionTable {
    /// Name, value, what holds when it is not written, one line of help.
    #[must_use]
    pub const fn new(
        name: &'static str,
        kind: OptionKind,
        default: &'static str,
        help: &'static str,
    ) -> Self {
        Self {
            name,
            kind,
            default,
            help,
        }
    }

    /// A flag that is off when it is not written.
    #[must_use]
    pub const fn flag(name: &'static str, help: &'static str) -> Self {
        Self::new(name, OptionKind::Flag, "off", help)
    }
}

/// What operations become, as text: a line `OPERATION -> SERVICES` for each operation of the language, with the protocol's own
/// services that the stack calls for it.
#[derive(Clone, Copy, Debug)]
pub struct ServiceMapping(pub &'static str);

/// A line of a [`ServiceMapping`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MappedOperation {
    /// The operation of the language.
    pub operation: &'static str,
    /// What the stack does for it.
    pub services: &'static str,
}

impl ServiceMapping {
    /// Its lines.
    pub fn operations(self) -> impl Iterator<Item = MappedOperation> {
        self.0.lines().filter_map(|line| {
            let (operation, services) = line.split_once(" -> ")?;
            Some(MappedOperation {
                operation,
                services,
            })
        })
    }
}

impl Serialize for ServiceMapping {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.operations())
    }
}

/// Everything there is to know of a stack without running it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct StackTable {
    /// Its name in the language.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Least size of a data unit it carries, in bytes.
    pub least_unit: u64,
    /// Largest.
    pub largest_unit: u64,
    /// Least size of a data unit in bulk, where sequence numbers need room.
    pub least_bulk_unit: u64,
    /// Whether everything sent arrives, once and in order.
    pub reliable: bool,
    /// Whether the responder never sends: the initiator can wait for nothing.
    pub one_way: bool,
    /// Whether both ends have to be on one host.
    pub one_host: bool,
    /// Whether file ends work over it.
    pub files: bool,
    /// Whether its packets can be marked (ECN), and it reacts to marks.
    #[serde(skip)]
    pub ecn: bool,
    /// Whether it goes across IMPs, and across nothing else.
    #[serde(skip)]
    pub imps: bool,
    /// Its options.
    pub options: &'static [OptionTable],
    /// Its mapping.
    pub mapping: ServiceMapping,
    /// Sets of options of which at most one is written. An entry is a name, or `name = word`: that option with that word.
    #[serde(skip)]
    pub exclusive: &'static [&'static [&'static str]],
    /// Options that mean nothing without another one: each with that one.
    #[serde(skip)]
    pub needs: &'static [(&'static str, &'static str)],
    /// Bytes of the network layer that the largest packet of a path has to hold, with these options.
    #[serde(skip)]
    pub least_mtu: fn(&Stack) -> u64,
    /// Whether, with these options, it sends raw Ethernet frames and not IP packets.
    #[serde(skip)]
    pub raw_frames: fn(&Stack) -> bool,
    /// What a record of its transport leaves out, and why.
    #[serde(skip)]
    pub unreported: (&'static [&'static str], &'static str),
    /// What answers have to know of it; `one_host` above is copied into it.
    #[serde(skip)]
    pub facts: StackFacts,
}

/// What every link that carries IPv4 takes (RFC 791), in bytes.
pub const LEAST_IPV4_MTU: u64 = 68;

const fn least_ipv4(_: &Stack) -> u64 {
    LEAST_IPV4_MTU
}

const fn never(_: &Stack) -> bool {
    false
}

impl StackTable {
    /// A reliable stack between hosts, without options: what most tables begin with.
    pub const RELIABLE: Self = Self {
        name: "",
        summary: "",
        least_unit: 1,
        largest_unit: 1 << 30,
        least_bulk_unit: 1,
        reliable: true,
        one_way: false,
        one_host: false,
        files: true,
        ecn: false,
        imps: false,
        options: &[],
        mapping: ServiceMapping(""),
        exclusive: &[],
        needs: &[],
        least_mtu: least_ipv4,
        raw_frames: never,
        unreported: (&[], ""),
        facts: StackFacts {
            one_host: false,
            packets: PacketContent::Unknown,
            form: ClosedForm::None,
            flow_control: FlowControl::Buffers,
            in_flight: None,
        },
    };

    /// Its options of these names, in this order: for a world that has no use for the others. A name it lacks does not
    /// compile.
    #[must_use]
    pub const fn only<const N: usize>(&self, names: [&str; N]) -> [OptionTable; N] {
        let mut kept = [self.options[0]; N];
        let mut at = 0;
        while at < N {
            let mut option = 0;
            while !same(self.options[option].name, names[at]) {
                option += 1;
            }
            kept[at] = self.options[option];
            at += 1;
        }
        kept
    }

    /// The stack with these options, as a plan has it.
    #[must_use]
    pub fn stack(&self, options: alloc::collections::BTreeMap<String, OptionValue>) -> Stack {
        let facts = StackFacts {
            one_host: self.one_host,
            ..self.facts
        };
        Stack {
            name: self.name.into(),
            options,
            facts,
        }
    }

    /// Its option of that name.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&'static OptionTable> {
        self.options.iter().find(|option| option.name == name)
    }

    /// Two options that are written and exclude each other.
    #[must_use]
    pub fn conflict(&self, stack: &Stack) -> Option<(&'static str, &'static str)> {
        self.exclusive.iter().find_map(|set| {
            let mut written = set.iter().filter(|entry| is_written(stack, entry));
            Some((*written.next()?, *written.next()?))
        })
    }

    /// An option that is written without the one it needs, and that one.
    #[must_use]
    pub fn lack(&self, stack: &Stack) -> Option<(&'static str, &'static str)> {
        let lacks =
            |(one, other): &&(&str, &str)| is_written(stack, one) && !is_written(stack, other);
        self.needs.iter().find(lacks).copied()
    }

    /// Whether its messages go across such a network: across IMPs, or across switches.
    ///
    /// # Errors
    /// An [`Error`] of the input that says what would.
    pub fn goes_across(&self, network: &Network) -> Result<()> {
        let name = &network.name;
        match (self.imps, network.has_imps()) {
            (false, true) => {
                let message = format!("{} cannot cross the IMPs of `{name}`", self.name);
                Err(Error::input(message).hint(
                    "use `over ncp`, or replace the IMPs with switches, which carry every other stack",
                ))
            }
            (true, false) => {
                let message = format!(
                    "{} can be used only across IMPs, but `{name}` has none",
                    self.name
                );
                Err(Error::input(message).hint(
                    "declare IMPs with `imp` instead of `router` or `switch`, or use another stack",
                ))
            }
            (true, true) => hosts_have_interfaces_alone(network),
            (false, false) => Ok(()),
        }
    }

    /// Whether a stack is this one with options that it takes.
    ///
    /// # Errors
    /// An [`Error`] of the input that names the first option it does not take.
    pub fn accepts(&self, stack: &Stack) -> Result<()> {
        for (name, value) in &stack.options {
            let Some(option) = self.option(name) else {
                let known: Vec<&str> = self.options.iter().map(|option| option.name).collect();
                let message = format!("the stack `{}` has no option `{name}`", self.name);
                return Err(
                    Error::input(message).hint(format!("its options: {}", known.join(", ")))
                );
            };
            if !option.kind.takes(value) {
                let message = format!(
                    "the option `{name}` of `{}` takes {}",
                    self.name,
                    option.kind.values()
                );
                return Err(Error::input(message).hint(option.help));
            }
        }
        if let Some((one, other)) = self.conflict(stack) {
            return Err(
                Error::input(describe_exclusion(self.name, one, other)).hint("keep one of them")
            );
        }
        match self.lack(stack) {
            None => Ok(()),
            Some((one, other)) => Err(Error::input(describe_missing_option(one, other))
                .hint(suggest_completion(one, other))),
        }
    }
}

/// A host of IMPs is a clock and an interface with a rate: what else could be said of it and its link would be of no effect.
fn hosts_have_interfaces_alone(network: &Network) -> Result<()> {
    if let Some(host) = network
        .hosts
        .iter()
        .find(|host| host.interface != NetworkInterface::default())
    {
        let message = format!(
            "host {} is attached to an IMP: its interface can only have a rate",
            host.name
        );
        return Err(Error::input(message)
            .hint("omit the host's properties; its interface has the rate of its link"));
    }
    let is_host = |name: &str| network.host(name).is_some();
    let own = network.links.iter().find(|link| {
        (is_host(&link.ends.0) || is_host(&link.ends.1))
            && (link.delay > Duration::ZERO || link.loss != LossModel::None)
    });
    own.map_or(Ok(()), |link| {
        let message = format!(
            "the interface {} - {} has a delay or loss, which an interface to an IMP cannot have",
            link.ends.0, link.ends.1
        );
        Err(Error::input(message)
            .hint("write `0 us` and omit `loss`: only lines between IMPs have delay or loss"))
    })
}

fn is_written(stack: &Stack, entry: &str) -> bool {
    match entry.split_once(" = ") {
        Some((name, word)) => stack.word(name) == Some(word),
        None => stack.options.contains_key(entry),
    }
}

/// That two options exclude each other, in words.
#[must_use]
pub fn describe_exclusion(stack: &str, one: &str, other: &str) -> String {
    format!("{stack} takes either {one} or {other}, not both")
}

/// That an option means nothing without another, in words.
#[must_use]
pub fn describe_missing_option(one: &str, other: &str) -> String {
    format!("the option `{one}` has no effect without `{other}`")
}

/// What mends that.
#[must_use]
pub fn suggest_completion(one: &str, other: &str) -> String {
    format!("write `{other}` too, or omit `{one}`")
}

const fn same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

/// What a world can do; what it cannot is refused by `check`, with the place in the text.
#[derive(Clone, Copy, Debug)]
pub struct Capabilities {
    /// Which world.
    pub world: World,
    /// Whether measurements cross a declared network; else none can.
    pub networks: bool,
    /// Whether data units come from files and virtual memory, or go there.
    pub files: bool,
    /// Whether hosts have cores to be placed on, and processors whose time priorities share out.
    pub processors: bool,
    /// Whether hosts can have a share of a processor.
    pub shares: bool,
    /// Whether what programs take of a host's processor is what its network says.
    pub work: bool,
    /// Whether hosts have clocks of their own.
    pub own_clocks: bool,
    /// Whether both ends may be on one host.
    pub same_host: bool,
    /// Whether raw Ethernet frames of ours travel between hosts.
    pub ethernet: bool,
    /// Whether networks of IMPs run there.
    pub imps: bool,
    /// Most hosts of a network.
    pub most_hosts: usize,
    /// Smallest MTU of a link, in bytes of the network layer.
    pub least_link_mtu: u64,
}

impl Capabilities {
    /// A world that can do everything that any world can; each world takes away what it cannot.
    pub const EVERYTHING: Self = Self {
        world: World::Live,
        networks: true,
        files: true,
        processors: true,
        shares: true,
        work: false,
        own_clocks: true,
        same_host: true,
        ethernet: true,
        imps: false,
        most_hosts: usize::MAX,
        least_link_mtu: 0,
    };

    /// Whether a network can be had in this world.
    ///
    /// # Errors
    /// An [`Error`] of the input that says why not.
    pub fn accepts(&self, network: &Network) -> Result<()> {
        let (world, name) = (self.world, &network.name);
        if !self.networks {
            let hint =
                "use `in simulated` (or `--in simulated`), or `in emulated` for real packets";
            return Err(Error::input(format!(
                "the {world} world cannot model the network `{name}`"
            ))
            .hint(hint));
        }
        if network.has_imps() && !self.imps {
            let message = format!(
                "the network `{name}` consists of IMPs, which the {world} world does not support"
            );
            return Err(Error::input(message)
                .hint("use `in simulated` (or `--in simulated`) with `over ncp`"));
        }
        let hosts = network.hosts.len();
        if hosts > self.most_hosts {
            let message = format!(
                "an {world} network can have at most {} hosts, but `{name}` has {hosts}",
                self.most_hosts
            );
            return Err(Error::input(message).hint("`--in simulated` has no such limit"));
        }
        if let Some(link) = network
            .links
            .iter()
            .find(|link| link.mtu() < self.least_link_mtu)
        {
            let ((a, b), mtu, least) = (&link.ends, link.mtu(), self.least_link_mtu);
            let message =
                format!("the link {a} - {b} has an MTU of {mtu} bytes, but IPv4 needs {least}");
            return Err(Error::input(message).hint("use a larger `mtu`, or `--in simulated`"));
        }
        self.accepts_hosts(network)
    }

    fn accepts_hosts(&self, network: &Network) -> Result<()> {
        let (world, name) = (self.world, &network.name);
        if let Some(host) = network
            .hosts
            .iter()
            .find(|host| host.share.is_some() && !self.shares)
        {
            let message = format!(
                "host {} of network {name} has a share of a real processor, which {world} hosts cannot have",
                host.name
            );
            return Err(Error::input(message)
                .hint("emulated hosts can have one; for simulated hosts, specify costs: `copy 20 us per packet; work 0.1 ms per message; cpu 0.5;`"));
        }
        if let Some(host) = network
            .hosts
            .iter()
            .find(|host| !host.work.is_nothing() && !self.work)
        {
            let message = format!(
                "host {} of network {name} specifies processor times for programs, but {world} programs run in real time",
                host.name
            );
            return Err(Error::input(message)
                .hint("use `--in simulated`, or omit `work`, `polls` and `priority`"));
        }
        let wrong = network
            .hosts
            .iter()
            .find(|host| host.clock != ClockModel::default());
        if let Some(host) = wrong.filter(|_| !self.own_clocks) {
            let host = &host.name;
            let message = format!(
                "host {host} of network {name} has a clock of its own, which an {world} host cannot have"
            );
            return Err(Error::input(message)
                .hint("use `--in simulated`, where hosts have their own clocks"));
        }
        Ok(())
    }
}

/// A world that a text may ask for.
#[derive(Clone, Copy, Debug)]
pub struct Available<'a> {
    /// What it can do.
    pub can: Capabilities,
    /// Its stacks.
    pub stacks: &'a [StackTable],
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use alloc::string::ToString;

    const TABLE: StackTable = StackTable {
        name: "x",
        options: &[
            OptionTable::flag("left", ""),
            OptionTable::flag("right", ""),
            OptionTable::new("size", OptionKind::Bytes(2, 4), "", "bytes of a thing"),
            OptionTable::new("way", OptionKind::Word(&["up", "down"]), "up", "where to"),
        ],
        exclusive: &[&["left", "right"], &["right", "way = down"]],
        ..StackTable::RELIABLE
    };

    fn stack(options: &[(&str, OptionValue)]) -> Stack {
        TABLE.stack(
            options
                .iter()
                .map(|(name, value)| ((*name).to_string(), value.clone()))
                .collect::<BTreeMap<_, _>>(),
        )
    }

    #[test]
    fn a_table_accepts_what_lies_within_its_bounds() {
        let size = |n| {
            TABLE
                .accepts(&stack(&[("size", OptionValue::Number(n))]))
                .map_err(|error| error.message)
        };
        assert_eq!([size(2), size(4)], [Ok(()), Ok(())]);
        assert_eq!(
            size(1),
            Err("the option `size` of `x` takes 2 B to 4 B".to_string())
        );
        assert!(size(5).is_err());
        assert!(
            TABLE
                .accepts(&stack(&[("colour", OptionValue::Set)]))
                .is_err()
        );
        assert!(
            TABLE
                .accepts(&stack(&[("left", OptionValue::Number(1))]))
                .is_err()
        );
    }

    #[test]
    fn options_exclude_each_other() {
        let both = stack(&[("left", OptionValue::Set), ("right", OptionValue::Set)]);
        assert_eq!(TABLE.conflict(&both), Some(("left", "right")));
        assert_eq!(
            TABLE.accepts(&both).unwrap_err().message,
            "x takes either left or right, not both"
        );
        assert_eq!(TABLE.conflict(&stack(&[("left", OptionValue::Set)])), None);
        let way = |word: &str| {
            stack(&[
                ("right", OptionValue::Set),
                ("way", OptionValue::Word(word.into())),
            ])
        };
        assert_eq!(TABLE.conflict(&way("down")), Some(("right", "way = down")));
        assert_eq!(TABLE.conflict(&way("up")), None);
    }

    #[test]
    fn a_world_keeps_some_options() {
        assert_eq!(
            TABLE.only(["size", "left"]).map(|option| option.name),
            ["size", "left"]
        );
    }
}
