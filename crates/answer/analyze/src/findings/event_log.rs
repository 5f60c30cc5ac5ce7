//! The events of a run, and what several kinds of findings derive from them, computed at most once.

use crate::findings::followed_units::session::SessionAnalysis;
use crate::findings::input::AnalysisInput;
use crate::findings::requests::costs::RequestCosts;
pub(crate) use crate::findings::rows::{EventRows, FlowByteRange, MOST};
use std::cell::OnceCell;
use std::ops::Deref;

/// The events of a run, with results that are computed when first asked for.
#[derive(Debug)]
pub(crate) struct FindingEventLog<'c> {
    rows: EventRows<'c>,
    /// The analysis of a session: a run without measurements, whose units are followed through events.
    session: OnceCell<Option<Box<SessionAnalysis>>>,
    /// The times of requests of traced programs by cause; `None` inside if there are no such requests.
    costs: OnceCell<Option<Box<RequestCosts>>>,
}

impl<'c> Deref for FindingEventLog<'c> {
    type Target = EventRows<'c>;

    fn deref(&self) -> &EventRows<'c> {
        &self.rows
    }
}

impl<'c> FindingEventLog<'c> {
    /// Indexes the events of a run.
    pub(crate) fn from_input(input: &'c AnalysisInput<'c>) -> Self {
        Self {
            rows: EventRows::from_input(input),
            session: OnceCell::new(),
            costs: OnceCell::new(),
        }
    }

    /// The analysis of a session: a run without measurements, whose units are followed through events. `None` for other runs.
    pub(crate) fn session(&self) -> Option<&SessionAnalysis> {
        self.session
            .get_or_init(|| SessionAnalysis::from_log(self).map(Box::new))
            .as_deref()
    }

    /// The times of requests of traced programs by cause; `None` if there are no such requests.
    pub(crate) fn costs(&self) -> Option<&RequestCosts> {
        self.costs
            .get_or_init(|| RequestCosts::from_log(&self.rows).map(Box::new))
            .as_deref()
    }
}
