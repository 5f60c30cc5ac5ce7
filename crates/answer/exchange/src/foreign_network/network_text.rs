//! A network to be printed as text of the language: nodes, links and comments, with names that the language allows.

use stackline_core::error::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// The most hosts, switches and routers that are printed.
const MOST_NODES: usize = 32_768;
/// The most links that are printed.
const MOST_LINKS: usize = 65_536;
/// The widest comment, in columns.
const WIDE: usize = 96;
/// How many names stand in one statement.
const TOGETHER: usize = 8;

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NodeKind {
    Host,
    Switch,
    Router,
}

impl NodeKind {
    const fn word(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Switch => "switch",
            Self::Router => "router",
        }
    }
}

/// A link; rate and delay are in the language's words.
#[derive(Clone, Debug)]
pub(super) struct LinkText {
    pub(super) from: String,
    pub(super) to: String,
    /// Whether packets go only from the first end to the second.
    pub(super) one_way: bool,
    pub(super) rate: String,
    pub(super) delay: String,
    /// Clauses behind the delay, such as `loss 1%`.
    pub(super) clauses: Vec<String>,
}

impl LinkText {
    /// A link without rate and delay, in both directions.
    pub(super) fn plain(from: &str, to: &str) -> Self {
        Self {
            from: from.into(),
            to: to.into(),
            one_way: false,
            rate: "unlimited".into(),
            delay: "0 s".into(),
            clauses: Vec::new(),
        }
    }
}

/// The network, as it is collected from a foreign text.
#[derive(Debug, Default)]
pub(super) struct NetworkText {
    nodes: Vec<(NodeKind, String)>,
    /// The name here of each foreign name.
    names: BTreeMap<String, String>,
    taken: BTreeSet<String>,
    links: Vec<LinkText>,
    comments: Vec<String>,
    /// What stands behind the networks as comments, such as how to run a program in one.
    pub(super) behind: Vec<String>,
}

impl NetworkText {
    /// Adds a node with a foreign name and returns its name here. A name that is there already is an error.
    pub(super) fn node(&mut self, kind: NodeKind, foreign: &str) -> Result<String> {
        if self.names.contains_key(foreign) {
            let message = format!("the network has two nodes `{}`", shown(foreign));
            return Err(Error::input(message).hint("give one of them another name"));
        }
        if self.nodes.len() >= MOST_NODES {
            let message = format!("the network has more than {MOST_NODES} hosts and switches");
            return Err(Error::input(message).hint("keep only a part of it"));
        }
        let name = self.free_name(foreign);
        self.taken.insert(name.clone());
        self.names.insert(foreign.into(), name.clone());
        self.nodes.push((kind, name.clone()));
        Ok(name)
    }

    /// The name here of a foreign name.
    pub(super) fn name(&self, foreign: &str) -> Option<&str> {
        self.names.get(foreign).map(String::as_str)
    }

    pub(super) fn link(&mut self, link: LinkText) -> Result<()> {
        if self.links.len() >= MOST_LINKS {
            let message = format!("the network has more than {MOST_LINKS} links");
            return Err(Error::input(message).hint("keep only a part of it"));
        }
        self.links.push(link);
        Ok(())
    }

    /// Adds a comment, once.
    pub(super) fn comment(&mut self, comment: impl Into<String>) {
        let comment = comment.into();
        if !self.comments.contains(&comment) {
            self.comments.push(comment);
        }
    }

    /// A name of the language for a foreign one, which no other node has.
    fn free_name(&self, foreign: &str) -> String {
        let plain = language_name(foreign);
        let further = (2_usize..).map(|number| format!("{plain}_{number}"));
        std::iter::once(plain.clone())
            .chain(further)
            .find(|name| !self.taken.contains(name))
            .unwrap_or(plain)
    }

    /// Sets of names of nodes that reach each other, the largest first.
    fn islands(&self) -> Vec<BTreeSet<&str>> {
        let mut next: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for link in &self.links {
            next.entry(&link.from).or_default().push(&link.to);
            next.entry(&link.to).or_default().push(&link.from);
        }
        let (mut seen, mut islands) = (BTreeSet::new(), Vec::new());
        for (_, name) in &self.nodes {
            let (mut island, mut open) = (BTreeSet::new(), vec![name.as_str()]);
            while let Some(name) = open.pop() {
                if seen.insert(name) {
                    island.insert(name);
                    open.extend(next.get(name).into_iter().flatten());
                }
            }
            if !island.is_empty() {
                islands.push(island);
            }
        }
        islands.sort_by_key(|island| std::cmp::Reverse(island.len()));
        islands
    }

    /// The text. What is not linked with the rest becomes a network of its own, and a comment says so.
    pub(super) fn print(&self, name: &str) -> String {
        let name = language_name(name);
        let islands = self.islands();
        let mut text = String::new();
        self.comments
            .iter()
            .for_each(|words| comment(&mut text, words));
        if islands.len() > 1 {
            let words = format!(
                "It has {} parts that no link joins; each is a network here.",
                islands.len()
            );
            comment(&mut text, &words);
        }
        for (index, island) in islands.iter().enumerate() {
            let own = match index {
                0 => name.clone(),
                _ => format!("{name}_{}", index + 1),
            };
            self.print_island(&mut text, &own, island);
        }
        self.behind
            .iter()
            .for_each(|words| comment(&mut text, words));
        text
    }

    fn print_island(&self, text: &mut String, name: &str, island: &BTreeSet<&str>) {
        let _ = writeln!(text, "network {name} {{");
        for kind in [NodeKind::Host, NodeKind::Switch, NodeKind::Router] {
            let nodes = self.nodes.iter().filter(|node| node.0 == kind);
            let names: Vec<&str> = nodes
                .map(|node| node.1.as_str())
                .filter(|name| island.contains(name))
                .collect();
            for some in names.chunks(TOGETHER) {
                let _ = writeln!(text, "  {} {};", kind.word(), some.join(", "));
            }
        }
        for link in self
            .links
            .iter()
            .filter(|link| island.contains(link.from.as_str()))
        {
            let arrow = if link.one_way { "->" } else { "-" };
            let _ = write!(
                text,
                "  link {} {arrow} {} {} {}",
                link.from, link.to, link.rate, link.delay
            );
            for clause in &link.clauses {
                let _ = write!(text, " {clause}");
            }
            text.push_str(";\n");
        }
        text.push_str("}\n");
    }
}

/// A name with letters, digits and `_`, and `-` or `.` between them; a word of the language gets a `_`.
pub(super) fn language_name(foreign: &str) -> String {
    let mut name = String::new();
    for c in foreign.chars().take(60) {
        match c {
            c if c.is_ascii_alphanumeric() => name.push(c),
            '-' | '.' if name.ends_with(|c: char| c.is_ascii_alphanumeric()) => name.push(c),
            _ if !name.ends_with('_') => {
                let length = name.trim_end_matches(['-', '.']).len();
                name.truncate(length);
                name.push('_');
            }
            _ => {}
        }
    }
    let length = name.trim_end_matches(['-', '.', '_']).len();
    name.truncate(length);
    let letter = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if letter { name } else { format!("n{name}") }
}

/// A foreign word in a message: without control characters, and not too long.
pub(super) fn shown(foreign: &str) -> String {
    foreign
        .chars()
        .take(60)
        .filter(|c| !c.is_control())
        .collect()
}

/// Adds a comment in lines of some width.
fn comment(text: &mut String, words: &str) {
    let mut line = String::from("#");
    for word in words.split_whitespace() {
        if line.len() + 1 + word.len() > WIDE && line.len() > 1 {
            let _ = writeln!(text, "{line}");
            line = String::from("#");
        }
        let _ = write!(line, " {word}");
    }
    let _ = writeln!(text, "{line}");
}
