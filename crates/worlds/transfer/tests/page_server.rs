//! The page server of the examples at work.
#![allow(
    clippy::unwrap_used,
    reason = "what helpers of a test cannot do fails the test"
)]

mod support;

#[path = "../examples/page_server.rs"]
#[allow(dead_code, reason = "its command line is not used here")]
mod page_server;

use page_server::PAGE;
use stackline_transfer::ikp::{IkpClientSegments, IkpTransferOptions, IkpUdpClient, IkpUdpServer};
use std::fs;
use std::thread;
use support::{bytes, loopback};

#[test]
fn files_of_all_sizes_are_read_page_by_page() {
    let directory = std::env::temp_dir().join(format!("stackline-pages-{}", std::process::id()));
    let files = directory.join("served");
    fs::create_dir_all(&files).unwrap();
    fs::write(directory.join("secret"), b"not served").unwrap();
    let sizes = [
        0,
        1,
        1000,
        1048,
        1049,
        PAGE - 1,
        PAGE,
        PAGE + 1,
        3 * PAGE + 5,
    ];
    for size in sizes {
        fs::write(files.join(size.to_string()), bytes(size)).unwrap();
    }
    let mut server = IkpUdpServer::bind(loopback(), &IkpTransferOptions::default()).unwrap();
    let address = server.local().unwrap();
    let serving = thread::spawn(move || {
        loop {
            let request = server.receive().unwrap();
            if request.message() == b"end" {
                return request.reply(b"").unwrap();
            }
            page_server::serve(&files, request).unwrap();
        }
    });
    let mut client = IkpUdpClient::connect(address, &IkpTransferOptions::default()).unwrap();
    for size in sizes {
        let mut copy = Vec::new();
        let read = page_server::copy(&mut client, &size.to_string(), &mut copy).unwrap();
        assert!(read == size as u64 && copy == bytes(size), "{size} B");
    }
    for name in ["nothing", "../secret", "/etc/passwd", "", "."] {
        let error = page_server::copy(&mut client, name, &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains("no file"), "{name}: {error}");
    }
    client
        .send(b"end", IkpClientSegments::none(), &mut [])
        .unwrap();
    serving.join().unwrap();
    fs::remove_dir_all(&directory).unwrap();
}
