//! Logits of every position of a prompt, in a file.

use std::io::{BufWriter, Write};
use std::path::Path;

use rocmforge::models::{Chunk, Model, Outputs};
use tempfile::NamedTempFile;

use crate::failure::Failure;
use crate::load;
use crate::machine::{Machine, Program};
use crate::options::Options;
use crate::report;

/// Computes a prompt and writes its logits.
pub(crate) struct WriteLogits<'a> {
    pub(crate) model: Model,
    pub(crate) ids: &'a [u32],
    pub(crate) options: &'a Options,
    /// One row of f32 for each id, little endian, the logits of a row side by side. It is replaced when all rows are there.
    pub(crate) file: &'a Path,
}

impl Program for WriteLogits<'_> {
    fn run<M: Machine>(&self, machine: M, _device: &str) -> Result<(), Failure> {
        let file = self.file;
        let failed = |error: std::io::Error| format!("{}: {error}", file.display());
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut to = NamedTempFile::new_in(folder.unwrap_or(Path::new("."))).map_err(failed)?;
        let settings = self.options.machine.engine();
        let mut engine = load::engine(&self.model, machine, (&self.options.model, settings))?;
        let sequence = engine.add_sequence(self.ids)?;
        let mut width = 0;
        let mut out = BufWriter::new(&mut to);
        for tokens in self.ids.chunks(engine.chunk()) {
            let outputs = Outputs::All;
            let logits = engine.step(&[Chunk {
                sequence,
                tokens,
                outputs,
            }])?;
            for row in logits.rows() {
                width = row.len();
                for value in row {
                    out.write_all(&value.to_le_bytes()).map_err(failed)?;
                }
            }
        }
        out.flush().map_err(failed)?;
        drop(out);
        to.persist(file).map_err(|error| failed(error.error))?;
        eprintln!("{} rows of {width} logits in {}", self.ids.len(), file.display());
        report::places(engine.backend());
        Ok(())
    }
}
