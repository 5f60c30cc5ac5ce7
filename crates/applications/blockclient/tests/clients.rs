//! The C header and the Python module against a site on loopback. Passed over, with a word, where there is no compiler or Python.

#![allow(
    clippy::unwrap_used,
    reason = "what helpers of a test cannot do fails the test"
)]

#[allow(
    dead_code,
    reason = "a client needs a part of what tests of the server do"
)]
#[path = "../../blockserver/tests/blocks/common.rs"]
mod common;

use common::{Site, set};
use stackline_blockclient::ffi_types::{
    FfiClientEvent, FfiClientOptions, FfiDataSet, FfiPlayoutCounts, FfiPlayoutOptions,
};
use std::mem::{offset_of, size_of};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Where the library was built, beside this test.
fn libraries() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().to_owned()
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// Compiles a program over the header; nothing where there is no compiler.
fn compiled(source: &Path, into: &Path) -> Option<PathBuf> {
    let program = into.join("program");
    let made = Command::new("cc")
        .args([
            "-std=c11",
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
            "-O1",
            "-g",
            "-o",
        ])
        .arg(&program)
        .arg(source)
        .arg("-I")
        .arg(sources().join("../../../clients/c"))
        .arg("-L")
        .arg(libraries())
        .arg("-lstackline_blockclient")
        .output();
    match made {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            eprintln!("passed over: there is no `cc` here, so the C client is not tested");
            None
        }
        output => {
            let output = output.unwrap();
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            Some(program)
        }
    }
}

fn run(program: &Path, words: &[&str]) -> Output {
    Command::new(program)
        .args(words)
        .env("LD_LIBRARY_PATH", libraries())
        .output()
        .unwrap()
}

fn said(output: &Output) -> String {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn site() -> (Site, String) {
    let site = Site::new(2);
    site.load(&set("map", 40, 1)).unwrap();
    let address = site.master.address().to_string();
    (site, address)
}

#[test]
fn structures_are_those_of_the_header() {
    let place = tempfile::tempdir().unwrap();
    let Some(program) = compiled(&sources().join("tests/client.c"), place.path()) else {
        return;
    };
    let sizes = [
        size_of::<FfiClientOptions>(),
        size_of::<FfiDataSet>(),
        size_of::<FfiPlayoutOptions>(),
        size_of::<FfiPlayoutCounts>(),
        size_of::<FfiClientEvent>(),
    ];
    let places = [
        offset_of!(FfiClientEvent, server),
        offset_of!(FfiClientEvent, app_send),
        offset_of!(FfiClientEvent, app_receive),
        offset_of!(FfiClientEvent, data),
        offset_of!(FfiClientEvent, words),
        offset_of!(FfiClientEvent, owner),
    ];
    let line = |numbers: &[usize]| {
        numbers
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(
        said(&run(&program, &[])),
        format!("{}\n{}\n", line(&sizes), line(&places))
    );
}

#[test]
fn a_program_in_c_reads_blocks() {
    let place = tempfile::tempdir().unwrap();
    let Some(program) = compiled(&sources().join("tests/client.c"), place.path()) else {
        return;
    };
    let (_site, address) = site();
    assert_eq!(said(&run(&program, &[&address])), "all of it\n");
}

#[test]
fn the_example_in_c_says_where_time_went() {
    let place = tempfile::tempdir().unwrap();
    let example = sources().join("../../../clients/c/blockclient_example.c");
    let Some(program) = compiled(&example, place.path()) else {
        return;
    };
    let (_site, address) = site();
    let said = said(&run(&program, &[&address, "map", "7", "8"]));
    assert_eq!(said.lines().count(), 2);
    assert!(
        said.contains("block 7: 8192 bytes, from its disk"),
        "{said}"
    );
    let refused = run(&program, &[&address, "none", "7"]);
    assert!(
        String::from_utf8_lossy(&refused.stderr).contains("hint: "),
        "{refused:?}"
    );
}

#[test]
fn a_program_in_python_reads_blocks() {
    let old = "import sys; sys.exit(sys.version_info < (3, 8))";
    if !Command::new("python3")
        .args(["-c", old])
        .output()
        .is_ok_and(|output| output.status.success())
    {
        eprintln!(
            "passed over: there is no python3 of 3.8 or later here, so the Python client is not tested"
        );
        return;
    }
    let (_site, address) = site();
    let output = Command::new("python3")
        .arg(sources().join("tests/client.py"))
        .arg(address)
        .env("PYTHONPATH", sources().join("../../../python"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env(
            "STACKLINE_BLOCKCLIENT",
            libraries().join("libstackline_blockclient.so"),
        )
        .output()
        .unwrap();
    assert_eq!(said(&output), "all of it\n");
}
