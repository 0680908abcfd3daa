//! Index faults: indices that a kernel found out of range, as errors of the graph.

use std::borrow::Cow;
use std::sync::Arc;

use rocmforge_kernels::{Fault, Faults};
use rocmforge_runtime::HipBuffer;

use super::{HipGgmlBackend, failed};
use crate::{DType, GgmlError, GgmlResult, Op, TensorId, indices};

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
        indices::check(&site.op, &OnDevice(self, site))?;
        // The indices are not what they were when the kernel read them: what the kernel saw is all there is.
        Err(GgmlError::IndexOutOfRange {
            op: site.op.name(),
            position: fault.position as usize,
            index: u64::from(fault.index),
            limit: 0,
        })
    }
}

/// A launch's operands, read back to the host.
struct OnDevice<'a>(&'a HipGgmlBackend, &'a Site);

impl indices::Operands for OnDevice<'_> {
    fn shape(&self, operand: usize) -> GgmlResult<&[usize]> {
        Ok(&self.0.slots.desc(self.1.inputs[operand])?.shape)
    }

    fn narrow(&self, operand: usize) -> GgmlResult<Cow<'_, [u32]>> {
        let Self(backend, Site { op, inputs }) = self;
        let words = backend.u32(op, inputs[operand])?.to_vec(backend.stream());
        Ok(words.map_err(failed(op.name()))?.into())
    }

    fn wide(&self, operand: usize) -> GgmlResult<Option<Cow<'_, [i64]>>> {
        let Self(backend, Site { op, inputs }) = self;
        if backend.slots.desc(inputs[operand])?.dtype != DType::I64 {
            return Ok(None);
        }
        let ids = backend
            .bytes(inputs[operand])?
            .cast::<i64>()
            .map_err(failed(op.name()))?;
        let ids = ids.to_vec(backend.stream()).map_err(failed(op.name()))?;
        Ok(Some(ids.into()))
    }
}

/// The word and the tag as a kernel takes them.
pub(super) const fn faults(site: &(HipBuffer<u64>, u32)) -> Faults<'_> {
    Faults {
        word: &site.0,
        tag: site.1,
    }
}
