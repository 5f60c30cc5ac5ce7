//! A page server, as in V: a client asks for a page of a file, the server moves it into the client's memory and replies.
//!
//! ```text
//! cargo run --release -p stackline-transfer --example page_server -- serve 127.0.0.1:7000 DIRECTORY
//! cargo run --release -p stackline-transfer --example page_server -- read 127.0.0.1:7000 NAME > COPY
//! ```

#![allow(unreachable_pub, reason = "a test uses what is here as a module")]

use stackline_transfer::ikp::{
    IkpClientSegments, IkpRequest, IkpTransferError, IkpTransferOptions, IkpUdpClient, IkpUdpServer,
};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Component, Path};
use std::{env, process};

/// Bytes of a page.
pub const PAGE: usize = 64 << 10;

/// A client's request: file and first byte. The page is as long as the segment it grants, or as the file.
#[derive(Debug, PartialEq, Eq)]
struct Question<'a> {
    from: u64,
    name: &'a str,
}

impl<'a> Question<'a> {
    fn write(&self) -> Vec<u8> {
        [&self.from.to_le_bytes(), self.name.as_bytes()].concat()
    }

    /// A name is one of a file in the directory served, not a way out of it.
    fn read(message: &'a [u8]) -> Option<Self> {
        let (from, name) = message.split_first_chunk()?;
        let name = str::from_utf8(name).ok()?;
        let plain = matches!(
            Path::new(name).components().collect::<Vec<_>>()[..],
            [Component::Normal(_)]
        );
        plain.then_some(Self {
            from: u64::from_le_bytes(*from),
            name,
        })
    }
}

/// The page asked for, at most `most` bytes; `None` when there is no such file.
fn page(directory: &Path, question: &Question<'_>, most: usize) -> Option<Vec<u8>> {
    let file = File::open(directory.join(question.name)).ok()?;
    let mut page = vec![0; most];
    let mut bytes = 0;
    while bytes < most {
        match file
            .read_at(&mut page[bytes..], question.from + bytes as u64)
            .ok()?
        {
            0 => break,
            more => bytes += more,
        }
    }
    page.truncate(bytes);
    Some(page)
}

/// Serves one request: the reply says how many bytes the page has, and is empty where there is none.
///
/// # Errors
/// When the client has gone.
pub fn serve(directory: &Path, mut request: IkpRequest<'_>) -> Result<(), IkpTransferError> {
    let most = request.writable().min(PAGE);
    let Some(page) =
        Question::read(request.message()).and_then(|question| page(directory, &question, most))
    else {
        return request.reply(b"");
    };
    let bytes = (page.len() as u64).to_le_bytes();
    if bytes.len() + page.len() <= request.room() {
        return request.reply_with(&bytes, 0, &page);
    }
    request.move_to(0, &page)?;
    request.reply(&bytes)
}

/// Copies a file from the server, page by page; how many bytes it has.
///
/// # Errors
/// When the server does not answer, has no such file, or the copy cannot be written.
pub fn copy(client: &mut IkpUdpClient, name: &str, to: &mut impl Write) -> io::Result<u64> {
    let mut from = 0;
    loop {
        let (mut page, mut reply) = (vec![0; PAGE], [0; 8]);
        let question = Question { from, name }.write();
        let length = client
            .send(
                &question,
                IkpClientSegments::writable(&mut page),
                &mut reply,
            )
            .map_err(io::Error::other)?;
        if length != reply.len() {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("the server has no file {name}"),
            ));
        }
        let bytes = usize::try_from(u64::from_le_bytes(reply)).map_err(io::Error::other)?;
        to.write_all(page.get(..bytes).ok_or(io::ErrorKind::InvalidData)?)?;
        from += bytes as u64;
        if bytes < PAGE {
            return Ok(from);
        }
    }
}

fn run(arguments: &[String]) -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["serve", address, directory] => {
            let mut server = IkpUdpServer::bind(address.parse()?, &IkpTransferOptions::default())?;
            eprintln!("serving {directory} at {}", server.local()?);
            loop {
                if let Err(error) = serve(Path::new(directory), server.receive()?) {
                    eprintln!("a client was not served: {error}");
                }
            }
        }
        ["read", address, name] => {
            let mut client =
                IkpUdpClient::connect(address.parse()?, &IkpTransferOptions::default())?;
            let bytes = copy(&mut client, name, &mut io::stdout().lock())?;
            eprintln!("{bytes} B");
            Ok(())
        }
        _ => {
            Err("usage: page_server serve ADDRESS DIRECTORY | page_server read ADDRESS NAME".into())
        }
    }
}

#[allow(dead_code, reason = "a test has a main of its own")]
fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let Err(error) = run(&arguments) {
        eprintln!("page_server: {error}");
        process::exit(1);
    }
}
