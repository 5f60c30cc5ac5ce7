//! The events of a run, and what several kinds of findings need to know of them, computed once.

use super::input::Input;
use super::request_costs::Costs;
pub(crate) use super::rows::{MOST, Range, Rows};
use super::session::Session;
use std::cell::OnceCell;
use std::ops::Deref;

/// The events of a run.
#[derive(Debug)]
pub(crate) struct Log<'c> {
    rows: Rows<'c>,
    /// What is known of units that its events follow, where nothing was measured.
    session: OnceCell<Option<Box<Session>>>,
    /// What requests of programs that are not ours cost, where there are any.
    costs: OnceCell<Option<Box<Costs>>>,
}

impl<'c> Deref for Log<'c> {
    type Target = Rows<'c>;

    fn deref(&self) -> &Rows<'c> {
        &self.rows
    }
}

impl<'c> Log<'c> {
    /// Of a run's events.
    pub(crate) fn of(input: &'c Input<'c>) -> Self {
        Self {
            rows: Rows::of(input),
            session: OnceCell::new(),
            costs: OnceCell::new(),
        }
    }

    /// What is known of units that its events follow, where nothing was measured.
    pub(crate) fn session(&self) -> Option<&Session> {
        self.session
            .get_or_init(|| Session::of(self).map(Box::new))
            .as_deref()
    }

    /// What requests of programs that are not ours cost, where there are any.
    pub(crate) fn costs(&self) -> Option<&Costs> {
        self.costs
            .get_or_init(|| Costs::of(&self.rows).map(Box::new))
            .as_deref()
    }
}
