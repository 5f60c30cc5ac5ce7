//! Any bytes as the tar file in an archive of a run: it is added whole as its list says, or nothing is left of it.
#![no_main]

use stackline_runs::RunFileAccess;
use stackline_runs::archive::{add_archive, contents_of};
use std::fs;

/// A gzip file whose blocks are stored as they are (RFC 1951, 3.2.4); its checksum is not read before all entries are.
fn stored(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    for block in bytes.chunks(0xffff) {
        let length = block.len() as u16;
        gzip.push(0);
        gzip.extend(length.to_le_bytes());
        gzip.extend((!length).to_le_bytes());
        gzip.extend(block);
    }
    gzip.extend([1, 0, 0, 0xff, 0xff]);
    gzip.extend([0; 8]);
    gzip
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let place = tempfile::tempdir().expect("a directory");
    let (file, root) = (place.path().join("archive"), place.path().join("runs"));
    fs::write(&file, stored(bytes)).expect("a file");
    match add_archive(&root, &file, RunFileAccess::Private) {
        Ok(added) => {
            let there = contents_of(&added.path).expect("a run");
            assert_eq!(there.digest, added.contents.digest);
        }
        Err(_) => assert!(fs::read_dir(&root).into_iter().flatten().next().is_none()),
    }
    assert_eq!(fs::read_dir(place.path()).expect("a directory").count(), 1 + usize::from(root.exists()));
});
