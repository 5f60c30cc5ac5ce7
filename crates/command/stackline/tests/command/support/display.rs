//! A display that is served in the background, other services beside it, and what a benchmark said of one.

use super::Place;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// A command that goes on in the background of a place, beside those that have to leave nothing behind.
pub(crate) fn background(place: &Place, words: &[&str]) -> Command {
    let mut command = place.command(words);
    command.env_remove("STACKLINE_RUNS");
    command
}

/// A secret in a file that only this user reads.
pub(crate) fn private(place: &Place, name: &str) {
    use std::os::unix::fs::PermissionsExt;
    let word = std::path::Path::new(name)
        .file_stem()
        .unwrap()
        .to_string_lossy()
        .into_owned();
    let path = place.write(name, format!("the secret of {word}\n"));
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

/// A display that is served until this is dropped.
pub(crate) struct Served {
    pub(crate) child: Child,
    pub(crate) clients: String,
    pub(crate) page: String,
}

impl Served {
    pub(crate) fn start(place: &Place, arguments: &[&str]) -> Self {
        let mut command = background(place, &["display", "serve", "--view", "127.0.0.1:0"]);
        command.args(arguments);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut word = || {
            lines
                .next()
                .unwrap()
                .unwrap()
                .split_once(": ")
                .unwrap()
                .1
                .trim()
                .to_owned()
        };
        let (clients, page) = (word(), word());
        Self {
            child,
            clients,
            page,
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The first line of a service, and the service.
pub(crate) fn service(place: &Place, words: &[&str]) -> (Child, String) {
    let mut command = background(place, &[&["display"], words].concat());
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut first)
        .unwrap();
    (child, first.split_once(": ").unwrap().1.trim().to_owned())
}

pub(crate) fn rate(rates: &Value, picture: &str, name: &str) -> f64 {
    let found = rates["rates"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["picture"] == picture && one["rate"] == name);
    found.unwrap_or_else(|| panic!("no {picture} {name}: {rates}"))["mean"]
        .as_f64()
        .unwrap()
}
