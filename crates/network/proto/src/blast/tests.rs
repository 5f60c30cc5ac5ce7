//! Both ends of a connection over a path that loses, repeats and reorders, every byte followed.

mod numbers;
mod path;
mod rows;
mod schedules;
mod script;
mod traces;
mod traces_connection;
mod traces_flow;
