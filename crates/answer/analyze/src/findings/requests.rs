//! Requests of traced programs (any programs, not those of stackline): how much time each took, by cause, and what the emulated network
//! did to it.

pub(super) mod accounted;
pub(super) mod attempts;
pub(super) mod behind_bytes;
pub(super) mod cause_costs;
pub(super) mod causes;
pub(super) mod connection_history;
pub(super) mod control_connections;
pub(super) mod costs;
pub(super) mod ends_in_words;
pub(super) mod failed_status;
pub(super) mod failure_groups;
pub(super) mod general_names;
pub(super) mod given_up;
pub(super) mod in_order;
pub(super) mod least_time;
pub(super) mod long_transfers;
pub(super) mod message_delays;
pub(super) mod named;
pub(super) mod network;
pub(super) mod path_rates;
pub(super) mod program_ports;
pub(super) mod queueing;
pub(super) mod request;
pub(super) mod request_account;
pub(super) mod request_part;
pub(super) mod request_roots;
pub(super) mod responders;
pub(super) mod server_choice;
pub(super) mod server_time;
pub(super) mod traced_requests;
pub(super) mod transaction_waits;
pub(super) mod unassigned;
pub(super) mod worst;
