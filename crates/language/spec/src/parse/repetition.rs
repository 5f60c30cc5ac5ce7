//! Parses what repeats statements of a network: loops, `for i in 1..8 { ... }`, and templates with their uses,
//! `template site(n) { ... }` and `use site(3) as paris;`.
//!
//! The statements are read again for each value of the index, and at each use, so that the tree has plain nodes and
//! links; their spans point into the body. What is read in this way is bounded ([`NameScope`]).

use super::index::decimal;
use super::name_scope::{BoundName, DEEPEST, NameScope, TemplateBody};
use super::parser::{ParseFailed, Parsed, Parser};
use super::value::ExpectedUnit;
use crate::diagnostic::{Diagnostic, DiagnosticReport, TextOrigin, TextSpan};
use crate::prelude::TEMPLATES;
use crate::spelling;
use crate::token::{TokenKind, lex};
use crate::token_layout::{Marked, TokenRole};
use crate::tree::{Base, NetworkItem, SpecUnit, SpecValue, Word};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use stackline_core::units::{BIT_RATES, RATE_UNITS, SIZE_UNITS, TIME_UNITS, find_factor};

/// A use of a template.
struct TemplateUse {
    name: Word,
    arguments: Vec<SpecValue>,
    /// What stands before the names of its nodes.
    prefix: String,
    span: TextSpan,
}

const LOOP: &str = "expected a loop, as in `for i in 1..200 { ... }`";

impl Parser<'_, '_> {
    /// Reads a loop behind the word `for`, at the span `start`, and adds what its statements declare.
    pub(super) fn network_loop(
        &mut self,
        start: TextSpan,
        network: &mut NetworkItem,
    ) -> Parsed<()> {
        let index = self.new_name(LOOP)?;
        if self.scope.find(&index.text).is_some() {
            let message = format!("`{}` stands for something else here already", index.text);
            let diagnostic = Diagnostic::error(index.span, message, "expected another name");
            return Err(self.fail(diagnostic.hint("give each loop an index of its own")));
        }
        self.expect_word("in", LOOP)?;
        let bounds = self.span();
        let from = self.whole_number(TokenRole::Plain, &[TokenKind::Range])?;
        self.take(TokenRole::Index);
        let to = self.whole_number(TokenRole::Index, &[TokenKind::OpenBrace])?;
        let bounds = bounds.to(self.last_span());
        self.enter(start)?;
        let known = from.zip(to);
        // A body without passes is still read, for its mistakes.
        if known.is_none_or(|(from, to)| from > to) {
            let read = self.unused(&[index.text], network);
            self.scope.depth -= 1;
            return read.map(|_| ());
        }
        let (from, to) = known.unwrap_or_default();
        if to < 0 || from < 0 {
            let diagnostic = Diagnostic::error(bounds, "an index is below zero", "0 or more");
            self.report.push(diagnostic);
            network.broken = true;
        }
        let body = self.position();
        for value in from..=to {
            self.go_to(body);
            let bound = (index.text.clone(), BoundName::Index(value));
            self.scope.bound.push(bound);
            let read = self.network_block(network);
            self.scope.bound.pop();
            if value > from {
                self.scope.again += self.position() - body;
            }
            if !matches!(read, Ok(true)) || self.is_spent(start, network) {
                network.broken = true;
                self.scope.depth -= 1;
                return read.map(|_| ());
            }
        }
        self.scope.depth -= 1;
        Ok(())
    }

    /// Counts one more loop or template that is open.
    fn enter(&mut self, start: TextSpan) -> Parsed<()> {
        if self.scope.depth >= DEEPEST {
            let message = "loops and templates stand too deep in each other";
            let label = format!("at most {DEEPEST}");
            return Err(self.fail(Diagnostic::error(start, message, label).hint("use fewer")));
        }
        self.scope.depth += 1;
        Ok(())
    }

    /// Whether the text's loops and templates have read more than is allowed, which is reported once.
    fn is_spent(&mut self, start: TextSpan, network: &mut NetworkItem) -> bool {
        let spent = self.scope.is_spent();
        if spent && !network.broken {
            let message = "the loops and templates of the text make too many statements";
            let diagnostic = Diagnostic::error(start, message, "too many passes");
            let hint = "a network may have at most 32768 hosts and switches";
            self.report.push(diagnostic.hint(hint));
        }
        if spent {
            // Too many nodes would be a second mistake.
            *network = NetworkItem {
                broken: true,
                ..NetworkItem::empty(network.name.clone())
            };
        }
        spent
    }

    /// Reads `{ ... }` of a network's statements. Returns whether all could be read.
    fn network_block(&mut self, network: &mut NetworkItem) -> Parsed<bool> {
        self.block("expected `{`", &mut |parser| {
            parser.network_statement(network)
        })
    }

    /// Reads a body whose `names` have no value yet, for its mistakes and its layout alone.
    fn unused(&mut self, names: &[String], network: &mut NetworkItem) -> Parsed<bool> {
        let before = self.scope.bound.len();
        let open = names.iter().map(|name| (name.clone(), BoundName::Open));
        self.scope.bound.extend(open);
        let mut scratch = NetworkItem::empty(network.name.clone());
        let read = self.network_block(&mut scratch);
        self.scope.bound.truncate(before);
        network.broken |= scratch.broken || !matches!(read, Ok(true));
        read
    }

    /// Reads `template NAME(PARAMETER, ...) { ... }` and keeps where its body stands.
    pub(crate) fn template_item(&mut self) -> Parsed<()> {
        let start = self.take(TokenRole::Keyword);
        let name = self.new_name("expected a template name")?;
        let mut parameters: Vec<String> = Vec::new();
        if self.accept(TokenKind::Open) && !self.accept(TokenKind::Close) {
            loop {
                let parameter = self.new_name("expected the name of a parameter")?;
                if parameters.contains(&parameter.text) {
                    let message = format!("the parameter `{}` is declared twice", parameter.text);
                    let diagnostic = Diagnostic::error(parameter.span, message, "already declared");
                    self.report.push(diagnostic.hint("choose another name"));
                }
                parameters.push(parameter.text);
                if !self.accept(TokenKind::Comma) {
                    break;
                }
            }
            self.expect(TokenKind::Close, "expected `,` or `)`")?;
        }
        let at = self.position();
        let mut network = NetworkItem::empty(name.clone());
        self.enter(start)?;
        let read = self.unused(&parameters, &mut network);
        self.scope.depth -= 1;
        let body = TemplateBody {
            parameters,
            at,
            sound: !network.broken,
        };
        let key = spelling::fold(&name.text);
        if self.scope.templates.insert(key, body).is_some() {
            let message = format!("the template `{}` is declared twice", name.text);
            let diagnostic = Diagnostic::error(name.span, message, "already declared");
            self.report.push(diagnostic.hint("choose another name"));
        }
        read.map(|_| ())
    }

    /// Reads `NAME(ARGUMENT, ...) [as NAME];` behind the word `use`, at the span `start`, and adds what the template
    /// declares.
    pub(super) fn template_use(
        &mut self,
        start: TextSpan,
        network: &mut NetworkItem,
    ) -> Parsed<()> {
        let name = self.name("expected a template name")?;
        let mut arguments = Vec::new();
        if self.accept(TokenKind::Open) && !self.accept(TokenKind::Close) {
            arguments.push(self.template_argument()?);
            while self.accept(TokenKind::Comma) {
                arguments.push(self.template_argument()?);
            }
            self.expect(TokenKind::Close, "expected `,` or `)`")?;
        }
        let mut used = TemplateUse {
            name,
            arguments,
            prefix: self.scope.prefix.clone(),
            span: start,
        };
        if self.accept_word("as") {
            let before =
                self.node_name("expected a name that comes before those of the template")?;
            used.prefix = format!("{}.", before.text);
        }
        used.span = start.to(self.last_span());
        self.statement_end("expected `;` or `as`", &["as"])?;
        self.enter(used.span)?;
        let span = used.span;
        let read = if self
            .scope
            .templates
            .contains_key(&spelling::fold(&used.name.text))
        {
            self.instantiate(used, network)
        } else {
            self.instantiate_ours(used, network)
        };
        self.scope.depth -= 1;
        if read.is_err() || self.is_spent(span, network) {
            network.broken = true;
        }
        Ok(())
    }

    /// Reads an argument: a number with its unit, an index, or a parameter of the template that stands around.
    fn template_argument(&mut self) -> Parsed<SpecValue> {
        const ARGUMENT: &str = "expected an argument, such as `8`, `10 Mbit/s` or `5 ms`";
        let start = self.span();
        let has_unit = self.ahead(1) == TokenKind::Name;
        let rate = find_factor(BIT_RATES, self.text(1)).is_some()
            || find_factor(RATE_UNITS, self.text(1)).is_some() && self.ahead(2) == TokenKind::Slash;
        let ends = |kind| matches!(kind, TokenKind::Comma | TokenKind::Close);
        let percent = self.ahead(1) == TokenKind::Percent && ends(self.ahead(2));
        if self.is_figure() && has_unit && rate {
            return self.rate();
        }
        if self.is_figure() && has_unit {
            let known = [SIZE_UNITS, TIME_UNITS].concat();
            if find_factor(&known, self.text(1)).is_some() {
                return self.value(ExpectedUnit::Any, ARGUMENT);
            }
        }
        if self.is_figure() && percent {
            return self.percentage(ARGUMENT);
        }
        let swept = self.is_bracketed(0) || self.is_swept(0);
        if swept && self.bound_name().is_none() {
            return self.value(ExpectedUnit::Any, ARGUMENT);
        }
        let alone = ends(self.ahead(1));
        let bound = self.scope.find(self.text(0)).cloned();
        if let (true, TokenKind::Name, Some(BoundName::Argument(value))) =
            (alone, self.kind(), &bound)
        {
            let value = value.clone();
            self.take(TokenRole::Plain);
            return Ok(value);
        }
        if let (true, TokenKind::Number(number)) = (alone, self.kind()) {
            self.take(TokenRole::Plain);
            return Ok(plain(Base::Number(number), start));
        }
        let number = self.whole_number(TokenRole::Plain, &[TokenKind::Comma, TokenKind::Close])?;
        let base = number.map_or_else(
            || Base::Variable(String::new()),
            |number| Base::Number(decimal(number)),
        );
        Ok(plain(base, start.to(self.last_span())))
    }

    /// Reads the body of a template of this text with these arguments, and goes on where it was.
    fn instantiate(&mut self, used: TemplateUse, network: &mut NetworkItem) -> Parsed<()> {
        let TemplateUse {
            name,
            arguments,
            prefix,
            ..
        } = used;
        let key = spelling::fold(&name.text);
        let Some(template) = self.scope.templates.get(&key).cloned() else {
            return Err(ParseFailed);
        };
        if template.parameters.len() != arguments.len() {
            return Err(self.other_arguments(&name, &template, arguments.len()));
        }
        if !template.sound {
            return Err(ParseFailed);
        }
        let bound = |value: SpecValue| match &value.base {
            Base::Variable(name) if name.is_empty() => BoundName::Open,
            _ => BoundName::Argument(value),
        };
        let inner = template
            .parameters
            .into_iter()
            .zip(arguments.into_iter().map(bound));
        let outer = core::mem::replace(&mut self.scope.bound, inner.collect());
        let before = core::mem::replace(&mut self.scope.prefix, prefix);
        let behind = self.position();
        self.go_to(template.at);
        let read = self.network_block(network);
        self.scope.again += self.position() - template.at;
        self.go_to(behind);
        self.scope.bound = outer;
        self.scope.prefix = before;
        match read {
            Ok(true) => Ok(()),
            _ => Err(ParseFailed),
        }
    }

    fn other_arguments(
        &mut self,
        name: &Word,
        template: &TemplateBody,
        given: usize,
    ) -> ParseFailed {
        let wanted = template.parameters.len();
        let message = format!(
            "the template `{}` has {wanted} parameters; this gives {given}",
            name.text
        );
        let parameters = template.parameters.join(", ");
        let diagnostic = Diagnostic::error(name.span, message, "another number of arguments");
        self.fail(diagnostic.hint(format!("use it as `use {}({parameters});`", name.text)))
    }

    /// Reads one of our own templates; what it declares is said to stand at its use.
    fn instantiate_ours(&mut self, used: TemplateUse, network: &mut NetworkItem) -> Parsed<()> {
        let mut quiet = DiagnosticReport::default();
        let tokens = lex(TEMPLATES, TextOrigin::File, &mut quiet);
        let mut marked = Marked::new(TEMPLATES, &tokens);
        let known: Vec<String> = self.scope.templates.keys().cloned().collect();
        let mut ours = Parser::new(&mut marked, self.report);
        let _ = ours.items();
        ours.scope = NameScope {
            place: Some(used.span),
            depth: self.scope.depth,
            again: self.scope.again + tokens.list.len(),
            templates: core::mem::take(&mut ours.scope.templates),
            ..NameScope::default()
        };
        if !ours
            .scope
            .templates
            .contains_key(&spelling::fold(&used.name.text))
        {
            let all: Vec<String> = known
                .into_iter()
                .chain(ours.scope.templates.into_keys())
                .collect();
            let name = used.name;
            let message = format!("the text has no template `{}`", name.text);
            let hint = format!("known templates: {}", all.join(", "));
            let diagnostic = Diagnostic::error(name.span, message, "not declared before this");
            let names = all.iter().map(String::as_str);
            self.report
                .push(diagnostic.did_you_mean(&name.text, names, hint));
            return Err(ParseFailed);
        }
        let read = ours.instantiate(used, network);
        self.scope.again = ours.scope.again;
        read
    }
}

/// A value without a unit.
const fn plain(base: Base, span: TextSpan) -> SpecValue {
    SpecValue {
        base,
        unit: SpecUnit::None,
        span,
    }
}
