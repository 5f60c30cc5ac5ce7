//! Servers that others have written, each for one test, and servers of the test that say what no such server would.

use super::{Finished, Place, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;

/// A running daemon. Dropped, it is ended.
pub(crate) struct Daemon {
    process: Child,
    pub(crate) port: u16,
}

impl Daemon {
    /// Starts it, and waits until it listens on that port.
    pub(crate) fn start(command: &mut Command, port: u16) -> Self {
        let process = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut daemon = Self { process, port };
        wait_until("the daemon listens", || {
            let ended = daemon.process.try_wait().unwrap();
            assert_eq!(ended, None, "{command:?} ended");
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        daemon
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let id = Pid::from_raw(self.process.id() as i32);
        let _ = kill(id, Signal::SIGTERM);
        let _ = self.process.wait();
    }
}

/// A port that nobody listens on.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

/// `stackline run --json` with these variables in its environment.
pub(crate) fn run_with(place: &Place, variables: &[(&str, &str)], text: &str) -> Finished {
    let mut command = place.command(&["run", "--json", "-e", text]);
    for name in [
        "NATS_USER",
        "NATS_PASSWORD",
        "NATS_TOKEN",
        "MQTT_USER",
        "MQTT_PASSWORD",
        "PGUSER",
        "PGPASSWORD",
        "MYSQL_PWD",
        "FTP_USER",
        "FTP_PASSWORD",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
    ] {
        command.env_remove(name);
    }
    place.finish(command.envs(variables.iter().copied()))
}

/// A server of the test that treats every connection alike.
pub(crate) fn served(serve: impl Fn(TcpStream) + Send + Copy + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve(stream));
        }
    });
    address
}

/// A server that says that to every client and then listens until it leaves.
pub(crate) fn saying(bytes: &'static [u8]) -> SocketAddr {
    served(move |mut stream| {
        let _ = stream.write_all(bytes);
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    })
}

/// A server that says the first at once, and each other one after a line of the client. Then it leaves.
pub(crate) fn replying(lines: &'static [&'static str]) -> SocketAddr {
    served(move |mut stream| {
        let mut reader = BufReader::new(stream.try_clone().unwrap()).lines();
        for line in lines {
            if stream.write_all(format!("{line}\r\n").as_bytes()).is_err() {
                return;
            }
            if reader.next().is_none() {
                return;
            }
        }
    })
}
