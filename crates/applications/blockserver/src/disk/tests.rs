//! Disks in a directory of the test: their blocks, whose they are, and what is not touched.

use super::*;

fn spot(offset: u64, length: u32) -> DiskExtent {
    DiskExtent {
        disk: 0,
        offset,
        length,
    }
}

const MASTER: u128 = 5;

fn open(path: &Path) -> BlockDisk {
    BlockDisk::open(path, false, Some(1 << 20)).unwrap()
}

/// A disk of [`MASTER`].
fn owned(path: &Path) -> BlockDisk {
    let disk = open(path);
    assert!(!disk.belong_to(MASTER).unwrap());
    disk
}

fn buffer(data: &[u8]) -> BlockBuffer {
    let mut buffer = BlockBuffer::default();
    buffer.pages(data.len())[..data.len()].copy_from_slice(data);
    buffer
}

#[test]
fn blocks_come_back_and_damage_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let disk = owned(directory.path());
    let data: Vec<u8> = (0..5000).map(|n| n as u8).collect();
    disk.write(&spot(8192, 5000), &mut buffer(&data)).unwrap();
    let mut back = BlockBuffer::default();
    disk.read(&spot(8192, 5000), crc32fast::hash(&data), &mut back)
        .unwrap();
    assert_eq!(&back.pages(5000)[..5000], &data[..]);
    OpenOptions::new()
        .write(true)
        .open(directory.path().join(NAME))
        .unwrap()
        .write_at(b"x", 8200)
        .unwrap();
    assert_eq!(
        disk.read(&spot(8192, 5000), crc32fast::hash(&data), &mut back),
        Err(Why::Corrupt)
    );
}

#[test]
fn nothing_beside_the_blocks_can_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let disk = owned(directory.path());
    let mut buffer = BlockBuffer::default();
    for place in [
        spot(0, 16),
        spot(4095, 1),
        spot(1 << 20, 1),
        spot(u64::MAX, 512),
        spot((1 << 20) - 1, 512),
    ] {
        assert_eq!(
            disk.read(&place, 0, &mut buffer),
            Err(Why::NoBlock),
            "{place:?}"
        );
        assert_eq!(
            disk.write(&place, &mut buffer),
            Err(Why::NoBlock),
            "{place:?}"
        );
    }
}

#[test]
fn a_disk_keeps_its_identity_and_has_one_server() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("disk");
    fs::write(&file, b"").unwrap();
    let first = BlockDisk::open(&file, false, None).unwrap();
    let second = BlockDisk::open(&file, false, None).unwrap_err();
    assert!(second.message.contains("another server"), "{second:?}");
    assert_ne!(first.about().identity, 0);
}

#[test]
fn what_nobody_could_open_again_is_not_acknowledged() {
    let directory = tempfile::tempdir().unwrap();
    let disk = owned(directory.path());
    disk.write(&spot(8192, 100), &mut buffer(&[1; 100]))
        .unwrap();
    assert_eq!(disk.sync(1), Ok(()));
    fs::remove_file(directory.path().join(NAME)).unwrap();
    disk.write(&spot(8192, 100), &mut buffer(&[2; 100]))
        .unwrap();
    assert_eq!(disk.sync(1), Err(Why::Disk));
    assert!(!disk.about().up && !disk.is_there());
}

#[test]
fn what_holds_something_else_is_not_touched() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("letter");
    fs::write(&file, b"dear reader").unwrap();
    let error = BlockDisk::open(&file, false, None).unwrap_err();
    assert!(error.message.contains("something other"), "{error:?}");
    assert_eq!(fs::read(&file).unwrap(), b"dear reader");
}

#[test]
fn a_disk_says_whose_it_is_before_a_block_is_written_and_how_far_it_is_used() {
    let directory = tempfile::tempdir().unwrap();
    let disk = open(directory.path());
    let write = |disk: &BlockDisk, offset| disk.write(&spot(offset, 100), &mut buffer(&[1; 100]));
    assert_eq!(
        (write(&disk, 8192), disk.kept()),
        (
            Err(Why::Foreign),
            DiskOwnerRecord {
                master: 0,
                used: FIRST,
                last_set: 0
            }
        )
    );
    assert!(!disk.belong_to(MASTER).unwrap());
    assert_eq!(write(&disk, 8192), Ok(()));
    drop(disk);
    // A server that was killed before the sync: nothing was acknowledged.
    let disk = open(directory.path());
    assert_eq!(
        disk.kept(),
        DiskOwnerRecord {
            master: MASTER,
            used: FIRST,
            last_set: 0
        }
    );
    assert_eq!(
        (write(&disk, 8192), write(&disk, 4096), disk.sync(7)),
        (Ok(()), Ok(()), Ok(()))
    );
    assert_eq!(disk.sync(3), Ok(()));
    drop(disk);
    let disk = open(directory.path());
    assert_eq!(
        disk.kept(),
        DiskOwnerRecord {
            master: MASTER,
            used: 8292,
            last_set: 7
        }
    );
    // Another master takes it over: what it has given out there is nothing yet.
    assert!(disk.belong_to(MASTER + 1).unwrap());
    drop(disk);
    assert_eq!(
        open(directory.path()).kept(),
        DiskOwnerRecord {
            master: MASTER + 1,
            used: FIRST,
            last_set: 0
        }
    );
}

#[test]
fn disks_of_older_programs_are_used_as_far_as_their_file_goes() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join(NAME);
    let mut old = vec![0; 12_288];
    old[..16].copy_from_slice(b"stackline blocks");
    old[31] = 9;
    for (length, used) in [(4096, 4096), (12_288, 12_288)] {
        fs::write(&file, &old[..length]).unwrap();
        let disk = open(directory.path());
        assert_eq!(
            (disk.about().identity, disk.kept()),
            (
                9,
                DiskOwnerRecord {
                    master: 0,
                    used,
                    last_set: 0
                }
            )
        );
        assert!(!disk.belong_to(MASTER).unwrap());
        drop(disk);
        let disk = open(directory.path());
        assert_eq!(
            (disk.about().identity, disk.kept()),
            (
                9,
                DiskOwnerRecord {
                    master: MASTER,
                    used,
                    last_set: 0
                }
            )
        );
    }
}

#[test]
fn a_damaged_first_page_is_named_and_not_touched() {
    let directory = tempfile::tempdir().unwrap();
    drop(owned(directory.path()));
    let file = OpenOptions::new()
        .write(true)
        .open(directory.path().join(NAME))
        .unwrap();
    file.write_at(b"x", 45).unwrap();
    let before = fs::read(directory.path().join(NAME)).unwrap();
    let error = BlockDisk::open(directory.path(), false, None).unwrap_err();
    assert!(error.message.contains("is damaged"), "{error:?}");
    assert!(fs::read(directory.path().join(NAME)).unwrap() == before);
}
