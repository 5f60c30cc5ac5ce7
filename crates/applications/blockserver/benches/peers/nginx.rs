//! nginx: one worker, sendfile, ranges of one file, eight connections.

use super::cpu_of;
use crate::rounds::{Figures, Peer};
use crate::{BLOCK, BLOCKS, IN_FLIGHT, ROUND};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

pub(crate) struct Nginx {
    master: Child,
    worker: u32,
    port: u16,
    _directory: tempfile::TempDir,
}

/// Starts it, where it is there.
pub(crate) fn start() -> Option<Nginx> {
    let directory = tempfile::tempdir().ok()?;
    let port = TcpListener::bind("127.0.0.1:0")
        .ok()?
        .local_addr()
        .ok()?
        .port();
    let at = directory.path().display();
    std::fs::write(
        directory.path().join("blocks"),
        vec![1_u8; BLOCK * BLOCKS as usize],
    )
    .ok()?;
    let text = format!(
        "worker_processes 1; daemon off; user root; pid {at}/pid; error_log {at}/error;
         events {{ worker_connections 64; }}
         http {{ access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000000;
           client_body_temp_path {at}; proxy_temp_path {at}; fastcgi_temp_path {at}; uwsgi_temp_path {at}; scgi_temp_path {at};
           server {{ listen 127.0.0.1:{port}; root {at}; }} }}"
    );
    let file = directory.path().join("conf");
    std::fs::write(&file, text).ok()?;
    let master = Command::new("nginx").arg("-c").arg(&file).spawn().ok();
    let Some(master) = master else {
        println!("nginx is not there");
        return None;
    };
    let until = Instant::now() + Duration::from_secs(5);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < until, "nginx does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    let children = format!("/proc/{0}/task/{0}/children", master.id());
    let worker = std::fs::read_to_string(children)
        .ok()?
        .split_whitespace()
        .next()?
        .parse()
        .ok()?;
    Some(Nginx {
        master,
        worker,
        port,
        _directory: directory,
    })
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = nix::sys::signal::kill(
            nix::unistd::Pid::from_raw(self.master.id() as i32),
            nix::sys::signal::SIGTERM,
        );
        let _ = self.master.wait();
    }
}

impl Peer for Nginx {
    fn name(&self) -> String {
        "nginx".into()
    }

    fn round(&mut self) -> Figures {
        let (cpu, begun) = (cpu_of(self.worker), Instant::now());
        // One thread with eight connections in turn: each has one request on its way.
        let mut connections: Vec<BufReader<TcpStream>> = (0..IN_FLIGHT)
            .map(|_| {
                BufReader::with_capacity(
                    4096,
                    TcpStream::connect(("127.0.0.1", self.port)).unwrap(),
                )
            })
            .collect();
        let ask = |connection: &mut BufReader<TcpStream>, number: u64| {
            let first = (number % BLOCKS) * BLOCK as u64;
            let last = first + BLOCK as u64 - 1;
            let request =
                format!("GET /blocks HTTP/1.1\r\nHost: a\r\nRange: bytes={first}-{last}\r\n\r\n");
            connection.get_mut().write_all(request.as_bytes()).unwrap();
        };
        for (number, connection) in connections.iter_mut().enumerate() {
            ask(connection, number as u64);
        }
        let (mut block, mut line) = (vec![0; BLOCK], String::new());
        for came in 0..ROUND {
            let connection = &mut connections[(came % IN_FLIGHT) as usize];
            loop {
                line.clear();
                connection.read_line(&mut line).unwrap();
                if line == "\r\n" {
                    break;
                }
            }
            connection.read_exact(&mut block).unwrap();
            if came + IN_FLIGHT < ROUND {
                ask(connection, came + IN_FLIGHT);
            }
        }
        Figures {
            blocks: ROUND,
            wall: begun.elapsed(),
            server_cpu_s: cpu_of(self.worker) - cpu,
        }
    }
}
