//! Capture guard: records a stream's operations as a graph, which is replayed later.

use super::exec::HipGraph;
use super::pinned::GraphPinned;
use crate::buffer::HipBuffer;
use crate::capturing::Capturing;
use crate::error::{GraphError, HipResult, same_len};
use crate::hip;
use crate::pinned::PinnedBuffer;
use crate::pinned_range::PinnedRange;
use crate::stream::HipStream;
use crate::touched::{Touched, Work};
use bytemuck::Pod;
use rocmforge_hip_sys::{hipMemcpyDeviceToHost, hipMemcpyHostToDevice};
use rocmforge_memory::{Access, Site};
use std::sync::Arc;

/// A capture: what is enqueued on its stream becomes a graph, and runs when the graph is replayed.
///
/// Other streams take part from the moment they wait for an event that was recorded in the capture, until its end; by then
/// the first stream must wait for them. Buffers that several of them use order themselves, as always. What the graph
/// touches is ordered with work outside of it at each replay, not at the capture.
///
/// Not possible on a capturing stream, each a typed error that leaves the capture as it was: allocations, copies from and
/// to slices, waits and queries, replays. Dropped, the capture ends and nothing is kept of it.
///
/// ```
/// # use rocmforge_runtime::*;
/// # use rocmforge_sim::{SimConfig, SimHost};
/// # let sim = SimHost::new(SimConfig::default());
/// # let provider = Provider::new(sim.api()).with_clock(sim.clock()).with_readings(Box::new(sim.readings(0)));
/// # let backend = HipBackend::open(provider, BackendOptions { policy: Policy::tests(), ..Default::default() })?;
/// let stream = backend.stream();
/// let x = HipBuffer::from_slice(stream, &[1.0f32, 2.0], "x")?;
/// let y = HipBuffer::<f32>::zeroed(stream, Elems(2), "y")?;
///
/// let capture = stream.capture("copy x")?;
/// y.copy_from_buffer(stream, &x)?; // Does not run here.
/// let exec = capture.finish()?.instantiate()?;
/// drop(x); // The graph keeps it.
///
/// assert_eq!(y.to_vec(stream)?, [0.0, 0.0]);
/// exec.launch(stream)?;
/// assert_eq!(y.to_vec(stream)?, [1.0, 2.0]);
/// # Ok::<(), HipError>(())
/// ```
#[must_use = "dropped, a capture is thrown away; `finish` makes the graph"]
pub struct Capture<'a> {
    stream: &'a HipStream,
    capturing: Arc<Capturing>,
}

impl HipStream {
    /// Begins a capture on this stream, after waiting, at most until the backend's deadline, for what it has to do.
    ///
    /// Other threads may go on with other streams, and allocate; this one must be left alone by them.
    #[track_caller]
    pub fn capture(&self, label: &str) -> HipResult<Capture<'_>> {
        let core = self.core();
        core.driver.enter()?;
        let capturing = Capturing::new(core, self.shared(), label, Site::caller());
        self.join_capture(&capturing, |stream| capturing.begin(stream))?;
        Ok(Capture {
            stream: self,
            capturing,
        })
    }
}

impl Capture<'_> {
    /// Captures a copy of `data` to `to`, on a stream of the capture. Both have the same length. Each replay copies what
    /// is there then: see [`GraphPinned::copy_from_slice`].
    pub fn upload<T: Pod>(
        &self,
        stream: &HipStream,
        to: &HipBuffer<T>,
        data: PinnedBuffer<T>,
    ) -> HipResult<GraphPinned<T>> {
        self.copy(stream, to, Access::Write, data)
    }

    /// Captures a copy of `from` to `data`, on a stream of the capture. Both have the same length. After a replay the data
    /// are there: see [`GraphPinned::copy_to_slice`].
    pub fn download<T: Pod>(
        &self,
        stream: &HipStream,
        from: &HipBuffer<T>,
        data: PinnedBuffer<T>,
    ) -> HipResult<GraphPinned<T>> {
        self.copy(stream, from, Access::Read, data)
    }

    /// A copy between a buffer, accessed like this, and `data`.
    fn copy<T: Pod>(
        &self,
        stream: &HipStream,
        buffer: &HipBuffer<T>,
        access: Access,
        data: PinnedBuffer<T>,
    ) -> HipResult<GraphPinned<T>> {
        let core = self.stream.core();
        let touched = buffer.root();
        core.driver.enter()?;
        stream.core().same_backend(touched.core(), || touched.describe())?;
        stream.core().same_backend(data.core(), || "pinned memory".to_owned())?;
        same_len("captured copy", buffer.len(), data.len())?;
        if stream.shared().capture() != Some(self.capturing.id()) {
            return Err(GraphError::NotCapturing {
                stream: stream.label().to_owned(),
            }
            .into());
        }
        let range = data.into_memory().map(|memory| PinnedRange::new(core, memory));
        if let Some(range) = &range {
            let (pinned, device, bytes) = (range.ptr().cast(), buffer.as_device_ptr(), buffer.byte_len());
            let (work, other, to, from, kind) = match access {
                Access::Write => (Work::Upload, Access::Read, device, pinned, hipMemcpyHostToDevice),
                Access::Read => (Work::Download, Access::Write, pinned, device, hipMemcpyDeviceToHost),
            };
            let touches = [(touched, access), (Touched::Pinned(range), other)];
            self.capturing.push(stream.shared(), work, &touches, |driver, stream| {
                // SAFETY: both have `bytes` bytes: as many elements, checked above. The graph keeps both.
                unsafe { hip::copy::copy(driver, to, from, bytes, kind, stream) }
            })?;
        }
        Ok(GraphPinned::new(core, range, buffer.len()))
    }

    /// Ends the capture. The streams that took part work as before it, also if this fails.
    pub fn finish(self) -> HipResult<HipGraph> {
        let core = self.stream.core();
        if let Err(error) = core.driver.enter() {
            self.capturing.abort(core);
            return Err(error);
        }
        let (record, graph) = self.capturing.end().map_err(|failure| failure.error)?;
        Ok(HipGraph::new(
            core,
            graph,
            record,
            self.capturing.label(),
            self.capturing.site(),
        ))
    }
}

impl Drop for Capture<'_> {
    fn drop(&mut self) {
        // Nothing to do after `finish`.
        self.capturing.abort(self.stream.core());
    }
}

debug_fields!(Capture<'_>, |capture| label: capture.capturing.label(), stream: capture.stream.label());
