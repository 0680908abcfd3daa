//! Speed of the interpreter, all checks on, against a plain loop of the same computation on one core.

use criterion::{Criterion, criterion_group, criterion_main};
use rocmforge_amdgcn::{
    ByteState, DEVICE_BASE, Dispatch, ExecOptions, Geometry, GlobalMemory, Program, Status, Tools, execute,
    kernarg_bytes,
};
use rocmforge_code_object::CodeObject;
use rocmforge_kernels::Pack;
use std::hint::black_box;

/// A card with one family of the project's kernels.
struct Card {
    memory: GlobalMemory,
    program: Program,
    object: CodeObject,
    next: u64,
    tools: Tools,
    threads: usize,
}

impl Card {
    fn new(family: &str) -> Self {
        let pack = Pack::embedded("gfx1100").expect("embedded");
        Self::of(&pack.object(family).expect("sound").expect("family"))
    }

    fn of(elf: &[u8]) -> Self {
        let mut memory = GlobalMemory::new(1 << 30).expect("address space");
        let program = Program::load(elf, DEVICE_BASE).expect("loads");
        for segment in program.image() {
            memory.set_state(segment.address, segment.bytes.len() as u64, ByteState::Uninit);
            memory.write(segment.address, &segment.bytes).expect("image");
        }
        Self {
            memory,
            program,
            object: CodeObject::parse(elf).expect("parses"),
            next: DEVICE_BASE + (1 << 24),
            tools: Tools::default(),
            threads: 1,
        }
    }

    fn alloc(&mut self, bytes: usize) -> u64 {
        let address = self.next;
        self.memory.set_state(address, bytes as u64, ByteState::Uninit);
        self.next += (bytes as u64).next_multiple_of(256) + 256;
        address
    }

    fn upload(&mut self, data: &[f32]) -> u64 {
        let address = self.alloc(data.len() * 4);
        self.memory.write(address, bytemuck::cast_slice(data)).expect("inside");
        address
    }

    fn kernarg(&mut self, kernel: &str, args: &[&[u8]], grid: [u32; 3], block: u32) -> u64 {
        let geometry = Geometry {
            grid,
            block: [block, 1, 1],
            dynamic_lds: 0,
        };
        let bytes = kernarg_bytes(self.object.kernel(kernel).expect("kernel"), args, &geometry).expect("arguments");
        let address = self.alloc(bytes.len());
        self.memory.write(address, &bytes).expect("inside");
        address
    }

    fn launch(&mut self, kernel: &str, kernarg: u64, grid: [u32; 3], block: u32) {
        let dispatch = Dispatch {
            program: &self.program,
            kernel: self.program.kernel(kernel).expect("kernel"),
            grid,
            block: [block, 1, 1],
            dynamic_lds: 0,
            kernarg,
            options: ExecOptions {
                tools: self.tools,
                threads: self.threads,
                ..ExecOptions::default()
            },
        };
        let outcome = execute(&dispatch, &mut self.memory);
        assert_eq!(
            outcome.status,
            Status::Completed,
            "{kernel}: {:?}",
            outcome.faults.first()
        );
    }
}

fn data(n: usize) -> Vec<f32> {
    (0..n).map(|k| ((k * 7919) % 1000) as f32 / 500.0 - 1.0).collect()
}

/// Benches a kernel beside a loop, and checks that both compute the same. `work` is what a rate counts: elements, or
/// multiply-adds.
fn pair(
    c: &mut Criterion,
    name: &str,
    work: usize,
    family: &str,
    kernel: &str,
    (grid, block): ([u32; 3], u32),
    inputs: &[Vec<f32>],
    outputs: usize,
    rest: &[u8],
    sizes: &[usize],
    mut plain: impl FnMut(&[Vec<f32>], &mut [f32]),
) {
    let mut card = Card::new(family);
    let mut pointers: Vec<u64> = inputs.iter().map(|x| card.upload(x)).collect();
    let out = card.alloc(outputs * 4);
    pointers.push(out);
    let mut args: Vec<Vec<u8>> = pointers.iter().map(|p| p.to_le_bytes().to_vec()).collect();
    let mut rest = rest;
    for &size in sizes {
        let (head, tail) = rest.split_at(size);
        args.push(head.to_vec());
        rest = tail;
    }
    let args: Vec<&[u8]> = args.iter().map(Vec::as_slice).collect();
    let kernarg = card.kernarg(kernel, &args, grid, block);
    card.launch(kernel, kernarg, grid, block);
    let mut host = vec![0.0f32; outputs];
    plain(inputs, &mut host);
    let mut device = vec![0.0f32; outputs];
    card.memory
        .read(out, bytemuck::cast_slice_mut(&mut device))
        .expect("written");
    for (k, (d, h)) in device.iter().zip(&host).enumerate() {
        assert!(
            d == h || (d - h).abs() <= 1e-4 * h.abs().max(1e-2),
            "{name}[{k}]: {d} against {h}"
        );
    }
    let mut group = c.benchmark_group(name);
    group.throughput(criterion::Throughput::Elements(work as u64));
    group.bench_function("simulated", |b| b.iter(|| card.launch(kernel, kernarg, grid, block)));
    card.threads = 2;
    group.bench_function("two threads", |b| b.iter(|| card.launch(kernel, kernarg, grid, block)));
    card.threads = 1;
    card.tools = Tools::all();
    group.bench_function("racecheck", |b| b.iter(|| card.launch(kernel, kernarg, grid, block)));
    group.bench_function("plain", |b| b.iter(|| plain(black_box(inputs), black_box(&mut host))));
    group.finish();
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

fn benches(c: &mut Criterion) {
    // 48 MiB of operands: as on a card, more than the caches hold.
    let n = 1usize << 22;
    let flat = ([n as u32 / 1024, 1, 1], 256);
    pair(
        c,
        "vector_add",
        n,
        "elementwise",
        "add",
        flat,
        &[data(n), data(n)],
        n,
        &(n as u64).to_le_bytes(),
        &[8],
        |x, y| {
            for ((y, a), b) in y.iter_mut().zip(&x[0]).zip(&x[1]) {
                *y = a + b;
            }
        },
    );

    let (rows, seq) = (8192u32, 512u32);
    let tile = ([rows / 8, 1, 1], 256);
    let sizes = bytes(&[rows, seq, seq, 0]);
    pair(
        c,
        "causal_mask",
        (rows * seq) as usize,
        "causal_mask",
        "causal_mask",
        tile,
        &[],
        (rows * seq) as usize,
        &sizes,
        &[4; 4],
        |_, y| {
            for (r, row) in y.chunks_mut(seq as usize).enumerate() {
                for (j, y) in row.iter_mut().enumerate() {
                    *y = if j <= r % seq as usize { 0.0 } else { f32::NEG_INFINITY };
                }
            }
        },
    );

    let (rows, cols) = (128u32, 1024u32);
    let x = data((rows * cols) as usize);
    let row_tile = ([rows / 8, 1, 1], 256);
    let sizes = bytes(&[rows, cols, 1.0f32.to_bits()]);
    let len = x.len();
    pair(
        c,
        "softmax",
        x.len(),
        "softmax",
        "softmax_rows",
        row_tile,
        std::slice::from_ref(&x),
        len,
        &sizes,
        &[4; 3],
        |x, y| {
            for (x, y) in x[0].chunks(cols as usize).zip(y.chunks_mut(cols as usize)) {
                let max = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let mut sum = 0.0;
                for (y, x) in y.iter_mut().zip(x) {
                    *y = (x - max).exp();
                    sum += *y;
                }
                for y in y {
                    *y /= sum;
                }
            }
        },
    );

    let sizes = bytes(&[rows, cols, 1e-5f32.to_bits()]);
    let inputs = [x, data(cols as usize)];
    pair(
        c,
        "rms_norm",
        len,
        "rms_norm",
        "rms_norm_rows",
        row_tile,
        &inputs,
        len,
        &sizes,
        &[4; 3],
        |x, y| {
            for (row, y) in x[0].chunks(cols as usize).zip(y.chunks_mut(cols as usize)) {
                let sum: f32 = row.iter().map(|x| x * x).sum();
                let scale = 1.0 / (sum / cols as f32 + 1e-5).sqrt();
                for ((y, x), w) in y.iter_mut().zip(row).zip(&x[1]) {
                    *y = x * scale * w;
                }
            }
        },
    );

    contended(c);
    flash(c);
    matvec(c);
    matmul16(c);
}

/// Lanes of all waves that count at two places, and use the old values.
fn contended(c: &mut Criterion) {
    let (groups, block) = (512u32, 256u32);
    let mut card = Card::of(include_bytes!("contended.co"));
    let counters = card.upload(&[0.0; 2]);
    let list = card.alloc((groups * block) as usize * 4);
    let args = [counters, list].map(u64::to_le_bytes);
    let args: Vec<&[u8]> = args.iter().map(|arg| &arg[..]).collect();
    let kernarg = card.kernarg("append", &args, [groups, 1, 1], block);
    let mut group = c.benchmark_group("contended_atomics");
    group.throughput(criterion::Throughput::Elements(u64::from(groups * block)));
    for (name, tools) in [("simulated", Tools::default()), ("racecheck", Tools::all())] {
        card.tools = tools;
        group.bench_function(name, |b| {
            b.iter(|| {
                card.memory.write(counters, &[0; 8]).expect("inside");
                card.launch("append", kernarg, [groups, 1, 1], block);
            });
        });
    }
    group.finish();
}

/// f16 rows times f16 rows on the matrix unit.
fn matmul16(c: &mut Criterion) {
    let (m, n, k) = (256usize, 128usize, 512usize);
    // Two a word.
    let halves = |count: usize| -> Vec<f32> {
        let halves: Vec<half::f16> = data(count).into_iter().map(half::f16::from_f32).collect();
        bytemuck::pod_collect_to_vec(&halves)
    };
    let words = |count: usize| vec![0.0; count];
    // `Gemm16` of kernels/include/gemm16.h: sizes, no activation, strides, alpha.
    let mut shape = bytes(&[m as u32, n as u32, k as u32, 0]);
    for stride in [k, k, n, m * k, n * k, m * n] {
        shape.extend((stride as u64).to_le_bytes());
    }
    shape.extend(1f32.to_le_bytes());
    shape.extend([0; 4]);
    pair(
        c,
        "matmul16_f16",
        m * n * k,
        "matmul16",
        "matmul16_f16_f32",
        ([(m / 128 * n / 64) as u32, 1, 1], 128),
        // a, b, and a bias and exponents of zero.
        &[halves(m * k), halves(n * k), words(n), words(m), words(n)],
        m * n,
        &shape,
        &[shape.len()],
        |x, y| {
            let widened = |words: &[f32]| -> Vec<f32> {
                bytemuck::cast_slice::<f32, half::f16>(words)
                    .iter()
                    .map(|x| x.to_f32())
                    .collect()
            };
            let (a, b) = (widened(&x[0]), widened(&x[1]));
            for (row, y) in a.chunks(k).zip(y.chunks_mut(n)) {
                for (column, y) in b.chunks(k).zip(y) {
                    // Sixteen sums, which fit vector registers.
                    let mut sums = [0.0f32; 16];
                    for (a, b) in row.as_chunks::<16>().0.iter().zip(column.as_chunks::<16>().0) {
                        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
                            *sum += a * b;
                        }
                    }
                    *y = sums.iter().sum();
                }
            }
        },
    );
}

/// One row of a quantised layer after the other, as a decoder's step does.
fn matvec(c: &mut Criterion) {
    let (rows, cols) = (1024usize, 4096usize);
    let blocks = rows * cols / 32;
    // A block is a scale in f16, here around 2^-6, and nibbles.
    let weights: Vec<u8> = (0..blocks * 18)
        .map(|k| match k % 18 {
            0 => (k / 18 * 37) as u8,
            1 => 0x24,
            _ => ((k * 2_654_435_761) >> 7) as u8,
        })
        .collect();
    let x = data(cols);
    // Operands of a bench are words, whatever they mean.
    let words: Vec<f32> = weights
        .chunks(4)
        .map(|w| f32::from_le_bytes([w[0], w[1], w[2], w[3]]))
        .collect();
    pair(
        c,
        "matvec_q4_0",
        rows * cols,
        "weights_q4_0",
        "matvec_q4_0_m1",
        ([rows as u32 / 32, 1, 1], 256),
        &[words, x, vec![0.0; rows]],
        rows,
        &bytes(&[1, rows as u32, cols as u32]),
        &[4; 3],
        |x, y| {
            let w: &[u8] = bytemuck::cast_slice(&x[0]);
            for (row, y) in w.chunks(cols / 32 * 18).zip(y) {
                let mut sum = 0.0;
                for (block, x) in row.as_chunks::<18>().0.iter().zip(x[1].as_chunks::<32>().0) {
                    let mut dot = 0.0;
                    for j in 0..16 {
                        dot += (f32::from(block[2 + j] & 15) - 8.0) * x[j];
                        dot += (f32::from(block[2 + j] >> 4) - 8.0) * x[j + 16];
                    }
                    sum += half::f16::from_le_bytes([block[0], block[1]]).to_f32() * dot;
                }
                *y = sum;
            }
        },
    );
}

fn flash(c: &mut Criterion) {
    let (seq, heads, d) = (128usize, 4usize, 64usize);
    let total = heads * seq * d;
    let inputs = [
        data(total),
        data(total + 1)[1..].to_vec(),
        data(total + 2)[2..].to_vec(),
    ];
    let mut sizes = bytes(&[seq as u32, seq as u32, d as u32, heads as u32, heads as u32]);
    for _ in 0..4 {
        for stride in [total as u64, (seq * d) as u64, d as u64] {
            sizes.extend(stride.to_le_bytes());
        }
    }
    sizes.extend(0.125f32.to_le_bytes());
    let split = [4, 4, 4, 4, 4, 24, 24, 24, 24, 4];
    let geometry = ([seq as u32 / 32, heads as u32, 1], 128);
    pair(
        c,
        "flash_attention",
        2 * total * seq,
        "flash_attention",
        "flash_attention_d64",
        geometry,
        &inputs,
        total,
        &sizes,
        &split,
        |x, out| {
            let mut scores = vec![0.0f32; seq];
            for h in 0..heads {
                let at = |t: &Vec<f32>, s: usize| -> Vec<f32> { t[(h * seq + s) * d..][..d].to_vec() };
                for i in 0..seq {
                    let q = at(&x[0], i);
                    let mut max = f32::NEG_INFINITY;
                    for (j, score) in scores.iter_mut().enumerate() {
                        let k = &x[1][(h * seq + j) * d..][..d];
                        *score = q.iter().zip(k).map(|(a, b)| a * b).sum::<f32>() * 0.125;
                        max = max.max(*score);
                    }
                    let o = &mut out[(h * seq + i) * d..][..d];
                    o.fill(0.0);
                    let mut sum = 0.0;
                    for (j, score) in scores.iter().enumerate() {
                        let p = (score - max).exp();
                        sum += p;
                        for (o, v) in o.iter_mut().zip(&x[2][(h * seq + j) * d..][..d]) {
                            *o += p * v;
                        }
                    }
                    o.iter_mut().for_each(|o| *o /= sum);
                }
            }
        },
    );
}

criterion_group! {
    name = interpreter;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(std::time::Duration::from_millis(300))
        .measurement_time(std::time::Duration::from_secs(2));
    targets = benches
}
criterion_main!(interpreter);
