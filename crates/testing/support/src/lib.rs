//! What tests of all crates share: how a test that cannot run here says so, how one waits, a browser, two ends of QUIC and of TLS, the
//! command line of benchmarks, seeds by as many threads as there are cores, and a strict reader of metrics.
//! Only tests and benchmarks depend on this crate.
//!
//! With `STACKLINE_REQUIRE=all`, as `.ci/run` sets it, a test that cannot run fails: a tool that is missing, or a kernel that forbids
//! something, cannot make a run green.

pub mod bench_arguments;
pub mod browser;
pub mod exchange_verdicts;
pub mod metrics_text;
pub mod quic_session;
pub mod seeds;
pub mod tls_pair;
mod waiting;

pub use waiting::{PATIENCE, wait_for, wait_until};

use std::fmt::Display;
use std::io::{self, Write as _};
use std::process::{Command, Stdio};

/// What `STACKLINE_REQUIRE` may be.
const ALL: &str = "all";

/// Prints that the test of this thread cannot run here, and why.
///
/// # Panics
/// Where `STACKLINE_REQUIRE` is `all`, so that the test fails.
#[track_caller]
pub fn skip(reason: impl Display) {
    if let Some(refusal) = refusal(std::env::var("STACKLINE_REQUIRE").ok().as_deref(), &reason) {
        panic!("{refusal}");
    }
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("a test");
    // Not by a macro, whose text is shown of tests that fail alone; where standard error is closed, nobody reads it.
    let _ = writeln!(io::stderr(), "skipped: {name}: {reason}");
}

/// Why a test that would be skipped fails instead.
fn refusal(required: Option<&str>, reason: &dyn Display) -> Option<String> {
    match required {
        None | Some("") => None,
        Some(ALL) => Some(format!(
            "this test cannot run here, and STACKLINE_REQUIRE is `{ALL}`: {reason}"
        )),
        Some(other) => Some(format!(
            "STACKLINE_REQUIRE is `{other}`: only `{ALL}` is known"
        )),
    }
}

/// Whether a program can be started; skips the test where it cannot. `package` is what Debian calls what brings it.
#[track_caller]
pub fn has_program(program: &str, package: &str) -> bool {
    let mut command = Command::new(program);
    command
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // Whatever it makes of the argument, it is there.
    let found = command.status().is_ok();
    if !found {
        skip(format_args!(
            "there is no {program} (Debian: apt-get install {package})"
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_required_test_fails_instead_of_being_skipped() {
        assert_eq!(refusal(None, &"no browser"), None);
        assert_eq!(refusal(Some(""), &"no browser"), None);
        assert!(
            refusal(Some("all"), &"no browser")
                .unwrap()
                .ends_with("no browser")
        );
        assert!(
            refusal(Some("most"), &"no browser")
                .unwrap()
                .contains("only `all`")
        );
    }
}
