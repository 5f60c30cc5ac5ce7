//! The file in which the master stores its state, with transactions (redb): what was acknowledged survives `kill -9`.

use redb::{
    Database, DatabaseError, ReadTransaction, ReadableDatabase, ReadableTable, StorageError,
    TableDefinition, WriteTransaction,
};
use stackline_blocks::master::MasterChange;
use stackline_blocks::set::BlockSet;
use stackline_blocks::wire::master_messages::{BlockMapEntry, CommittedBlock};
use stackline_blocks::wire::{BlockWireField, BlockWireReader};
use stackline_core::error::{Error, Result};
use std::path::{Path, PathBuf};

/// Sets by number: whether sealed (1 byte), then the description.
const SETS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("sets");
/// Places and checksums of blocks, by set and block number.
const ROWS: TableDefinition<'_, (u32, u64), &[u8]> = TableDefinition::new("blocks");
/// Servers by number: name, identities of the disks.
const SERVERS: TableDefinition<'_, u16, &[u8]> = TableDefinition::new("servers");
/// The end of the allocation in bytes, by server and disk.
const SPACE: TableDefinition<'_, (u16, u16), u64> = TableDefinition::new("space");

/// The master itself: `identity` (16 bytes) and `last set`, the highest set number so far (4 bytes).
const MASTER: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("master");

/// The largest number of blocks in one change that is read back.
const AT_ONCE: usize = 4096;

/// Keys of the table [`MASTER`].
const IDENTITY: &str = "identity";
const LAST_SET: &str = "last set";

/// The open file.
#[derive(Debug)]
pub struct MasterStore {
    database: Database,
    path: PathBuf,
}

type MasterStoreFault = Box<dyn std::error::Error + Send + Sync>;

fn bytes(field: &impl BlockWireField) -> Vec<u8> {
    let mut bytes = Vec::new();
    field.put(&mut bytes);
    bytes
}

fn field<T: BlockWireField>(bytes: &[u8]) -> Result<T, MasterStoreFault> {
    let mut reader = BlockWireReader::new(bytes);
    let value = T::take(&mut reader).map_err(|fault| fault.to_string())?;
    reader.end().map_err(|fault| fault.to_string())?;
    Ok(value)
}

/// Raises the stored highest set number to at least `number`.
fn raise_last_set(write: &WriteTransaction, number: u32) -> Result<(), MasterStoreFault> {
    let mut master = write.open_table(MASTER)?;
    let last = master
        .get(LAST_SET)?
        .map(|value| field::<u32>(value.value()))
        .transpose()?;
    if last.is_none_or(|last| last < number) {
        master.insert(LAST_SET, &number.to_be_bytes()[..])?;
    }
    Ok(())
}

impl MasterStore {
    /// Opens the file, or creates it.
    ///
    /// # Errors
    /// If it cannot be opened: the directory is missing, another master uses the file, or it is damaged.
    pub fn open(path: &Path) -> Result<Self> {
        let database = Database::create(path).map_err(|error| {
            let hint = hint(&error);
            Error::environment(format!(
                "cannot open the master's file {}: {error}",
                path.display()
            ))
            .hint(hint)
        })?;
        let store = Self {
            database,
            path: path.to_owned(),
        };
        store.tables().map_err(|fault| said(path, &*fault))?;
        Ok(store)
    }

    fn tables(&self) -> Result<(), MasterStoreFault> {
        let write = self.database.begin_write()?;
        write.open_table(SETS)?;
        write.open_table(ROWS)?;
        write.open_table(SERVERS)?;
        write.open_table(SPACE)?;
        {
            let mut master = write.open_table(MASTER)?;
            if master.get(IDENTITY)?.is_none() {
                // The file is new, or of an older program.
                master.insert(
                    IDENTITY,
                    &crate::key::generate_identity()?.to_be_bytes()[..],
                )?;
            }
        }
        write.commit()?;
        Ok(())
    }

    /// Stores changes in one transaction; when this returns, they are on disk.
    ///
    /// # Errors
    /// If the disk is full or fails. Then none of the changes is stored.
    pub fn remember(&self, changes: &[MasterChange]) -> Result<()> {
        let remembered = || -> Result<(), MasterStoreFault> {
            let write = self.database.begin_write()?;
            for change in changes {
                match change {
                    MasterChange::Master { last_set, .. } => raise_last_set(&write, *last_set)?,
                    MasterChange::Set { id, about, sealed } => {
                        let value = [vec![u8::from(*sealed)], bytes(about)].concat();
                        write.open_table(SETS)?.insert(id, &value[..])?;
                        // Sets are numbered upwards, so the newest has the highest number.
                        raise_last_set(&write, *id)?;
                    }
                    MasterChange::Rows { set, blocks } => {
                        let mut table = write.open_table(ROWS)?;
                        for block in blocks {
                            table.insert((*set, block.number), &bytes(&block.row)[..])?;
                        }
                    }
                    MasterChange::Deleted { set } => {
                        write.open_table(SETS)?.remove(set)?;
                        write
                            .open_table(ROWS)?
                            .retain_in((*set, 0)..=(*set, u64::MAX), |_, _| false)?;
                    }
                    MasterChange::Server { id, name, disks } => {
                        let value = [bytes(name), bytes(disks)].concat();
                        write.open_table(SERVERS)?.insert(id, &value[..])?;
                    }
                    MasterChange::Space {
                        server,
                        disk,
                        up_to,
                    } => {
                        write.open_table(SPACE)?.insert((*server, *disk), up_to)?;
                    }
                }
            }
            write.commit()?;
            Ok(())
        };
        remembered().map_err(|fault| {
            Error::environment(format!(
                "cannot write the master's file {}: {fault}",
                self.path.display()
            ))
            .hint("free space on its disk, then restart the master: acknowledged data is kept")
        })
    }

    /// Reads everything that is stored, in an order in which it can be restored.
    ///
    /// # Errors
    /// If the file is damaged.
    pub fn recall(&self, path: &Path, take: impl FnMut(MasterChange)) -> Result<()> {
        self.changes(take).map_err(|fault| said(path, &*fault))
    }

    fn changes(&self, mut take: impl FnMut(MasterChange)) -> Result<(), MasterStoreFault> {
        let read = self.database.begin_read()?;
        let master = read.open_table(MASTER)?;
        let identity = master
            .get(IDENTITY)?
            .ok_or("it does not identify its master")?;
        let last_set = master
            .get(LAST_SET)?
            .map(|value| field::<u32>(value.value()))
            .transpose()?
            .unwrap_or(0);
        take(MasterChange::Master {
            identity: field::<u128>(identity.value())?,
            last_set,
        });
        for entry in read.open_table(SERVERS)?.iter()? {
            let (id, value) = entry?;
            let mut reader = BlockWireReader::new(value.value());
            let name = String::take(&mut reader).map_err(|fault| fault.to_string())?;
            let disks = Vec::<u128>::take(&mut reader).map_err(|fault| fault.to_string())?;
            take(MasterChange::Server {
                id: id.value(),
                name,
                disks,
            });
        }
        for entry in read.open_table(SPACE)?.iter()? {
            let (key, value) = entry?;
            let (server, disk) = key.value();
            take(MasterChange::Space {
                server,
                disk,
                up_to: value.value(),
            });
        }
        for entry in read.open_table(SETS)?.iter()? {
            let (id, value) = entry?;
            let (sealed, about) = value
                .value()
                .split_first()
                .ok_or("a set has no description")?;
            take(MasterChange::Set {
                id: id.value(),
                about: field::<BlockSet>(about)?,
                sealed: *sealed != 0,
            });
        }
        rows_of(&read, &mut take)
    }
}

/// Reads the blocks of all sets, [`AT_ONCE`] at a time.
fn rows_of(
    read: &ReadTransaction,
    take: &mut impl FnMut(MasterChange),
) -> Result<(), MasterStoreFault> {
    let mut blocks: Vec<CommittedBlock> = Vec::new();
    let mut of_set = 0;
    for entry in read.open_table(ROWS)?.iter()? {
        let (key, value) = entry?;
        let (set, number) = key.value();
        if (set != of_set || blocks.len() == AT_ONCE) && !blocks.is_empty() {
            take(MasterChange::Rows {
                set: of_set,
                blocks: std::mem::take(&mut blocks),
            });
        }
        of_set = set;
        blocks.push(CommittedBlock {
            number,
            row: field::<BlockMapEntry>(value.value())?,
        });
    }
    if !blocks.is_empty() {
        take(MasterChange::Rows {
            set: of_set,
            blocks,
        });
    }
    Ok(())
}

fn said(path: &Path, fault: &(dyn std::error::Error + Send + Sync)) -> Error {
    Error::environment(format!(
        "cannot read the master's file {}: {fault}",
        path.display()
    ))
    .hint(DAMAGED)
}

/// The hint for a file that exists and cannot be understood.
const DAMAGED: &str = "the file is damaged, or is not a master's file: restore it from a copy. The disks keep their blocks meanwhile; do not start an empty master for these disks, as it would not know their blocks";

/// The hint for a file that cannot be opened, by the cause.
fn hint(error: &DatabaseError) -> &'static str {
    use std::io::ErrorKind;
    match error {
        DatabaseError::DatabaseAlreadyOpen => {
            "another master is using this file: stop it, or name another directory with --data DIRECTORY"
        }
        DatabaseError::UpgradeRequired(_) => {
            "an older version wrote this file: start that version of the master, or restore a copy that this version wrote"
        }
        DatabaseError::Storage(StorageError::Io(error)) => match error.kind() {
            // It is shorter than it says, or no such file at all.
            ErrorKind::UnexpectedEof | ErrorKind::InvalidData => DAMAGED,
            ErrorKind::PermissionDenied => {
                "this user lacks permission to read and write the file: change its owner or mode, or start the master as its owner"
            }
            ErrorKind::NotFound | ErrorKind::NotADirectory => {
                "the directory does not exist: create it, or name another with --data DIRECTORY"
            }
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                "free space on the disk that holds the file"
            }
            ErrorKind::ReadOnlyFilesystem => {
                "the file system is read-only: make it writable, or name another directory with --data DIRECTORY"
            }
            _ => "check the disk that holds the file",
        },
        _ => DAMAGED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stackline_blocks::placement::BlockPlacementPolicy;
    use stackline_blocks::wire::master_messages::BlockCopyLocation;

    #[test]
    fn what_was_remembered_comes_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("master.redb");
        let about = |name: &str| BlockSet {
            name: name.into(),
            block_size: 4096,
            bytes: 10_000 * 4096,
            replicas: 1,
            placement: BlockPlacementPolicy::Hash,
            picture: None,
        };
        let row = |offset| BlockMapEntry {
            checksum: 5,
            places: vec![BlockCopyLocation {
                server: 1,
                disk: 0,
                offset,
            }],
        };
        let rows = |set, numbers: std::ops::Range<u64>| MasterChange::Rows {
            set,
            blocks: numbers
                .map(|number| CommittedBlock {
                    number,
                    row: row(number * 4096),
                })
                .collect(),
        };
        let changes = [
            MasterChange::Server {
                id: 1,
                name: "a".into(),
                disks: vec![7, 8],
            },
            MasterChange::Space {
                server: 1,
                disk: 0,
                up_to: 1 << 30,
            },
            MasterChange::Set {
                id: 1,
                about: about("one"),
                sealed: false,
            },
            MasterChange::Set {
                id: 2,
                about: about("two"),
                sealed: true,
            },
            rows(1, 0..5000),
            rows(2, 0..3),
        ];
        MasterStore::open(&path)
            .unwrap()
            .remember(&changes)
            .unwrap();
        let store = MasterStore::open(&path).unwrap();
        let mut back = Vec::new();
        store.recall(&path, |change| back.push(change)).unwrap();
        let MasterChange::Master {
            identity,
            last_set: 2,
        } = back.remove(0)
        else {
            panic!()
        };
        assert_eq!(
            back,
            [
                &changes[..4],
                &[rows(1, 0..4096), rows(1, 4096..5000), rows(2, 0..3)]
            ]
            .concat()
        );
        store
            .remember(&[
                MasterChange::Deleted { set: 1 },
                MasterChange::Deleted { set: 2 },
                changes[2].clone(),
            ])
            .unwrap();
        store
            .remember(&[
                MasterChange::Deleted { set: 1 },
                changes[3].clone(),
                rows(2, 0..3),
            ])
            .unwrap();
        let mut back = Vec::new();
        store.recall(&path, |change| back.push(change)).unwrap();
        // It stays who it is, and no number of a set comes again.
        assert_eq!(
            back.remove(0),
            MasterChange::Master {
                identity,
                last_set: 2
            }
        );
        assert_eq!(
            back,
            [&changes[..2], &changes[3..4], &[rows(2, 0..3)]].concat()
        );
    }

    #[test]
    fn one_master_has_the_file_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("master.redb");
        let _first = MasterStore::open(&path).unwrap();
        let error = MasterStore::open(&path).unwrap_err();
        assert!(error.message.contains("cannot open"));
        assert!(
            error
                .hint
                .unwrap()
                .contains("another master is using this file")
        );
    }

    #[test]
    fn each_cause_has_its_own_hint() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("master.redb");
        drop(MasterStore::open(&path).unwrap());
        let whole = std::fs::read(&path).unwrap();
        let mut magic = whole.clone();
        magic[..8].fill(b'x');
        let mut zeros = whole.clone();
        zeros[64..].fill(0);
        for (case, bytes) in [
            ("magic", magic),
            ("short", whole[..700].to_vec()),
            ("cut", whole[..3].to_vec()),
            ("zeros", zeros),
        ] {
            std::fs::write(&path, bytes).unwrap();
            let hint = MasterStore::open(&path).unwrap_err().hint.unwrap();
            assert!(
                hint.starts_with("the file is damaged") && hint.contains("restore it from a copy"),
                "{case}: {hint}"
            );
        }
        let nowhere = directory.path().join("none").join("master.redb");
        assert!(
            MasterStore::open(&nowhere)
                .unwrap_err()
                .hint
                .unwrap()
                .contains("create it")
        );
    }
}
