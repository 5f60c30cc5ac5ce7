//! A file of the kernel that stays open and is read again from its start. It never writes.

use stackline_os::root_directory::{LONGEST, describe_file_error};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// An open file and its read buffer, which only grows.
#[derive(Debug)]
pub(crate) struct SampledFile {
    path: String,
    file: File,
    buffer: Vec<u8>,
}

impl SampledFile {
    /// Opens it; an error says why it cannot be read.
    pub(crate) fn open(path: &str) -> Result<Self, String> {
        let file = File::open(path).map_err(|error| describe_file_error(path, &error))?;
        Ok(Self {
            path: path.into(),
            file,
            buffer: vec![0; 4096],
        })
    }

    /// Reads its present text.
    pub(crate) fn text(&mut self) -> Result<&str, String> {
        let mut length = 0;
        loop {
            if length == self.buffer.len() {
                if length >= LONGEST {
                    break;
                }
                self.buffer.resize(2 * length, 0);
            }
            match self.file.read_at(&mut self.buffer[length..], length as u64) {
                Ok(0) => break,
                Ok(got) => length += got,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(describe_file_error(&self.path, &error)),
            }
        }
        std::str::from_utf8(&self.buffer[..length])
            .map_err(|_| format!("{} is not UTF-8", self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_again_from_its_start() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "x".repeat(10_000)).unwrap();
        let mut file = SampledFile::open(path.to_str().unwrap()).unwrap();
        assert_eq!(file.text().unwrap().len(), 10_000);
        std::fs::write(&path, "now short").unwrap();
        assert_eq!(file.text().unwrap(), "now short");
        std::fs::write(&path, [0xff]).unwrap();
        assert!(file.text().unwrap_err().ends_with("is not UTF-8"));
        assert!(
            SampledFile::open("/nowhere")
                .unwrap_err()
                .ends_with("does not exist")
        );
    }
}
