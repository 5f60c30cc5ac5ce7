//! A master and servers as processes, on loopback, with disks in the place of a test.

use super::{Finished, Place, Process, until};
use stackline_blockserver::client::{BlockClient, BlockClientOptions};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

/// A process that serves. Dropped, it is killed.
pub(crate) struct Daemon {
    child: Child,
    pub(crate) address: String,
}

impl Daemon {
    /// Waits until it says where it listens.
    fn start(mut command: Command) -> Option<Self> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut address)
            .unwrap();
        if address.is_empty() {
            child.wait().unwrap();
            return None;
        }
        Some(Self {
            child,
            address: address.trim().into(),
        })
    }

    pub(crate) fn process(&self) -> Process {
        Process(i32::try_from(self.child.id()).unwrap())
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A master and servers of two disks each.
pub(crate) struct Site {
    pub(crate) place: Place,
    pub(crate) master: Daemon,
    pub(crate) servers: Vec<Daemon>,
}

impl Site {
    pub(crate) fn new(servers: usize) -> Self {
        let place = Place::new();
        place.stackline(&["blocks", "key", "key"]).succeeds();
        let master = Daemon::start(served(
            &place,
            &["master", "--listen", "127.0.0.1:0", "--data", "m"],
        ))
        .unwrap();
        let mut site = Self {
            place,
            master,
            servers: Vec::new(),
        };
        for number in 0..servers {
            let server = site.start_server(number, "64GiB");
            site.servers.push(server);
            // The master numbers servers as they join.
            site.is_ready();
        }
        site
    }

    /// Kills the master and starts it again where it was.
    pub(crate) fn kill_master(&mut self) {
        self.restart_master("m");
    }

    /// Kills the master and starts one in its place that remembers there.
    pub(crate) fn restart_master(&mut self, data: &str) {
        self.master.kill();
        let arguments = [
            "master",
            "--listen",
            &self.master.address.clone(),
            "--data",
            data,
        ];
        self.master = until("the master is back", || {
            Daemon::start(served(&self.place, &arguments))
        });
    }

    /// Kills a server and starts it again with its disks.
    pub(crate) fn kill_server(&mut self, number: usize) {
        self.servers[number].kill();
        self.servers[number] = self.start_server(number, "64GiB");
    }

    pub(crate) fn start_server(&self, number: usize, size: &str) -> Daemon {
        let disks = [0, 1].map(|disk| format!("s{number}/{disk}"));
        disks
            .iter()
            .for_each(|disk| std::fs::create_dir_all(self.place.path(disk)).unwrap());
        let (name, master) = (format!("s{number}"), &self.master.address);
        let arguments = [
            "serve", "--master", master, "--name", &name, "--size", size, "--disk", &disks[0],
            &disks[1],
        ];
        Daemon::start(served(&self.place, &arguments)).unwrap()
    }

    /// Waits until the master knows all servers as they are now.
    pub(crate) fn is_ready(&self) {
        until("the servers are up", || {
            let known = self.client()?.list().ok()?.1;
            let is_up = |server: &Daemon| {
                known
                    .iter()
                    .any(|info| info.up && info.address == server.address)
            };
            self.servers.iter().all(is_up).then_some(())
        });
    }

    pub(crate) fn client(&self) -> Option<BlockClient> {
        BlockClient::connect(&self.master.address, BlockClientOptions::default()).ok()
    }

    /// `stackline blocks ARGUMENTS`, to be changed and started.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.place.command(&[&["blocks"], arguments].concat());
        command.env("STACKLINE_BLOCKS_KEY", self.place.path("key"));
        command.env("STACKLINE_BLOCKS_MASTER", &self.master.address);
        command
    }

    /// `stackline blocks ARGUMENTS` to its end.
    pub(crate) fn blocks(&self, arguments: &[&str]) -> Finished {
        self.place.finish(&mut self.command(arguments))
    }
}

/// A process that serves is not one that a command leaves behind.
fn served(place: &Place, arguments: &[&str]) -> Command {
    let mut command = place.command(&[&["blocks"], arguments].concat());
    command
        .env("STACKLINE_BLOCKS_KEY", place.path("key"))
        .env("STACKLINE_RUNS", place.path("served"));
    command
}

/// All of a file.
pub(crate) fn content(place: &Place, name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    std::fs::File::open(place.path(name))
        .unwrap()
        .read_to_end(&mut bytes)
        .unwrap();
    bytes
}
