//! HTTP/1.1 by hand over a TCP connection, and a gateway before a site.
use crate::common::{ANYWHERE, Site};
use stackline_blocks::placement::BlockPlacementPolicy;
use stackline_blocks::pyramid::Pyramid;
use stackline_blocks::set::BlockSet;
use stackline_blockserver::gateway::limits::{self, Patience};
use stackline_blockserver::gateway::{self, RunningGateway};
use stackline_blockserver::load::{self, BlockSource};
use stackline_core::error::Result;
use stackline_testing::wait_until;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

pub(crate) fn options(site: &Site) -> gateway::GatewayOptions {
    let (listen, master) = (ANYWHERE.into(), site.master.address().to_string());
    gateway::GatewayOptions {
        listen,
        master,
        patience: Patience::default(),
        connections: limits::CONNECTIONS,
        room: limits::ROOM,
    }
}

pub(crate) fn start(site: &Site) -> RunningGateway {
    gateway::start(options(site)).unwrap()
}

/// A connection to a gateway.
pub(crate) struct Http(pub(crate) BufReader<TcpStream>);

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Http {
    pub(crate) fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(120)))
            .unwrap();
        Self(BufReader::new(stream))
    }

    pub(crate) fn send(&mut self, text: &str) {
        self.0.get_mut().write_all(text.as_bytes()).unwrap();
    }

    /// Asks until the answer has that status.
    pub(crate) fn until(&mut self, path: &str, status: u16) {
        wait_until(format_args!("{path} is answered with {status}"), || {
            self.get(path).status == status
        });
    }

    pub(crate) fn get(&mut self, path: &str) -> Answer {
        self.ask("GET", path, "")
    }

    /// A request with further headers, each with its line's end.
    pub(crate) fn ask(&mut self, method: &str, path: &str, headers: &str) -> Answer {
        self.send(&format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n"
        ));
        self.answer(method == "HEAD").unwrap()
    }

    /// Status and headers of the next answer; nothing where the connection ended.
    pub(crate) fn head(&mut self) -> Option<Answer> {
        let mut line = String::new();
        if self.0.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let status = line.split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                break;
            };
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        Some(Answer {
            status,
            headers,
            body: Vec::new(),
        })
    }

    /// The next answer with its body; nothing where the connection ended within it.
    pub(crate) fn answer(&mut self, head_only: bool) -> Option<Answer> {
        let mut answer = self.head()?;
        if head_only || matches!(answer.status, 204 | 304) {
            return Some(answer);
        }
        if answer.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk() {
                answer.body.extend(chunk);
            }
            return Some(answer);
        }
        let length: usize = answer.header("content-length").unwrap().parse().unwrap();
        answer.body.resize(length, 0);
        self.0.read_exact(&mut answer.body).ok()?;
        Some(answer)
    }

    /// The next chunk of a body that comes in chunks; nothing at its end.
    pub(crate) fn chunk(&mut self) -> Option<Vec<u8>> {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        let length = usize::from_str_radix(line.trim_end(), 16).unwrap();
        let mut chunk = vec![0; length + 2];
        self.0.read_exact(&mut chunk).unwrap();
        chunk.truncate(length);
        (length > 0).then_some(chunk)
    }
}

/// Blocks as a list sends them: number, status, bytes.
pub(crate) fn records(mut bytes: &[u8]) -> Vec<(u64, u32, Vec<u8>)> {
    let mut all = Vec::new();
    while let Some((head, rest)) = bytes.split_at_checked(16) {
        let number = u64::from_be_bytes(head[..8].try_into().unwrap());
        let status = u32::from_be_bytes(head[8..12].try_into().unwrap());
        let length = u32::from_be_bytes(head[12..].try_into().unwrap()) as usize;
        all.push((number, status, rest[..length].to_vec()));
        bytes = &rest[length..];
    }
    assert!(bytes.is_empty());
    all
}

/// A picture whose every pixel says where it is.
pub(crate) fn picture(name: &str, width: u32, height: u32, tile: u16) -> BlockSet {
    let picture = Pyramid {
        width,
        height,
        tile,
        pixel_bytes: 3,
    };
    let (block_size, placement) = (picture.tile_bytes() as u32, BlockPlacementPolicy::Tiles);
    let bytes = picture.tile_bytes() * picture.tiles();
    BlockSet {
        name: name.into(),
        block_size,
        bytes,
        replicas: 1,
        placement,
        picture: Some(picture),
    }
}

/// The pixels of a tile: its level, row and column are told by their colours.
pub(crate) fn pixels(picture: &Pyramid, number: u64) -> Vec<u8> {
    let tile = picture.tile(number).unwrap();
    let one = |at: u32| {
        let (x, y) = (at % u32::from(picture.tile), at / u32::from(picture.tile));
        let edge = x == 0 || y == 0;
        let shade = if edge { 0 } else { (x ^ y) as u8 / 4 };
        let by = |number: u32| 40_u8.wrapping_add((number * 30) as u8).wrapping_add(shade);
        [by(u32::from(tile.level)), by(tile.row), by(tile.column)]
    };
    (0..u32::from(picture.tile).pow(2)).flat_map(one).collect()
}

struct Tiles(Pyramid);

impl BlockSource for Tiles {
    fn block(&mut self, number: u64, into: &mut Vec<u8>) -> Result<()> {
        into.extend(pixels(&self.0, number));
        Ok(())
    }
}

pub(crate) fn load_picture(site: &Site, about: &BlockSet) {
    let mut tiles = Tiles(about.picture.clone().unwrap());
    load::load(&site.loader(), &site.key, about, &mut tiles, None, |_| {
        Ok(())
    })
    .unwrap();
}
