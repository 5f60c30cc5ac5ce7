//! The gateway as HTTP clients meet it, good and bad ones, one file a subject.
mod support;

mod bad_clients;
mod changed_sets;
mod failures;
mod lists;
mod pictures;
mod reads;
