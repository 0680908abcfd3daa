//! Index faults: indices that a kernel found out of range, as errors of the graph.

use std::sync::Arc;

use rocmforge_kernels::{Fault, Faults};
use rocmforge_runtime::HipBuffer;

use super::{HipGgmlBackend, failed};
use crate::indices::{self, PagedIndices};
use crate::{DType, GgmlError, GgmlResult, Op, TensorId};

/// Launches that can be distinguished: tags have 12 bits.
const MAX_SITES: usize = 4095;

/// A launch that reads indices.
#[derive(Clone, Debug)]
pub(super) struct Site {
    op: Op,
    inputs: Vec<TensorId>,
}

/// The launches since the last look, and the word in which kernels report.
#[derive(Debug, Default)]
pub(super) struct FaultLog {
    word: Option<HipBuffer<u64>>,
    sites: Vec<Site>,
    /// Those of a graph that was replayed; there are no other ones then.
    replayed: Option<Arc<[Site]>>,
}

impl FaultLog {
    /// Whether there were launches since the last look.
    pub(super) fn is_empty(&self) -> bool {
        self.sites.is_empty() && self.replayed.is_none()
    }

    /// Takes the launches that were captured and have not run.
    pub(super) fn take_captured(&mut self) -> Arc<[Site]> {
        std::mem::take(&mut self.sites).into()
    }

    /// Notes that captured launches have been enqueued.
    pub(super) fn replay(&mut self, sites: &Arc<[Site]>) {
        self.replayed = Some(Arc::clone(sites));
    }
}

impl HipGgmlBackend {
    /// Registers a launch that reads indices, and gives it the word and a tag.
    ///
    /// # Errors
    /// No memory for the word, or an earlier launch found a fault (looked at when the tags are used up).
    pub(super) fn fault_site(&mut self, op: &Op, inputs: &[TensorId]) -> GgmlResult<(HipBuffer<u64>, u32)> {
        if self.faults.sites.len() >= MAX_SITES || self.faults.replayed.is_some() {
            self.check_faults()?;
        }
        let word = match &self.faults.word {
            Some(word) => word.clone(),
            None => {
                let word = HipBuffer::from_slice(self.stream(), &[Fault::NONE], "ggml index faults");
                let word = word.map_err(failed("allocating the fault word"))?;
                self.faults.word = Some(word.clone());
                word
            }
        };
        let tag = self.faults.sites.len() as u32;
        self.faults.sites.push(Site {
            op: *op,
            inputs: inputs.to_vec(),
        });
        Ok((word, tag))
    }

    /// Waits for the launches so far and looks whether one of them found an index out of range.
    ///
    /// # Errors
    /// [`GgmlError::IndexOutOfRange`] of the first such node, with the figures that the CPU backend gives.
    pub(super) fn check_faults(&mut self) -> GgmlResult<()> {
        let own = std::mem::take(&mut self.faults.sites);
        let replayed = self.faults.replayed.take();
        let sites = replayed.as_deref().unwrap_or(&own);
        let Some(word) = self.faults.word.clone().filter(|_| !sites.is_empty()) else {
            return Ok(());
        };
        let value = word.to_vec(self.stream()).map_err(failed("reading the fault word"))?;
        let Some(fault) = value.first().and_then(|&word| Fault::decode(word)) else {
            return Ok(());
        };
        let reset = word.copy_from_host(self.stream(), &[Fault::NONE]);
        reset.map_err(failed("resetting the fault word"))?;
        let Some(site) = sites.get(fault.tag as usize) else {
            return Ok(());
        };
        self.explain(site)?;
        // The indices are not what they were when the kernel read them: what the kernel saw is all there is.
        Err(GgmlError::IndexOutOfRange {
            op: site.op.name(),
            position: fault.position as usize,
            index: u64::from(fault.index),
            limit: 0,
        })
    }

    /// Checks a launch's indices on the host.
    fn explain(&self, site: &Site) -> GgmlResult<()> {
        let (op, inputs) = (&site.op, &site.inputs);
        let read = |input: usize| -> GgmlResult<Vec<u32>> {
            let buffer = self.u32(op, inputs[input])?;
            buffer.to_vec(self.stream()).map_err(failed(op.name()))
        };
        let rows = |input: usize| -> GgmlResult<usize> { Ok(self.slots.desc(inputs[input])?.shape[0]) };
        // Rows of each matrix of a table.
        let of_matrix = |input: usize| -> GgmlResult<usize> {
            let shape = &self.slots.desc(inputs[input])?.shape;
            Ok(shape.iter().rev().nth(1).copied().unwrap_or(0))
        };
        match *op {
            Op::GetRows => indices::check(op, &read(1)?, of_matrix(0)?),
            Op::SetRows if self.slots.desc(inputs[2])?.dtype == DType::I64 => {
                let ids = self.bytes(inputs[2])?.cast::<i64>().map_err(failed(op.name()))?;
                let ids = ids.to_vec(self.stream()).map_err(failed(op.name()))?;
                indices::check_wide(op, &ids, of_matrix(1)?)
            }
            Op::SetRows => indices::check(op, &read(2)?, of_matrix(1)?),
            Op::MulMatId | Op::AddId => indices::check(op, &read(2)?, rows(1)?),
            Op::Rope(rope) => indices::check(op, &read(1)?, rope.max_position),
            Op::PagedAttention(a) => {
                let &[sequences, columns] = self.slots.desc(inputs[3])?.shape.as_slice() else {
                    return Ok(());
                };
                let (table, sequence, positions) = (read(3)?, read(4)?, read(5)?);
                let indices = PagedIndices {
                    table: &table,
                    shape: [sequences, columns],
                    sequence: &sequence,
                    positions: &positions,
                    blocks: rows(1)? / a.block_size,
                };
                indices.check(a)
            }
            _ => Ok(()),
        }
    }
}

/// The word and the tag as a kernel takes them.
pub(super) const fn faults(site: &(HipBuffer<u64>, u32)) -> Faults<'_> {
    Faults {
        word: &site.0,
        tag: site.1,
    }
}
