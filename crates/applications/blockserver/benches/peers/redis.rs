//! redis: one connection, GETs of as many keys as there are blocks, eight on their way.

use super::cpu_of;
use crate::rounds::{Figures, Peer};
use crate::{BLOCK, BLOCKS, IN_FLIGHT, ROUND};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) struct Redis {
    server: Child,
    stream: TcpStream,
}

/// Starts it, where it is there.
pub(crate) fn start() -> Option<Redis> {
    let port = TcpListener::bind("127.0.0.1:0")
        .ok()?
        .local_addr()
        .ok()?
        .port();
    let arguments = [
        "--port",
        &port.to_string(),
        "--save",
        "",
        "--appendonly",
        "no",
        "--bind",
        "127.0.0.1",
    ];
    let Ok(server) = Command::new("redis-server")
        .args(arguments)
        .stdout(Stdio::null())
        .spawn()
    else {
        println!("redis is not there");
        return None;
    };
    let until = Instant::now() + Duration::from_secs(5);
    let mut stream = loop {
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(stream) => break stream,
            Err(_) => assert!(Instant::now() < until, "redis does not listen"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    stream.set_nodelay(true).ok()?;
    for number in 0..BLOCKS {
        let key = format!("{number:08}");
        write!(stream, "*3\r\n$3\r\nSET\r\n$8\r\n{key}\r\n${BLOCK}\r\n").ok()?;
        stream.write_all(&vec![1; BLOCK]).ok()?;
        stream.write_all(b"\r\n").ok()?;
        stream.read_exact(&mut [0; 5]).ok()?;
    }
    Some(Redis { server, stream })
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Peer for Redis {
    fn name(&self) -> String {
        "redis".into()
    }

    fn round(&mut self) -> Figures {
        let (cpu, begun) = (cpu_of(self.server.id()), Instant::now());
        let get = |number: u64| format!("*2\r\n$3\r\nGET\r\n$8\r\n{:08}\r\n", number % BLOCKS);
        // `$49152`, the block, and two line ends.
        let mut answer = vec![0; BLOCK + 10];
        let mut asked = 0;
        for came in 0..ROUND {
            if came % (IN_FLIGHT / 2) == 0 {
                let count = if came == 0 { IN_FLIGHT } else { IN_FLIGHT / 2 };
                let until = (asked + count).min(ROUND);
                let requests: String = (asked..until).map(get).collect();
                asked = until;
                self.stream.write_all(requests.as_bytes()).unwrap();
            }
            self.stream.read_exact(&mut answer).unwrap();
        }
        Figures {
            blocks: ROUND,
            wall: begun.elapsed(),
            server_cpu_s: cpu_of(self.server.id()) - cpu,
        }
    }
}
