//! A graph of a few ops with what its inputs hold, on the CPU and on a device.

use half::{bf16, f16};
use rocmforge_ggml::{
    CpuBackend, DType, GgmlBackend, GgmlError, GgmlResult, Graph, HipGgmlBackend, HostAccess, Layout, Op, TensorDesc,
    TensorId, executor,
};
use rocmforge_testkit::compare::{Tolerance, assert_close};
use rocmforge_testkit::data::{Rng, rng, widen};
use rocmforge_testkit::gpu;

/// A tensor and its bytes.
pub(crate) type Input = (TensorDesc, Vec<u8>);

/// A graph with what its inputs hold.
pub(crate) struct Case {
    pub(crate) graph: Graph,
    pub(crate) inputs: Vec<(TensorId, Vec<u8>)>,
    pub(crate) output: TensorId,
}

impl Case {
    /// A graph of one op.
    pub(crate) fn of(op: Op, inputs: Vec<Input>) -> Self {
        Self::with(inputs, |graph, ids| graph.push(op, ids))
    }

    /// A graph that `add` completes and whose output it returns.
    pub(crate) fn with(inputs: Vec<Input>, add: impl FnOnce(&mut Graph, &[TensorId]) -> GgmlResult<TensorId>) -> Self {
        let mut graph = Graph::new();
        let (descs, bytes): (Vec<TensorDesc>, Vec<Vec<u8>>) = inputs.into_iter().unzip();
        let ids: Vec<TensorId> = descs.into_iter().map(|desc| graph.add_tensor(desc)).collect();
        let output = add(&mut graph, &ids).expect("the operands fit");
        let inputs = ids.into_iter().zip(bytes).collect();
        Self { graph, inputs, output }
    }

    /// The bytes of the output, which are poisoned before unless it is an input's memory.
    pub(crate) fn run<B: GgmlBackend + HostAccess>(&self, backend: &mut B) -> Result<Vec<u8>, GgmlError> {
        executor::prepare(backend, &self.graph)?;
        let output = self.graph.tensor(self.output).expect("there");
        if !output.is_view() {
            backend.write(self.output, &vec![0xA5; output.byte_size()])?;
        }
        for (id, bytes) in &self.inputs {
            backend.write(*id, bytes)?;
        }
        executor::execute_graph(backend, &self.graph)?;
        backend.synchronize()?;
        backend.read(self.output)
    }

    /// On the CPU, and on the device, which refuses what its list says and nothing else.
    pub(crate) fn both(&self) -> [Result<Vec<u8>, GgmlError>; 2] {
        let gpu = gpu();
        let mut device = HipGgmlBackend::new(gpu.backend()).expect("kernels");
        let on_device = self.run(&mut device);
        let refused = matches!(&on_device, Err(GgmlError::Unimplemented { backend: "hip", .. }));
        assert_eq!(self.missing().is_some(), refused, "{:?}: {on_device:?}", self.missing());
        [self.run(&mut CpuBackend::new()), on_device]
    }

    /// What the device has no kernel for.
    pub(crate) fn missing(&self) -> Option<GgmlError> {
        let desc = |id: &TensorId| self.graph.tensor(*id).expect("there");
        self.graph.computing_nodes().find_map(|node| {
            let descs = |ids: &[TensorId]| ids.iter().map(desc).collect::<Vec<&TensorDesc>>();
            HipGgmlBackend::covers(&node.op, &descs(&node.inputs), &descs(&node.outputs)).err()
        })
    }

    #[track_caller]
    pub(crate) fn same_bytes(&self) {
        let [cpu, device] = self.both().map(|result| result.expect("runs"));
        assert!(cpu == device, "{cpu:?}\nis not\n{device:?}");
    }

    #[track_caller]
    pub(crate) fn close(&self, limit: f64) {
        let [cpu, device] = self.both().map(|result| result.expect("runs"));
        let desc = self.graph.tensor(self.output).expect("there");
        let [cpu, device] = [cpu, device].map(|bytes| floats(desc.dtype, &bytes));
        assert_close(&device, &widen(&cpu), &[device.len()], Tolerance::Absolute(limit));
    }

    #[track_caller]
    pub(crate) fn same_error(&self) -> GgmlError {
        let [cpu, device] = self.both().map(|result| result.expect_err("an index is out of range"));
        assert_eq!(cpu.to_string(), device.to_string());
        assert!(matches!(device, GgmlError::IndexOutOfRange { .. }), "{device:?}");
        device
    }
}

pub(crate) fn bytes_of<T: bytemuck::Pod>(values: &[T]) -> Vec<u8> {
    bytemuck::cast_slice(values).to_vec()
}

fn floats(dtype: DType, bytes: &[u8]) -> Vec<f32> {
    let halves = || bytemuck::pod_collect_to_vec::<u8, u16>(bytes);
    match dtype {
        DType::F16 => halves().into_iter().map(|bits| f16::from_bits(bits).to_f32()).collect(),
        DType::Bf16 => halves()
            .into_iter()
            .map(|bits| bf16::from_bits(bits).to_f32())
            .collect(),
        _ => bytemuck::pod_collect_to_vec(bytes),
    }
}

/// Values of any float type, as bytes.
pub(crate) fn encoded(dtype: DType, values: &[f32]) -> Vec<u8> {
    let halves = |bits: fn(f32) -> u16| bytes_of(&values.iter().map(|&v| bits(v)).collect::<Vec<_>>());
    match dtype {
        DType::F16 => halves(|v| f16::from_f32(v).to_bits()),
        DType::Bf16 => halves(|v| bf16::from_f32(v).to_bits()),
        _ => bytes_of(values),
    }
}

/// A row-major tensor of a float type with random values in a range.
pub(crate) fn floats_in(dtype: DType, shape: &[usize], random: &mut Rng, [low, high]: [f32; 2]) -> Input {
    let desc = TensorDesc::new(shape, dtype, Layout::RowMajor);
    let values = random.vec_in(desc.element_count(), low, high);
    (desc, encoded(dtype, &values))
}

/// f32 with random values.
pub(crate) fn random(shape: impl Into<Vec<usize>>, seed: u64) -> Input {
    floats_in(DType::F32, &shape.into(), &mut rng(seed), [-2.0, 2.0])
}

/// Indices below a limit.
pub(crate) fn indices_below(shape: &[usize], limit: usize, seed: u64) -> Input {
    let mut random = rng(seed);
    let values: Vec<u32> = (0..shape.iter().product())
        .map(|_| random.below(limit) as u32)
        .collect();
    (TensorDesc::u32(shape), bytes_of(&values))
}
