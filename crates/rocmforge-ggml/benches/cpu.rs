//! Table of the CPU backend's speed: matrix products with weights of several types, attention over a paged cache and with heads
//! outermost.
//!
//! `cargo bench -p rocmforge-ggml --bench cpu [-- THREADS] [NAME]` (default: all cores, every row whose op's name has NAME in it). A row is
//! the best of several runs. With one thread times are the thread's CPU time: other programs on the machine lengthen that less.
//! `ggml_cpu.py` in `crates/rocmforge-models/tests/reference` prints the same rows of ggml's CPU backend.
#![allow(clippy::print_stdout)] // the table is the bench's result

use std::time::{Duration, Instant};

use rocmforge_ggml::{
    Activations, CpuBackend, DType, FlashAttnExt, GgmlBackend, HostAccess, Layout, Op, PagedAttention, TensorDesc,
    TensorId,
};
use rocmforge_gguf::{TensorType, blocks};
use rustix::time::{ClockId, clock_gettime};

/// Outputs and inputs of the matrix products.
const ROWS: usize = 4096;
const COLUMNS: usize = 14_336;

/// Keys in the cache, key and value heads, query heads of each.
const KEYS: usize = 4096;
const KV_HEADS: usize = 8;
const GROUP: usize = 4;

/// A row is measured for at least this long.
const MEASURED: Duration = Duration::from_millis(700);

fn main() {
    let threads = std::env::args()
        .find_map(|argument| argument.parse().ok())
        .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let name = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-') && argument.parse::<usize>().is_err());
    let wanted = |op: &str| name.as_ref().is_none_or(|name| op.contains(name));
    println!("{threads} threads; product: [n, {COLUMNS}] by [{COLUMNS}, {ROWS}]");
    println!("| op | n | us | GFLOP/s |\n|---|---|---|---|");
    let types = [
        TensorType::F32,
        TensorType::F16,
        TensorType::Bf16,
        TensorType::Q4_0,
        TensorType::Q4_1,
        TensorType::Q8_0,
        TensorType::Q4K,
        TensorType::Q6K,
    ];
    for ty in types {
        let op = format!("product {}", ty.name());
        for n in [1, 512].into_iter().filter(|_| wanted(&op)) {
            let seconds = product(threads, Activations::F32, ty, n);
            report(&op, n, seconds, 2 * n * ROWS * COLUMNS);
        }
        let op = format!("{op}, activations of 8 bits");
        for n in [1, 512]
            .into_iter()
            .filter(|_| blocks::has_int8_dots(ty) && wanted(&op))
        {
            let seconds = product(threads, Activations::Int8, ty, n);
            report(&op, n, seconds, 2 * n * ROWS * COLUMNS);
        }
    }
    for head_dim in [64, 128] {
        let op = format!("attention f16, heads of {head_dim}");
        for n in [1, 512].into_iter().filter(|_| wanted(&op)) {
            let seconds = attention(threads, head_dim, n);
            let flops = 4 * n * KEYS * KV_HEADS * GROUP * head_dim;
            report(&op, n, seconds, flops);
        }
        let op = format!("FLASH_ATTN_EXT f16, heads of {head_dim}");
        for n in [1, 512].into_iter().filter(|_| wanted(&op)) {
            let seconds = flash_attn_ext(threads, head_dim, n);
            let flops = 4 * n * KEYS * KV_HEADS * GROUP * head_dim;
            report(&op, n, seconds, flops);
        }
    }
}

fn report(op: &str, n: usize, seconds: f64, flops: usize) {
    println!(
        "| {op} | {n} | {:.0} | {:.1} |",
        seconds * 1e6,
        flops as f64 / seconds / 1e9
    );
}

/// Values in -1 .. 1 that look like noise.
fn values(count: usize) -> Vec<f32> {
    (0..count as u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / 8_388_608.0 - 1.0)
        .collect()
}

/// Best time of an op in seconds. `inputs` in the op's order.
fn best(
    threads: usize,
    activations: Activations,
    op: &Op,
    inputs: &[(TensorDesc, Vec<u8>)],
    output: TensorDesc,
) -> f64 {
    let mut cpu = CpuBackend::with_threads(threads).activations(activations);
    let mut ids = Vec::new();
    for (index, (desc, bytes)) in inputs.iter().enumerate() {
        let mut desc = desc.clone();
        desc.id = TensorId(index);
        cpu.alloc(&desc).expect("memory");
        cpu.write(desc.id, bytes).expect("as long as the tensor");
        ids.push(desc.id);
    }
    let mut output = output;
    output.id = TensorId(inputs.len());
    cpu.alloc(&output).expect("memory");
    let (started, mut best) = (Instant::now(), f64::INFINITY);
    let mut runs = 0;
    while runs < 3 || started.elapsed() < MEASURED {
        let since = clock(threads);
        cpu.execute_op(op, &ids, &[output.id]).expect("runs");
        best = best.min(clock(threads) - since);
        runs += 1;
    }
    best
}

fn product(threads: usize, activations: Activations, ty: TensorType, n: usize) -> f64 {
    let dtype = DType::of_tensor_type(ty).expect("a weight's type");
    // One row's blocks for all rows: encoding of 59 million values takes longer than the bench.
    let weight = blocks::quantize(ty, &values(COLUMNS))
        .expect("whole blocks")
        .repeat(ROWS);
    let inputs = [
        (
            TensorDesc::new([n, COLUMNS], DType::F32, Layout::RowMajor),
            bytes(&values(n * COLUMNS)),
        ),
        (TensorDesc::new([COLUMNS, ROWS], dtype, Layout::ColMajor), weight),
    ];
    best(
        threads,
        activations,
        &Op::MatMul,
        &inputs,
        TensorDesc::new([n, ROWS], DType::F32, Layout::RowMajor),
    )
}

/// The last `n` tokens of a sequence of [`KEYS`]; with many tokens the earlier ones see a little less than all keys.
fn attention(threads: usize, head_dim: usize, n: usize) -> f64 {
    let op = PagedAttention {
        heads: KV_HEADS * GROUP,
        kv_heads: KV_HEADS,
        head_dim,
        scale: 1.0 / (head_dim as f32).sqrt(),
        block_size: 16,
        window: None,
        softcap: None,
        sinks: false,
    };
    let width = op.heads * head_dim;
    let cache = TensorDesc::new([KEYS, KV_HEADS * head_dim], DType::F16, Layout::RowMajor);
    let halves: Vec<u8> = blocks::quantize(TensorType::F16, &values(cache.element_count())).expect("any number");
    let blocks = KEYS / op.block_size;
    let words = |words: Vec<u32>| bytemuck::cast_slice(&words).to_vec();
    let inputs = [
        (
            TensorDesc::new([n, width], DType::F32, Layout::RowMajor),
            bytes(&values(n * width)),
        ),
        (cache.clone(), halves.clone()),
        (cache, halves),
        // Blocks in an order of their own: 5 and the number of blocks have no common factor.
        (
            TensorDesc::u32([1, blocks]),
            words((0..blocks).map(|i| (i * 5 % blocks) as u32).collect()),
        ),
        (TensorDesc::u32([n]), words(vec![0; n])),
        (
            TensorDesc::u32([n]),
            words((KEYS - n..KEYS).map(|p| p as u32).collect()),
        ),
    ];
    best(
        threads,
        Activations::F32,
        &Op::PagedAttention(op),
        &inputs,
        TensorDesc::new([n, width], DType::F32, Layout::RowMajor),
    )
}

/// `n` queries that see all [`KEYS`], heads outermost.
fn flash_attn_ext(threads: usize, head_dim: usize, n: usize) -> f64 {
    let op = FlashAttnExt {
        scale: 1.0 / (head_dim as f32).sqrt(),
        max_bias: 0.0,
        softcap: 0.0,
        mask: false,
        sinks: false,
    };
    let heads = KV_HEADS * GROUP;
    let q = TensorDesc::new([1, heads, n, head_dim], DType::F32, Layout::RowMajor);
    let cache = TensorDesc::new([1, KV_HEADS, KEYS, head_dim], DType::F16, Layout::RowMajor);
    let halves = blocks::quantize(TensorType::F16, &values(cache.element_count())).expect("any number");
    let queries = bytes(&values(q.element_count()));
    best(
        threads,
        Activations::F32,
        &Op::FlashAttnExt(op),
        &[(q, queries), (cache.clone(), halves.clone()), (cache, halves)],
        TensorDesc::new([1, n, heads, head_dim], DType::F32, Layout::RowMajor),
    )
}

/// Seconds since some moment.
fn clock(threads: usize) -> f64 {
    let id = match threads {
        1 => ClockId::ThreadCPUTime,
        _ => ClockId::Monotonic,
    };
    let time = clock_gettime(id);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn bytes(values: &[f32]) -> Vec<u8> {
    bytemuck::cast_slice(values).to_vec()
}
