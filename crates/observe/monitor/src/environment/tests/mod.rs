//! A host made of files, hostile texts, and the cost of a snapshot.

mod cost;
mod hostile;
mod tree;
