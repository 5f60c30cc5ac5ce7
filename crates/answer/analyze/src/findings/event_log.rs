//! The events of a run, and what several kinds of findings need to know of them, computed once.

use crate::findings::followed_units::session::SessionAnalysis;
use crate::findings::input::AnalysisInput;
use crate::findings::requests::costs::RequestCosts;
pub(crate) use crate::findings::rows::{EventRows, FlowByteRange, MOST};
use std::cell::OnceCell;
use std::ops::Deref;

/// The events of a run.
#[derive(Debug)]
pub(crate) struct FindingEventLog<'c> {
    rows: EventRows<'c>,
    /// What is known of units that its events follow, where nothing was measured.
    session: OnceCell<Option<Box<SessionAnalysis>>>,
    /// What requests of programs that are not ours cost, where there are any.
    costs: OnceCell<Option<Box<RequestCosts>>>,
}

impl<'c> Deref for FindingEventLog<'c> {
    type Target = EventRows<'c>;

    fn deref(&self) -> &EventRows<'c> {
        &self.rows
    }
}

impl<'c> FindingEventLog<'c> {
    /// Of a run's events.
    pub(crate) fn of(input: &'c AnalysisInput<'c>) -> Self {
        Self {
            rows: EventRows::of(input),
            session: OnceCell::new(),
            costs: OnceCell::new(),
        }
    }

    /// What is known of units that its events follow, where nothing was measured.
    pub(crate) fn session(&self) -> Option<&SessionAnalysis> {
        self.session
            .get_or_init(|| SessionAnalysis::of(self).map(Box::new))
            .as_deref()
    }

    /// What requests of programs that are not ours cost, where there are any.
    pub(crate) fn costs(&self) -> Option<&RequestCosts> {
        self.costs
            .get_or_init(|| RequestCosts::of(&self.rows).map(Box::new))
            .as_deref()
    }
}
