//! A network declared for one test, and programs on its hosts.
//!
//! Where namespaces are forbidden each test says so and ends. Every network here has a name of its own, so that no two
//! tests share one.

use super::{Place, Process, said, skip};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Output, Stdio};

/// A network declared for one test, and the programs on it.
pub(crate) struct Net {
    pub(crate) place: Place,
    pub(crate) name: String,
    pub(crate) text: String,
}

impl Net {
    /// Two hosts, `khons` and `udjat`; `None`, with the reason printed, where it cannot be made.
    pub(crate) fn pair(test: &str) -> Option<Self> {
        Self::with(
            test,
            "host khons, udjat; link khons - udjat 100 Mbit/s 5 ms;",
        )
    }

    pub(crate) fn with(test: &str, inside: &str) -> Option<Self> {
        let name = format!("{test}_{}", std::process::id());
        let net = Self {
            place: Place::new(),
            text: format!("network {name} {{ {inside} }}"),
            name,
        };
        net.place.write("net.stackline", &net.text);
        let host = inside
            .trim_start_matches("host ")
            .split([',', ';'])
            .next()
            .unwrap()
            .to_string();
        let tried = net.run(&host, &["true"]);
        if tried.status.code() == Some(3) {
            skip(said(&tried));
            return None;
        }
        assert_eq!(tried.status.code(), Some(0), "{}", said(&tried));
        Some(net)
    }

    pub(crate) fn command(&self, host: &str, words: &[&str]) -> Command {
        let mut command = self
            .place
            .command(&["net", "exec", "net.stackline", host, "--"]);
        command
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, host: &str, words: &[&str]) -> Output {
        self.command(host, words).output().unwrap()
    }

    /// Runs a program in the background; returns when it has printed a line.
    pub(crate) fn start(&self, host: &str, words: &[&str]) -> Started {
        let mut child = self.command(host, words).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        Started {
            child,
            out,
            line: line.trim().to_string(),
        }
    }
}

/// A program in the background, and the first line that it has printed.
pub(crate) struct Started {
    child: Child,
    out: BufReader<std::process::ChildStdout>,
    pub(crate) line: String,
}

impl Started {
    pub(crate) fn process(&self) -> Process {
        Process(i32::try_from(self.child.id()).unwrap())
    }

    /// Its exit code, what it printed further, what it said on stderr.
    pub(crate) fn finish(mut self) -> (Option<i32>, String, String) {
        let (mut out, mut err) = (String::new(), String::new());
        self.out.read_to_string(&mut out).unwrap();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut err)
            .unwrap();
        (self.child.wait().unwrap().code(), out, err)
    }
}

impl Drop for Started {
    /// A test that fails leaves nothing either.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the program printed: a machine with much else to do has a note about that on stderr.
pub(crate) fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).trim().into()
}
