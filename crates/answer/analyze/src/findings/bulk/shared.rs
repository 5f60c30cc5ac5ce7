//! What several findings about data that goes one way share. None of these files is a finding.

pub(super) mod buffer_request;
pub(super) mod lost_data;
pub(super) mod queues;
