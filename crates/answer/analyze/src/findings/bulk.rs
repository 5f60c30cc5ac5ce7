//! Kinds of findings about bulk data, which goes one way: applications, windows, buffers, queues, links and losses that limit it.

pub(super) mod application_limited;
pub(super) mod flow_control_window;
pub(super) mod link_loss;
pub(super) mod network_limited;
pub(super) mod outage;
pub(super) mod queue_drop;
pub(super) mod receive_buffer_loss;
pub(super) mod receiver_limited;
pub(super) mod reordering;
pub(super) mod retransmission_stall;
pub(super) mod sender_limited;
mod shared;
pub(super) mod slow_start;
pub(super) mod socket_buffer;
pub(super) mod synchronised_loss;
pub(super) mod undersized_buffer;
pub(super) mod window_below_bdp;
