//! What several kinds of findings about bulk data share. These files define no kind of finding of their own.

pub(super) mod buffer_request;
pub(super) mod lost_data;
pub(super) mod queues;
