//! What loops and templates bind while their statements are read, and how much of a text they have read again.

use crate::diagnostic::TextSpan;
use crate::tree::SpecValue;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

/// How deep loops and templates may stand in each other, so that the recursion is bounded.
pub(super) const DEEPEST: usize = 8;
/// The most that loops and templates may read again, in tokens; each statement counts for some more, since it takes
/// more memory than its text.
const MOST_AGAIN: usize = 1 << 21;
/// What a statement of a loop or template costs beside its tokens.
const STATEMENT: usize = 16;

/// What a name stands for.
#[derive(Clone, Debug)]
pub(super) enum BoundName {
    /// The index of a loop.
    Index(i64),
    /// An argument of a template.
    Argument(SpecValue),
    /// A parameter of a template that is being declared, or an index whose bounds depend on one.
    Open,
}

/// A template that the text declares.
#[derive(Clone, Debug)]
pub(super) struct TemplateBody {
    pub(super) parameters: Vec<String>,
    /// The index of its `{`.
    pub(super) at: usize,
    /// Whether all of it could be read.
    pub(super) sound: bool,
}

/// The names that hold where the parser stands.
#[derive(Debug, Default)]
pub(super) struct NameScope {
    /// The innermost last.
    pub(super) bound: Vec<(String, BoundName)>,
    /// What stands before the names of nodes: `paris.` in what `use ... as paris` reads.
    pub(super) prefix: String,
    /// Templates by their name's common form.
    pub(super) templates: BTreeMap<String, TemplateBody>,
    /// How many loops and templates are open.
    pub(super) depth: usize,
    /// Where everything is said to stand, if that is not where it is read: a use of one of our own templates.
    pub(super) place: Option<TextSpan>,
    /// What was read again so far.
    pub(super) again: usize,
}

impl NameScope {
    /// What the name stands for.
    pub(super) fn find(&self, name: &str) -> Option<&BoundName> {
        let same = self.bound.iter().rev().find(|bound| bound.0 == name);
        same.map(|bound| &bound.1)
    }

    /// Counts a statement, if it is one of a loop or template.
    pub(super) const fn count_statement(&mut self) {
        if self.depth > 0 {
            self.again += STATEMENT;
        }
    }

    /// Whether more was read again than is allowed.
    pub(super) const fn is_spent(&self) -> bool {
        self.again > MOST_AGAIN
    }
}
