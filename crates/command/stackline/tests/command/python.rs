//! The Python package with the program under test: its own tests, among them the cells of the notebook and of its page. What of them an
//! optional library is needed for is passed over, with a word, where Python has it not.

use crate::support::{Place, program, skip};
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A Python of at least 3.8, if there is one.
fn python() -> Option<PathBuf> {
    let python = env::var_os("STACKLINE_PYTHON").map_or_else(|| "python3".into(), PathBuf::from);
    let is_new = Command::new(&python)
        .args(["-c", "import sys; sys.exit(sys.version_info < (3, 8))"])
        .output()
        .is_ok_and(|done| done.status.success());
    if !is_new {
        skip("no python3 (3.8 or later; Debian: apt-get install python3) nor in STACKLINE_PYTHON");
    }
    is_new.then_some(python)
}

#[test]
fn the_tests_of_the_python_package_pass() {
    let Some(python) = python() else { return };
    let place = Place::new();
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../python/tests");
    let mut command = Command::new(python);
    command
        .arg(tests.join("test_stackline.py"))
        .arg("--verbose")
        .current_dir(place.path("."))
        .env("STACKLINE", program())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env_remove("STACKLINE_RUNS");
    let done = command.output().unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr),
    );
    for line in err.lines().filter(|line| line.contains("passed over")) {
        eprintln!("{line}");
    }
    assert!(done.status.success(), "{out}{err}");
}
