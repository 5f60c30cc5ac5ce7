//! Turns a tree into a plan: names are resolved, sweeps and lists of stacks are expanded, and everything is checked.
//!
//! Checking goes on after a mistake, so that all are reported. The only files read are those of empirical
//! distributions and of traces, through a function that the caller gives.

mod checker;
mod clauses;
mod crossed_network;
mod defaults;
mod destination_file;
pub(crate) mod evaluate;
mod expansion;
mod expectation;
mod far_end;
pub(crate) mod host_sets;
mod ineffective_clauses;
mod mahimahi_trace;
mod measurement_origin;
mod network;
mod part;
mod partial_spec;
mod plan_text;
mod procedure;
mod referenced_files;
mod references;
mod series;
mod shared_connection;
mod side_matching;
mod spanned_step;
mod stack;
mod termination;
mod timing;
mod variable_units;
mod varied_network;
mod world_capability;

pub(crate) use checker::Instead;
pub(crate) use expectation::alert_condition;

use crate::agent_destination;
use crate::context::{CheckContext, Overrides};
use crate::diagnostic::{Diagnostic, DiagnosticReport, TextOrigin, TextSpan};
use crate::prelude::PRELUDE;
use crate::token_layout::Marked;
use crate::tree::{
    HostItem, NetworkItem, ProcedureItem, Readable, SpecItem, SpecValue, Tree, ViaItem,
};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::rc::Rc;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use checker::Checker;
use evaluate::{MOST_CORES, fixed};
use referenced_files::SpecFiles;
use stackline_core::catalogue::StackTable;
use stackline_core::plan::{HostPlan, Plan, Via};

/// The seed when none is written.
const SEED: u64 = 1;

/// Checks a tree. The plan is complete only if the report has no error.
pub(crate) fn check<'c>(
    tree: &Tree,
    marked: &'c Marked<'c>,
    instead: Option<Instead<'c>>,
    context: &'c CheckContext<'c>,
    overrides: &'c Overrides,
    report: &'c mut DiagnosticReport,
) -> (Plan, Option<String>) {
    let plan = Plan {
        seed: SEED,
        hosts: BTreeMap::new(),
        networks: Vec::new(),
        measurements: Vec::new(),
    };
    let files = SpecFiles::new(context.read_file);
    let mut checker = Checker {
        context,
        overrides,
        marked,
        instead,
        report,
        files,
        procedures: BTreeMap::new(),
        hosts: BTreeMap::new(),
        networks: BTreeMap::new(),
        varied: BTreeMap::new(),
        budget: expansion::BUDGET,
        plan,
        origins: Vec::new(),
    };
    checker.prelude();
    checker.declarations(tree);
    checker.override_hosts(tree);
    checker.override_stacks(tree);
    checker.specifications(tree);
    checker.finish(tree)
}

impl Checker<'_> {
    /// Adds the procedures of the prelude, in the same way as a text's own.
    fn prelude(&mut self) {
        let mut report = DiagnosticReport::default();
        let tokens = crate::token::lex(PRELUDE, TextOrigin::File, &mut report);
        let mut marked = Marked::new(PRELUDE, &tokens);
        for item in crate::parse::parse(&mut marked, &mut report).items {
            if let SpecItem::Procedure(item) = item {
                let key = crate::spelling::application_key(&item.name.text);
                self.procedures
                    .insert(key, procedure::compile(&item, &mut report, &mut self.files));
            }
        }
        debug_assert_eq!(report.errors(), 0, "the prelude has mistakes");
    }

    fn declarations(&mut self, tree: &Tree) {
        let mut seeded = false;
        let mut own: BTreeSet<String> = BTreeSet::new();
        for item in &tree.items {
            match item {
                SpecItem::Host(item) => self.host(item),
                SpecItem::Network(item) => self.network(item),
                SpecItem::Procedure(item) => self.procedure(item, &mut own),
                SpecItem::Seed(value, span) => {
                    if core::mem::replace(&mut seeded, true) {
                        self.report.push(Diagnostic::error(
                            *span,
                            "the seed is given twice",
                            "keep one of them",
                        ));
                    }
                    if let Some(seed) = self.whole(value, "a seed", 0, 1_000_000_000_000_000) {
                        self.plan.seed = seed;
                    }
                }
                SpecItem::Specification(_) | SpecItem::Factor(_) => {}
            }
        }
        for (name, host) in &self.overrides.hosts {
            let entry = self.hosts.entry(name.clone()).or_default();
            let kept = core::mem::take(entry);
            *entry = HostPlan {
                cpu: host.cpu.or(kept.cpu),
                files: host.files.clone().or(kept.files),
                share: host.share.or(kept.share),
                ..host.clone()
            };
        }
    }

    /// A whole number in a place where no variable is permitted; a mistake is reported.
    fn whole(&mut self, value: &SpecValue, what: &str, least: u64, most: u64) -> Option<u64> {
        match fixed(value, what, least, most) {
            Ok(number) => Some(number),
            Err(mistake) => {
                self.report.push(mistake);
                None
            }
        }
    }

    fn host(&mut self, item: &HostItem) {
        let cpu = item
            .cpu
            .as_ref()
            .and_then(|value| self.whole(value, "the core number", 0, MOST_CORES));
        let via = match &item.via {
            Some(Some(item)) => self.via(item),
            _ => Via::Local,
        };
        self.has_what_its_agent_was_started_with(item, &via);
        let host = HostPlan {
            via,
            address: item.at.as_ref().map(|word| word.text.clone()),
            cpu: cpu.and_then(|cpu| usize::try_from(cpu).ok()),
            files: item.files.as_ref().map(|word| word.text.clone()),
            share: item
                .share
                .as_ref()
                .and_then(|value| self.report.keep(network::processor_share(value))),
        };
        for name in &item.names {
            if self.hosts.insert(name.text.clone(), host.clone()).is_some() {
                let message = format!("the host `{}` is declared twice", name.text);
                self.report.push(
                    Diagnostic::error(name.span, message, "already declared")
                        .hint("keep one of them"),
                );
            }
        }
    }

    fn via(&mut self, item: &ViaItem) -> Via {
        let form = agent_destination::WAYS.iter().find(|way| way.0 == item.way);
        agent_destination::via(item.way, &item.destination.text).unwrap_or_else(|what| {
            let expected = form.map_or("", |form| form.1);
            self.report.push(Diagnostic::error(
                item.destination.span,
                what,
                format!("expected a destination such as {expected}"),
            ));
            Via::Local
        })
    }

    /// An agent that others start has its directory and its share from there.
    fn has_what_its_agent_was_started_with(&mut self, item: &HostItem, via: &Via) {
        let start = match via {
            Via::Tcp(_) => "stackline agent --listen ADDRESS",
            Via::Exec(_) => "stackline agent",
            Via::Local | Via::Ssh(_) | Via::FarEnd(_) => return,
        };
        let files = item.files.as_ref().map(|word| ("files", word.span));
        let share = item.share.as_ref().map(|value| ("share", value.span));
        for (clause, span) in files.into_iter().chain(share) {
            let message = format!("`{clause}` is set where this host's agent is started");
            self.report.push(
                Diagnostic::error(span, message, "this agent is not started by `run`").hint(
                    format!("omit it, and start the agent as `{start} --{clause} ...`"),
                ),
            );
        }
    }

    fn network(&mut self, item: &NetworkItem) {
        let network = if self.vary(item) {
            network::resolve_names(item, self.report)
        } else {
            let network = network::resolve(item, self.report, &mut self.files);
            self.plan.networks.push(network.clone());
            network
        };
        if self
            .networks
            .insert(item.name.text.clone(), Rc::new(network))
            .is_some()
        {
            let message = format!("the network `{}` is declared twice", item.name.text);
            self.report.push(
                Diagnostic::error(item.name.span, message, "already declared")
                    .hint("choose another name"),
            );
        }
    }

    fn procedure(&mut self, item: &ProcedureItem, own: &mut BTreeSet<String>) {
        let key = crate::spelling::application_key(&item.name.text);
        let compiled = procedure::compile(item, self.report, &mut self.files);
        if !own.insert(key.clone()) {
            let message = format!("the procedure `{}` is declared twice", item.name.text);
            let diagnostic = Diagnostic::error(item.name.span, message, "already declared");
            self.report.push(diagnostic.hint("choose another name"));
        } else if self.procedures.contains_key(&key) {
            let message = format!(
                "`{}` replaces the standard application type",
                item.name.text
            );
            let diagnostic =
                Diagnostic::warning(item.name.span, message, "a name from the prelude");
            self.report
                .push(diagnostic.hint("choose another name if this is unintended"));
        }
        self.procedures.insert(key, compiled);
    }

    /// A host of the command line that the text does not name would be given for nothing.
    fn override_hosts(&mut self, tree: &Tree) {
        let mut named: BTreeSet<&str> = BTreeSet::new();
        for item in &tree.items {
            match item {
                SpecItem::Host(item) => {
                    named.extend(item.names.iter().map(|word| word.text.as_str()))
                }
                SpecItem::Network(item) => {
                    named.extend(item.host_names().map(|word| word.text.as_str()))
                }
                SpecItem::Specification(item) => {
                    let ends = item
                        .parts
                        .iter()
                        .flat_map(|part| [&part.from, &part.to])
                        .flatten();
                    named.extend(ends.map(|word| word.text.as_str()));
                }
                SpecItem::Procedure(_) | SpecItem::Seed(..) | SpecItem::Factor(_) => {}
            }
        }
        // The host may be named in a part of the text that could not be parsed.
        let whole = self.report.errors() == 0;
        let stands = |name: &str| {
            (0..self.marked.tokens.list.len()).any(|index| self.marked.text(index) == name)
        };
        for (index, (name, _)) in self.overrides.hosts.iter().enumerate() {
            if named.contains(name.as_str()) || (!whole && stands(name)) {
                continue;
            }
            let span = TextSpan {
                start: 0,
                end: name.len(),
                origin: TextOrigin::Host(index),
            };
            let message = format!("the specification has no host `{name}`");
            let hint = match named.iter().copied().collect::<Vec<_>>().as_slice() {
                [] => "omit it; without FROM and TO, both ends are on this machine".to_string(),
                hosts => format!("its hosts: {}", hosts.join(", ")),
            };
            let diagnostic =
                Diagnostic::error(span, message, "expected a host of the specification");
            self.report
                .push(diagnostic.did_you_mean(name, named.iter().copied(), hint));
        }
    }

    /// Checks the stacks of the command line by themselves.
    fn override_stacks(&mut self, tree: &Tree) {
        let Some(instead) = &self.instead else { return };
        let specifications = tree.items.iter().filter_map(|item| match item {
            SpecItem::Specification(specification) => Some(self.tables(specification)),
            _ => None,
        });
        // One list a world; most files know one world.
        let mut tables: Vec<&[StackTable]> = Vec::new();
        for table in specifications {
            if !tables.iter().any(|known| core::ptr::eq(*known, table)) {
                tables.push(table);
            }
        }
        if tables.is_empty() {
            tables.extend(self.context.worlds.first().map(|world| world.stacks));
        }
        for item in &instead.stacks {
            for table in &tables {
                stack::verify(item, table, None, self.report);
            }
        }
    }

    fn specifications(&mut self, tree: &Tree) {
        let mut any = false;
        for (index, item) in tree.items.iter().enumerate() {
            if let SpecItem::Specification(specification) = item {
                any = true;
                match specification.readable {
                    Readable::Whole => self.specification(index, specification),
                    Readable::InPart => self.partial(specification),
                    Readable::Not => {}
                }
            }
        }
        // The values may be in a part of the text that could not be parsed.
        if self.report.errors() == 0 {
            self.without_values();
        }
        // A text that declares networks alone is for programs of their own: `net exec`.
        let has_networks = || {
            tree.items
                .iter()
                .any(|item| matches!(item, SpecItem::Network(_)))
        };
        if !any && self.report.errors() == 0 && !has_networks() {
            let diagnostic = Diagnostic::warning(
                TextSpan::default(),
                "the specification contains no measurement",
                "",
            );
            self.report
                .push(diagnostic.hint("write a specification such as `10 bulk_get 1024*1000;`"));
        }
    }

    /// What the text and the command line leave open is settled, then each measurement is judged against its world.
    fn finish(mut self, tree: &Tree) -> (Plan, Option<String>) {
        self.plan.hosts = core::mem::take(&mut self.hosts);
        if let Some(seed) = self.overrides.seed {
            self.plan.seed = seed;
        }
        let mut note = None;
        if !self.overrides.declarations_only {
            note = defaults::networks_and_hosts(&mut self.plan, self.context.worlds);
            self.judge(tree);
            self.doubts(tree);
        }
        (self.plan, note)
    }
}
