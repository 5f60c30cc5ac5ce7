//! Fixture texts for every parser, a whole fixture tree, hostile texts, and the cost of a snapshot.

mod cost;
mod hostile;
mod parsers;
mod tree;
