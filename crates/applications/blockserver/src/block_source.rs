//! Sources of sets: what kind of thing is loaded, and the blocks of a single file. A picture becomes a pyramid of tiles.

mod folder;
mod picture;
pub mod placement;
mod source_files;
pub mod terrain;
mod tile_cutter;

pub use folder::{FolderFile, files_of_index, index_bytes};

use crate::load::BlockSource;
use source_files::unread;
use stackline_blocks::limits;
use stackline_blocks::pyramid::Pyramid;
use stackline_core::error::{Error, Result};
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::Path;

/// A source that is open for loading.
pub struct OpenedSource {
    /// Its blocks.
    pub source: Box<dyn BlockSource>,
    /// Bytes of the whole source.
    pub bytes: u64,
    /// Bytes of a block.
    pub block: u32,
    /// The picture whose tiles the blocks are, if they are tiles.
    pub picture: Option<Pyramid>,
    /// A note for the user about what is not loaded.
    pub note: Option<String>,
}

/// Opens the named source. `block`: bytes of a block, if given; `plain`: treat a picture like any other file.
///
/// # Errors
/// If it is nothing that can be loaded, or cannot be read.
pub fn open(names: &[String], block: Option<u64>, plain: bool) -> Result<OpenedSource> {
    if let [name] = names {
        if let Some(terrain) = terrain::Terrain::parse(name) {
            let terrain = terrain?;
            let about = terrain.about();
            return pyramid(Box::new(terrain), about, block);
        }
        let path = Path::new(name);
        let metadata = path.metadata().map_err(|error| unread(path, &error))?;
        if !metadata.is_dir() {
            return file(path, metadata.file_type().is_block_device(), block, plain);
        }
    }
    let block = block_size(block)?;
    let (folder, note) = folder::Folder::open(names, block)?;
    Ok(OpenedSource {
        note,
        bytes: folder.bytes(),
        source: Box::new(folder),
        block,
        picture: None,
    })
}

fn file(path: &Path, is_device: bool, block: Option<u64>, plain: bool) -> Result<OpenedSource> {
    // Anything else is not opened: opening a pipe would block.
    if !is_device && !path.metadata().is_ok_and(|metadata| metadata.is_file()) {
        let error = Error::input(format!(
            "{} is not a file, directory or block device",
            path.display()
        ));
        return Err(error.hint("write the output of a pipe to a file first"));
    }
    let mut file = File::open(path).map_err(|error| unread(path, &error))?;
    let bytes = file
        .seek(SeekFrom::End(0))
        .map_err(|error| unread(path, &error))?;
    if bytes == 0 {
        return Err(Error::input(format!("{} is empty", path.display()))
            .hint("a set must have at least one byte"));
    }
    let mut first = [0; 8];
    let filled = file
        .read_at(&mut first, 0)
        .map_err(|error| unread(path, &error))?;
    let form = picture::PictureFormat::recognise(&first[..filled]);
    if let Some(form) = form.filter(|_| !plain) {
        file.rewind().map_err(|error| unread(path, &error))?;
        let (tiles, about) = picture::cut(form, file, path)?;
        let blocks = FileBlocks::new(
            tiles,
            tile_cutter::TILE_BYTES,
            about.tiles() * u64::from(tile_cutter::TILE_BYTES),
            path,
        );
        return pyramid(Box::new(blocks), about, block);
    }
    let block = block_size(block)?;
    Ok(OpenedSource {
        source: Box::new(FileBlocks::new(file, block, bytes, path)),
        bytes,
        block,
        picture: None,
        note: None,
    })
}

fn pyramid(
    source: Box<dyn BlockSource>,
    about: Pyramid,
    block: Option<u64>,
) -> Result<OpenedSource> {
    if block.is_some_and(|block| block != about.tile_bytes()) {
        let error = Error::input("a picture's blocks are its tiles, 48 KiB each");
        return Err(error.hint("omit --block, or load the picture file unchanged with --plain"));
    }
    let bytes = about.tiles() * about.tile_bytes();
    Ok(OpenedSource {
        source,
        bytes,
        block: tile_cutter::TILE_BYTES,
        picture: Some(about),
        note: None,
    })
}

fn block_size(block: Option<u64>) -> Result<u32> {
    let (least, most) = limits::BLOCK_SIZES;
    let block = block.unwrap_or_else(|| limits::USUAL_BLOCK.into());
    u32::try_from(block)
        .ok()
        .filter(|block| (least..=most).contains(block))
        .ok_or_else(|| {
            Error::input(format!("a block size of {block} bytes is not supported"))
                .hint("use 512 B to 16 MiB")
        })
}

/// The consecutive blocks of a file.
struct FileBlocks {
    file: File,
    block: u32,
    bytes: u64,
    path: Box<Path>,
}

impl FileBlocks {
    fn new(file: File, block: u32, bytes: u64, path: &Path) -> Self {
        Self {
            file,
            block,
            bytes,
            path: path.into(),
        }
    }
}

impl BlockSource for FileBlocks {
    fn block(&mut self, number: u64, into: &mut Vec<u8>) -> Result<()> {
        let at = number * u64::from(self.block);
        let length = self.bytes.saturating_sub(at).min(self.block.into());
        into.resize(usize::try_from(length).unwrap_or(0), 0);
        self.file
            .read_exact_at(into, at)
            .map_err(|error| unread(&self.path, &error))
    }
}
