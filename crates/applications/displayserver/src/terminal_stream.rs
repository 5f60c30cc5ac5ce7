//! The connection to a display behind this program's terminal, or behind its standard input and output.

use crate::raw_terminal::RawTerminal;
use crate::transport::DisplayTransport;
use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::Arc;

/// A terminal or pipes: the files that are read and written, and the terminal's mode to restore.
#[derive(Debug)]
pub struct TerminalStream {
    pub(crate) input: File,
    pub(crate) output: File,
    pub(crate) raw: Option<Arc<RawTerminal>>,
}

impl DisplayTransport for TerminalStream {
    fn second_handle(&self) -> io::Result<Self> {
        Ok(Self {
            input: self.input.try_clone()?,
            output: self.output.try_clone()?,
            raw: self.raw.clone(),
        })
    }
}

impl Read for TerminalStream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.input.read(into)
    }
}

impl Write for TerminalStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
