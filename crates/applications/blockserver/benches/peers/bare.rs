//! The least that can be done: a thread that reads requests of 8 bytes and writes blocks from memory.

use crate::rounds::{Figures, Peer, own_cpu};
use crate::{BLOCK, BLOCKS, IN_FLIGHT, ROUND};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

pub(crate) struct Bare;

impl Peer for Bare {
    fn name(&self) -> String {
        "bare loop".into()
    }

    fn round(&mut self) -> Figures {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let serving = std::thread::spawn(move || {
            let memory = vec![1_u8; BLOCK * BLOCKS as usize];
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_nodelay(true).unwrap();
            let mut request = [0; 8];
            let cpu = own_cpu();
            while stream.read_exact(&mut request).is_ok() {
                let at = (u64::from_be_bytes(request) % BLOCKS) as usize * BLOCK;
                stream.write_all(&memory[at..at + BLOCK]).unwrap();
            }
            own_cpu() - cpu
        });
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut block = vec![0; BLOCK];
        let begun = Instant::now();
        let mut asked = 0_u64;
        for came in 0..ROUND {
            if came % (IN_FLIGHT / 2) == 0 {
                let count = if came == 0 { IN_FLIGHT } else { IN_FLIGHT / 2 };
                let requests: Vec<u8> = (asked..(asked + count).min(ROUND))
                    .flat_map(u64::to_be_bytes)
                    .collect();
                asked = (asked + count).min(ROUND);
                stream.write_all(&requests).unwrap();
            }
            stream.read_exact(&mut block).unwrap();
        }
        let wall = begun.elapsed();
        drop(stream);
        Figures {
            blocks: ROUND,
            wall,
            server_cpu_s: serving.join().unwrap(),
        }
    }
}
