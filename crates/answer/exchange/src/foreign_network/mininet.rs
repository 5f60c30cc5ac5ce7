//! Networks of mininet: the words of `mn --topo` and `--link`, and Python files whose calls of `addHost`, `addSwitch` and
//! `addLink` have literal arguments. Nothing is executed: a call within a loop or with computed arguments is refused.

mod python_calls;

use super::foreign_form::ForeignForm;
use super::network_text::{LinkText, NetworkText, NodeKind, shown};
use super::shell_words::{rate_text, tc_time, time_text, words};
use python_calls::{PythonCall, calls};
use stackline_core::error::{Error, Result};
use std::collections::BTreeMap;

pub(super) const FORM: ForeignForm = ForeignForm {
    name: "mininet",
    what: "`--topo tree,depth=2,fanout=3`, with `--link tc,bw=10`, or a Python file with literal addLink calls",
    recognises: |text| text.contains("addLink") || topology(text).is_some(),
    read,
};

/// The topologies of mininet that words name.
const TOPOLOGIES: &[&str] = &["minimal", "single", "reversed", "linear", "tree", "torus"];
/// The most hosts of a topology.
const MOST_HOSTS: u64 = 16_384;

/// The word of a topology in a command line or alone: `tree,depth=2`.
fn topology(text: &str) -> Option<&str> {
    let mut found = text
        .split_whitespace()
        .map(|word| word.trim_start_matches("--topo="));
    found.find(|word| {
        let name = word.split(',').next().unwrap_or("");
        TOPOLOGIES.contains(&name)
    })
}

fn read(text: &str) -> Result<NetworkText> {
    let mut network = NetworkText::default();
    if text.contains("addLink") {
        from_python(text, &mut network)?;
        return Ok(network);
    }
    let words = words(text)?;
    let Some(word) = topology(text) else {
        let error = Error::input("the text names no topology of mininet");
        return Err(error.hint(format!("known topologies: {}", TOPOLOGIES.join(", "))));
    };
    let options = link_options(&words)?;
    let mut builder = TopologyBuilder {
        network: &mut network,
        options,
    };
    builder.build(word)?;
    network
        .behind
        .push("stackline net exec FILE h1 -- ping -c 3 h2".into());
    Ok(network)
}

/// The options behind `--link`: `tc,bw=10,delay=10ms`.
fn link_options(words: &[String]) -> Result<BTreeMap<String, String>> {
    let at = words
        .iter()
        .position(|word| word == "--link" || word.starts_with("--link="));
    let Some(at) = at else {
        return Ok(BTreeMap::new());
    };
    let own = words.get(at).and_then(|word| word.strip_prefix("--link="));
    let link = own.or(words.get(at + 1).map(String::as_str)).unwrap_or("");
    let mut options = BTreeMap::new();
    for piece in link.split(',').skip(1) {
        let Some((name, value)) = piece.split_once('=') else {
            let message = format!("`{}` is not an option of a link", shown(piece));
            return Err(Error::input(message)
                .hint("write `--link tc,bw=10,delay=10ms,loss=1,max_queue_size=100`"));
        };
        options.insert(name.into(), value.into());
    }
    Ok(options)
}

/// Writes the options of a link as its rate, delay and clauses: `bw` in Mbit/s, `delay` and `jitter` as tc writes times,
/// `loss` in per cent, `max_queue_size` in packets.
fn set_options(link: &mut LinkText, options: &BTreeMap<String, String>) -> Result<()> {
    let number = |name: &str, value: &str| -> Result<f64> {
        let parsed: Option<f64> = value.parse().ok();
        parsed
            .filter(|number| (0.0..=1e9).contains(number))
            .ok_or_else(|| {
                Error::input(format!(
                    "`{name}={}` of a link is not a number",
                    shown(value)
                ))
            })
    };
    let time = |name: &str, value: &str| -> Result<f64> {
        tc_time(value).ok_or_else(|| {
            let message = format!("`{name}={}` of a link is not a time", shown(value));
            Error::input(message).hint("write a literal such as `delay='5ms'`")
        })
    };
    let (mut delay, mut jitter) = (0.0, 0.0);
    for (name, value) in options {
        match name.as_str() {
            "bw" => link.rate = rate_text(number(name, value)? * 1e6),
            "delay" => delay = time(name, value)?,
            "jitter" => jitter = time(name, value)?,
            "loss" => {
                let share = number(name, value)?;
                if share > 0.0 {
                    link.clauses.push(format!("loss {share}%"));
                }
            }
            "max_queue_size" => link
                .clauses
                .push(format!("queue {} packets", number(name, value)?)),
            "use_htb" | "use_hfsc" | "use_tbf" | "cls" | "port1" | "port2" | "intfName1"
            | "intfName2" | "params1" | "params2" | "addr1" | "addr2" => {}
            _ => {
                let message = format!("the option `{}` of a link has no equivalent", shown(name));
                return Err(Error::input(message)
                    .hint("known options: bw, delay, jitter, loss, max_queue_size"));
            }
        }
    }
    let fixed = (delay - jitter).max(0.0);
    link.delay = time_text(fixed);
    if jitter > 0.0 {
        let drawn = time_text(delay + jitter - fixed);
        link.clauses
            .push(format!("jitter uniform(0, {drawn}) reordering"));
    }
    Ok(())
}

/// Builds a topology that words name, with mininet's names of nodes.
struct TopologyBuilder<'n> {
    network: &'n mut NetworkText,
    options: BTreeMap<String, String>,
}

impl TopologyBuilder<'_> {
    fn build(&mut self, word: &str) -> Result<()> {
        let mut pieces = word.split(',');
        let name = pieces.next().unwrap_or("");
        let names: &[&str] = match name {
            "tree" => &["depth", "fanout"],
            "torus" => &["x", "y"],
            "linear" => &["k", "n"],
            _ => &["k"],
        };
        let mut values = [None; 2];
        for (index, piece) in pieces.enumerate() {
            let (at, value) = match piece.split_once('=') {
                Some((name, value)) => (names.iter().position(|known| *known == name), value),
                None => (Some(index).filter(|index| *index < names.len()), piece),
            };
            let number = value
                .parse()
                .ok()
                .filter(|number| (1..=MOST_HOSTS).contains(number));
            match at.and_then(|at| values.get_mut(at)).zip(number) {
                Some((place, number)) => *place = Some(number),
                None => {
                    let message = format!(
                        "`{}` is not an argument of the topology `{name}`",
                        shown(piece)
                    );
                    return Err(Error::input(message).hint(format!(
                        "its arguments: {}, each 1 to {MOST_HOSTS}",
                        names.join(", ")
                    )));
                }
            }
        }
        let [first, second] = values;
        match name {
            "minimal" => self.star(2, false),
            "single" => self.star(first.unwrap_or(2), false),
            "reversed" => self.star(first.unwrap_or(2), true),
            "linear" => self.linear(first.unwrap_or(2), second.unwrap_or(1)),
            "tree" => self.tree(first.unwrap_or(1), second.unwrap_or(2)),
            _ => self.torus(first.unwrap_or(3), second.unwrap_or(3)),
        }
    }

    fn link(&mut self, from: &str, to: &str) -> Result<()> {
        let mut link = LinkText::plain(from, to);
        set_options(&mut link, &self.options)?;
        self.network.link(link)
    }

    fn host(&mut self, name: &str, switch: &str) -> Result<()> {
        let host = self.network.node(NodeKind::Host, name)?;
        self.link(&host, switch)
    }

    fn star(&mut self, hosts: u64, reversed: bool) -> Result<()> {
        let switch = self.network.node(NodeKind::Switch, "s1")?;
        for number in 1..=hosts {
            let number = if reversed { hosts + 1 - number } else { number };
            self.host(&format!("h{number}"), &switch)?;
        }
        Ok(())
    }

    /// k switches in a row with n hosts each.
    fn linear(&mut self, k: u64, n: u64) -> Result<()> {
        let mut last: Option<String> = None;
        for at in 1..=k {
            let switch = self.network.node(NodeKind::Switch, &format!("s{at}"))?;
            for host in 1..=n {
                let name = if n == 1 {
                    format!("h{at}")
                } else {
                    format!("h{host}s{at}")
                };
                self.host(&name, &switch)?;
            }
            if let Some(last) = &last {
                self.link(&switch, last)?;
            }
            last = Some(switch);
        }
        Ok(())
    }

    /// Switches are numbered as mininet does: a switch before those below it.
    fn tree(&mut self, depth: u64, fanout: u64) -> Result<()> {
        let mut open = vec![(depth, None::<String>)];
        let (mut switches, mut hosts) = (0_u64, 0_u64);
        while let Some((depth, above)) = open.pop() {
            let name = if depth == 0 {
                hosts += 1;
                self.network.node(NodeKind::Host, &format!("h{hosts}"))?
            } else {
                switches += 1;
                let name = self
                    .network
                    .node(NodeKind::Switch, &format!("s{switches}"))?;
                open.extend((0..fanout).map(|_| (depth - 1, Some(name.clone()))));
                name
            };
            if let Some(above) = above {
                self.link(&above, &name)?;
            }
        }
        Ok(())
    }

    /// x times y switches, each with a host, linked to the next ones in both directions around.
    fn torus(&mut self, x: u64, y: u64) -> Result<()> {
        if x < 3 || y < 3 {
            return Err(
                Error::input("a torus has at least 3 times 3 switches").hint("write `torus,3,3`")
            );
        }
        let name = |i: u64, j: u64| format!("s{}x{}", i % x + 1, j % y + 1);
        let places = (0..x).flat_map(|i| (0..y).map(move |j| (i, j)));
        for (i, j) in places.clone() {
            let switch = self.network.node(NodeKind::Switch, &name(i, j))?;
            self.host(&format!("h{}x{}", i + 1, j + 1), &switch)?;
        }
        for (i, j) in places {
            self.link(&name(i, j), &name(i, j + 1))?;
            self.link(&name(i, j), &name(i + 1, j))?;
        }
        Ok(())
    }
}

fn from_python(text: &str, network: &mut NetworkText) -> Result<()> {
    // Variables that hold a node, with its foreign name.
    let mut variables: BTreeMap<String, String> = BTreeMap::new();
    for call in calls(text)? {
        match call.method.as_str() {
            "addLink" => python_link(&call, &variables, network)?,
            "addHost" | "addSwitch" | "addNode" => {
                let name = call.literal(0)?;
                let kind = match call.method.as_str() {
                    "addSwitch" => NodeKind::Switch,
                    _ if call
                        .named
                        .get("cls")
                        .is_some_and(|cls| cls.contains("Router")) =>
                    {
                        NodeKind::Router
                    }
                    _ => NodeKind::Host,
                };
                network.node(kind, &name)?;
                if let Some(variable) = &call.variable {
                    variables.insert(variable.clone(), name);
                }
            }
            _ => {
                network.comment("Controllers are left out: switches here forward by shortest path.")
            }
        }
    }
    network.comment(
        "mininet's links without `bw` are as fast as the machine; here they take no time.",
    );
    Ok(())
}

fn python_link(
    call: &PythonCall,
    variables: &BTreeMap<String, String>,
    network: &mut NetworkText,
) -> Result<()> {
    let mut ends = Vec::new();
    for (index, word) in ["node1", "node2"].into_iter().enumerate() {
        let written = call.positional.get(index).or(call.named.get(word));
        let foreign = written.map(|word| match variables.get(word) {
            Some(name) => name.clone(),
            None => word.trim_matches(['"', '\'']).to_owned(),
        });
        let here = foreign.as_deref().and_then(|name| network.name(name));
        match here {
            Some(name) => ends.push(name.to_owned()),
            None => {
                let shown = shown(written.map_or("", String::as_str));
                let message = format!(
                    "line {}: `{shown}` is not a node that was added before",
                    call.line
                );
                return Err(Error::input(message).hint(
                    "only literal names, and variables that addHost or addSwitch set, are read",
                ));
            }
        }
    }
    let mut link = LinkText::plain(&ends[0], &ends[1]);
    let options: BTreeMap<String, String> = call
        .named
        .iter()
        .filter(|option| !option.0.starts_with("node"))
        .map(|(name, value)| (name.clone(), value.trim_matches(['"', '\'']).to_owned()))
        .collect();
    set_options(&mut link, &options)?;
    network.link(link)
}
