//! What a stack is, as data: its options with their bounds, which options exclude each other, the smallest packet size
//! (MTU) it needs, and which protocol services it uses for each operation of the language. Also what a world (live,
//! emulated, simulated) can do.
//!
//! The stack's own file fills one [`StackTable`], the world's crate one [`Capabilities`]. `check` judges a
//! specification by them, agents and the simulator reject requests by the same [`StackTable::accepts`], and reports
//! and predictions use the [`StackFacts`] that a plan carries.

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
    StackVariant,
};
pub use crate::stack_option::{OptionKind, OptionTable};

/// How a stack carries out the operations of the language, as text: a line `OPERATION -> SERVICES` for each operation,
/// naming the services of the protocol that the stack calls for it.
#[derive(Clone, Copy, Debug)]
pub struct ServiceMapping(pub &'static str);

/// A line of a [`ServiceMapping`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MappedOperation {
    /// The operation of the language.
    pub operation: &'static str,
    /// The services of the protocol that the stack calls for it.
    pub services: &'static str,
}

impl ServiceMapping {
    /// The lines of the mapping, parsed; lines without ` -> ` are left out.
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

impl ServiceMapping {
    /// Whether the mapping has a line for that operation; a line may name several, separated by commas, and a side behind each:
    /// `DataRequest (initiator)`.
    #[must_use]
    pub fn maps(self, operation: &str) -> bool {
        let is_it = |name: &str| {
            let rest = name.strip_prefix(operation);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(" ("))
        };
        self.operations()
            .any(|line| line.operation.split(", ").any(is_it))
    }
}

impl Serialize for ServiceMapping {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.operations())
    }
}

/// Everything that is known of a stack without running it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct StackTable {
    /// Its name in the language.
    pub name: &'static str,
    /// One line that describes it.
    pub summary: &'static str,
    /// The smallest data unit it carries, in bytes.
    pub least_unit: u64,
    /// The largest data unit it carries, in bytes.
    pub largest_unit: u64,
    /// The smallest data unit in a bulk transfer, in bytes: it is larger where each unit has to hold a sequence
    /// number.
    pub least_bulk_unit: u64,
    /// Whether everything sent arrives, once and in order.
    pub reliable: bool,
    /// Whether the responder never sends, so that the initiator cannot wait for anything.
    pub one_way: bool,
    /// Whether both ends have to be on the same host.
    pub one_host: bool,
    /// Whether it is the client of a protocol whose servers others have written: its responder is a far end, named by
    /// an address that begins with its scheme (`to "http://b.example/"`), and runs no procedure.
    pub far_end: bool,
    /// How addresses of such servers begin, where that is not the stack's name, which a stack of both ends has.
    pub scheme: Option<&'static str>,
    /// Whether its option `streams` makes consecutive pairs of a part share a connection, each on a stream of its own.
    #[serde(skip)]
    pub shares_connections: bool,
    /// Whether data units can come from files and go to files.
    pub files: bool,
    /// Whether programs of the user's make the data units, so that none comes from memory of ours or goes there.
    #[serde(skip)]
    pub own_data: bool,
    /// Whether its packets can be marked (ECN), and the stack reacts to marks.
    #[serde(skip)]
    pub ecn: bool,
    /// Whether it runs only across IMPs (the packet switches of the ARPANET).
    #[serde(skip)]
    pub imps: bool,
    /// Its options.
    pub options: &'static [OptionTable],
    /// The options, all of them texts, that have to be written. Their values may stand without their names, in this
    /// order: `program("./server", "./client")`.
    pub required: &'static [&'static str],
    /// The services it uses for each operation.
    pub mapping: ServiceMapping,
    /// Sets of options of which at most one may be written. An entry is a name, or `name = word`: that option with
    /// that word.
    #[serde(skip)]
    pub exclusive: &'static [&'static [&'static str]],
    /// What an option changes of all this, if one does.
    #[serde(skip)]
    pub variant: Option<StackVariant>,
    /// Options that have no effect without another one: pairs of an option and the one it needs.
    #[serde(skip)]
    pub needs: &'static [(&'static str, &'static str)],
    /// The least MTU, in bytes of the network layer, that a path must have for the stack with these options.
    #[serde(skip)]
    pub least_mtu: fn(&Stack) -> u64,
    /// Whether, with these options, it sends raw Ethernet frames instead of IP packets.
    #[serde(skip)]
    pub raw_frames: fn(&Stack) -> bool,
    /// The names of transport values that this stack cannot report, and why.
    #[serde(skip)]
    pub unreported: (&'static [&'static str], &'static str),
    /// What reports and predictions need of the stack; [`StackTable::stack`] copies `one_host` and
    /// `shares_connections` into it.
    #[serde(skip)]
    pub facts: StackFacts,
}

/// What every link that carries IPv4 takes (RFC 791), in bytes.
pub const LEAST_IPV4_MTU: u64 = 68;

/// What every link that carries IPv6 takes (RFC 8200, section 5), in bytes.
pub const LEAST_IPV6_MTU: u64 = 1280;

/// The option of stacks over IP that chooses its version.
pub const IP_FAMILY: OptionTable = OptionTable::new(
    "family",
    OptionKind::Word(&["ipv4", "ipv6"]),
    "as the responder's address is; ipv4 across a network",
    "the version of IP",
);

/// Whether a stack runs over IPv6 because its option says so.
#[must_use]
pub fn is_over_ipv6(stack: &Stack) -> bool {
    stack.word(IP_FAMILY.name) == Some("ipv6")
}

/// The least MTU of a path, in bytes, for a stack with the option [`IP_FAMILY`].
#[must_use]
pub fn least_mtu_of_family(stack: &Stack) -> u64 {
    if is_over_ipv6(stack) {
        LEAST_IPV6_MTU
    } else {
        LEAST_IPV4_MTU
    }
}

const fn least_ipv4(_: &Stack) -> u64 {
    LEAST_IPV4_MTU
}

const fn never(_: &Stack) -> bool {
    false
}

impl StackTable {
    /// A reliable stack between hosts, without options: the base that most tables extend.
    pub const RELIABLE: Self = Self {
        name: "",
        summary: "",
        least_unit: 1,
        largest_unit: 1 << 30,
        least_bulk_unit: 1,
        reliable: true,
        one_way: false,
        one_host: false,
        far_end: false,
        scheme: None,
        shares_connections: false,
        files: true,
        own_data: false,
        ecn: false,
        imps: false,
        options: &[],
        required: &[],
        mapping: ServiceMapping(""),
        exclusive: &[],
        variant: None,
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
            shares_connections: false,
        },
    };

    /// The table of the stack with the options that are written: what its variant changes is changed.
    #[must_use]
    pub fn with_options_of(&self, stack: &Stack) -> Self {
        match &self.variant {
            Some(variant) if stack.flag(variant.option) => Self {
                reliable: false,
                files: false,
                least_bulk_unit: variant.least_bulk_unit,
                largest_unit: variant.largest_unit,
                ..*self
            },
            _ => *self,
        }
    }

    /// The options with these names, in this order: for a world that supports only some of the stack's options. A name
    /// that the stack lacks is an error at compile time (an index out of bounds).
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

    /// The options of `these`, followed by those of `more`: for a stack that adds options to another one's. `N` is how many they are
    /// together; any other number is an error at compile time (an index out of bounds, or `N` that is too large).
    #[must_use]
    pub const fn joined<const N: usize>(
        these: &[OptionTable],
        more: &[OptionTable],
    ) -> [OptionTable; N] {
        assert!(these.len() + more.len() == N, "N counts both");
        let mut joined = [if these.is_empty() { more[0] } else { these[0] }; N];
        let mut at = 0;
        while at < N {
            joined[at] = if at < these.len() {
                these[at]
            } else {
                more[at - these.len()]
            };
            at += 1;
        }
        joined
    }

    /// The stack with these options, in the form that a plan holds.
    #[must_use]
    pub fn stack(&self, options: alloc::collections::BTreeMap<String, OptionValue>) -> Stack {
        let facts = StackFacts {
            one_host: self.one_host,
            shares_connections: self.shares_connections,
            ..self.facts
        };
        Stack {
            name: self.name.into(),
            options,
            facts,
        }
    }

    /// How addresses of its servers begin, if it is for servers outside the run.
    #[must_use]
    pub const fn scheme(&self) -> &'static str {
        match self.scheme {
            Some(scheme) => scheme,
            None => self.name,
        }
    }

    /// The option of that name.
    #[must_use]
    pub fn option(&self, name: &str) -> Option<&'static OptionTable> {
        self.options.iter().find(|option| option.name == name)
    }

    /// Two options that are both written although they exclude each other.
    #[must_use]
    pub fn conflict(&self, stack: &Stack) -> Option<(&'static str, &'static str)> {
        self.exclusive.iter().find_map(|set| {
            let mut written = set.iter().filter(|entry| is_written(stack, entry));
            Some((*written.next()?, *written.next()?))
        })
    }

    /// An option that is written without the one it needs, and that other one.
    #[must_use]
    pub fn lack(&self, stack: &Stack) -> Option<(&'static str, &'static str)> {
        let lacks =
            |(one, other): &&(&str, &str)| is_written(stack, one) && !is_written(stack, other);
        self.needs.iter().find(lacks).copied()
    }

    /// An option that has to be written and is not.
    #[must_use]
    pub fn missing(&self, stack: &Stack) -> Option<&'static str> {
        let mut required = self.required.iter();
        required
            .find(|name| !stack.options.contains_key(**name))
            .copied()
    }

    /// The stack as it is written with the options that it has to have: `program("SERVER", "CLIENT")`.
    #[must_use]
    pub fn form(&self) -> String {
        let texts = self.required.iter();
        let texts: Vec<String> = texts
            .map(|name| format!("\"{}\"", name.to_uppercase()))
            .collect();
        format!("{}({})", self.name, texts.join(", "))
    }

    /// Checks that the stack can run across a network: a stack for IMPs needs IMPs, every other stack needs switches
    /// or routers.
    ///
    /// # Errors
    /// An [`Error`] of the input that says why not and what to use instead.
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

    /// Checks that `stack` has only options that this table lists, with permitted values and in permitted
    /// combinations.
    ///
    /// # Errors
    /// An [`Error`] of the input that names the first option that is not accepted.
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
        if let Some(missing) = self.missing(stack) {
            return Err(Error::input(describe_required_option(self.name, missing))
                .hint(format!("write `{}`", self.form())));
        }
        match self.lack(stack) {
            None => Ok(()),
            Some((one, other)) => Err(Error::input(describe_missing_option(one, other))
                .hint(suggest_completion(one, other))),
        }
    }
}

/// Checks that hosts at IMPs have no properties that would have no effect: such a host has a clock and an interface
/// with a rate, but no other interface property, and its link has no delay or loss.
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

/// Whether an entry of `exclusive` or `needs` (`name`, `name = word`, or `name = one|other`) is written in the stack.
fn is_written(stack: &Stack, entry: &str) -> bool {
    match entry.split_once(" = ") {
        Some((name, words)) => words.split('|').any(|word| stack.word(name) == Some(word)),
        None => stack.options.contains_key(entry),
    }
}

/// The message that two options exclude each other.
#[must_use]
pub fn describe_exclusion(stack: &str, one: &str, other: &str) -> String {
    format!("{stack} takes either {one} or {other}, not both")
}

/// The message that an option has to be written.
#[must_use]
pub fn describe_required_option(stack: &str, missing: &str) -> String {
    format!("the stack `{stack}` needs its option `{missing}`")
}

/// The message that an option has no effect without another.
#[must_use]
pub fn describe_missing_option(one: &str, other: &str) -> String {
    format!("the option `{one}` has no effect without `{other}`")
}

/// The hint for [`describe_missing_option`].
#[must_use]
pub fn suggest_completion(one: &str, other: &str) -> String {
    format!("write `{other}` too, or omit `{one}`")
}

/// Whether two strings are equal, in a form that runs at compile time.
const fn same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

/// What a world can do. `check` refuses what it cannot, with the place in the text.
#[derive(Clone, Copy, Debug)]
pub struct Capabilities {
    /// Which world.
    pub world: World,
    /// Whether measurements can run across a declared network.
    pub networks: bool,
    /// Whether data units can come from files and virtual memory, or go there.
    pub files: bool,
    /// Whether hosts have cores that threads can be pinned to, and processors that scheduling priorities divide.
    pub processors: bool,
    /// Whether a host can be limited to a share of a processor.
    pub shares: bool,
    /// Whether the processor time of programs is what the network declares (`work`, `polls`, `priority`), not real
    /// time.
    pub work: bool,
    /// Whether hosts can have clocks that differ from true time.
    pub own_clocks: bool,
    /// Whether both ends may be on one host.
    pub same_host: bool,
    /// Whether raw Ethernet frames can be sent between hosts.
    pub ethernet: bool,
    /// Whether networks of IMPs can run.
    pub imps: bool,
    /// The largest number of hosts in a network.
    pub most_hosts: usize,
    /// The smallest MTU a link may have, in bytes of the network layer.
    pub least_link_mtu: u64,
}

impl Capabilities {
    /// A world that can do everything except `work` and `imps`; each world starts from it and changes what differs.
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

    /// Checks that this world can run a network.
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

    /// Checks the hosts' processor shares, processor times and clocks.
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

/// A world that a specification may ask for.
#[derive(Clone, Copy, Debug)]
pub struct Available<'a> {
    /// What it can do.
    pub can: Capabilities,
    /// The stacks that run in it.
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
    fn a_text_has_one_line_and_an_end_and_is_asked_for() {
        const FOREIGN: StackTable = StackTable {
            name: "foreign",
            options: &[
                OptionTable::new("path", OptionKind::PATH, "", ""),
                OptionTable::new("more", OptionKind::Text(3), "", ""),
            ],
            required: &["path"],
            ..StackTable::RELIABLE
        };
        let accepts = |options: &[(&str, &str)]| {
            let written = options
                .iter()
                .map(|(name, text)| ((*name).to_string(), OptionValue::Text((*text).into())));
            let stack = FOREIGN.stack(written.collect());
            FOREIGN.accepts(&stack).map_err(|error| error.message)
        };
        assert_eq!(accepts(&[("path", "./a b.so")]), Ok(()));
        assert_eq!(accepts(&[("path", "x"), ("more", "abc")]), Ok(()));
        for wrong in ["", "a\"b", "a\nb", "a\0b"] {
            assert!(accepts(&[("path", wrong)]).is_err(), "{wrong:?}");
        }
        assert!(accepts(&[("path", "x"), ("more", "abcd")]).is_err());
        assert_eq!(
            accepts(&[("more", "abc")]),
            Err("the stack `foreign` needs its option `path`".to_string())
        );
        let word = FOREIGN.stack([("path".to_string(), OptionValue::Word("x".into()))].into());
        assert!(FOREIGN.accepts(&word).is_err());
        assert_eq!(FOREIGN.form(), "foreign(\"PATH\")");
    }

    #[test]
    fn a_variant_changes_what_its_option_asks_for() {
        const WITH_UNITS: StackTable = StackTable {
            variant: Some(StackVariant {
                option: "left",
                least_bulk_unit: 8,
                largest_unit: 100,
            }),
            ..TABLE
        };
        let plain = WITH_UNITS.with_options_of(&stack(&[]));
        assert!(plain.reliable && plain.files && plain.least_bulk_unit == 1);
        let units = WITH_UNITS.with_options_of(&stack(&[("left", OptionValue::Set)]));
        assert!(!units.reliable && !units.files);
        assert_eq!((units.least_bulk_unit, units.largest_unit), (8, 100));
    }

    #[test]
    fn a_world_keeps_some_options() {
        assert_eq!(
            TABLE.only(["size", "left"]).map(|option| option.name),
            ["size", "left"]
        );
    }
}
