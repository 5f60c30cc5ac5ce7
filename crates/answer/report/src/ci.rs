//! Verdicts for continuous integration: JUnit's XML, a table in Markdown, annotations of GitHub Actions.
//!
//! Each is written from the same list of checks, so that one more form needs one more file.

mod checks;
mod github;
mod junit;
mod markdown;

pub use checks::{CiCheck, CiOutcome, CiReport};
pub use github::github_annotations;
pub use junit::junit;
pub use markdown::ci_markdown;
